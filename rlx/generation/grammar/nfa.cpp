// Thompson's construction: an expression adds states between its entry state and its exit state.
#include "rlx/generation/grammar/nfa.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "rlx/error.h"

namespace rlx {
namespace {

class NfaBuilder {
 public:
  NfaBuilder(const GrammarRules& rules, const RuleSizes& sizes, RuleId rule, BuildLimits& left)
      : rules_(rules), sizes_(sizes), rule_(rule), left_(left) {}

  std::vector<NfaState> build() {
    const StateId start = add();
    const StateId end = build(rules_.rules()[rule_].body, start);
    states_[end].accepts = true;
    return std::move(states_);
  }

 private:
  StateId add() {
    if (left_.states == 0) throw too_large(rules_, rule_);
    --left_.states;
    states_.emplace_back();
    return static_cast<StateId>(states_.size() - 1);
  }
  void spend(std::uint64_t steps) {
    if (steps > left_.steps) throw too_large(rules_, rule_);
    left_.steps -= steps;
  }

  // Adds the states that match `id` from `from` on, and returns the exit state. Existing edges of `from` are kept. The
  // last part of a sequence does not add recursion depth: objects with thousands of members nest this way.
  StateId build(ExprId id, StateId from) {
    while (true) {
      spend(1);
      const GrammarExpr& e = rules_.expr(id);
      if (e.kind == ExprKind::Sequence) {
        for (std::size_t i = 0; i + 1 < e.children.size(); ++i) from = build(e.children[i], from);
        id = e.children.back();
      } else if (e.kind == ExprKind::Rule && sizes_.inlined(e.rule)) {
        id = rules_.rules()[e.rule].body;
      } else {
        return build_one(e, id, from);
      }
    }
  }

  StateId build_one(const GrammarExpr& e, ExprId id, StateId from) {
    switch (e.kind) {
      case ExprKind::Never: return add();
      case ExprKind::Empty: return from;
      case ExprKind::Bytes:
        for (const char c : e.bytes) {
          const StateId to = add();
          const auto byte = static_cast<std::uint8_t>(c);
          states_[from].edges.push_back({byte, byte, to});
          from = to;
        }
        return from;
      case ExprKind::Class: return build_class(id, from);
      case ExprKind::Sequence: break;  // see build
      case ExprKind::Choice: {
        const StateId to = add();
        std::unordered_map<std::uint64_t, StateId> words;
        for (const ExprId part : e.children) {
          const StateId end = build_alternative(part, from, words);
          states_[end].jumps.push_back(to);
        }
        return to;
      }
      case ExprKind::Repeat: return build_repeat(e, from);
      case ExprKind::Rule: {
        const StateId to = add();
        states_[from].calls.push_back({e.rule, to});
        return to;
      }
    }
    return from;
  }

  // Alternatives with a common prefix share its states. `words` maps the previous state and byte to the states of the
  // choice so far, so that thousands of words only cost their differences.
  StateId build_alternative(ExprId id, StateId from, std::unordered_map<std::uint64_t, StateId>& words) {
    const GrammarExpr& e = rules_.expr(id);
    const bool longer = e.kind == ExprKind::Sequence;
    const GrammarExpr& first = longer ? rules_.expr(e.children[0]) : e;
    if (first.kind != ExprKind::Bytes) return build(id, from);
    for (const char c : first.bytes) {
      const auto byte = static_cast<std::uint8_t>(c);
      const auto [entry, is_new] = words.try_emplace(std::uint64_t{from} << 8 | byte, kNoState);
      if (is_new) {
        entry->second = add();
        states_[from].edges.push_back({byte, byte, entry->second});
      }
      from = entry->second;
    }
    spend(first.bytes.size());
    for (std::size_t i = 1; longer && i < e.children.size(); ++i) from = build(e.children[i], from);
    return from;
  }

  // The states of a class: the entry kFrom and the exit kTo, then the inner states.
  struct ClassShape {
    std::vector<std::vector<Automaton::ByteEdge>> edges{};  // by state; kTo has none
  };
  static constexpr StateId kFrom = 0, kTo = 1;

  StateId build_class(ExprId id, StateId from) {
    const auto [entry, is_new] = shapes_.try_emplace(id);
    ClassShape& shape = entry->second;
    if (is_new) shape = class_shape(rules_.expr(id).set);
    const StateId to = add();
    std::vector<StateId> ids{from, to};
    while (ids.size() < shape.edges.size()) ids.push_back(add());
    for (StateId s = 0; s < ids.size(); ++s) {
      spend(shape.edges[s].size());
      for (Automaton::ByteEdge e : shape.edges[s]) {
        e.target = ids[e.target];
        states_[ids[s]].edges.push_back(e);
      }
    }
    return to;
  }

