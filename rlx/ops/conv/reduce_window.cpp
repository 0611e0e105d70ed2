// ReduceWindow: sums, means, extrema and products of windows. A primitive. Sums and means are linear, and their
// transpose is a sum over windows of dilated cotangents. The derivative of an extremum uses the index of its element.
#include <cmath>

#include "rlx/ir/build/counting.h"
#include "rlx/ops/conv/windows.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

bool is_extremum(ReduceKind fn) { return fn == ReduceKind::Max || fn == ReduceKind::Min; }

// The windows of x [out.., window elements], and for each element the product of the others, in the accumulator dtype.
struct WindowFactors {
  Expr places, others;
};
WindowFactors window_factors(Graph& g, const ops::ReduceWindow& op, Expr x, const Dims& out) {
  const Expr places = window_places(g, op, x.shape(), out), elements = at_places(g, in_a_row(g, widen(x)), places, 1);
  const auto last = static_cast<std::int64_t>(out.size());
  return {places, g.cumulative(CumulativeKind::Prod, elements, last, true, false) *
                      g.cumulative(CumulativeKind::Prod, elements, last, true, true)};
}

// The contribution of the cotangents of window sums to each element of x.
Expr transposed_windows(Graph& g, const ops::ReduceWindow& op, Expr ct, const Dims& x_dims) {
  const std::vector<WindowAxis> axes = window_axes(op);
  std::vector<WindowAxis> back;
  Dims made;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const Dim &n = x_dims[a], &m = ct.shape().dims()[a];
    if (n.is_static(0) || m.is_static(0)) return g.expand(g.constant(Tensor::zeros(Shape({}, ct.dtype()))), x_dims);
    if (n.is_static() && m.is_static()) {
      back.push_back(transposed(axes[a], n.value(), m.value()));
      made.push_back(n);
      continue;
    }
    // (m - 1) * stride is the padded extent minus a window and a rest below the stride. Space for the largest rest
    // gives a few elements too many, which are sliced off.
    const WindowAxis& w = axes[a];
    WindowAxis t{w.window, w.base, w.span() - 1 - w.low, w.span() - 1 - w.high + w.stride - 1, w.stride, w.dilation};
    back.push_back(t);
    made.push_back(t.outputs(m));
  }
  ops::ReduceWindow sum{op.fn};
  set_window_axes(sum, back);
  const Expr dx = g.add(sum, {ct});
  return dx.shape().dims() == x_dims ? dx : g.slice(dx, Dims(x_dims.size(), Dim(0)), x_dims);
}

