// Sizes of expressions. Expressions are built bottom-up, so children have smaller ids than their parent. Only rules
// make cycles.
#include "rlx/generation/grammar/rule_sizes.h"

#include <algorithm>

namespace rlx {
namespace {

// A rule without loops is inlined up to this many states. A rule with loops is inlined only if it is tiny, because its
// states have token classes, which are worth sharing.
constexpr std::uint64_t kInlineStates = 128, kInlineLoopStates = 8;
constexpr std::uint64_t kMany = std::uint64_t{1} << 40;

}  // namespace

RuleSizes::RuleSizes(const GrammarRules& rules)
    : states_(rules.num_exprs()),
      min_bytes_(rules.num_exprs()),
      nullable_(rules.num_exprs()),
      inlined_(rules.rules().size()) {
  find_nullable(rules);
  find_min_bytes(rules);
  find_states(rules);
}

void RuleSizes::find_nullable(const GrammarRules& rules) {
  // Passes over all expressions until nothing changes. The number of passes grows with chains of rules that refer to
  // later rules, so it is bounded. What is not found by then counts as not nullable, which only costs states.
  for (int pass = 0, changed = 1; changed != 0 && pass < 16; ++pass) {
    changed = 0;
    for (ExprId id = 0; id < rules.num_exprs(); ++id) {
      const GrammarExpr& e = rules.expr(id);
      const auto is_nullable = [&](ExprId child) { return static_cast<bool>(nullable_[child]); };
      bool now = false;
      switch (e.kind) {
        case ExprKind::Never:
        case ExprKind::Bytes:
        case ExprKind::Class: break;
        case ExprKind::Empty: now = true; break;
        case ExprKind::Sequence: now = std::all_of(e.children.begin(), e.children.end(), is_nullable); break;
        case ExprKind::Choice: now = std::any_of(e.children.begin(), e.children.end(), is_nullable); break;
        case ExprKind::Repeat: now = e.min == 0 || is_nullable(e.children[0]); break;
        case ExprKind::Rule: now = is_nullable(rules.rules()[e.rule].body); break;
      }
      if (now && !nullable_[id]) {
        nullable_[id] = true;
        changed = 1;
      }
    }
  }
}

void RuleSizes::find_min_bytes(const GrammarRules& rules) {
  // Every pass improves a lower bound.
  for (int pass = 0; pass < 4; ++pass) {
    for (ExprId id = 0; id < rules.num_exprs(); ++id) {
      const GrammarExpr& e = rules.expr(id);
      std::uint64_t n = 0;
      switch (e.kind) {
        case ExprKind::Never:
        case ExprKind::Empty: break;
        case ExprKind::Bytes: n = e.bytes.size(); break;
        case ExprKind::Class: n = 1; break;
        case ExprKind::Sequence:
          for (const ExprId child : e.children) n += min_bytes_[child];
          break;
        case ExprKind::Choice:
          n = min_bytes_[e.children[0]];
          for (const ExprId child : e.children) n = std::min<std::uint64_t>(n, min_bytes_[child]);
          break;
        case ExprKind::Repeat: n = std::uint64_t{e.min} * min_bytes_[e.children[0]]; break;
        case ExprKind::Rule: n = min_bytes_[rules.rules()[e.rule].body]; break;
      }
      min_bytes_[id] = static_cast<std::uint32_t>(std::min<std::uint64_t>(n, 1U << 20));
    }
  }
}

void RuleSizes::find_states(const GrammarRules& rules) {
  // A rule is decided once all rules that its body names are decided. Recursive rules never are.
  const std::size_t num_rules = rules.rules().size();
  std::vector<bool> known(rules.num_exprs()), loops(rules.num_exprs()), settled(num_rules);
  for (int pass = 0, changed = 1; changed != 0 && pass < 16; ++pass) {
    changed = 0;
    for (ExprId id = 0; id < rules.num_exprs(); ++id) {
      if (known[id]) continue;
      const GrammarExpr& e = rules.expr(id);
      std::uint64_t n = 1;
      bool all_known = true, loop = e.kind == ExprKind::Repeat && e.max == kUnbounded;
      for (const ExprId child : e.children) {
        n += states_[child];
        all_known = all_known && known[child];
        loop = loop || loops[child];
      }
      if (e.kind == ExprKind::Bytes) n = e.bytes.size();
      if (e.kind == ExprKind::Class) n = 2 + (e.set.back().last > 0x7F ? 5 : 0);
      if (e.kind == ExprKind::Repeat) {
        const std::uint64_t copies = e.max == kUnbounded ? std::max<std::uint64_t>(e.min, 1) : e.max;
        n = copies * (std::min(states_[e.children[0]], kMany) + 1);
      }
      if (e.kind == ExprKind::Rule) {
        const ExprId body = rules.rules()[e.rule].body;
        all_known = settled[e.rule];
        n = inlined_[e.rule] ? states_[body] : 1;
        loop = all_known && loops[body];
      }
      states_[id] = std::min(n, kMany);
      loops[id] = loop;
      if (all_known) {
        known[id] = true;
        changed = 1;
      }
    }
    for (RuleId r = 0; r < num_rules; ++r) {
      const ExprId body = rules.rules()[r].body;
      if (settled[r] || !known[body]) continue;
      settled[r] = true;
      inlined_[r] = !rules.rules()[r].kept && states_[body] <= (loops[body] ? kInlineLoopStates : kInlineStates);
      changed = 1;
    }
  }
}

}  // namespace rlx
