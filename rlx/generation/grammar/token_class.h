// The behaviour of a vocabulary's tokens in a state, as far as it does not depend on the stack below.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/generation/grammar/stack_machine.h"
#include "rlx/generation/grammar/token_tree.h"

namespace rlx {

/// The tokens that can be read from a state without leaving its frame, as a list or a mask, whichever is smaller, and
/// the tree nodes at which the frame may have ended: the stack below must read the rest.
struct TokenClass {
  enum class Kind : std::uint8_t { Accepted, Rejected, Bits };
  Kind kind = Kind::Accepted;
  std::vector<std::uint32_t> list{};   // ids, or the words of a mask
  std::vector<std::uint32_t> exits{};  // sorted
  std::size_t bytes() const {
    return sizeof *this + list.capacity() * sizeof(std::uint32_t) + exits.capacity() * sizeof(std::uint32_t);
  }
};

/// The class of `state`. With `twin`, the class of a state that behaves the same for up to `horizon` bytes, only longer
/// tokens are visited.
TokenClass classify_tokens(StackMachine& machine, StateId state, const TokenTrie::Impl& trie,
                           const TokenClass* twin = nullptr, std::uint32_t horizon = 0);

/// A mask under construction.
class TokenMask {
 public:
  explicit TokenMask(const std::vector<std::uint32_t>& all) : all_(all), words_(all.size()) {}
  void set(std::uint32_t id) { words_[id / 32] |= 1U << id % 32; }
  bool has(std::uint32_t id) const { return (words_[id / 32] >> id % 32 & 1U) != 0; }
  /// Adds the tokens that `c` accepts without the stack below.
  void add(const TokenClass& c);
  /// Adds all tokens that can be read from `c`, by one walk of the vocabulary tree.
  void add_all(const ByteTree& tree, StackMachine& machine, StackMachine::Config c);
  /// Adds the tokens that leave the frame of `c` and continue from `below`.
  void add_leaving(const TokenClass& c, const ByteTree& tree, StackMachine& machine, StackMachine::Config below);
  std::vector<std::uint32_t> take() { return std::move(words_); }

 private:
  void add_below(const ByteTree& tree, StackMachine& machine, std::uint32_t begin, std::uint32_t end,
                 std::vector<StackMachine::Config>& path);
  const std::vector<std::uint32_t>& all_;  // all tokens of the trie
  std::vector<std::uint32_t> words_;
};

}  // namespace rlx
