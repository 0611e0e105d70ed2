// Collectives: shapes and derivatives for any number of ranks, values for one rank. A derivative is that of the sum,
// over all ranks, of a function of each rank's results. So it is a collective again: the adjoint.
#include "rlx/ir/ops/collectives.h"

#include <algorithm>
#include <cstring>

#include "rlx/ops/control/control.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

std::optional<Diagnostic> check_group(const InferContext& c, const std::string& axes, std::int64_t ranks) {
  const bool empty_name = axes.empty() || axes.front() == ',' || axes.back() == ',' || axes.find(",,") != axes.npos;
  if (empty_name)
    return c.attr_error("mesh_axes is \"", axes, "\"; list axes of the mesh, such as \"data\" or \"data,model\"");
  if (ranks < 1) return c.attr_error("the number of ranks must be at least 1, got ", ranks);
  return std::nullopt;
}

std::optional<Diagnostic> check_reduced(const InferContext& c, ReduceKind fn, const Shape& x) {
  const DType t = x.dtype();
  if (t == DType::Bool || is_storage_only(t)) return c.dtype_error("cannot reduce ", dtype_name(t));
  const bool extreme = fn == ReduceKind::Max || fn == ReduceKind::Min;
  if (extreme && is_complex(t)) return c.dtype_error("complex values have no order");
  if (fn == ReduceKind::Mean && !is_inexact(t))
    return c.dtype_error("the mean needs a float or complex dtype, got ", dtype_name(t));
  return std::nullopt;
}

Shape with_extent(const Shape& x, std::int64_t axis, Dim extent) {
  Dims dims = x.dims();
  dims[static_cast<std::size_t>(axis)] = std::move(extent);
  return Shape(std::move(dims), x.dtype());
}

// One of `ranks` equal slices along `axis`.
Result<Shape> part_of(const InferContext& c, const Shape& x, std::int64_t axis, std::int64_t ranks) {
  const Dim& d = x.dim(static_cast<int>(axis));
  if (!mod(d, Dim(ranks)).is_static(0))
    return c.error("axis ", axis, " of ", x, " must be a multiple of ", ranks, " ranks");
  return with_extent(x, axis, floordiv(d, Dim(ranks)));
}

void one_rank(const OpBox& op, const std::string& axes, std::int64_t ranks) {
  if (ranks == 1) return;
  throw Error(
      ErrorCode::Unsupported,
      concat_text(op_text_name(op), " over '", axes, "' needs ", ranks, " ranks, but the reference rules run one"),
      "run it on a device with a communicator, or build it for a mesh of one rank");
}

template <class Op>
void copy_of_one_rank(const RefArgs& a) {
  one_rank(a.box, a.op<Op>().mesh_axes, a.op<Op>().ranks);
  for (int i = 0; i < a.num_inputs(); ++i) a.out(i) = a.in(i);
}

constexpr ReduceKind kSum = ReduceKind::Sum;
bool linear(ReduceKind fn) { return fn == ReduceKind::Sum || fn == ReduceKind::Mean; }

