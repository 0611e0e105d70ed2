// The pushdown automaton of a grammar over bytes: each rule has states with byte edges and call edges.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {

using StateId = std::uint32_t;

/// The shared final state: it ends its rule and does nothing else.
constexpr StateId kDone = 0;
constexpr StateId kNoState = 0xFFFFFFFF;

class Automaton {
 public:
  struct ByteEdge {
    std::uint8_t first = 0, last = 0;
    StateId target = kDone;
  };
  /// Runs `rule` from its start and continues at `target` when the rule ends.
  struct CallEdge {
    RuleId rule = 0;
    StateId target = kDone;
  };
  struct State {
    std::uint32_t edges = 0, calls = 0;  // where its edges begin; they end where the next state's begin
    bool accepts = false;                // the rule may end here
    /// A state that behaves the same for texts of up to `horizon` bytes: copies of a repeated part share their token
    /// classes.
    StateId twin = kNoState;
    std::uint32_t horizon = 0;
  };

  std::size_t num_states() const { return states.size() - 1; }
  std::size_t num_rules() const { return starts.size(); }
  std::span<const ByteEdge> edges(StateId s) const {
    return {byte_edges.data() + states[s].edges, byte_edges.data() + states[s + 1].edges};
  }
  std::span<const CallEdge> calls(StateId s) const {
    return {call_edges.data() + states[s].calls, call_edges.data() + states[s + 1].calls};
  }

  std::vector<State> states;  // plus one more, whose edge offset ends the last state
  std::vector<ByteEdge> byte_edges;
  std::vector<CallEdge> call_edges;
  std::vector<StateId> starts;  // by rule
  RuleId root = 0;
  /// Bytes that no edge distinguishes have the same class.
  std::array<std::uint8_t, 256> byte_class{};
  std::array<std::uint8_t, 256> class_byte{};  // a byte of each class
  std::uint32_t num_classes = 0;
};

/// The automaton of the rules reachable from the root. Left recursion, ambiguity, empty loops and large repetitions are
/// supported. Errors: BadFile naming a rule that can never end; Unsupported, within a second, for more than a million
/// states.
Automaton build_automaton(const GrammarRules& rules);

}  // namespace rlx
