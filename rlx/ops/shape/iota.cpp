// Iota and DimSize: integers computed from shapes.
#include "rlx/ops/elementwise/elementwise.h"

#include "rlx/ir/ops/shape.h"

namespace rlx {
namespace {

struct IotaRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Iota>();
    Shape shape(op.dims, op.dtype);
    if (!contains(DTypes::Int | DTypes::Float, op.dtype))
      return c.dtype_error("must be integers or floats, got ", dtype_name(op.dtype));
    for (const Dim& d : op.dims)
      if (c.negative(d)) return c.error("has a negative dimension in ", dims_text(op.dims));
    if (auto bad = c.check_axis(op.axis, shape)) return *bad;
    return make_shapes(shape);
  }
  static void reference(const RefArgs& a) {
    std::vector<std::int64_t> dims = a.out().dims();
    auto axis = static_cast<std::size_t>(a.op<ops::Iota>().axis);
    std::int64_t inner = 1;
    for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
    std::byte* out = a.out().mutable_data();
    for (std::int64_t i = 0; i < a.out().num_elements(); ++i)
      store_element(out, a.out().dtype(), i, i / inner % dims[axis]);
  }
  static constexpr NoRule vjp = none("it has no operands");
  static constexpr NoRule jvp = none("it has no operands");
  static constexpr NoRule batch = none("it has no operands");
  static constexpr AttrField attrs[] = {field<&ops::Iota::dims>("dims", AttrPlace::TypeDims),
                                        field<&ops::Iota::dtype>("dtype", AttrPlace::TypeDType),
                                        field<&ops::Iota::axis>("axis")};
};

struct DimSizeRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto bad = c.check_axis(c.op<ops::DimSize>().axis, c.input(0))) return *bad;
    return make_shapes(Shape({}, DType::I64));
  }
  static void reference(const RefArgs& a) {
    a.out().set_i64(0, a.in(0).dim(static_cast<int>(a.op<ops::DimSize>().axis)));
  }
  static constexpr NoRule vjp = none("its result is an integer");
  static constexpr NoRule jvp = none("its result is an integer");
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    c.set_result(g.expand(g.add(ops::DimSize{c.op<ops::DimSize>().axis + 1}, {c.input(0)}), {c.batch_size()}));
  }
  static constexpr AttrField attrs[] = {field<&ops::DimSize::axis>("axis")};
};

}  // namespace

constinit const OpDef ops::Iota::def{.kind = kind,
                                     .name = "iota",
                                     .what = "0, 1, 2, ... along one axis, repeated along the others.",
                                     .inputs = inputs(),
                                     .attrs = IotaRules::attrs,
                                     .level = Level::Mir,
                                     .leaf = LeafKind::None,
                                     .elementwise = ElementwiseKind::No,
                                     .view = ViewKind::None,
                                     .precision = PrecisionCategory::DataMovement,
                                     .infer = IotaRules::infer,
                                     .decompose = none("a primitive"),
                                     .vjp = IotaRules::vjp,
                                     .jvp = IotaRules::jvp,
                                     .batch = IotaRules::batch,
                                     .reference = IotaRules::reference,
                                     .cost = moves_bytes};

constinit const OpDef ops::DimSize::def{.kind = kind,
                                        .name = "dim_size",
                                        .what = "The extent of one axis as an I64 scalar.",
                                        .inputs = inputs("x"),
                                        .attrs = DimSizeRules::attrs,
                                        .level = Level::Mir,
                                        .leaf = LeafKind::None,
                                        .elementwise = ElementwiseKind::No,
                                        .view = ViewKind::None,
                                        .precision = PrecisionCategory::DataMovement,
                                        .infer = DimSizeRules::infer,
                                        .decompose = none("a primitive"),
                                        .vjp = DimSizeRules::vjp,
                                        .jvp = DimSizeRules::jvp,
                                        .batch = DimSizeRules::batch,
                                        .reference = DimSizeRules::reference,
                                        .cost = no_cost};

}  // namespace rlx
