// OptimizationBarrier: returns its operands, and no pass looks through it.
#include "rlx/ops/control/control.h"

namespace rlx {
namespace {

struct BarrierRules {
  static Result<Shapes> infer(const InferContext& c) { return c.inputs(); }
  static void reference(const RefArgs& a) {
    for (int i = 0; i < a.num_inputs(); ++i) a.out(i) = a.in(i);
  }
  static void vjp(VjpContext& c) {
    Exprs cotangents;
    for (int i = 0; i < c.num_inputs(); ++i)
      if (c.wants(i) && c.has_cotangent(i)) cotangents.push_back(c.cotangent(i));
    if (cotangents.empty()) return;
    const Exprs held = add_node(c.graph(), ops::OptimizationBarrier{}, cotangents);
    std::size_t next = 0;
    for (int i = 0; i < c.num_inputs(); ++i)
      if (c.wants(i) && c.has_cotangent(i)) c.accumulate(i, held[next++]);
  }
  static void jvp(JvpContext& c) {
    Exprs tangents;
    for (int i = 0; i < c.num_inputs(); ++i)
      if (c.has_tangent(i)) tangents.push_back(c.tangent(i));
    const Exprs held = add_node(c.graph(), ops::OptimizationBarrier{}, tangents);
    std::size_t next = 0;
    for (int i = 0; i < c.num_inputs(); ++i)
      if (c.has_tangent(i)) c.set_tangent(i, held[next++]);
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
};

}  // namespace

constinit const OpDef ops::OptimizationBarrier::def{
    .kind = kind,
    .name = "optimization_barrier",
    .what = "Returns its operands; the compiler merges or moves nothing across it.",
    .inputs = variadic_inputs("x"),
    .attrs = {},
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = BarrierRules::infer,
    .decompose = none("legalisation makes a view of each operand"),
    .vjp = BarrierRules::vjp,
    .jvp = BarrierRules::jvp,
    .batch = BarrierRules::batch,
    .reference = BarrierRules::reference,
    .cost = no_cost};

}  // namespace rlx