struct AllReduceRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::AllReduce>();
    if (auto bad = check_group(c, op.mesh_axes, op.ranks)) return *bad;
    for (const Shape& x : c.inputs())
      if (auto bad = check_reduced(c, op.fn, x)) return *bad;
    return c.inputs();
  }
  static Exprs reduced(Graph& g, ReduceKind fn, const ops::AllReduce& like, const Exprs& xs) {
    return xs.empty() ? Exprs() : add_node(g, ops::AllReduce{fn, like.mesh_axes, like.ranks}, xs);
  }
  [[noreturn]] static void no_derivative(const ops::AllReduce& op) {
    throw Error(ErrorCode::Unsupported, concat_text("all_reduce ", enum_name(op.fn), " has no derivative"),
                "sum logarithms instead, or exclude the op with stop_gradient");
  }
  // 1 where the operand equals the extremum, and the number of ranks that have it.
  struct Extreme {
    Expr here, count;
  };
  static std::vector<Extreme> extremes(const BuildContext& c, const Exprs& outputs, const std::vector<int>& which) {
    Graph& g = c.graph();
    Exprs here;
    for (std::size_t k = 0; k < which.size(); ++k)
      here.push_back(g.cast(g.eq(c.input(which[k]), outputs[k]), outputs[k].dtype()));
    const Exprs counts = reduced(g, kSum, c.op<ops::AllReduce>(), here);
    std::vector<Extreme> out;
    for (std::size_t k = 0; k < which.size(); ++k) out.push_back({here[k], counts[k]});
    return out;
  }
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::AllReduce>();
    Exprs cotangents, outputs;
    std::vector<int> which;
    for (int i = 0; i < c.num_inputs(); ++i)
      if (c.wants(i) && c.has_cotangent(i))
        which.push_back(i), cotangents.push_back(c.cotangent(i)), outputs.push_back(c.output(i));
    if (which.empty()) return;
    if (!linear(op.fn) && op.fn == ReduceKind::Prod) no_derivative(op);
    const Exprs sums = reduced(c.graph(), linear(op.fn) ? op.fn : kSum, op, cotangents);
    const auto ties = linear(op.fn) ? std::vector<Extreme>() : extremes(c, outputs, which);
    for (std::size_t k = 0; k < which.size(); ++k)
      c.accumulate(which[k], ties.empty() ? sums[k] : sums[k] * ties[k].here / ties[k].count);
  }
  static void jvp(JvpContext& c) {
    const auto& op = c.op<ops::AllReduce>();
    Exprs tangents, outputs;
    std::vector<int> which;
    for (int i = 0; i < c.num_inputs(); ++i)
      if (c.has_tangent(i)) which.push_back(i), tangents.push_back(c.tangent(i)), outputs.push_back(c.output(i));
    if (which.empty()) return;
    if (op.fn == ReduceKind::Prod) no_derivative(op);
    const auto ties = linear(op.fn) ? std::vector<Extreme>() : extremes(c, outputs, which);
    for (std::size_t k = 0; k < ties.size(); ++k) tangents[k] = tangents[k] * ties[k].here;
    const Exprs sums = reduced(c.graph(), linear(op.fn) ? op.fn : kSum, op, tangents);
    for (std::size_t k = 0; k < which.size(); ++k)
      c.set_tangent(which[k], ties.empty() ? sums[k] : sums[k] / ties[k].count);
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static constexpr AttrField attrs[] = {field<&ops::AllReduce::fn>("fn"),
                                        field<&ops::AllReduce::mesh_axes>("mesh_axes"),
                                        field<&ops::AllReduce::ranks>("ranks")};
};

struct AllGatherRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::AllGather>();
    if (auto bad = check_group(c, op.mesh_axes, op.ranks)) return *bad;
    if (auto bad = c.check_axis(op.axis, c.input(0))) return *bad;
    return make_shapes(with_extent(c.input(0), op.axis, c.input(0).dim(static_cast<int>(op.axis)) * Dim(op.ranks)));
  }
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::AllGather>();
    if (c.wants(0) && c.has_cotangent(0))
      c.accumulate(0, c.graph().add(ops::ReduceScatter{kSum, op.axis, op.mesh_axes, op.ranks}, {c.cotangent(0)}));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(0, c.graph().add(c.box(), {c.tangent(0)}));
  }
  static void batch(BatchContext& c) {
    ops::AllGather op = c.op<ops::AllGather>();
    ++op.axis;
    c.emit_lifted(std::move(op));
  }
  static constexpr AttrField attrs[] = {field<&ops::AllGather::axis>("axis"),
                                        field<&ops::AllGather::mesh_axes>("mesh_axes"),
                                        field<&ops::AllGather::ranks>("ranks")};
};

