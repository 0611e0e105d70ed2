// TopK: the k largest elements of the last axis and their positions.
#include <algorithm>
#include <limits>
#include <numeric>

#include "rlx/ir/ops/indexing.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// The positions of the selected elements in the flattened x [.., N]: [R, k] with R rows.
Expr picked_positions(Graph& g, const Shape& x, Expr indices) {
  Dim rows(1);
  for (int i = 0; i + 1 < x.rank(); ++i) rows = rows * x.dim(i);
  const DType t = count_dtype(g, {x.dims()});
  const Expr at = g.cast(g.reshape(indices, {rows, indices.dim(indices.rank() - 1)}), t);
  const Expr row_starts = positions(g, rows, 0, 2, t) * dim_value(g, x.dim(-1), t);
  return at + row_starts;
}

struct TopKRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const std::int64_t k = c.op<ops::TopK>().k;
    if (x.rank() == 0) return c.error("x must have at least one axis");
    if (!is_float(x.dtype()) && !is_int(x.dtype()))
      return c.dtype_error("x must be a float or integer tensor, not ", x);
    if (k < 0 || c.negative(x.dim(-1) - Dim(k)))
      return c.attr_error("k ", k, " is not in [0, ", x.dim(-1), "], the extent of the last axis");
    if (x.dim(-1).is_static() && x.dim(-1).value() > std::numeric_limits<std::int32_t>::max())
      return c.error("the last axis of x ", x, " has more elements than i32 indices can address");
    const Shape values = x.with_dim(x.rank() - 1, Dim(k));
    return make_shapes(values, values.with_dtype(DType::I32));
  }
  static void reference(const RefArgs& a) {
    const std::int64_t n = a.in(0).dim(-1), k = a.op<ops::TopK>().k;
    if (n == 0 || k == 0) return;
    const std::int64_t rows = a.in(0).num_elements() / n;
    visit_accumulator(a.in(0).dtype(), [&]<class A>(A) {
      if constexpr (std::is_arithmetic_v<A>) {
        const std::vector<A> x = load_all<A>(a.in(0));
        std::byte *values = a.out(0).mutable_data(), *indices = a.out(1).mutable_data();
        std::vector<std::int64_t> order(static_cast<std::size_t>(n));
        for (std::int64_t r = 0; r < rows; ++r) {
          const A* row = x.data() + r * n;
          std::iota(order.begin(), order.end(), std::int64_t{0});
          std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](std::int64_t i, std::int64_t j) {
            if (beats(row[i], row[j], true)) return true;
            if (beats(row[j], row[i], true)) return false;
            return i < j;
          });
          for (std::int64_t i = 0; i < k; ++i) {
            store_element(values, a.out(0).dtype(), r * k + i, row[order[static_cast<std::size_t>(i)]]);
            store_element(indices, DType::I32, r * k + i, order[static_cast<std::size_t>(i)]);
          }
        }
      }
    });
  }
  static Cost cost(const CostContext& c) {
    return c.with_flops(static_cast<double>(c.inputs[0].num_elements()));  // one comparison per element
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0) || !c.has_cotangent(0)) return;
    Graph& g = c.graph();
    const Shape& x = c.input(0).shape();
    const Expr at = picked_positions(g, x, c.output(1));
    const Expr dx = g.scatter_add(c.zeros(Shape({x.num_elements_dim()}, x.dtype())), at,
                                  g.reshape(c.cotangent(0), at.shape().dims()));
    c.accumulate(0, g.reshape(dx, x.dims()));
  }
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const Shape& x = c.input(0).shape();
    const Expr flat = g.reshape(c.tangent(0), {x.num_elements_dim()});
    c.set_tangent(0, g.reshape(g.gather(flat, picked_positions(g, x, c.output(1)), 0), c.result_shape(0).dims()));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static constexpr AttrField attrs[] = {field<&ops::TopK::k>("k")};
};

}  // namespace

constinit const OpDef ops::TopK::def{.kind = kind,
                                     .name = "top_k",
                                     .what = "The k largest of the last axis, descending, and their indices.",
                                     .inputs = inputs("x"),
                                     .attrs = TopKRules::attrs,
                                     .level = Level::Mir,
                                     .leaf = LeafKind::None,
                                     .elementwise = ElementwiseKind::No,
                                     .view = ViewKind::None,
                                     .precision = PrecisionCategory::DataMovement,
                                     .infer = TopKRules::infer,
                                     .decompose = none("a primitive"),
                                     .vjp = TopKRules::vjp,
                                     .jvp = TopKRules::jvp,
                                     .batch = TopKRules::batch,
                                     .reference = TopKRules::reference,
                                     .cost = TopKRules::cost};

}  // namespace rlx
