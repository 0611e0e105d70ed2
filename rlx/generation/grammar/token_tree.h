// Byte strings as a tree in preorder without pointers, and the implementation of TokenTrie.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/generation/token_trie.h"

namespace rlx {

/// Nodes in preorder: the children of a node follow it, and `next` is the first node after its subtree.
struct ByteTree {
  struct Node {
    std::uint32_t next = 0;
    std::uint32_t values = 0;   // offset of its values; they end at the next node's offset
    std::uint32_t longest = 0;  // bytes of the longest string in its subtree
    std::uint16_t depth = 0;    // bytes of its prefix: 1 for nodes of the first byte
    std::uint8_t byte = 0;
  };
  std::vector<Node> nodes = std::vector<Node>(1);  // the last one ends the values of the node before it
  std::vector<std::uint32_t> values{};             // sorted by their strings

  ByteTree() = default;
  /// Builds the tree of `strings` with their values. No string is empty or longer than 65,535 bytes.
  explicit ByteTree(std::vector<std::pair<std::string_view, std::uint32_t>> strings);
  std::size_t size() const { return nodes.size() - 1; }
  std::size_t bytes() const { return nodes.capacity() * sizeof(Node) + values.capacity() * sizeof(std::uint32_t); }
};

struct TokenTrie::Impl {
  explicit Impl(TokenBytes t);
  TokenBytes tokens;
  ByteTree tree;
  std::vector<bool> allowed;             // by id: it is in the tree
  std::vector<bool> ends;                // by id
  std::vector<std::uint32_t> by_length;  // tokens of the tree, longest first
};

}  // namespace rlx