struct ReduceWindowRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& op = c.op<ops::ReduceWindow>();
    if (is_storage_only(x.dtype()))
      return c.dtype_error("x has a storage dtype, which cannot be computed with: ", x, "; cast it first");
    if (is_extremum(op.fn) && is_complex(x.dtype())) return c.dtype_error("complex values have no order: ", x);
    if (!is_extremum(op.fn) && x.dtype() == DType::Bool)
      return c.dtype_error("x is Bool ", x, "; cast it to an integer or float dtype first");
    if (op.fn == ReduceKind::Mean && !is_inexact(x.dtype()))
      return c.dtype_error("x must be float or complex, not ", x, "; cast it first");
    if (auto e = check_windows(c, op, x)) return *e;
    Dims dims = window_dims(op, x);
    for (const Dim& d : dims)
      if (c.negative(d)) return c.error("x ", x, " is smaller than the window ", dims_text(op.window));
    if (!is_extremum(op.fn)) return make_shapes(Shape(std::move(dims), x.dtype()));
    const Result<DType> places = place_dtype(c, x);
    if (!places.ok()) return places.error();
    return make_shapes(Shape(dims, x.dtype()), Shape(dims, *places));
  }
  static void reference(const RefArgs& a) {
    visit_accumulator(a.in(0).dtype(), [&]<class A>(A) { compute<A>(a); });
  }
  static Cost cost(const CostContext& c) {
    double places = 1;
    for (std::int64_t w : c.op<ops::ReduceWindow>().window) places *= static_cast<double>(w);
    // A window holds at most all of x.
    return c.with_flops(c.elements() * std::min(places, static_cast<double>(c.inputs[0].num_elements())));
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0) || !c.has_cotangent()) return;
    Graph& g = c.graph();
    const auto& op = c.op<ops::ReduceWindow>();
    const Expr x = c.input(0), ct = c.cotangent();
    const Dims& dims = x.shape().dims();
    switch (op.fn) {
      case ReduceKind::Sum:
      case ReduceKind::Mean: return c.accumulate(0, transposed_windows(g, op, ct, dims));
      case ReduceKind::Max:
      case ReduceKind::Min:
        return c.accumulate(0, g.add(ops::SelectAndScatter{op.fn, op.window, op.strides, op.low, op.high,
                                                           op.base_dilation, op.window_dilation},
                                     {x, ct}));
      case ReduceKind::Prod: {
        const WindowFactors p = window_factors(g, op, x, ct.shape().dims());
        const Expr parts = p.others * g.unsqueeze(widen(ct), -1);
        const Expr row = in_a_row(g, widen(x));
        const Expr sums = g.scatter_add(c.zeros(row.shape()), p.places, parts, 0);
        return c.accumulate(0, round_to(g.reshape(sums, dims), x.dtype()));
      }
    }
  }
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const auto& op = c.op<ops::ReduceWindow>();
    const Expr x = c.input(0), t = c.tangent(0);
    switch (op.fn) {
      case ReduceKind::Sum:
      case ReduceKind::Mean: return c.set_tangent(g.add(op, {t}));
      case ReduceKind::Max:
      case ReduceKind::Min: return c.set_tangent(at_places(g, in_a_row(g, t), c.output(1)));
      case ReduceKind::Prod: {
        const WindowFactors p = window_factors(g, op, x, c.result_shape().dims());
        const Expr parts = at_places(g, in_a_row(g, widen(t)), p.places) * p.others;
        return c.set_tangent(round_to(g.sum(parts, {-1}), x.dtype()));
      }
    }
  }
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::ReduceWindow>();
    ops::ReduceWindow over = op;
    std::vector<WindowAxis> axes = window_axes(op);
    axes.insert(axes.begin(), WindowAxis{});
    set_window_axes(over, axes);
    const Expr x = c.input(0), y = g.add(over, {x});
    c.set_result(y);
    if (!is_extremum(op.fn)) return;
    // Indices are relative to the beginning of each x of the batch.
    Expr place = y.result(1);
    const DType t = place.dtype();
    const std::vector<Dim> own(x.shape().dims().begin() + 1, x.shape().dims().end());
    const Expr begin = positions(g, c.batch_size(), 0, x.rank(), t) * dims_product(g, own, t);
    c.set_result(1, g.cast(g.where(g.lt(place, 0), place, place - begin), c.result_shape(1).dtype()));
  }
  static constexpr AttrField attrs[] = {field<&ops::ReduceWindow::fn>("fn", AttrPlace::Suffix),
                                        field<&ops::ReduceWindow::window>("window"),
                                        field<&ops::ReduceWindow::strides>("strides"),
                                        field<&ops::ReduceWindow::low>("low"),
                                        field<&ops::ReduceWindow::high>("high"),
                                        field<&ops::ReduceWindow::base_dilation>("base_dilation"),
                                        field<&ops::ReduceWindow::window_dilation>("window_dilation")};

 private:
  template <class A>
  static void compute(const RefArgs& a) {
    const auto& op = a.op<ops::ReduceWindow>();
    const Tensor& x = a.in(0);
    A identity{};
    if (op.fn == ReduceKind::Prod) identity = A(1);
    if (is_extremum(op.fn)) identity = extreme_identity<A>(x.dtype(), op.fn == ReduceKind::Max);
    double places = 1;
    for (std::int64_t w : op.window) places *= static_cast<double>(w);
    const std::vector<std::int64_t> dims = x.dims(), strides = row_major_strides(dims);
    const auto n = static_cast<std::size_t>(a.out().num_elements());
    std::vector<A> result(n, identity);
    std::vector<std::int64_t> place(is_extremum(op.fn) ? n : 0, -1);
    for_each_window(window_axes(op), dims, a.out().dims(), [&](std::int64_t o, const std::vector<WindowTaps>& taps) {
      A& r = result[static_cast<std::size_t>(o)];
      for_each_tap(taps, strides, [&](std::int64_t i) {
        const A v = load_element<A>(x.data(), x.dtype(), i);
        if (op.fn == ReduceKind::Prod) {
          r = wrapping_mul(r, v);
        } else if (!is_extremum(op.fn)) {
          r = wrapping_add(r, v);
        } else if constexpr (std::is_arithmetic_v<A>) {
          std::int64_t& at = place[static_cast<std::size_t>(o)];
          if (at < 0 || beats(v, r, op.fn == ReduceKind::Max)) r = v, at = i;
        }
      });
      if constexpr (!std::is_integral_v<A>)
        if (op.fn == ReduceKind::Mean) r /= places;
    });
    store_all(a.out(), result);
    if (is_extremum(op.fn)) store_all(a.out(1), place);
  }
};

}  // namespace

constinit const OpDef ops::ReduceWindow::def{.kind = kind,
                                             .name = "reduce_window",
                                             .what = "Sum, mean, max, min or product over every window.",
                                             .inputs = inputs("x"),
                                             .attrs = ReduceWindowRules::attrs,
                                             .level = Level::Mir,
                                             .leaf = LeafKind::None,
                                             .elementwise = ElementwiseKind::No,
                                             .view = ViewKind::None,
                                             .precision = PrecisionCategory::Reduction,
                                             .infer = ReduceWindowRules::infer,
                                             .decompose = none("a primitive"),
                                             .vjp = ReduceWindowRules::vjp,
                                             .jvp = ReduceWindowRules::jvp,
                                             .batch = ReduceWindowRules::batch,
                                             .reference = ReduceWindowRules::reference,
                                             .cost = ReduceWindowRules::cost};

}  // namespace rlx
