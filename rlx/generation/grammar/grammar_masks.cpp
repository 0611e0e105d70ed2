// Masks of configurations, composed from token classes of states, computed on demand and cached.
#include "rlx/generation/grammar/grammar_masks.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx {
namespace {

// Elementary steps of the stack machine for one mask: about half a second. Ordinary grammars take thousands.
constexpr std::uint64_t kMaskBudget = 10'000'000;
// A configuration with at least this many unclassified states is walked as a whole. The mask is exact too, but the work
// is not reused by other configurations.
constexpr std::size_t kManyUnknown = 24;
constexpr std::size_t kMaskBytes = std::size_t{64} << 20, kClassBytes = std::size_t{512} << 20;
constexpr std::size_t kStackBytes = std::size_t{1} << 30;

}  // namespace

GrammarMasks::Impl::Impl(const Grammar& grammar, const TokenTrie& t)
    : automaton(grammar.automaton()),
      tokens(t),
      trie(tokens.impl()),
      all((tokens.size() + 31) / 32),
      none(std::make_shared<const std::vector<std::uint32_t>>(all.size())),
      stacks(std::make_shared<SharedStacks>(automaton)),
      classes_(automaton->num_states()) {
  for (const std::uint32_t id : trie.tree.values) all[id / 32] |= 1U << id % 32;
}

const TokenClass& GrammarMasks::Impl::class_of(StackMachine& machine, StateId state) {
  if (classes_[state] == nullptr) {
    const Automaton::State& s = automaton->states[state];
    const TokenClass* twin = s.twin == kNoState ? nullptr : &class_of(machine, s.twin);
    auto made = std::make_unique<const TokenClass>(classify_tokens(machine, state, trie, twin, s.horizon));
    class_bytes_ += made->bytes();
    classes_[state] = std::move(made);
  }
  return *classes_[state];
}

MaskWords GrammarMasks::Impl::make_mask(StackMachine& machine, StackMachine::Config c) {
  machine.set_budget(kMaskBudget);
  TokenMask mask(all);
  const std::vector<StackMachine::Item> items(machine.items(c).begin(), machine.items(c).end());
  if (class_bytes_ > kClassBytes) {
    for (auto& own : classes_) own.reset();
    class_bytes_ = 0;
  }
  const auto unknown = std::count_if(items.begin(), items.end(),
                                     [&](const StackMachine::Item& i) { return classes_[i.state] == nullptr; });
  if (static_cast<std::size_t>(unknown) > kManyUnknown) {
    mask.add_all(trie.tree, machine, c);
  } else {
    for (const StackMachine::Item& i : items) mask.add(class_of(machine, i.state));
    for (const StackMachine::Item& i : items) {
      const TokenClass& own = class_of(machine, i.state);
      if (own.exits.empty()) continue;
      if (const StackMachine::Config below = machine.after(i.frame); below != StackMachine::kDead)
        mask.add_leaving(own, trie.tree, machine, below);
    }
  }
  if (machine.can_end(c))
    for (const TokenId id : tokens.end_tokens()) mask.set(static_cast<std::uint32_t>(id));
  return std::make_shared<const std::vector<std::uint32_t>>(mask.take());
}

MaskWords GrammarMasks::Impl::mask(SharedStacks& own, StackMachine::Config c) {
  if (const auto known = own.masks.find(c); known != own.masks.end()) return known->second;
  if ((own.masks.size() + 1) * all.size() * sizeof(std::uint32_t) > kMaskBytes) own.masks.clear();
  return own.masks[c] = make_mask(own.machine, c);
}

void GrammarMasks::Impl::make_room(const std::shared_ptr<SharedStacks>& in_use) {
  if (in_use != stacks || stacks->machine.bytes() <= stacks->limit) return;
  if (stacks->limit > kStackBytes) {
    throw Error(Diagnostic{ErrorCode::Unsupported,
                           "the text is nested too deeply for its grammar",
                           {},
                           concat_text("the stacks of its rules take more than ", kStackBytes >> 20, " MiB")});
  }
  stacks = std::make_shared<SharedStacks>(automaton);
}

std::size_t GrammarMasks::Impl::bytes() const {
  return stacks->machine.bytes() + stacks->masks.size() * all.size() * sizeof(std::uint32_t) + class_bytes_;
}

GrammarMasks::GrammarMasks(const Grammar& grammar, const TokenTrie& tokens)
    : impl_(std::make_shared<Impl>(grammar, tokens)) {}

GrammarMasks::Impl& GrammarMasks::impl() const {
  if (impl_ == nullptr) throw Error(ErrorCode::InvalidArgument, "a GrammarMasks was used after it was moved from");
  return *impl_;
}

void GrammarMasks::prepare() {
  Impl& shared = impl();
  for (StateId s = 0; s < shared.automaton->num_states(); ++s) {
    const std::lock_guard lock(shared.mutex);
    if (shared.automaton->edges(s).empty()) continue;
    shared.make_room(shared.stacks);
    shared.stacks->machine.set_budget(kMaskBudget);
    (void)shared.class_of(shared.stacks->machine, s);
  }
}

std::size_t GrammarMasks::bytes() const {
  const std::lock_guard lock(impl().mutex);
  return impl().bytes();
}

const TokenTrie& GrammarMasks::tokens() const { return impl().tokens; }

}  // namespace rlx
