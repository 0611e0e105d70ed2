// Splits large repetitions into rules of blocks.
#include "rlx/generation/grammar/split_repetitions.h"

#include <algorithm>

#include "rlx/error.h"
#include "rlx/generation/grammar/rule_sizes.h"

namespace rlx {
namespace {

constexpr std::uint32_t kBlock = 256;
constexpr std::uint64_t kLargePart = 128;  // not inlined again: rule_sizes.cpp

class Splitter {
 public:
  explicit Splitter(const GrammarRules& in) : in_(in), sizes_(in) {}

  GrammarRules split() {
    for (const GrammarRule& r : in_.rules()) {
      const RuleId id = out_.add_rule(r.name, r.where, r.may_be_empty);
      if (r.kept) out_.keep(id);
    }
    out_.set_root(in_.root());
    std::vector<ExprId> made(in_.num_exprs());
    for (ExprId id = 0; id < in_.num_exprs(); ++id) {
      const GrammarExpr& e = in_.expr(id);
      std::vector<ExprId> children;
      for (const ExprId child : e.children) children.push_back(made[child]);
      switch (e.kind) {
        case ExprKind::Never: made[id] = out_.never(); break;
        case ExprKind::Empty: made[id] = out_.empty(); break;
        case ExprKind::Bytes: made[id] = out_.bytes(e.bytes); break;
        case ExprKind::Class: made[id] = out_.one_of(e.set); break;
        case ExprKind::Sequence: made[id] = out_.sequence(std::move(children)); break;
        case ExprKind::Choice: made[id] = out_.choice(std::move(children)); break;
        case ExprKind::Rule: made[id] = out_.rule(e.rule); break;
        case ExprKind::Repeat: made[id] = repeat(e, children[0]); break;
      }
    }
    for (RuleId r = 0; r < in_.rules().size(); ++r) out_.define(r, made[in_.rules()[r].body]);
    return std::move(out_);
  }

 private:
  ExprId repeat(const GrammarExpr& e, ExprId part) {
    const std::uint32_t most = e.max == kUnbounded ? e.min : e.max;
    if (most > 1 && sizes_.states(e.children[0]) > kLargePart) part = as_rule(part);
    if (most <= kBlock) return out_.repeat(part, e.min, e.max);
    const ExprId first = exactly(part, e.min);
    return out_.sequence({first, e.max == kUnbounded ? out_.repeat(part, 0, kUnbounded) : up_to(part, e.max - e.min)});
  }
  ExprId exactly(ExprId part, std::uint32_t count) {
    if (count <= kBlock) return out_.repeat(part, count, count);
    const ExprId rest = out_.repeat(part, count % kBlock, count % kBlock);
    return out_.sequence({exactly(block(part), count / kBlock), rest});
  }
  // Up to count / 256 - 1 blocks, then up to 256 + count % 256 single parts: together every number up to `count`.
  ExprId up_to(ExprId part, std::uint32_t count) {
    if (count <= 2 * kBlock) return out_.repeat(part, 0, count);
    const ExprId rest = out_.repeat(part, 0, kBlock + count % kBlock);
    return out_.sequence({up_to(block(part), count / kBlock - 1), rest});
  }
  ExprId block(ExprId part) { return as_rule(out_.repeat(part, kBlock, kBlock)); }
  ExprId as_rule(ExprId part) {
    const RuleId r = out_.add_rule("a repetition", {}, true);
    out_.define(r, part);
    return out_.rule(r);
  }

  const GrammarRules& in_;
  RuleSizes sizes_;
  GrammarRules out_;
};

}  // namespace

GrammarRules split_repetitions(const GrammarRules& rules) { return Splitter(rules).split(); }

}  // namespace rlx
