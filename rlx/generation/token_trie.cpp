// Construction of the vocabulary tree.
#include "rlx/generation/token_trie.h"

#include <algorithm>

#include "rlx/error.h"
#include "rlx/generation/grammar/token_tree.h"

namespace rlx {
namespace {

constexpr std::size_t kLongestToken = 65'535;

std::vector<bool> flags(std::span<const TokenId> ids, std::size_t size, std::string_view what) {
  std::vector<bool> out(size);
  for (const TokenId id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= size)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text(what, " token ", id, " is not in the vocabulary of ", size, " tokens"));
    out[static_cast<std::size_t>(id)] = true;
  }
  return out;
}

std::vector<bool> allowed_tokens(const TokenBytes& tokens) {
  if (tokens.bytes.empty()) throw Error(ErrorCode::InvalidArgument, "the vocabulary has no tokens");
  if (tokens.bytes.size() > std::size_t{1} << 30)
    throw Error(ErrorCode::Unsupported, "the vocabulary has more than 2^30 tokens");
  const std::vector<bool> special = flags(tokens.special, tokens.bytes.size(), "special");
  const std::vector<bool> end = flags(tokens.end, tokens.bytes.size(), "end");
  std::vector<bool> out(tokens.bytes.size());
  for (std::size_t id = 0; id < out.size(); ++id) {
    if (tokens.bytes[id].size() > kLongestToken)
      throw Error(ErrorCode::InvalidArgument, concat_text("token ", id, " has ", tokens.bytes[id].size(),
                                                          " bytes: at most ", kLongestToken, " are supported"));
    out[id] = !tokens.bytes[id].empty() && !special[id] && !end[id];
  }
  return out;
}

std::vector<std::pair<std::string_view, std::uint32_t>> allowed_strings(const TokenBytes& tokens) {
  const std::vector<bool> allowed = allowed_tokens(tokens);
  std::vector<std::pair<std::string_view, std::uint32_t>> out;
  for (std::uint32_t id = 0; id < allowed.size(); ++id)
    if (allowed[id]) out.emplace_back(tokens.bytes[id], id);
  return out;
}

}  // namespace

ByteTree::ByteTree(std::vector<std::pair<std::string_view, std::uint32_t>> strings) {
  nodes.clear();
  std::sort(strings.begin(), strings.end());
  std::vector<std::uint32_t> path;  // nodes of the previous string
  std::string_view before;
  const auto close = [&](std::size_t depth) {
    while (path.size() > depth) {
      nodes[path.back()].next = static_cast<std::uint32_t>(nodes.size());
      const std::uint32_t longest = nodes[path.back()].longest;
      path.pop_back();
      if (!path.empty()) nodes[path.back()].longest = std::max(nodes[path.back()].longest, longest);
    }
  };
  for (const auto& [text, value] : strings) {
    const auto differ = std::mismatch(before.begin(), before.end(), text.begin(), text.end());
    close(static_cast<std::size_t>(differ.first - before.begin()));
    while (path.size() < text.size()) {
      Node n;
      n.values = static_cast<std::uint32_t>(values.size());
      n.depth = static_cast<std::uint16_t>(path.size() + 1);
      n.byte = static_cast<std::uint8_t>(text[path.size()]);
      path.push_back(static_cast<std::uint32_t>(nodes.size()));
      nodes.push_back(n);
    }
    nodes[path.back()].longest = static_cast<std::uint32_t>(text.size());
    values.push_back(value);
    before = text;
  }
  close(0);
  Node end;
  end.values = static_cast<std::uint32_t>(values.size());
  nodes.push_back(end);
}

TokenTrie::Impl::Impl(TokenBytes t)
    : tokens(std::move(t)),
      tree(allowed_strings(tokens)),
      allowed(allowed_tokens(tokens)),
      ends(flags(tokens.end, tokens.bytes.size(), "end")),
      by_length(tree.values) {
  std::sort(by_length.begin(), by_length.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(tokens.bytes[b].size(), a) < std::pair(tokens.bytes[a].size(), b);
  });
}

TokenTrie::TokenTrie(TokenBytes tokens) : impl_(std::make_shared<const Impl>(std::move(tokens))) {}

const TokenTrie::Impl& TokenTrie::impl() const {
  if (impl_ == nullptr) throw Error(ErrorCode::InvalidArgument, "a TokenTrie was used after it was moved from");
  return *impl_;
}

std::size_t TokenTrie::size() const { return impl().tokens.bytes.size(); }

std::string_view TokenTrie::bytes(TokenId id) const {
  return impl().tokens.bytes[detail::checked_index("token", id, size())];
}

bool TokenTrie::is_end(TokenId id) const { return impl().ends[detail::checked_index("token", id, size())]; }

std::span<const TokenId> TokenTrie::end_tokens() const { return impl().tokens.end; }

}  // namespace rlx
