// Scatter: a function combines updates with the elements that index tensors select.
#include "rlx/ir/ops/indexing.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/index/indexed.h"

namespace rlx {
namespace {

// The operands of the op during graph building: x, indices.., updates.
class Parts {
 public:
  explicit Parts(const BuildContext& c) : c_(c), g_(c.graph()), op_(c.op<ops::Scatter>()), last_(c.num_inputs() - 1) {}
  Graph& g() const { return g_; }
  const ops::Scatter& op() const { return op_; }
  int last() const { return last_; }
  Expr x() const { return c_.input(0); }
  Expr updates() const { return c_.input(last_); }
  const Dims& index_dims() const { return c_.input(1).shape().dims(); }

  /// Scatters updates into `into` at the same positions.
  Expr put(ScatterKind fn, Expr into, Expr updates) const { return put(fn, into, updates, op_.axes); }
  Expr put(ScatterKind fn, Expr into, Expr updates, std::vector<std::int64_t> axes) const {
    std::vector<Value> operands{into};
    for (int i = 1; i < last_; ++i) operands.push_back(c_.input(i));
    operands.push_back(updates);
    return g_.add(ops::Scatter{fn, std::move(axes), op_.mode}, std::move(operands));
  }
  /// The elements of `from` at those positions; `fill` for updates that are dropped.
  Expr pick(Expr from, double fill = 0) const { return pick(from, fill, op_.axes); }
  Expr pick(Expr from, double fill, std::vector<std::int64_t> axes) const {
    std::vector<Value> operands{from};
    for (int i = 1; i < last_; ++i) operands.push_back(c_.input(i));
    const bool drops = op_.mode == IndexMode::Drop;
    return g_.add(ops::Gather{std::move(axes), drops ? IndexMode::Fill : IndexMode::Clamp, drops ? fill : 0},
                  std::move(operands));
  }

  /// True for the updates that a Set keeps, in dims that broadcast with the updates.
  Expr kept() const {
    Dims extents;
    std::vector<std::int64_t> axes;
    for (std::int64_t a : op_.axes) {
      axes.push_back(static_cast<std::int64_t>(extents.size()));
      extents.push_back(x().dim(static_cast<int>(a)));
    }
    const DType t = count_dtype(g_, {index_dims()});
    const Expr number = g_.reshape(positions(g_, c_.input(1).shape().num_elements_dim(), 0, 1, t), index_dims());
    const Expr nobody = c_.full(Shape(extents, t), -1);
    const Expr winner = pick(put(ScatterKind::Set, nobody, number, axes), -1, axes);
    Dims dims(static_cast<std::size_t>(op_.axes.front()), Dim(1));
    dims.insert(dims.end(), index_dims().begin(), index_dims().end());
    dims.insert(dims.end(), static_cast<std::size_t>(updates().rank()) - dims.size(), Dim(1));
    return g_.reshape(g_.eq(winner, number), dims);
  }
  /// For each update, the product of its element and of all other updates of that element. An update of 0 is not
  /// divided by.
  Expr others() const {
    const Expr u = updates(), one = c_.full(u.shape(), 1), zero = g_.eq(u, 0);
    const Expr safe = g_.where(zero, one, u);
    const Expr zeros = pick(put(ScatterKind::Add, c_.zeros(x().shape()), g_.cast(zero, u.dtype())));
    const Expr rest = pick(put(ScatterKind::Mul, x(), safe));
    return g_.where(zero, g_.where(g_.eq(zeros, 1), rest, 0), g_.where(g_.eq(zeros, 0), rest / safe, 0));
  }
  /// The product of the updates of each element.
  Expr factors() const { return put(ScatterKind::Mul, c_.full(x().shape(), 1), updates()); }
  /// 1 where the operand, or an update, equals the extremum `y`, and the number of these at each element. In the
  /// accumulator dtype, because F16 cannot represent large counts.
  struct Ties {
    Expr x, updates, count;
  };
  Ties ties(Expr y) const {
    const DType t = accumulator_dtype(x().dtype());
    const Expr mine = g_.cast(g_.eq(x(), y), t), theirs = g_.cast(g_.eq(updates(), pick(y)), t);
    return {mine, theirs, put(ScatterKind::Add, mine, theirs)};
  }

