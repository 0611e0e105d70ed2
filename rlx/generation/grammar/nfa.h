// The states of one rule: built from its expression with empty edges, then made deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/error.h"
#include "rlx/generation/grammar/automaton.h"
#include "rlx/generation/grammar/rule_sizes.h"

namespace rlx {

/// A state under construction; `jumps` are taken without a byte.
struct NfaState {
  std::vector<Automaton::ByteEdge> edges{};
  std::vector<Automaton::CallEdge> calls{};
  std::vector<StateId> jumps{};
  bool accepts = false;
  StateId twin = kNoState;
  std::uint32_t horizon = 0;
};

/// What a grammar may still take, so that one that is too large is refused at once. A step is tens of nanoseconds.
struct BuildLimits {
  std::uint64_t states = 0, steps = 0;
};

/// Unsupported, naming the rule with which the limits are passed.
Error too_large(const GrammarRules& rules, RuleId rule);

/// Thompson's construction for the body of a rule; state 0 is its start. Errors: too_large.
std::vector<NfaState> build_nfa(const GrammarRules& rules, const RuleSizes& sizes, RuleId rule, BuildLimits& left);

/// The same rule without jumps, state 0 its start. Rules that would grow out of proportion stay nondeterministic.
/// Takes what it does from `steps`; nothing when they do not suffice.
std::optional<std::vector<NfaState>> determinize(const std::vector<NfaState>& nfa, std::uint64_t& steps);

}  // namespace rlx
