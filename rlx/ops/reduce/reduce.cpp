// Reduce and ArgReduce: one value, or the position of one, for each group of elements.
#include <algorithm>
#include <limits>

#include "rlx/ir/ops/reduce.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// 1 where an element equals its group's extremum, in the dtype of x.
Expr extremum_mask(Graph& g, Expr x, Expr kept_result) { return g.cast(g.eq(x, kept_result), x.dtype()); }

// For every element, the product of the other elements of its group. It does not divide, so zeros are allowed: it is
// the product of the elements before, times the product of those after. The reduced axes are joined into one. The
// result has the accumulator dtype, because partial products may overflow the dtype of x.
Expr product_of_others(Graph& g, Expr x, const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> perm;
  Dims joined;
  Dim group(1);
  for (int i = 0; i < x.rank(); ++i)
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      perm.push_back(i);
      joined.push_back(x.dim(i));
    }
  for (std::int64_t axis : axes) {
    perm.push_back(axis);
    group = group * x.dim(static_cast<int>(axis));
  }
  const auto last = static_cast<std::int64_t>(joined.size());
  joined.push_back(group);
  const Expr moved = g.transpose(widen(x), perm);
  const Expr rows = g.reshape(moved, joined);
  const Expr others = g.cumulative(CumulativeKind::Prod, rows, last, true, false) *
                      g.cumulative(CumulativeKind::Prod, rows, last, true, true);
  return g.transpose(g.reshape(others, moved.shape().dims()), inverse_perm(perm));
}

