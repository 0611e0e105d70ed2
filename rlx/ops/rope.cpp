// Rope: rotary position embedding. Composite; the reference rotates each pair in double.
#include "rlx/ops/wide.h"
#include "rlx/tensor/visit.h"

namespace rlx {
namespace {

// Where batch, sequence and heads lie in x by layout.
struct RopeAxes {
  int sequence;
  explicit RopeAxes(HeadLayout layout) : sequence(layout == HeadLayout::HeadsFirst ? 2 : 1) {}
};

// The first n_rot elements of each head rotated by (cos, sin); the others copied, or zero when `zero_rest`.
// x in op.layout; tables [S', T] or [B, S', T] with S' >= S.
Expr rotate(Graph& g, const ops::Rope& op, Expr x, Expr cos, Expr sin, bool zero_rest) {
  const Dims dims = x.shape().dims();
  const RopeAxes axes(op.layout);
  const Dim seq = dims[static_cast<std::size_t>(axes.sequence)];
  const std::int64_t half = op.n_rot / 2, rest = op.head_dim - op.n_rot;
  Expr heads = x;  // [B, S, H, D], or [B, H, S, D] when heads come first
  if (op.layout == HeadLayout::Merged) heads = g.reshape(x, {dims[0], dims[1], *exact_div(dims[2], Dim(op.head_dim)), op.head_dim});
  auto table = [&](Expr t) {
    const int row_axis = t.rank() - 2;
    if (!(t.dim(row_axis) == seq)) t = g.narrow(t, row_axis, 0, seq);
    if (!t.dim(-1).is_static(half)) t = g.narrow(t, -1, 0, half);
    return g.unsqueeze(t, op.layout == HeadLayout::HeadsFirst ? row_axis : row_axis + 1);  // a 1 in the place of H
  };
  Expr c = table(cos), s = table(sin);
  Expr rotated;
  if (op.pairing == RopePairing::Half) {
    Expr x1 = g.narrow(heads, -1, 0, half), x2 = g.narrow(heads, -1, half, half);
    rotated = op.inverse ? g.concat({x1 * c + x2 * s, x2 * c - x1 * s}, -1) : g.concat({x1 * c - x2 * s, x2 * c + x1 * s}, -1);
  } else {
    Expr front = rest ? g.narrow(heads, -1, 0, op.n_rot) : heads;
    Dims pairs = front.shape().dims();
    const Dims flat = pairs;
    pairs.back() = half;
    pairs.push_back(2);
    Expr split = g.reshape(front, pairs);
    Expr x1 = g.squeeze(g.narrow(split, -1, 0, 1), -1), x2 = g.squeeze(g.narrow(split, -1, 1, 1), -1);
    Expr y1 = op.inverse ? x1 * c + x2 * s : x1 * c - x2 * s, y2 = op.inverse ? x2 * c - x1 * s : x2 * c + x1 * s;
    rotated = g.reshape(g.concat({g.unsqueeze(y1, -1), g.unsqueeze(y2, -1)}, -1), flat);
  }
  if (rest) {
    if (zero_rest) {
      rotated = g.pad(rotated, {0, 0, 0, 0}, {0, 0, 0, rest});
    } else {
      rotated = g.concat({rotated, g.narrow(heads, -1, op.n_rot, rest)}, -1);
    }
  }
  return rotated.shape().dims() == dims ? rotated : g.reshape(rotated, dims);
}

struct RopeRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Rope>();
    const Shape &x = c.input(0), &cos = c.input(1), &sin = c.input(2);
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (auto e = c.check_same_dtype(0, 3)) return *e;
    if (op.head_dim < 2) return c.attr_error("head_dim must be at least 2, got ", op.head_dim);
    if (op.n_rot < 2 || op.n_rot > op.head_dim || op.n_rot % 2)
      return c.attr_error("n_rot must be even and in [2, head_dim = ", op.head_dim, "], got ", op.n_rot);
    const int rank = op.layout == HeadLayout::Merged ? 3 : 4;
    if (x.rank() != rank) return c.error("x must have rank ", rank, " in layout ", enum_name(op.layout), ", got ", x);
    if (op.layout == HeadLayout::Merged) {
      if (!exact_div(x.dim(2), Dim(op.head_dim))) return c.error("x ", x, " does not hold heads of ", op.head_dim, " elements");
    } else if (!x.dim(3).is_static(op.head_dim)) {
      return c.error("the last dimension of x ", x, " must be head_dim ", op.head_dim);
    }
    if (!(cos == sin)) return c.error("cos ", cos, " and sin ", sin, " must have one shape");
    if (cos.rank() != 2 && cos.rank() != 3) return c.error("cos and sin must be [S, T] or [B, S, T], got ", cos);
    const Dim &seq = x.dim(RopeAxes(op.layout).sequence), &rows = cos.dim(-2), &width = cos.dim(-1);
    const bool longer = rows.is_static() && seq.is_static() && rows.value() >= seq.value();
    if (!(rows == seq) && !longer) return c.error("cos and sin ", cos, " must have a row for each of the ", seq, " positions of x ", x);
    if (!width.is_static() || width.value() < op.n_rot / 2)
      return c.error("rows of cos and sin ", cos, " must hold n_rot / 2 = ", op.n_rot / 2, " values");
    if (cos.rank() == 3 && !(cos.dim(0) == x.dim(0)) && !cos.dim(0).is_static(1))
      return c.error("cos and sin ", cos, " must have the batch of x ", x, " or 1");
    return Shapes{x};
  }
  static void decompose(DecomposeContext& c) {
    Expr y = rotate(c.graph(), c.op<ops::Rope>(), widen(c.input(0)), widen(c.input(1)), widen(c.input(2)), false);
    c.set_result(round_to(y, c.result_shape().dtype()));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Rope>();
    const Tensor &x = a.in(0), &table = a.in(1);
    const std::vector<double> v = x.to_f64(), cos = a.in(1).to_f64(), sin = a.in(2).to_f64();
    Tensor& out = a.out();
    std::byte* p = out.mutable_data();
    const std::int64_t d = op.head_dim, batch = x.dim(0), seq = x.dim(RopeAxes(op.layout).sequence);
    const std::int64_t heads = op.layout == HeadLayout::Merged ? x.dim(2) / d : x.dim(op.layout == HeadLayout::HeadsFirst ? 1 : 2);
    const std::int64_t width = table.dim(-1), table_rows = table.dim(-2), half = op.n_rot / 2;
    const std::int64_t table_batch = table.rank() == 3 && table.dim(0) != 1 ? table_rows * width : 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t s = 0; s < seq; ++s) {
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t first = op.layout == HeadLayout::HeadsFirst ? ((b * heads + h) * seq + s) * d : ((b * seq + s) * heads + h) * d;
          for (std::int64_t i = 0; i < half; ++i) {
            const auto at = static_cast<std::size_t>(b * table_batch + s * width + i);  // the table's own row stride
            const double cs = cos[at], sn = op.inverse ? -sin[at] : sin[at];
            const std::int64_t i1 = op.pairing == RopePairing::Half ? first + i : first + 2 * i;
            const std::int64_t i2 = op.pairing == RopePairing::Half ? i1 + half : i1 + 1;
            const double x1 = v[static_cast<std::size_t>(i1)], x2 = v[static_cast<std::size_t>(i2)];
            store_element(p, out.dtype(), i1, x1 * cs - x2 * sn);
            store_element(p, out.dtype(), i2, x2 * cs + x1 * sn);
          }
          for (std::int64_t i = op.n_rot; i < d; ++i) store_element(p, out.dtype(), first + i, v[static_cast<std::size_t>(first + i)]);
        }
      }
    }
  }
  static void samples(SampleSet& s) {
    const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
    auto op = [](std::int64_t d, std::int64_t n, RopePairing p, HeadLayout l, bool inverse = false) { return ops::Rope{d, n, p, l, inverse}; };
    using P = RopePairing;
    using L = HeadLayout;
    s.add("half", {f32({2, 3, 8}), f32({3, 2}), f32({3, 2})}, op(4, 4, P::Half, L::Merged));
    s.add("interleaved", {f32({2, 3, 8}), f32({3, 2}), f32({3, 2})}, op(4, 4, P::Interleaved, L::Merged));
    s.add("partial, wide table", {f32({1, 2, 12}), f32({2, 3}), f32({2, 3})}, op(6, 4, P::Half, L::Merged));
    s.add("partial interleaved", {f32({1, 2, 2, 6}), f32({2, 1}), f32({2, 1})}, op(6, 2, P::Interleaved, L::HeadsInner));
    s.add("heads first, own positions", {f32({2, 2, 3, 4}), f32({2, 3, 2}), f32({2, 3, 2})}, op(4, 4, P::Half, L::HeadsFirst));
    s.add("heads inner, shared batch table", {f32({2, 3, 2, 4}), f32({1, 3, 2}), f32({1, 3, 2})}, op(4, 4, P::Interleaved, L::HeadsInner));
    s.add("long table", {f32({1, 2, 4}), f32({5, 4}), f32({5, 4})}, op(4, 4, P::Half, L::Merged));
    s.add("inverse", {f32({1, 3, 8}), f32({3, 2}), f32({3, 2})}, op(4, 4, P::Half, L::Merged, true));
    s.add("inverse interleaved partial", {f32({1, 2, 2, 6}), f32({2, 2}), f32({2, 2})}, op(6, 4, P::Interleaved, L::HeadsFirst, true));
    s.add("no positions", {f32({1, 0, 4}), f32({0, 2}), f32({0, 2})}, op(4, 4, P::Half, L::Merged));
    s.add("f64", {Shape({1, 2, 4}, DType::F64), Shape({2, 2}, DType::F64), Shape({2, 2}, DType::F64)}, op(4, 4, P::Half, L::Merged));
    s.add("bf16", {Shape({1, 2, 4}, DType::BF16), Shape({2, 2}, DType::BF16), Shape({2, 2}, DType::BF16)}, op(4, 4, P::Half, L::Merged));
  }
  static constexpr AttrField attrs[] = {field<&ops::Rope::head_dim>("head_dim"), field<&ops::Rope::n_rot>("n_rot"),
                                        field<&ops::Rope::pairing>("pairing"), field<&ops::Rope::layout>("layout"),
                                        field<&ops::Rope::inverse>("inverse")};
};

}  // namespace

constinit const OpDef ops::Rope::def{
    .kind = kind, .name = "rope", .inputs = inputs("x", "cos", "sin"), .attrs = RopeRules::attrs, .level = Level::Mir,
    .traits = OpTrait::Composite,
    .infer = RopeRules::infer, .decompose = RopeRules::decompose, .reference = RopeRules::reference, .cost = flops_per_element<3>,
    .samples = RopeRules::samples};

}  // namespace rlx