struct ReduceScatterRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::ReduceScatter>();
    if (auto bad = check_group(c, op.mesh_axes, op.ranks)) return *bad;
    if (auto bad = c.check_axis(op.axis, c.input(0))) return *bad;
    if (!linear(op.fn)) return c.attr_error("fn must be sum or mean, got ", enum_name(op.fn));
    if (auto bad = check_reduced(c, op.fn, c.input(0))) return *bad;
    Result<Shape> part = part_of(c, c.input(0), op.axis, op.ranks);
    if (!part) return part.error();
    return make_shapes(*part);
  }
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::ReduceScatter>();
    if (!c.wants(0) || !c.has_cotangent(0)) return;
    Expr all = c.graph().add(ops::AllGather{op.axis, op.mesh_axes, op.ranks}, {c.cotangent(0)});
    if (op.fn == ReduceKind::Mean) all = all / static_cast<double>(op.ranks);
    c.accumulate(0, all);
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(0, c.graph().add(c.box(), {c.tangent(0)}));
  }
  static void batch(BatchContext& c) {
    ops::ReduceScatter op = c.op<ops::ReduceScatter>();
    ++op.axis;
    c.emit_lifted(std::move(op));
  }
  static constexpr AttrField attrs[] = {field<&ops::ReduceScatter::fn>("fn"), field<&ops::ReduceScatter::axis>("axis"),
                                        field<&ops::ReduceScatter::mesh_axes>("mesh_axes"),
                                        field<&ops::ReduceScatter::ranks>("ranks")};
};

struct AllToAllRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::AllToAll>();
    if (auto bad = check_group(c, op.mesh_axes, op.ranks)) return *bad;
    for (std::int64_t axis : {op.split, op.concat})
      if (auto bad = c.check_axis(axis, c.input(0))) return *bad;
    Result<Shape> part = part_of(c, c.input(0), op.split, op.ranks);
    if (!part) return part.error();
    return make_shapes(with_extent(*part, op.concat, part->dim(static_cast<int>(op.concat)) * Dim(op.ranks)));
  }
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::AllToAll>();
    if (c.wants(0) && c.has_cotangent(0))
      c.accumulate(0, c.graph().add(ops::AllToAll{op.concat, op.split, op.mesh_axes, op.ranks}, {c.cotangent(0)}));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(0, c.graph().add(c.box(), {c.tangent(0)}));
  }
  static void batch(BatchContext& c) {
    ops::AllToAll op = c.op<ops::AllToAll>();
    ++op.split, ++op.concat;
    c.emit_lifted(std::move(op));
  }
  static constexpr AttrField attrs[] = {field<&ops::AllToAll::split>("split"), field<&ops::AllToAll::concat>("concat"),
                                        field<&ops::AllToAll::mesh_axes>("mesh_axes"),
                                        field<&ops::AllToAll::ranks>("ranks")};
};

struct PermuteRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Permute>();
    if (auto bad = check_group(c, op.mesh_axes, op.ranks)) return *bad;
    if (op.pairs.size() % 2 != 0)
      return c.attr_error("pairs must be an even count of numbers (source, target, ..), got ", op.pairs.size());
    for (std::size_t side : {0U, 1U}) {
      std::vector<std::int64_t> seen;
      for (std::size_t k = side; k < op.pairs.size(); k += 2) {
        const std::int64_t rank = op.pairs[k];
        if (rank < 0 || rank >= op.ranks)
          return c.attr_error("pairs has rank ", rank, ", but ranks must be in [0, ", op.ranks, ")");
        seen.push_back(rank);
      }
      std::sort(seen.begin(), seen.end());
      if (const auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end())
        return c.attr_error("rank ", *twice, " is a ", side == 0 ? "source" : "target", " twice");
    }
    return make_shapes(c.input(0));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Permute>();
    one_rank(a.box, op.mesh_axes, op.ranks);
    if (!op.pairs.empty()) a.out() = a.in(0);  // results start as zeros
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0) || !c.has_cotangent(0)) return;
    ops::Permute back = c.op<ops::Permute>();
    for (std::size_t k = 0; k + 1 < back.pairs.size(); k += 2) std::swap(back.pairs[k], back.pairs[k + 1]);
    c.accumulate(0, c.graph().add(std::move(back), {c.cotangent(0)}));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(0, c.graph().add(c.box(), {c.tangent(0)}));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static constexpr AttrField attrs[] = {field<&ops::Permute::pairs>("pairs"),
                                        field<&ops::Permute::mesh_axes>("mesh_axes"),
                                        field<&ops::Permute::ranks>("ranks")};
};

