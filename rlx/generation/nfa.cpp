// Thompson's construction: an expression adds states between the one it is entered from and the one it ends in.
#include "rlx/generation/nfa.h"

#include <algorithm>
#include <map>

#include "rlx/error.h"

namespace rlx {
namespace {

class NfaBuilder {
 public:
  NfaBuilder(const GrammarRules& rules, const RuleSizes& sizes, RuleId rule, std::uint64_t& left)
      : rules_(rules), sizes_(sizes), rule_(rule), left_(left) {}

  std::vector<NfaState> build() {
    const StateId start = add();
    const StateId end = build(rules_.rules()[rule_].body, start);
    states_[end].accepts = true;
    return std::move(states_);
  }

 private:
  StateId add() {
    if (left_ == 0) {
      const GrammarRule& r = rules_.rules()[rule_];
      throw Error(Diagnostic{ErrorCode::Unsupported, concat_text("rule '", r.name, "' makes the grammar too large"),
                             r.where, "lower the counts of its repetitions, or leave them out"});
    }
    --left_;
    states_.emplace_back();
    return static_cast<StateId>(states_.size() - 1);
  }

  // Adds what matches `id` between `from` and the state that is returned. Edges out of `from` are only added.
  StateId build(ExprId id, StateId from) {
    const GrammarExpr& e = rules_.expr(id);
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
      case ExprKind::Class: return build_class(e.set, from);
      case ExprKind::Sequence:
        for (const ExprId part : e.children) from = build(part, from);
        return from;
      case ExprKind::Choice: {
        const StateId to = add();
        for (const ExprId part : e.children) {
          const StateId end = build(part, from);
          states_[end].jumps.push_back(to);
        }
        return to;
      }
      case ExprKind::Repeat: return build_repeat(e, from);
      case ExprKind::Rule: {
        if (sizes_.inlined(e.rule)) return build(rules_.rules()[e.rule].body, from);
        const StateId to = add();
        states_[from].calls.push_back({e.rule, to});
        return to;
      }
    }
    return from;
  }

  // Sequences of bytes that end alike share their last states.
  StateId build_class(const CodePointSet& set, StateId from) {
    const StateId to = add();
    std::map<std::vector<Utf8Range>, StateId> tails;
    for (const Utf8Sequence& s : utf8_sequences(set)) {
      StateId next = to;
      for (std::size_t i = s.size; i-- > 1;) {
        const std::vector<Utf8Range> tail(s.bytes.begin() + static_cast<std::ptrdiff_t>(i),
                                          s.bytes.begin() + static_cast<std::ptrdiff_t>(s.size));
        const auto [entry, is_new] = tails.try_emplace(tail, 0);
        if (is_new) {
          entry->second = add();
          states_[entry->second].edges.push_back({s.bytes[i].first, s.bytes[i].last, next});
        }
        next = entry->second;
      }
      states_[from].edges.push_back({s.bytes[0].first, s.bytes[0].last, next});
    }
    return to;
  }

  StateId build_repeat(const GrammarExpr& e, StateId from) {
    const ExprId part = e.children[0];
    const std::uint32_t min = sizes_.nullable(part) ? 0 : e.min;  // empty matches make up for what is missing
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

  // `count` copies one after another; before each the way out is `exit`, if there is one. The copies have the same
  // states in the same order, so those of a copy behave as those of the first until copies run out.
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

  static constexpr std::uint64_t kMinHorizon = 4;  // below, sharing is not worth its trouble
  const GrammarRules& rules_;
  const RuleSizes& sizes_;
  RuleId rule_;
  std::uint64_t& left_;
  std::vector<NfaState> states_;
};

}  // namespace

std::vector<NfaState> build_nfa(const GrammarRules& rules, const RuleSizes& sizes, RuleId rule, std::uint64_t& left) {
  return NfaBuilder(rules, sizes, rule, left).build();
}

}  // namespace rlx
