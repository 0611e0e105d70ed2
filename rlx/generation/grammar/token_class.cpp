// Classifies a vocabulary's tokens in a state, and composes masks from classes.
#include "rlx/generation/grammar/token_class.h"

#include <algorithm>

namespace rlx {
namespace {

using Config = StackMachine::Config;

void set_bit(std::vector<std::uint32_t>& words, std::uint32_t id) { words[id / 32] |= 1U << id % 32; }
bool has_bit(const std::vector<std::uint32_t>& words, std::uint32_t id) {
  return (words[id / 32] >> id % 32 & 1U) != 0;
}

class Classifier {
 public:
  Classifier(StackMachine& machine, const TokenTrie::Impl& trie, std::uint32_t horizon)
      : machine_(machine), trie_(trie), horizon_(horizon), accepted_((trie.tokens.bytes.size() + 31) / 32) {}

  // Copies the results of the twin state for tokens that are not longer than the horizon.
  void take_from(const TokenClass& twin) {
    switch (twin.kind) {
      case TokenClass::Kind::Bits: accepted_ = twin.list; break;
      case TokenClass::Kind::Accepted:
        for (const std::uint32_t id : twin.list) set_bit(accepted_, id);
        break;
      case TokenClass::Kind::Rejected:
        for (const std::uint32_t id : trie_.tree.values) set_bit(accepted_, id);
        for (const std::uint32_t id : twin.list) accepted_[id / 32] &= ~(1U << id % 32);
        break;
    }
    for (const std::uint32_t id : trie_.by_length) {
      if (length(id) <= horizon_) break;
      accepted_[id / 32] &= ~(1U << id % 32);
    }
    for (const std::uint32_t n : twin.exits)
      if (trie_.tree.nodes[n].depth <= horizon_) exits_.push_back(n);
  }

  void walk(StateId state) {
    const ByteTree& tree = trie_.tree;
    std::vector<Config> path{machine_.alone(state)};
    std::vector<std::uint32_t> open;  // exits on the path, recorded when a node below them is dead
    for (std::uint32_t n = 0; n < tree.size();) {
      machine_.spend_walk();
      const ByteTree::Node& node = tree.nodes[n];
      if (node.longest <= horizon_) {
        n = node.next;
        continue;
      }
      while (!open.empty() && tree.nodes[open.back()].depth >= node.depth) open.pop_back();
      const Config c = machine_.step(path[node.depth - std::size_t{1}], node.byte);
      if (c == StackMachine::kDead) {
        exits_.insert(exits_.end(), open.begin(), open.end());
        open.clear();
        n = node.next;
        continue;
      }
      if (path.size() <= node.depth) path.resize(node.depth + std::size_t{1});
      path[node.depth] = c;
      if (machine_.leaves_unknown(c)) open.push_back(n);
      if (node.depth > horizon_)
        for (std::uint32_t v = node.values; v < tree.nodes[n + 1].values; ++v) set_bit(accepted_, tree.values[v]);
      ++n;
    }
  }

  TokenClass take() {
    const std::size_t all = trie_.tree.values.size(), few = all / 32;
    const auto accepted = static_cast<std::size_t>(std::count_if(
        trie_.tree.values.begin(), trie_.tree.values.end(), [&](std::uint32_t id) { return has_bit(accepted_, id); }));
    TokenClass out;
    const auto list = [&](bool wanted) {
      for (const std::uint32_t id : trie_.tree.values)
        if (has_bit(accepted_, id) == wanted) out.list.push_back(id);
      std::sort(out.list.begin(), out.list.end());
    };
    if (accepted <= few) {
      list(true);
    } else if (all - accepted <= few) {
      out.kind = TokenClass::Kind::Rejected;
      list(false);
    } else {
      out.kind = TokenClass::Kind::Bits;
      out.list = std::move(accepted_);
    }
    std::sort(exits_.begin(), exits_.end());
    exits_.erase(std::unique(exits_.begin(), exits_.end()), exits_.end());
    out.exits = std::move(exits_);
    return out;
  }

 private:
  std::size_t length(std::uint32_t id) const { return trie_.tokens.bytes[id].size(); }

  StackMachine& machine_;
  const TokenTrie::Impl& trie_;
  std::uint32_t horizon_;
  std::vector<std::uint32_t> accepted_;
  std::vector<std::uint32_t> exits_;
};

}  // namespace

TokenClass classify_tokens(StackMachine& machine, StateId state, const TokenTrie::Impl& trie, const TokenClass* twin,
                           std::uint32_t horizon) {
  Classifier c(machine, trie, twin == nullptr ? 0 : horizon);
  if (twin != nullptr) c.take_from(*twin);
  c.walk(state);
  return c.take();
}

void TokenMask::add(const TokenClass& c) {
  switch (c.kind) {
    case TokenClass::Kind::Accepted:
      for (const std::uint32_t id : c.list) set(id);
      break;
    case TokenClass::Kind::Bits:
      for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= c.list[i];
      break;
    case TokenClass::Kind::Rejected: {
      std::vector<std::uint32_t> missing;
      for (const std::uint32_t id : c.list)
        if (!has(id)) missing.push_back(id);
      words_ = all_;
      for (const std::uint32_t id : missing) words_[id / 32] &= ~(1U << id % 32);
    }
  }
}

void TokenMask::add_all(const ByteTree& tree, StackMachine& machine, Config c) {
  std::vector<Config> path{c};
  add_below(tree, machine, 0, static_cast<std::uint32_t>(tree.size()), path);
}

void TokenMask::add_leaving(const TokenClass& c, const ByteTree& tree, StackMachine& machine, Config below) {
  std::vector<Config> path;
  for (const std::uint32_t exit : c.exits) {
    const ByteTree::Node& from = tree.nodes[exit];
    if (path.size() <= from.depth) path.resize(from.depth + std::size_t{1});
    path[from.depth] = below;
    add_below(tree, machine, exit + 1, from.next, path);
  }
}

// Adds the nodes [begin, end) that can be read. `path` has the configurations at each depth above them.
void TokenMask::add_below(const ByteTree& tree, StackMachine& machine, std::uint32_t begin, std::uint32_t end,
                          std::vector<Config>& path) {
  for (std::uint32_t n = begin; n < end;) {
    machine.spend_walk();
    const ByteTree::Node& node = tree.nodes[n];
    const Config to = machine.step(path[node.depth - std::size_t{1}], node.byte);
    if (to == StackMachine::kDead) {
      n = node.next;
      continue;
    }
    if (path.size() <= node.depth) path.resize(node.depth + std::size_t{1});
    path[node.depth] = to;
    for (std::uint32_t v = node.values; v < tree.nodes[n + std::size_t{1}].values; ++v) set(tree.values[v]);
    ++n;
  }
}

}  // namespace rlx
