// The states of one rule: an NFA with empty edges, built from its expression and then made deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/error.h"
#include "rlx/generation/grammar/automaton.h"
#include "rlx/generation/grammar/rule_sizes.h"

namespace rlx {

/// A state under construction. `jumps` are empty edges.
struct NfaState {
  std::vector<Automaton::ByteEdge> edges{};
  std::vector<Automaton::CallEdge> calls{};
  std::vector<StateId> jumps{};
  bool accepts = false;
  StateId twin = kNoState;
  std::uint32_t horizon = 0;
};

/// The remaining build budget, so that a grammar that is too large is refused quickly. A step takes tens of
/// nanoseconds.
struct BuildLimits {
  std::uint64_t states = 0, steps = 0;
};

/// Unsupported, naming the rule that exceeds the limits.
Error too_large(const GrammarRules& rules, RuleId rule);

/// Thompson's construction for the body of a rule; state 0 is its start. Errors: too_large.
std::vector<NfaState> build_nfa(const GrammarRules& rules, const RuleSizes& sizes, RuleId rule, BuildLimits& left);

/// The same rule without empty edges; state 0 is its start. Rules that would grow too much stay nondeterministic. The
/// work is subtracted from `steps`; returns nothing when they do not suffice.
std::optional<std::vector<NfaState>> determinize(const std::vector<NfaState>& nfa, std::uint64_t& steps);

}  // namespace rlx