struct ReduceRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& op = c.op<ops::Reduce>();
    if (auto error = check_axes(c, op.axes, x)) return *error;
    if (!std::is_sorted(op.axes.begin(), op.axes.end()))
      return c.attr_error("axes ", dims_text(op.axes), " must be sorted");
    const bool ordered = op.fn == ReduceKind::Max || op.fn == ReduceKind::Min;
    if (is_storage_only(x.dtype()))
      return c.dtype_error("x has a storage dtype, which cannot be computed with: ", x, "; cast it first");
    if (ordered && is_complex(x.dtype())) return c.dtype_error("complex values have no order: ", x);
    if (!ordered && x.dtype() == DType::Bool)
      return c.dtype_error("x is Bool ", x, "; cast it to an integer or float dtype first");
    if (op.fn == ReduceKind::Mean && !is_inexact(x.dtype()))
      return c.dtype_error("x must be float or complex, not ", x, "; cast it first");
    if (op.keep_dims) return make_shapes(Shape(kept_dims(x, op.axes), x.dtype()));
    Dims dims;
    for (int i = 0; i < x.rank(); ++i)
      if (!std::binary_search(op.axes.begin(), op.axes.end(), i)) dims.push_back(x.dim(i));
    return make_shapes(Shape(std::move(dims), x.dtype()));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Reduce>();
    visit_accumulator(a.in(0).dtype(), [&]<class A>(A) { compute<A>(op, a.in(0), a.out()); });
  }
  static Cost cost(const CostContext& c) { return c.with_flops(static_cast<double>(c.inputs[0].num_elements())); }
  static void vjp(VjpContext& c) {
    if (!c.wants(0)) return;
    Graph& g = c.graph();
    const auto& op = c.op<ops::Reduce>();
    const Expr x = c.input(0);
    const Dims kept = kept_dims(x.shape(), op.axes);
    const Expr ct = g.reshape(c.cotangent(), kept);
    switch (op.fn) {
      case ReduceKind::Sum: return c.accumulate(0, g.expand(ct, x.shape().dims()));
      case ReduceKind::Mean:
        return c.accumulate(
            0,
            g.expand(round_to(widen(ct) / group_size(g, x.shape(), op.axes, accumulator_dtype(x.dtype())), x.dtype()),
                     x.shape().dims()));
      case ReduceKind::Prod: return c.accumulate(0, round_to(widen(ct) * product_of_others(g, x, op.axes), x.dtype()));
      case ReduceKind::Max:
      case ReduceKind::Min: {  // ties share the cotangent equally
        const Expr mask = extremum_mask(g, x, g.reshape(c.output(), kept));
        const Expr ties = g.add(ops::Reduce{ReduceKind::Sum, op.axes, true}, {widen(mask)});
        return c.accumulate(0, round_to(widen(ct) / ties, x.dtype()) * mask);
      }
    }
  }
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const auto& op = c.op<ops::Reduce>();
    const Expr x = c.input(0), t = c.tangent(0);
    auto sum = [&](Expr e) { return g.add(ops::Reduce{ReduceKind::Sum, op.axes, op.keep_dims}, {e}); };
    switch (op.fn) {
      case ReduceKind::Sum: return c.set_tangent(sum(t));
      case ReduceKind::Mean: {  // an empty mean has no operand elements to vary: 0, not 0 / 0
        const Expr n = group_size(g, x.shape(), op.axes, x.dtype()), mean = g.add(op, {t});
        return c.set_tangent(g.where(g.eq(n, 0), 0, mean));
      }
      case ReduceKind::Prod:
        return c.set_tangent(round_to(sum(widen(t) * product_of_others(g, x, op.axes)), x.dtype()));
      case ReduceKind::Max:
      case ReduceKind::Min: {
        const Expr mask = extremum_mask(g, x, g.reshape(c.output(), kept_dims(x.shape(), op.axes)));
        const Expr ties = g.add(ops::Reduce{ReduceKind::Sum, op.axes, true}, {widen(mask)});
        return c.set_tangent(sum(t * round_to(widen(mask) / ties, x.dtype())));
      }
    }
  }
  static void batch(BatchContext& c) {
    ops::Reduce op = c.op<ops::Reduce>();
    op.axes = shifted(op.axes);
    c.emit_lifted(std::move(op));
  }
  static constexpr AttrField attrs[] = {field<&ops::Reduce::fn>("fn", AttrPlace::Suffix),
                                        field<&ops::Reduce::axes>("axes"), field<&ops::Reduce::keep_dims>("keep_dims")};

 private:
  template <class A>
  static void compute(const ops::Reduce& op, const Tensor& x, Tensor& out) {
    const auto dims = x.dims();
    A identity{};
    if (op.fn == ReduceKind::Prod) identity = A(1);
    if (op.fn == ReduceKind::Max || op.fn == ReduceKind::Min)
      identity = extreme_identity<A>(x.dtype(), op.fn == ReduceKind::Max);
    std::vector<A> result(static_cast<std::size_t>(out.num_elements()), identity);
    // Row-major over x; each result takes its elements in that order. Reduced axes have stride 0 in the result.
    std::vector<std::int64_t> kept = dims;
    for (std::int64_t axis : op.axes) kept[static_cast<std::size_t>(axis)] = 1;
    std::vector<std::int64_t> strides = row_major_strides(kept);
    for (std::int64_t axis : op.axes) strides[static_cast<std::size_t>(axis)] = 0;
    std::vector<std::int64_t> index(dims.size(), 0);
    std::int64_t to = 0;
    const std::int64_t n = x.num_elements();
    for (std::int64_t i = 0; i < n; ++i) {
      A& r = result[static_cast<std::size_t>(to)];
      const A v = load_element<A>(x.data(), x.dtype(), i);
      switch (op.fn) {
        case ReduceKind::Sum:
        case ReduceKind::Mean: r = wrapping_add(r, v); break;
        case ReduceKind::Prod: r = wrapping_mul(r, v); break;
        case ReduceKind::Max:
        case ReduceKind::Min:
          if constexpr (std::is_arithmetic_v<A>) {
            if (beats(v, r, op.fn == ReduceKind::Max)) r = v;
          }
          break;
      }
      for (std::size_t axis = dims.size(); axis-- > 0;) {
        to += strides[axis];
        if (++index[axis] < dims[axis]) break;
        to -= strides[axis] * dims[axis];
        index[axis] = 0;
      }
    }
    if (op.fn == ReduceKind::Mean) {
      double count = 1;
      for (std::int64_t axis : op.axes) count *= static_cast<double>(dims[static_cast<std::size_t>(axis)]);
      if constexpr (!std::is_integral_v<A>)
        for (A& r : result) r /= count;  // 0 / 0 for an empty group: NaN
    }
    store_all(out, result);
  }
};