struct AxisIndexRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::AxisIndex>();
    if (auto bad = check_group(c, op.mesh_axes, op.ranks)) return *bad;
    return make_shapes(Shape({}, DType::I64));
  }
  static void reference(const RefArgs& a) {
    one_rank(a.box, a.op<ops::AxisIndex>().mesh_axes, a.op<ops::AxisIndex>().ranks);
    a.out().set_i64(0, 0);
  }
  static void vjp(VjpContext&) {}
  static void jvp(JvpContext&) {}
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static constexpr AttrField attrs[] = {field<&ops::AxisIndex::mesh_axes>("mesh_axes"),
                                        field<&ops::AxisIndex::ranks>("ranks")};
};

constexpr NoRule kPrimitive = none("a primitive");

}  // namespace

constinit const OpDef ops::AllReduce::def{.kind = kind,
                                          .name = "all_reduce",
                                          .what = "Values reduced over the ranks of mesh axes, on all of them.",
                                          .inputs = variadic_inputs("x"),
                                          .attrs = AllReduceRules::attrs,
                                          .level = Level::Mir,
                                          .leaf = LeafKind::None,
                                          .elementwise = ElementwiseKind::No,
                                          .view = ViewKind::None,
                                          .precision = PrecisionCategory::Reduction,
                                          .infer = AllReduceRules::infer,
                                          .decompose = kPrimitive,
                                          .vjp = AllReduceRules::vjp,
                                          .jvp = AllReduceRules::jvp,
                                          .batch = AllReduceRules::batch,
                                          .reference = copy_of_one_rank<ops::AllReduce>,
                                          .cost = moves_bytes,
                                          .trait = OpTrait::Ordered};

#define RLX_COLLECTIVE(Kind, text, sentence, precision_, reference_)                                         \
  constinit const OpDef ops::Kind::def {                                                                     \
    .kind = kind, .name = text, .what = sentence, .inputs = inputs("x"), .attrs = Kind##Rules::attrs,        \
    .level = Level::Mir, .leaf = LeafKind::None, .elementwise = ElementwiseKind::No, .view = ViewKind::None, \
    .precision = PrecisionCategory::precision_, .infer = Kind##Rules::infer, .decompose = kPrimitive,        \
    .vjp = Kind##Rules::vjp, .jvp = Kind##Rules::jvp, .batch = Kind##Rules::batch, .reference = reference_,  \
    .cost = moves_bytes, .trait = OpTrait::Ordered                                                           \
  }
RLX_COLLECTIVE(AllGather, "all_gather", "The values of all ranks of mesh axes, joined along an axis.", DataMovement,
               copy_of_one_rank<ops::AllGather>);
RLX_COLLECTIVE(ReduceScatter, "reduce_scatter",
               "The part of this rank of values that are reduced over the ranks of mesh axes.", Reduction,
               copy_of_one_rank<ops::ReduceScatter>);
RLX_COLLECTIVE(AllToAll, "all_to_all", "Parts along one axis sent to the ranks, joined along another.", DataMovement,
               copy_of_one_rank<ops::AllToAll>);
RLX_COLLECTIVE(Permute, "permute", "The value of another rank, or zeros.", DataMovement, PermuteRules::reference);
#undef RLX_COLLECTIVE

constinit const OpDef ops::AxisIndex::def{.kind = kind,
                                          .name = "axis_index",
                                          .what = "The number of this rank along mesh axes, an I64 scalar.",
                                          .inputs = inputs(),
                                          .attrs = AxisIndexRules::attrs,
                                          .level = Level::Mir,
                                          .leaf = LeafKind::None,
                                          .elementwise = ElementwiseKind::No,
                                          .view = ViewKind::None,
                                          .precision = PrecisionCategory::DataMovement,
                                          .infer = AxisIndexRules::infer,
                                          .decompose = kPrimitive,
                                          .vjp = AxisIndexRules::vjp,
                                          .jvp = AxisIndexRules::jvp,
                                          .batch = AxisIndexRules::batch,
                                          .reference = AxisIndexRules::reference,
                                          .cost = no_cost};

}  // namespace rlx
