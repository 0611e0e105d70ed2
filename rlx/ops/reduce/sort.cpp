// Sort: keys in order along an axis, and other values in the order of the keys.
#include <algorithm>
#include <numeric>

#include "rlx/ir/ops/indexing.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

struct SortRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& keys = c.input(0);
    if (auto error = c.check_axis(c.op<ops::Sort>().axis, keys)) return *error;
    if (is_complex(keys.dtype())) return c.dtype_error("complex values have no order: keys ", keys);
    if (is_storage_only(keys.dtype()))
      return c.dtype_error("keys have a storage dtype, which cannot be compared: ", keys, "; cast them first");
    Shapes results;
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (!(c.input(i).dims() == keys.dims()))
        return c.error("operand ", i, " ", c.input(i), " must have the dimensions of the keys ", keys);
      results.push_back(c.input(i));
    }
    return results;
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Sort>();
    const auto dims = a.in(0).dims();
    const AxisSplit s = split_at(dims, op.axis);
    visit_accumulator(a.in(0).dtype(), [&]<class A>(A) {
      if constexpr (std::is_arithmetic_v<A>) {
        const std::vector<A> keys = load_all<A>(a.in(0));
        std::vector<std::int64_t> order(static_cast<std::size_t>(s.outer * s.inner == 0 ? 0 : s.extent));
        for (std::int64_t o = 0; o < s.outer; ++o)
          for (std::int64_t k = 0; k < s.inner; ++k) {
            const std::int64_t base = o * s.extent * s.inner + k;
            const auto key = [&](std::int64_t i) { return keys[static_cast<std::size_t>(base + i * s.inner)]; };
            std::iota(order.begin(), order.end(), std::int64_t{0});
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
              return op.descending ? above(key(i), key(j)) : above(key(j), key(i));
            });
            for (int r = 0; r < a.num_inputs(); ++r)
              for (std::size_t i = 0; i < order.size(); ++i)
                copy_strided(a.in(r).dtype(), std::vector<std::int64_t>{1}, a.out(r).mutable_data(),
                             {base + static_cast<std::int64_t>(i) * s.inner, {1}}, a.in(r).data(),
                             {base + order[i] * s.inner, {1}});
          }
      }
    });
  }
  // True when a comes after b in ascending order. NaN comes after every number and equals NaN.
  template <class A>
  static bool above(A a, A b) {
    if constexpr (std::is_floating_point_v<A>) {
      if (std::isnan(b)) return false;
      if (std::isnan(a)) return true;
    }
    return a > b;
  }
  static Cost cost(const CostContext& c) {
    const double n = static_cast<double>(c.inputs[0].dim(static_cast<int>(c.op<ops::Sort>().axis)).value());
    return c.with_flops(static_cast<double>(c.inputs[0].num_elements()) * std::log2(std::max(n, 2.0)));
  }
  // The original positions of the sorted elements along the axis, and the index operands of a gather or scatter by
  // them.
  static std::vector<Value> places(const BuildContext& c) {
    const auto& op = c.op<ops::Sort>();
    Graph& g = c.graph();
    const Shape& keys = c.input(0).shape();
    const DType t = count_dtype(g, {keys.dims()});
    const Expr at = g.iota(keys.with_dtype(t), op.axis);
    const Expr order = g.add(op, {c.input(0), at}).result(1);
    std::vector<Value> out;
    for (int a = 0; a < keys.rank(); ++a)
      out.push_back(a == op.axis ? order : g.expand(positions(g, keys.dim(a), a, keys.rank(), t), keys.dims()));
    return out;
  }
  static std::vector<std::int64_t> all_axes(const BuildContext& c) { return identity_perm(c.input(0).rank()); }
  static void vjp(VjpContext& c) {
    std::vector<Value> at;
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (!c.wants(i) || !c.has_cotangent(i)) continue;
      if (at.empty()) at = places(c);
      std::vector<Value> operands{c.zeros(c.input(i).shape())};
      operands.insert(operands.end(), at.begin(), at.end());
      operands.push_back(c.cotangent(i));
      c.accumulate(i, c.graph().add(ops::Scatter{ScatterKind::Set, all_axes(c), IndexMode::Drop}, std::move(operands)));
    }
  }
  static void jvp(JvpContext& c) {
    std::vector<Value> at;
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (!c.has_tangent(i)) continue;
      if (at.empty()) at = places(c);
      std::vector<Value> operands{c.tangent(i)};
      operands.insert(operands.end(), at.begin(), at.end());
      c.set_tangent(i, c.graph().add(ops::Gather{all_axes(c)}, std::move(operands)));
    }
  }
  static void batch(BatchContext& c) {
    ops::Sort op = c.op<ops::Sort>();
    ++op.axis;
    c.emit_lifted(op);
  }
  static constexpr AttrField attrs[] = {field<&ops::Sort::axis>("axis"), field<&ops::Sort::descending>("descending")};
};

}  // namespace

constinit const OpDef ops::Sort::def{
    .kind = kind,
    .name = "sort",
    .what = "Keys sorted along an axis (stable, NaN above all numbers), and other values in the order of the keys.",
    .inputs = inputs("keys", "values").optional(1).more(),
    .attrs = SortRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::DataMovement,
    .infer = SortRules::infer,
    .decompose = none("a primitive"),
    .vjp = SortRules::vjp,
    .jvp = SortRules::jvp,
    .batch = SortRules::batch,
    .reference = SortRules::reference,
    .cost = SortRules::cost};

}  // namespace rlx