 private:
  const BuildContext& c_;
  Graph& g_;
  const ops::Scatter& op_;
  int last_;
};

struct ScatterRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Scatter>();
    const Shape& x = c.input(0);
    if (auto error = check_indexed(c, x, op.axes, 1)) return *error;
    const Shape& updates = c.input(c.num_inputs() - 1);
    if (op.mode == IndexMode::Fill) return c.attr_error("does not support mode fill: use drop or clamp");
    if (op.mode == IndexMode::Clamp)
      if (auto error = check_clamped(c, x, op.axes, c.input(1))) return *error;
    const bool adds = op.fn == ScatterKind::Add || op.fn == ScatterKind::Mul;
    const bool orders = op.fn == ScatterKind::Min || op.fn == ScatterKind::Max;
    if ((adds || orders) && is_storage_only(x.dtype()))
      return c.dtype_error("cannot compute with the storage dtype of ", x);
    if (adds && x.dtype() == DType::Bool) return c.dtype_error("cannot add or multiply values of ", x);
    if (orders && is_complex(x.dtype())) return c.dtype_error("complex values have no order: ", x);
    if (x.dtype() != updates.dtype()) return c.dtype_error("updates ", updates, " must have the dtype of operand ", x);
    const Dims expected = picked_dims(x, c.input(1).dims(), op.axes);
    if (!(updates.dims() == expected))
      return c.error("updates ", updates, " must be ", dims_text(expected), " for operand ", x, ", indices ",
                     c.input(1), " and axes ", dims_text(op.axes));
    return make_shapes(x);
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Scatter>();
    const auto dims = a.in(0).dims();
    const IndexedBlocks blocks(dims, op.axes);
    const std::int64_t count = a.in(1).num_elements();
    const Tensor& updates = a.in(a.num_inputs() - 1);
    const auto each = [&](const auto& f) {
      for (std::int64_t o = 0; o < blocks.outer; ++o)
        for (std::int64_t i = 0; i < count; ++i) {
          const auto at = block_at(blocks, a.inputs.subspan(1), i, op.mode == IndexMode::Clamp);
          for (std::size_t r = 0; at && r < blocks.rows.size(); ++r)
            f(o * blocks.outer_stride + *at + blocks.rows[r],
              (o * count + i) * blocks.size() + static_cast<std::int64_t>(r) * blocks.run);
        }
    };
    if (op.fn == ScatterKind::Set) {
      std::byte* out = a.out().mutable_data();
      if (a.out().size_bytes() != 0) std::copy_n(a.in(0).data(), a.out().size_bytes(), out);
      const std::vector<std::int64_t> run{blocks.run};
      each([&](std::int64_t to, std::int64_t from) {
        copy_strided(a.out().dtype(), run, out, {to, {1}}, updates.data(), {from, {1}});
      });
      return;
    }
    visit_accumulator(a.out().dtype(), [&]<class A>(A) {
      std::vector<A> result = load_all<A>(a.in(0));
      const std::vector<A> values = load_all<A>(updates);
      each([&](std::int64_t to, std::int64_t from) {
        for (std::int64_t k = 0; k < blocks.run; ++k) {
          A& r = result[static_cast<std::size_t>(to + k)];
          const A v = values[static_cast<std::size_t>(from + k)];
          switch (op.fn) {
            case ScatterKind::Set: break;
            case ScatterKind::Add: r = wrapping_add(r, v); break;
            case ScatterKind::Mul: r = wrapping_mul(r, v); break;
            case ScatterKind::Min:
            case ScatterKind::Max:
              if constexpr (std::is_arithmetic_v<A>)
                if (beats(v, r, op.fn == ScatterKind::Max)) r = v;
              break;
          }
        }
      });
      store_all(a.out(), result);
    });
  }
  // The cost in place, as planned when the operand has no later reader: only the updated elements are touched.
  static Cost cost(const CostContext& c) {
    const auto updates = static_cast<double>(c.inputs.back().size_bytes());
    double read = updates;
    for (std::size_t i = 1; i < c.inputs.size(); ++i) read += static_cast<double>(c.inputs[i].size_bytes());
    return {static_cast<double>(c.inputs.back().num_elements()), read, updates};
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0)) return;
    const Parts p(c);
    Graph& g = p.g();
    const Expr ct = c.cotangent();
    switch (p.op().fn) {
      case ScatterKind::Set:
        c.accumulate(0, p.put(ScatterKind::Set, ct, c.zeros(p.updates().shape())));
        return c.accumulate(p.last(), g.where(p.kept(), p.pick(ct), 0));
      case ScatterKind::Add: c.accumulate(0, ct); return c.accumulate(p.last(), p.pick(ct));
      case ScatterKind::Mul: c.accumulate(0, ct * p.factors()); return c.accumulate(p.last(), p.pick(ct) * p.others());
      case ScatterKind::Min:
      case ScatterKind::Max: {  // ties share the cotangent equally
        const Parts::Ties ties = p.ties(c.output());
        const Expr share = widen(ct) / g.max(ties.count, 1);
        c.accumulate(0, round_to(share * ties.x, ct.dtype()));
        return c.accumulate(p.last(), round_to(p.pick(share) * ties.updates, ct.dtype()));
      }
    }
  }
  static void jvp(JvpContext& c) {
    const Parts p(c);
    const int last = p.last();
    if (!c.has_tangent(0) && !c.has_tangent(last)) return;
    const Expr t = c.tangent(0), u = c.tangent(last);
    switch (p.op().fn) {
      case ScatterKind::Set:
      case ScatterKind::Add: return c.set_tangent(p.put(p.op().fn, t, u));
      case ScatterKind::Mul: return c.set_tangent(p.put(ScatterKind::Add, t * p.factors(), u * p.others()));
      case ScatterKind::Min:
      case ScatterKind::Max: {
        const Parts::Ties ties = p.ties(c.output());
        const Expr moved = p.put(ScatterKind::Add, widen(t) * ties.x, widen(u) * ties.updates);
        return c.set_tangent(round_to(moved / p.g().max(ties.count, 1), p.x().dtype()));
      }
    }
  }
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    ops::Scatter op = c.op<ops::Scatter>();
    const int last = c.num_inputs() - 1;
    const std::int64_t first = op.axes.front();
    bool indices_batched = false;
    for (int i = 1; i < last; ++i) indices_batched = indices_batched || c.is_batched(i);
    std::vector<Value> operands{c.lifted(0)};
    const Expr updates = c.lifted(last);
    op.axes = shifted(op.axes);
    if (!indices_batched) {
      for (int i = 1; i < last; ++i) operands.push_back(c.input(i));
      operands.push_back(updates);
      return c.set_result(g.add(op, std::move(operands)));
    }
    op.axes.insert(op.axes.begin(), 0);
    for (Value v : batched_indices(c, 1, last)) operands.push_back(v);
    // updates [B, pre.., indices.., rest..] -> [B, indices.., pre.., rest..]
    const std::int64_t num_index_axes = c.rank(1);
    std::vector<std::int64_t> perm{0};
    for (std::int64_t i = 0; i < num_index_axes; ++i) perm.push_back(1 + first + i);
    for (std::int64_t i = 0; i < first; ++i) perm.push_back(1 + i);
    for (std::int64_t i = 1 + first + num_index_axes; i < updates.rank(); ++i) perm.push_back(i);
    operands.push_back(g.transpose(updates, perm));
    c.set_result(g.add(op, std::move(operands)));
  }
  static constexpr AttrField attrs[] = {field<&ops::Scatter::fn>("fn", AttrPlace::Suffix),
                                        field<&ops::Scatter::axes>("axes"), field<&ops::Scatter::mode>("mode")};
};

}  // namespace

constinit const OpDef ops::Scatter::def{
    .kind = kind,
    .name = "scatter",
    .what =
        "Sets, adds, multiplies, or takes the minimum or maximum of updates, at elements that integer indices select.",
    .inputs = inputs("operand", "indices", "updates").more(1),
    .attrs = ScatterRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Reduction,
    .infer = ScatterRules::infer,
    .decompose = none("a primitive"),
    .vjp = ScatterRules::vjp,
    .jvp = ScatterRules::jvp,
    .batch = ScatterRules::batch,
    .reference = ScatterRules::reference,
    .cost = ScatterRules::cost,
    .updates = UpdateKind::Yes};

}  // namespace rlx
