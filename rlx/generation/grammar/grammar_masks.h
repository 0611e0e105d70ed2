// State shared by the sequences of a grammar: stacks, token classes, masks.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "rlx/base/forks.h"
#include "rlx/generation/grammar.h"
#include "rlx/generation/grammar/stack_machine.h"
#include "rlx/generation/grammar/token_class.h"

namespace rlx {

using MaskWords = std::shared_ptr<const std::vector<std::uint32_t>>;

/// The append-only stacks of all sequences. When they grow too large a new object is started, and each sequence copies
/// the stacks it still needs.
struct SharedStacks {
  explicit SharedStacks(std::shared_ptr<const Automaton> automaton) : machine(std::move(automaton)) {}
  StackMachine machine;
  std::size_t limit = std::size_t{64} << 20;  // bytes
  std::unordered_map<StackMachine::Config, MaskWords> masks{};
};

struct GrammarMasks::Impl {
  Impl(const Grammar& grammar, const TokenTrie& trie);

  /// Callers of the functions below must hold `mutex`.
  const TokenClass& class_of(StackMachine& machine, StateId state);
  MaskWords mask(SharedStacks& stacks, StackMachine::Config c);
  /// Starts new stacks when those in use are too large. Errors: Unsupported when even the needed stacks are too large.
  void make_room(const std::shared_ptr<SharedStacks>& in_use);
  std::size_t bytes() const;

  mutable ObjectMutex mutex{"a Grammar"};
  const std::shared_ptr<const Automaton> automaton;
  const TokenTrie tokens;
  const TokenTrie::Impl& trie;
  std::vector<std::uint32_t> all;  // the mask of all tokens of the trie
  MaskWords none;
  std::shared_ptr<SharedStacks> stacks;

 private:
  MaskWords make_mask(StackMachine& machine, StackMachine::Config c);

  std::vector<std::unique_ptr<const TokenClass>> classes_;  // by state
  std::size_t class_bytes_ = 0;
};

}  // namespace rlx
