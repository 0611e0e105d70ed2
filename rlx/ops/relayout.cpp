// Relayout: a weight packed for a kernel. It exists in LIR only; each backend that emits it defines the packed bytes.
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/lir.h"

namespace rlx {
namespace {

struct RelayoutRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Relayout>();
    if (auto e = c.check_same_dtype(0, c.num_inputs())) return *e;
    if (op.k < 0 || op.n < 0 || op.packed_bytes < 0)
      return c.attr_error("k, n and packed_bytes must not be negative, got ", op.k, ", ", op.n, ", ", op.packed_bytes);
    if (op.panel_width < 1) return c.attr_error("panel_width must be at least 1, got ", op.panel_width);
    if (op.transposed.size() != static_cast<std::size_t>(c.num_inputs()))
      return c.attr_error("has ", c.num_inputs(), " sources but ", op.transposed.size(), " transposed flags");
    Dim columns = 0;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Shape& w = c.input(i);
      if (w.rank() != 2) return c.error("source ", i, " must be a matrix, got ", w);
      const bool transposed = op.transposed[static_cast<std::size_t>(i)] != 0;
      if (!(w.dim(transposed ? 1 : 0) == Dim(op.k)))
        return c.error("source ", i, " ", w, transposed ? " (transposed)" : "", " must have k = ", op.k, " rows");
      columns = columns + w.dim(transposed ? 0 : 1);
    }
    if (!(columns == Dim(op.n))) return c.error("the sources have ", columns, " columns together, n is ", op.n);
    return Shapes{Shape({op.packed_bytes}, DType::U8)};
  }
  static constexpr NoRule vjp = none("its result is bytes");
  static constexpr NoRule jvp = none("its result is bytes");
  static constexpr NoRule batch = none("its result is bytes");
  static void samples(SampleSet& s) {
    s.add_discrete("one source", {Shape({3, 4}, DType::F32)}, ops::Relayout{16, {0}, 3, 4, 192});
    s.add_discrete("two sources", {Shape({3, 4}, DType::F32), Shape({2, 3}, DType::F32)},
                   ops::Relayout{4, {0, 1}, 3, 6, 96});
  }
  static constexpr AttrField attrs[] = {field<&ops::Relayout::panel_width>("panel_width"),
                                        field<&ops::Relayout::transposed>("transposed"), field<&ops::Relayout::k>("k"),
                                        field<&ops::Relayout::n>("n"),
                                        field<&ops::Relayout::packed_bytes>("packed_bytes")};
};

}  // namespace

constinit const OpDef ops::Relayout::def{.kind = kind,
                                         .name = "relayout",
                                         .what = "Weights packed for a product kernel, joined along N.",
                                         .inputs = variadic_inputs("weights", 1),
                                         .attrs = RelayoutRules::attrs,
                                         .level = Level::Lir,
                                         .leaf = LeafKind::None,
                                         .elementwise = ElementwiseKind::No,
                                         .view = ViewKind::None,
                                         .precision = PrecisionCategory::DataMovement,
                                         .infer = RelayoutRules::infer,
                                         .decompose = none("its result is the backend's own packed form"),
                                         .vjp = RelayoutRules::vjp,
                                         .jvp = RelayoutRules::jvp,
                                         .batch = RelayoutRules::batch,
                                         .reference = none("its result is the backend's own packed form"),
                                         .cost = moves_bytes,
                                         .samples = RelayoutRules::samples};

}  // namespace rlx
