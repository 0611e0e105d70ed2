// Grammars, and the matchers of sequences.
#include "rlx/generation/grammar.h"

#include <algorithm>

#include "rlx/error.h"
#include "rlx/formats/foreign_file.h"
#include "rlx/generation/grammar/automaton.h"
#include "rlx/generation/grammar/gbnf.h"
#include "rlx/generation/grammar/grammar_masks.h"

namespace rlx {
namespace {

using Config = StackMachine::Config;

// Elementary steps of the stack machine for one byte: milliseconds. Ordinary grammars take tens of steps.
constexpr std::uint64_t kByteBudget = 100'000;

}  // namespace

Grammar Grammar::from_gbnf(std::string_view text, std::string_view source, std::string_view root) {
  return from_rules(parse_gbnf(without_bom(text), source, root));
}

Grammar Grammar::from_rules(const GrammarRules& rules) {
  return Grammar(std::make_shared<const Automaton>(build_automaton(rules)));
}

const std::shared_ptr<const Automaton>& Grammar::automaton() const {
  if (automaton_ == nullptr) throw Error(ErrorCode::InvalidArgument, "a Grammar was used after it was moved from");
  return automaton_;
}

std::size_t Grammar::num_states() const { return automaton()->num_states(); }
std::size_t Grammar::num_rules() const { return automaton()->num_rules(); }

bool Grammar::matches(std::string_view text) const {
  // The vocabulary is irrelevant here: only bytes are matched.
  GrammarMatcher matcher(GrammarMasks(*this, TokenTrie(TokenBytes{{""}})));
  return matcher.accept_bytes(text) && matcher.can_end();
}

GrammarMatcher::GrammarMatcher(GrammarMasks masks) : masks_(std::move(masks)) {
  GrammarMasks::Impl& shared = masks_.impl();
  const std::lock_guard lock(shared.mutex);
  shared.make_room(shared.stacks);
  stacks_ = shared.stacks;
  stacks_->machine.set_budget(kByteBudget);
  config_ = stacks_->machine.start();
}

// With the lock held: makes room, and moves this sequence's stacks to the current stacks.
GrammarMasks::Impl& GrammarMatcher::enter() {
  GrammarMasks::Impl& shared = masks_.impl();
  shared.make_room(stacks_);
  if (stacks_ == shared.stacks) return shared;
  std::vector<Config> needed = history_;
  needed.push_back(config_);
  SharedStacks& to = *shared.stacks;
  to.machine.set_budget(~std::uint64_t{0});
  needed = to.machine.adopt(stacks_->machine, needed);
  // Doubles the limit, so that the needed stacks do not fill it again at once.
  to.limit = std::max(to.limit, 2 * to.machine.bytes());
  config_ = needed.back();
  needed.pop_back();
  history_ = std::move(needed);
  stacks_ = shared.stacks;
  return shared;
}

bool GrammarMatcher::follow(std::string_view bytes) {
  constexpr std::size_t kBytesAtOnce = 4096;  // between checks of the memory in use
  history_.push_back(config_);
  try {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (i % kBytesAtOnce == kBytesAtOnce - 1) (void)enter();
      stacks_->machine.set_budget(kByteBudget);
      config_ = stacks_->machine.step(config_, static_cast<std::uint8_t>(bytes[i]));
      if (config_ == StackMachine::kDead) break;
    }
  } catch (...) {
    config_ = history_.back();
    history_.pop_back();
    throw;
  }
  if (config_ != StackMachine::kDead) return true;
  config_ = history_.back();
  history_.pop_back();
  return false;
}

bool GrammarMatcher::accept(TokenId token) {
  GrammarMasks::Impl& shared = masks_.impl();
  const std::size_t id = detail::checked_index("token", token, shared.trie.allowed.size());
  const std::lock_guard lock(shared.mutex);
  (void)enter();
  if (ended_) return false;
  if (shared.trie.ends[id]) {
    if (!stacks_->machine.can_end(config_)) return false;
    history_.push_back(config_);
    ended_ = true;
    return true;
  }
  return shared.trie.allowed[id] && follow(shared.trie.tokens.bytes[id]);
}

bool GrammarMatcher::accept_bytes(std::string_view bytes) {
  const std::lock_guard lock(masks_.impl().mutex);
  (void)enter();
  return !ended_ && follow(bytes);
}

void GrammarMatcher::rewind(std::size_t count) {
  if (count > history_.size()) {
    throw Error(ErrorCode::InvalidArgument,
                concat_text("cannot rewind ", count, " tokens of a sequence of ", history_.size()));
  }
  if (count == 0) return;
  config_ = history_[history_.size() - count];
  history_.resize(history_.size() - count);
  ended_ = false;
}

std::span<const std::uint32_t> GrammarMatcher::mask() {
  const std::lock_guard lock(masks_.impl().mutex);
  GrammarMasks::Impl& shared = enter();
  mask_ = ended_ ? shared.none : shared.mask(*stacks_, config_);
  return *mask_;
}

bool GrammarMatcher::can_end() {
  const std::lock_guard lock(masks_.impl().mutex);
  return stacks_->machine.can_end(config_);
}

std::string GrammarMatcher::forced_bytes(std::size_t limit) {
  const std::lock_guard lock(masks_.impl().mutex);
  (void)enter();
  std::string out;
  if (ended_) return out;
  for (Config c = config_; out.size() < limit;) {
    const int byte = stacks_->machine.only_byte(c);
    if (byte < 0) break;
    stacks_->machine.set_budget(kByteBudget);
    c = stacks_->machine.step(c, static_cast<std::uint8_t>(byte));
    out += static_cast<char>(byte);
  }
  return out;
}

}  // namespace rlx