  // Characters share the states of common prefixes and common suffixes.
  ClassShape class_shape(const CodePointSet& set) {
    const std::vector<Utf8Sequence> sequences = utf8_sequences(set);
    ClassShape shape;
    shape.edges.resize(2);
    std::map<std::vector<std::pair<Utf8Range, StateId>>, StateId> known;
    // Edges of the sequences [begin, end), which agree before byte `at`. Ranges of one byte are equal or disjoint.
    using Edges = std::vector<std::pair<Utf8Range, StateId>>;
    const auto edges = [&](const auto& self, std::size_t begin, std::size_t end, std::size_t at) -> Edges {
      spend(end - begin);
      Edges out;
      while (begin < end) {
        const Utf8Range range = sequences[begin].bytes[at];
        std::size_t next = begin;
        while (next < end && sequences[next].bytes[at] == range) ++next;
        StateId to = kTo;
        if (at + 1 < sequences[begin].size) {
          const auto below = self(self, begin, next, at + 1);
          const auto [entry, is_new] = known.try_emplace(below, static_cast<StateId>(shape.edges.size()));
          if (is_new) shape.edges.push_back(as_edges(below));
          to = entry->second;
        }
        out.emplace_back(range, to);
        begin = next;
      }
      return out;
    };
    shape.edges[kFrom] = as_edges(edges(edges, 0, sequences.size(), 0));
    return shape;
  }
  static std::vector<Automaton::ByteEdge> as_edges(const std::vector<std::pair<Utf8Range, StateId>>& from) {
    std::vector<Automaton::ByteEdge> out;
    for (const auto& [range, to] : from) out.push_back({range.first, range.last, to});
    return out;
  }

  StateId build_repeat(const GrammarExpr& e, StateId from) {
    const ExprId part = e.children[0];
    const std::uint32_t min = sizes_.nullable(part) ? 0 : e.min;  // empty matches satisfy the minimum
    if (e.max == kUnbounded) {
      if (min > 1) from = build_copies(part, min - 1, from, kNoState);
      const StateId loop = add();
      states_[from].jumps.push_back(loop);
      const StateId end = build(part, loop);
      states_[end].jumps.push_back(loop);
      return min == 0 ? loop : end;
    }
    from = build_copies(part, min, from, kNoState);
    if (e.max == min) return from;
    const StateId to = add();
    from = build_copies(part, e.max - min, from, to);
    states_[from].jumps.push_back(to);
    return to;
  }

  // `count` consecutive copies, with an edge to `exit` before each if there is one. All copies have the same states in
  // the same order, so a copy's states behave as the first copy's until the copies run out.
  StateId build_copies(ExprId part, std::uint32_t count, StateId from, StateId exit) {
    const std::uint64_t length = sizes_.min_bytes(part);
    StateId first_begin = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (exit != kNoState) states_[from].jumps.push_back(exit);
      const auto begin = static_cast<StateId>(states_.size());
      from = build(part, from);
      if (i == 0) first_begin = begin;
      const std::uint64_t horizon = (count - i - 1) * length;
      if (i == 0 || horizon < kMinHorizon) continue;
      for (StateId s = begin; s < states_.size(); ++s) {
        states_[s].twin = first_begin + (s - begin);
        states_[s].horizon = static_cast<std::uint32_t>(std::min<std::uint64_t>(horizon, 1U << 30));
      }
    }
    return from;
  }

  static constexpr std::uint64_t kMinHorizon = 4;  // sharing does not pay below this horizon
  const GrammarRules& rules_;
  const RuleSizes& sizes_;
  RuleId rule_;
  BuildLimits& left_;
  std::vector<NfaState> states_;
  std::unordered_map<ExprId, ClassShape> shapes_;
};

}  // namespace

Error too_large(const GrammarRules& rules, RuleId rule) {
  const GrammarRule& r = rules.rules()[rule];
  return Error(Diagnostic{ErrorCode::Unsupported, concat_text("rule '", r.name, "' makes the grammar too large"),
                          r.where, "lower the counts of its repetitions, or leave them out; list fewer words"});
}

std::vector<NfaState> build_nfa(const GrammarRules& rules, const RuleSizes& sizes, RuleId rule, BuildLimits& left) {
  return NfaBuilder(rules, sizes, rule, left).build();
}

}  // namespace rlx
