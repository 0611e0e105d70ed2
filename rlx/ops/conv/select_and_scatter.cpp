// SelectAndScatter: adds the value of each window at the position of the window's maximum. A composite of the indices
// that ReduceWindow returns and a scatter. Linear in source.
#include <algorithm>

#include "rlx/ops/conv/windows.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// The indices in x of the selected elements, with the dims of source.
Expr selected_places(Graph& g, const ops::SelectAndScatter& op, Expr x) {
  return g.add(reduce_window_of(op), {x}).result(1);
}

struct SelectAndScatterRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &x = c.input(0), &source = c.input(1);
    const auto& op = c.op<ops::SelectAndScatter>();
    if (op.select != ReduceKind::Max && op.select != ReduceKind::Min)
      return c.attr_error("select must be max or min, got ", enum_name(op.select));
    if (is_storage_only(x.dtype()) || is_complex(x.dtype())) return c.dtype_error("x must be a real tensor, not ", x);
    if (is_storage_only(source.dtype()) || source.dtype() == DType::Bool)
      return c.dtype_error("source must have a numeric dtype, got ", source);
    const ops::ReduceWindow windows = reduce_window_of(op);
    if (auto e = check_windows(c, windows, x)) return *e;
    if (const Result<DType> places = place_dtype(c, x); !places.ok()) return places.error();
    const Dims dims = window_dims(windows, x);
    for (const Dim& d : dims)
      if (c.negative(d)) return c.error("x ", x, " is smaller than the window ", dims_text(op.window));
    if (source.dims() != dims)
      return c.error("source must have one element for each window of x ", x, ", ", dims_text(dims), ", got ", source);
    return make_shapes(Shape(x.dims(), source.dtype()));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const Expr x = c.input(0), source = widen(c.input(1));
    const Expr places = selected_places(g, c.op<ops::SelectAndScatter>(), x);
    const Shape row({x.shape().num_elements_dim()}, source.dtype());
    const Expr sums = g.scatter_add(c.zeros(row), in_a_row(g, places), in_a_row(g, source), 0);
    c.set_result(round_to(g.reshape(sums, x.shape().dims()), c.result_shape().dtype()));
  }
  static void reference(const RefArgs& a) {
    visit_accumulator(a.in(0).dtype(), [&]<class X>(X) {
      if constexpr (std::is_arithmetic_v<X>) visit_accumulator(a.in(1).dtype(), [&]<class S>(S) { compute<X, S>(a); });
    });
  }
  static Cost cost(const CostContext& c) {
    double places = 1;
    for (std::int64_t w : c.op<ops::SelectAndScatter>().window) places *= static_cast<double>(w);
    const auto windows = static_cast<double>(c.inputs[1].num_elements());
    return c.with_flops(windows * std::min(places, static_cast<double>(c.inputs[0].num_elements())));
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(1)) return;
    Graph& g = c.graph();
    const Expr places = selected_places(g, c.op<ops::SelectAndScatter>(), c.input(0));
    c.accumulate(1, at_places(g, in_a_row(g, c.cotangent()), places));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(1)) c.set_tangent(c.graph().add(c.box(), {c.input(0), c.tangent(1)}));
  }
  static void batch(BatchContext& c) {
    ops::SelectAndScatter op = c.op<ops::SelectAndScatter>();
    std::vector<WindowAxis> axes = window_axes(op);
    axes.insert(axes.begin(), WindowAxis{});
    set_window_axes(op, axes);
    c.emit_lifted(std::move(op));
  }
  static constexpr AttrField attrs[] = {field<&ops::SelectAndScatter::select>("select"),
                                        field<&ops::SelectAndScatter::window>("window"),
                                        field<&ops::SelectAndScatter::strides>("strides"),
                                        field<&ops::SelectAndScatter::low>("low"),
                                        field<&ops::SelectAndScatter::high>("high"),
                                        field<&ops::SelectAndScatter::base_dilation>("base_dilation"),
                                        field<&ops::SelectAndScatter::window_dilation>("window_dilation")};

 private:
  template <class X, class S>
  static void compute(const RefArgs& a) {
    const auto& op = a.op<ops::SelectAndScatter>();
    const Tensor &x = a.in(0), &source = a.in(1);
    const bool maximum = op.select == ReduceKind::Max;
    const std::vector<std::int64_t> dims = x.dims(), strides = row_major_strides(dims);
    std::vector<S> sums(static_cast<std::size_t>(x.num_elements()), S{});
    for_each_window(window_axes(op), dims, source.dims(), [&](std::int64_t o, const std::vector<WindowTaps>& taps) {
      std::int64_t at = -1;
      X best{};
      for_each_tap(taps, strides, [&](std::int64_t i) {
        const X v = load_element<X>(x.data(), x.dtype(), i);
        if (at < 0 || beats(v, best, maximum)) best = v, at = i;
      });
      if (at < 0) return;
      S& sum = sums[static_cast<std::size_t>(at)];
      sum = wrapping_add(sum, load_element<S>(source.data(), source.dtype(), o));
    });
    store_all(a.out(), sums);
  }
};

}  // namespace

constinit const OpDef ops::SelectAndScatter::def{
    .kind = kind,
    .name = "select_and_scatter",
    .what = "Adds the source element of each window at the position of the largest or smallest element of the window.",
    .inputs = inputs("x", "source"),
    .attrs = SelectAndScatterRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Reduction,
    .infer = SelectAndScatterRules::infer,
    .decompose = SelectAndScatterRules::decompose,
    .vjp = SelectAndScatterRules::vjp,
    .jvp = SelectAndScatterRules::jvp,
    .batch = SelectAndScatterRules::batch,
    .reference = SelectAndScatterRules::reference,
    .cost = SelectAndScatterRules::cost};

}  // namespace rlx
