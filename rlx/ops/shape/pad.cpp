// Pad: a value around and between the elements of x; negative amounts crop.
#include <algorithm>

#include "rlx/ir/ops/shape.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

constexpr std::int64_t kMaxAmount = std::int64_t{1} << 48;  // keeps the index arithmetic below from overflowing

std::int64_t interior_of(const ops::Pad& op, std::size_t axis) { return op.interior.empty() ? 0 : op.interior[axis]; }

// Bool with the padded dims: true at padding values.
Expr padding_mask(Graph& g, const ops::Pad& op, const Dims& dims) {
  const Expr inside = g.expand(g.constant(Tensor::scalar(DType::Bool, 0)), dims);
  return g.add(op, {inside, g.constant(Tensor::scalar(DType::Bool, 1))});
}

struct PadRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &x = c.input(0), &value = c.input(1);
    const auto& op = c.op<ops::Pad>();
    const auto rank = static_cast<std::size_t>(x.rank());
    if (value.rank() != 0) return c.error("the padding value must be a scalar, not ", value);
    if (auto error = c.check_same_dtype(0, 2)) return *error;
    if (op.low.size() != rank || op.high.size() != rank || (!op.interior.empty() && op.interior.size() != rank))
      return c.attr_error("x ", x, " needs ", rank, " amounts in each of low, high and interior, got ", op.low.size(),
                          ", ", op.high.size(), " and ", op.interior.size());
    Dims dims;
    for (std::size_t i = 0; i < rank; ++i) {
      const Dim& extent = x.dims()[i];
      const std::int64_t between = interior_of(op, i);
      if (between < 0) return c.attr_error("interior padding ", between, " of axis ", i, " is negative");
      for (std::int64_t amount : {op.low[i], op.high[i], between})
        if (amount > kMaxAmount || amount < -kMaxAmount)
          return c.attr_error("the amount ", amount, " of axis ", i, " is too large");
      Dim spread = extent;
      if (between > 0) spread = extent + max(extent - 1, Dim(0)) * Dim(between);
      const Dim d = spread + Dim(op.low[i]) + Dim(op.high[i]);
      if (c.negative(d))
        return c.error("low ", op.low[i], " and high ", op.high[i], " crop more elements than axis ", i, " of x ", x,
                       " has");
      dims.push_back(d);
    }
    return make_shapes(Shape(std::move(dims), x.dtype()));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Pad>();
    const auto out_dims = a.out().dims();
    const std::vector<std::int64_t> nothing(out_dims.size(), 0);
    std::byte* out = a.out().mutable_data();
    copy_strided(a.out().dtype(), out_dims, out, whole(out_dims), a.in(1).data(), {0, nothing});
    // The elements that stay. x index i goes to low + i * (interior + 1) when that is inside.
    auto dims = a.in(0).dims();
    StridedView to = whole(out_dims), from = whole(dims);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const std::int64_t step = interior_of(op, i) + 1, low = op.low[i];
      const std::int64_t first = low >= 0 ? 0 : (-low + step - 1) / step;
      const std::int64_t last =
          out_dims[i] - 1 - low < 0 ? -1 : (out_dims[i] - 1 - low) / step;  // the last index inside
      dims[i] = std::max<std::int64_t>(std::min(dims[i], last + 1) - first, 0);
      if (dims[i] == 0) return;
      to.offset += (low + first * step) * to.strides[i];
      from.offset += first * from.strides[i];
      to.strides[i] *= step;
    }
    copy_strided(a.out().dtype(), dims, out, to, a.in(0).data(), from);
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0)) return;
    Graph& g = c.graph();
    const auto& op = c.op<ops::Pad>();
    const Dims& dims = c.input(0).shape().dims();
    const Expr ct = c.cotangent();
    c.accumulate(1, g.sum(g.where(padding_mask(g, op, dims), ct, 0)));
    // Crop the padding, put zeros where x was cropped, then pick the elements of x with strides.
    std::vector<std::int64_t> low, high, strides;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      low.push_back(-op.low[i]);
      high.push_back(-op.high[i]);
      strides.push_back(interior_of(op, i) + 1);
    }
    Expr spread = g.pad(ct, low, high, 0);
    spread = g.slice(spread, Dims(dims.size(), Dim(0)), spread.shape().dims(), strides);
    c.accumulate(0, spread.shape().dims() == dims ? spread : g.reshape(spread, dims));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0) || c.has_tangent(1)) c.set_tangent(c.graph().add(c.box(), {c.tangent(0), c.tangent(1)}));
  }
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::Pad>();
    Expr padded = c.input(0);
    const Expr value = c.is_batched(1) ? g.constant(Tensor::zeros(Shape({}, padded.dtype()))) : c.input(1);
    ops::Pad over_batch = op;
    if (c.is_batched(0)) {
      for (auto* amounts : {&over_batch.low, &over_batch.high, &over_batch.interior})
        if (amounts != &over_batch.interior || !op.interior.empty()) amounts->insert(amounts->begin(), 0);
    }
    padded = g.add(over_batch, {padded, value});
    if (c.is_batched(1)) {
      const Dims unbatched(c.is_batched(0) ? c.input(0).shape().dims().begin() + 1 : c.input(0).shape().dims().begin(),
                           c.input(0).shape().dims().end());
      padded = g.where(padding_mask(g, op, unbatched), c.aligned(1, c.rank(0)), padded);
    }
    c.set_result(padded);
  }
  static constexpr AttrField attrs[] = {field<&ops::Pad::low>("low"), field<&ops::Pad::high>("high"),
                                        field<&ops::Pad::interior>("interior")};
};

}  // namespace

constinit const OpDef ops::Pad::def{
    .kind = kind,
    .name = "pad",
    .what = "x with a value before, after and between its elements; negative amounts crop.",
    .inputs = inputs("x", "value"),
    .attrs = PadRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::DataMovement,
    .infer = PadRules::infer,
    .decompose = none("a primitive"),
    .vjp = PadRules::vjp,
    .jvp = PadRules::jvp,
    .batch = PadRules::batch,
    .reference = PadRules::reference,
    .cost = moves_bytes};

}  // namespace rlx
