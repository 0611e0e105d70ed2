// CustomOpDef: the record of a custom op with defaults for what its author leaves out.
#include "rlx/ir/custom_op.h"

#include "rlx/ir/build/building.h"

namespace rlx {
namespace {

// The op once for each element of the batch, in a loop. It is right for every op.
void batch_by_loop(BatchContext& c) {
  ExprList rows;
  std::vector<int> row_of(static_cast<std::size_t>(c.num_inputs()), -1);
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.is_batched(i)) continue;
    row_of[static_cast<std::size_t>(i)] = static_cast<int>(rows.size());
    rows.push_back(c.input(i));
  }
  const LoopResult all = c.graph().scan({}, rows, [&](Graph& body, const ExprList&, const ExprList& xs) {
    std::vector<Expr> operands;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const int row = row_of[static_cast<std::size_t>(i)];
      operands.push_back(row < 0 ? value_in(body, c.input(i), {}, SourceLoc::current())
                                 : xs[static_cast<std::size_t>(row)]);
    }
    std::vector<Value> values(operands.begin(), operands.end());
    const Expr first = body.add(c.box(), std::move(values));
    LoopStep step{ExprList{}};
    for (int r = 0; r < c.num_results(); ++r) step.ys.push_back(first.result(static_cast<std::uint32_t>(r)));
    return step;
  });
  for (int r = 0; r < c.num_results(); ++r) c.set_result(r, all.ys[static_cast<std::size_t>(r)]);
}

// Elementwise ops take the whole batch when all operands have one rank.
void batch_elementwise(BatchContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i)
    if (c.rank(i) != c.rank(0)) return batch_by_loop(c);
  c.emit_lifted(c.box());
}

}  // namespace

CustomOpDef::CustomOpDef(std::string name) : name_(std::move(name)) {}
CustomOpDef& CustomOpDef::what(std::string text) {
  what_ = std::move(text);
  return *this;
}
CustomOpDef& CustomOpDef::inputs(const InputSpec& spec) {
  inputs_ = spec;
  return *this;
}
CustomOpDef& CustomOpDef::level(Level level) {
  level_ = level;
  return *this;
}
CustomOpDef& CustomOpDef::elementwise() {
  elementwise_ = ElementwiseKind::Yes;
  return *this;
}
CustomOpDef& CustomOpDef::precision(PrecisionCategory category) {
  precision_ = category;
  return *this;
}
CustomOpDef& CustomOpDef::ordered() {
  trait_ = OpTrait::Ordered;
  return *this;
}

OpDef CustomOpDef::record() const {
  std::vector<std::string> missing;
  if (!inputs_) missing.emplace_back(".inputs(\"x\", ..), the names of its operands");
  if (!infer_) missing.emplace_back(".infer(f), the shapes of its results");
  if (!reference_ && !decompose_) missing.emplace_back(".reference(f) or .decompose(f), what it computes");
  if (!missing.empty()) {
    std::string text = missing[0];
    for (std::size_t i = 1; i < missing.size(); ++i) text += "; " + missing[i];
    throw Error(ErrorCode::InvalidArgument, concat_text("register_op('", name_, "'): it has no ", text),
                "call them on the CustomOpDef; the other fields have defaults");
  }
  const bool composite = decompose_ && decompose_->has();
  const auto derivative = [&](const auto& rule, const char* reason) {
    using R = typename std::remove_cvref_t<decltype(rule)>::value_type;
    return rule ? *rule : composite ? R(by_decomposition) : R(none(reason));
  };
  using Batch = decltype(OpDef::batch);
  using Reference = decltype(OpDef::reference);
  using Decompose = decltype(OpDef::decompose);
  return {.kind = OpKind::Custom,
          .name = name_,
          .what = what_,
          .inputs = *inputs_,
          .attrs = {},
          .level = level_,
          .leaf = LeafKind::None,
          .elementwise = elementwise_,
          .view = ViewKind::None,
          .precision = precision_,
          .infer = *infer_,
          .decompose = decompose_.value_or(Decompose(none("it was registered without .decompose(f)"))),
          .vjp = derivative(vjp_, "it was registered without .vjp(f)"),
          .jvp = derivative(jvp_, "it was registered without .jvp(f)"),
          .batch = batch_                                 ? *batch_
                   : composite                            ? Batch(by_decomposition)
                   : elementwise_ == ElementwiseKind::Yes ? Batch(batch_elementwise)
                                                          : Batch(batch_by_loop),
          .reference = reference_.value_or(Reference(by_decomposition)),
          .cost = cost_.value_or(moves_bytes),
          .trait = trait_};
}

void register_op(const CustomOpDef& def) {
  register_op(def.record());
  if (def.kernel_) def.kernel_(def.name_);
}

}  // namespace rlx