struct ArgReduceRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& op = c.op<ops::ArgReduce>();
    if (auto error = c.check_axis(op.axis, x)) return *error;
    if (is_storage_only(x.dtype()) || is_complex(x.dtype())) return c.dtype_error("x must be a real tensor, not ", x);
    const Dim& extent = x.dim(static_cast<int>(op.axis));
    if (c.negative(extent - 1))
      return c.error("axis ", op.axis, " of x ", x, " is empty, so it has no ", enum_name(op.fn));
    if (extent.is_static() && extent.value() > std::numeric_limits<std::int32_t>::max())
      return c.error("axis ", op.axis, " of x ", x, " has more elements than an i32 index can address");
    Dims dims = x.dims();
    if (op.keep_dims)
      dims[static_cast<std::size_t>(op.axis)] = Dim(1);
    else
      dims.erase(dims.begin() + op.axis);
    return make_shapes(Shape(std::move(dims), DType::I32));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::ArgReduce>();
    const AxisSplit s = split_at(a.in(0).dims(), op.axis);
    std::byte* out = a.out().mutable_data();
    visit_accumulator(a.in(0).dtype(), [&]<class A>(A) {
      if constexpr (std::is_arithmetic_v<A>) {
        const std::vector<A> x = load_all<A>(a.in(0));
        for (std::int64_t o = 0; o < s.outer; ++o)
          for (std::int64_t k = 0; k < s.inner; ++k) {
            auto at = [&](std::int64_t i) { return x[static_cast<std::size_t>((o * s.extent + i) * s.inner + k)]; };
            std::int64_t best = 0;
            for (std::int64_t i = 1; i < s.extent; ++i)
              if (beats(at(i), at(best), op.fn == ArgReduceKind::Max)) best = i;
            store_element(out, DType::I32, o * s.inner + k, best);
          }
      }
    });
  }
  static Cost cost(const CostContext& c) { return c.with_flops(static_cast<double>(c.inputs[0].num_elements())); }
  static constexpr NoRule vjp = none("integer output");
  static constexpr NoRule jvp = none("integer output");
  static void batch(BatchContext& c) {
    ops::ArgReduce op = c.op<ops::ArgReduce>();
    ++op.axis;
    c.emit_lifted(op);
  }
  static constexpr AttrField attrs[] = {field<&ops::ArgReduce::fn>("fn", AttrPlace::Suffix),
                                        field<&ops::ArgReduce::axis>("axis"),
                                        field<&ops::ArgReduce::keep_dims>("keep_dims")};
};

}  // namespace

constinit const OpDef ops::Reduce::def{.kind = kind,
                                       .name = "reduce",
                                       .what = "Sum, mean, max, min or product over some axes.",
                                       .inputs = inputs("x"),
                                       .attrs = ReduceRules::attrs,
                                       .level = Level::Mir,
                                       .leaf = LeafKind::None,
                                       .elementwise = ElementwiseKind::No,
                                       .view = ViewKind::None,
                                       .precision = PrecisionCategory::Reduction,
                                       .infer = ReduceRules::infer,
                                       .decompose = none("a primitive"),
                                       .vjp = ReduceRules::vjp,
                                       .jvp = ReduceRules::jvp,
                                       .batch = ReduceRules::batch,
                                       .reference = ReduceRules::reference,
                                       .cost = ReduceRules::cost};

constinit const OpDef ops::ArgReduce::def{.kind = kind,
                                          .name = "arg_reduce",
                                          .what = "The index of the first max or min along one axis.",
                                          .inputs = inputs("x"),
                                          .attrs = ArgReduceRules::attrs,
                                          .level = Level::Mir,
                                          .leaf = LeafKind::None,
                                          .elementwise = ElementwiseKind::No,
                                          .view = ViewKind::None,
                                          .precision = PrecisionCategory::DataMovement,
                                          .infer = ArgReduceRules::infer,
                                          .decompose = none("a primitive"),
                                          .vjp = ArgReduceRules::vjp,
                                          .jvp = ArgReduceRules::jvp,
                                          .batch = ArgReduceRules::batch,
                                          .reference = ArgReduceRules::reference,
                                          .cost = ArgReduceRules::cost};

}  // namespace rlx
