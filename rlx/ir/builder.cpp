// Builder functions: type promotion, axis normalisation and weak scalars; each adds one node.
#include "rlx/ir/builder.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <span>

#include "rlx/ir/build/body_scope.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/tensor/visit.h"

namespace rlx {
using namespace building;
namespace {

// A weak scalar as the operand next to a tensor of dtype t.
Expr scalar_beside(Graph& g, const Operand& x, DType t) {
  return g.constant(scalar_tensor(x, x.is_float_scalar() ? promote_weak_float(t) : promote_weak_int(t)), x.loc());
}

struct Pair {
  Expr a, b;
  SourceLoc loc;
};
// Both operands as values of this graph with one dtype.
Pair promote_pair(Graph& g, const Operand& a, const Operand& b, const char* what) {
  Pair p{{}, {}, a.is_scalar() ? b.loc() : a.loc()};
  if (a.is_scalar() && !b.is_scalar()) {
    p.b = own(g, b);
    p.a = scalar_beside(g, a, p.b.dtype());
  } else if (b.is_scalar() && !a.is_scalar()) {
    p.a = own(g, a);
    p.b = scalar_beside(g, b, p.a.dtype());
  } else {
    p.a = own(g, a);
    p.b = own(g, b);
  }
  DType t = promoted(p.a.dtype(), p.b.dtype(), what, p.loc);
  p.a = cast_at(g, p.a, t, p.loc);
  p.b = cast_at(g, p.b, t, p.loc);
  return p;
}

std::vector<std::int64_t> normalize_axes(SourceLoc loc, std::vector<std::int64_t> axes, int rank, const char* what) {
  for (auto& a : axes) a = normalize_axis_at(loc, a, rank, what);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": an axis is named twice"));
  return axes;
}

}  // namespace

Expr DeclaredShape::check(Expr e) const {
  if (shape_ && !(e.shape() == *shape_))
    throw Error(Diagnostic{
        ErrorCode::ShapeMismatch,
        concat_text(op_text_name(e.graph().node(e.value().node).op), ": inferred ", e.shape(), ", declared ", *shape_),
        node_where(e.graph(), e.value().node), "remove or correct the declared shape"});
  return e;
}

Graph& Builder::graph() { return static_cast<Graph&>(*this); }

// -- leaves --

Expr Builder::input(std::string name, Shape shape, SourceLoc loc) {
  return graph().add(ops::Input{std::move(name), shape.dims(), shape.dtype()}, {}, loc);
}
Expr Builder::param(std::string name, Shape shape, ParamMode mode, SourceLoc loc) {
  return graph().add(ops::Param{std::move(name), shape.dims(), shape.dtype(), mode}, {}, loc);
}
Expr Builder::constant(Tensor value, SourceLoc loc) {
  require_on_host(loc, "a constant", value);
  return graph().add(ops::Constant{std::move(value)}, {}, loc);
}
Expr Builder::scalar_constant(const Operand& value, DType dtype) {
  return constant(scalar_tensor(value, dtype, "use a dtype that holds the value"), value.loc());
}
Expr Builder::state(std::string name, Tensor init, SourceLoc loc) {
  if (init.empty()) fail(loc, ErrorCode::InvalidArgument, concat_text("state '", name, "' needs an initial value"));
  require_on_host(loc, concat_text("the initial value of state '", name, "'"), init);
  Dims dims = init.shape().dims();
  DType dtype = init.dtype();
  return graph().add(ops::State{std::move(name), std::move(dims), dtype, std::move(init)}, {}, loc);
}

// -- elementwise --

Expr Builder::activation(ActivationKind fn, Operand x, const DeclaredShape& shape) {
  return shape.check(graph().add(ops::Activation{fn}, {own(graph(), x)}, x.loc()));
}
Expr Builder::activation(ActivationKind fn, Operand x, std::optional<double> alpha, std::optional<double> beta) {
  return graph().add(ops::Activation{fn, alpha, beta}, {own(graph(), x)}, x.loc());
}

Expr Builder::binary(BinaryKind fn, Operand a, Operand b, const DeclaredShape& shape) {
  Pair p = promote_pair(graph(), a, b, enum_name(fn).data());
  return shape.check(graph().add(ops::Binary{fn}, {p.a, p.b}, p.loc));
}
Expr Builder::compare(CompareKind fn, Operand a, Operand b, const DeclaredShape& shape) {
  Pair p = promote_pair(graph(), a, b, enum_name(fn).data());
  return shape.check(graph().add(ops::Compare{fn}, {p.a, p.b}, p.loc));
}

Expr Builder::where(Operand cond, Operand a, Operand b, const DeclaredShape& shape) {
  Expr c = own(graph(), cond);
  if (c.dtype() != DType::Bool) c = compare(CompareKind::Ne, Operand(c, cond.loc()), Operand(0, cond.loc()));
  Pair p = promote_pair(graph(), a, b, "where");
  return shape.check(graph().add(ops::Where{}, {c, p.a, p.b}, cond.loc()));
}
Expr Builder::cast(Operand x, DType to, const DeclaredShape& shape) {
  return shape.check(cast_at(graph(), own(graph(), x), to, x.loc()));
}
Expr Builder::clamp(Operand x, Operand low, Operand high, const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  Pair l = promote_pair(graph(), Operand(v, x.loc()), low, "clamp"),
       h = promote_pair(graph(), Operand(l.a, x.loc()), high, "clamp");
  return shape.check(graph().add(ops::Clamp{}, {h.a, cast_at(graph(), l.b, h.a.dtype(), x.loc()), h.b}, x.loc()));
}
Expr Builder::bitcast(Operand x, DType to) { return graph().add(ops::Bitcast{to}, {own(graph(), x)}, x.loc()); }
Expr Builder::stop_gradient(Operand x) { return graph().add(ops::StopGradient{}, {own(graph(), x)}, x.loc()); }

// -- shape --

Expr Builder::reshape(Operand x, Dims dims, const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  int free_axis = -1;
  Dim known(1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].is_static(-1)) {
      if (free_axis >= 0)
        fail(x.loc(), ErrorCode::InvalidArgument, concat_text("reshape: more than one -1 in ", dims_text(dims)));
      free_axis = static_cast<int>(i);
    } else {
      known = known * dims[i];
    }
  }
  if (free_axis >= 0) {
    Dim total = v.shape().num_elements_dim();
    auto rest = exact_div(total, known);
    if (!rest)
      fail(x.loc(), ErrorCode::ShapeMismatch,
           concat_text("reshape: ", v.shape(), " has ", total, " elements, not a multiple of ", known, " in ",
                       dims_text(dims)));
    dims[static_cast<std::size_t>(free_axis)] = *rest;
  }
  return shape.check(graph().add(ops::Reshape{std::move(dims)}, {v}, x.loc()));
}

Expr Builder::transpose(Operand x, std::vector<std::int64_t> perm, const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  for (auto& p : perm) p = normalize_axis_at(x.loc(), p, v.rank(), "transpose");
  return shape.check(graph().add(ops::Transpose{std::move(perm)}, {v}, x.loc()));
}

Expr Builder::t(Operand x) {
  Expr v = own(graph(), x);
  if (v.rank() < 2) fail(x.loc(), ErrorCode::ShapeMismatch, concat_text("t: ", v.shape(), " has fewer than two axes"));
  std::vector<std::int64_t> perm(static_cast<std::size_t>(v.rank()));
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return graph().add(ops::Transpose{std::move(perm)}, {v}, x.loc());
}

Expr Builder::expand(Operand x, Dims dims, const DeclaredShape& shape) {
  return shape.check(graph().add(ops::Expand{std::move(dims)}, {own(graph(), x)}, x.loc()));
}

Expr Builder::slice(Operand x, Dims starts, Dims limits, std::vector<std::int64_t> strides,
                    const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  if (strides.empty()) strides.assign(static_cast<std::size_t>(v.rank()), 1);
  return shape.check(graph().add(ops::Slice{std::move(starts), std::move(limits), std::move(strides)}, {v}, x.loc()));
}

Expr Builder::narrow(Operand x, std::int64_t axis, Dim start, Dim len, const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  auto a = static_cast<std::size_t>(normalize_axis_at(x.loc(), axis, v.rank(), "narrow"));
  Dims starts(static_cast<std::size_t>(v.rank()), Dim(0)), limits = v.shape().dims();
  starts[a] = start;
  limits[a] = start + len;
  return shape.check(slice(Operand(v, x.loc()), std::move(starts), std::move(limits)));
}

Expr Builder::concat(const std::vector<Expr>& xs, std::int64_t axis, const DeclaredShape& shape, SourceLoc loc) {
  if (xs.empty()) fail(loc, ErrorCode::InvalidArgument, "concat: no operands", "pass at least one value");
  DType t = xs[0].dtype();
  for (const Expr& x : xs) t = promoted(t, x.dtype(), "concat", loc);
  std::vector<Value> operands;
  for (const Expr& x : xs) operands.push_back(cast_at(graph(), own(graph(), Operand(x, loc)), t, loc));
  return shape.check(
      graph().add(ops::Concat{normalize_axis_at(loc, axis, xs[0].rank(), "concat")}, std::move(operands), loc));
}

Expr Builder::pad(Operand x, std::vector<std::int64_t> low, std::vector<std::int64_t> high, Operand value,
                  std::vector<std::int64_t> interior, const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  if (interior.empty()) interior.assign(static_cast<std::size_t>(v.rank()), 0);
  Expr fill = value.is_scalar() ? graph().constant(scalar_tensor(value, v.dtype(), kCastWider, x.loc()), x.loc())
                                : cast_at(graph(), own(graph(), value), v.dtype(), x.loc());
  return shape.check(graph().add(ops::Pad{std::move(low), std::move(high), std::move(interior)}, {v, fill}, x.loc()));
}

Expr Builder::reverse(Operand x, std::vector<std::int64_t> axes) {
  Expr v = own(graph(), x);
  return graph().add(ops::Reverse{normalize_axes(x.loc(), std::move(axes), v.rank(), "reverse")}, {v}, x.loc());
}

Expr Builder::iota(Shape shape, std::int64_t axis, SourceLoc loc) {
  return graph().add(ops::Iota{shape.dims(), shape.dtype(), normalize_axis_at(loc, axis, shape.rank(), "iota")}, {},
                     loc);
}

Expr Builder::unsqueeze(Operand x, std::int64_t axis) {
  Expr v = own(graph(), x);
  Dims dims = v.shape().dims();
  dims.insert(dims.begin() + normalize_axis_at(x.loc(), axis, v.rank() + 1, "unsqueeze"), Dim(1));
  return reshape(Operand(v, x.loc()), std::move(dims));
}

Expr Builder::squeeze(Operand x, std::int64_t axis) {
  Expr v = own(graph(), x);
  std::int64_t a = normalize_axis_at(x.loc(), axis, v.rank(), "squeeze");
  Dims dims = v.shape().dims();
  if (!dims[static_cast<std::size_t>(a)].is_static(1))
    fail(x.loc(), ErrorCode::ShapeMismatch,
         concat_text("squeeze: axis ", a, " of ", v.shape(), " does not have extent 1"));
  dims.erase(dims.begin() + a);
  return reshape(Operand(v, x.loc()), std::move(dims));
}

Expr Builder::dim_size(Operand x, std::int64_t axis) {
  Expr v = own(graph(), x);
  return graph().add(ops::DimSize{normalize_axis_at(x.loc(), axis, v.rank(), "dim_size")}, {v}, x.loc());
}

// -- indexing --

Expr Builder::dynamic_slice(Operand x, Operand starts, Dims sizes) {
  return graph().add(ops::DynamicSlice{std::move(sizes)}, {own(graph(), x), own(graph(), starts)}, x.loc());
}
Expr Builder::dynamic_update_slice(Operand x, Operand update, Operand starts) {
  Expr v = own(graph(), x);
  return graph().add(ops::DynamicUpdateSlice{}, {v, stored_as(graph(), update, v.dtype()), own(graph(), starts)},
                     x.loc());
}
Builder::TopKResult Builder::top_k(Operand x, std::int64_t k) {
  Expr e = graph().add(ops::TopK{k}, {own(graph(), x)}, x.loc());
  return {e, e.result(1)};
}
Expr Builder::arg_max(Operand x, std::int64_t axis, bool keep_dims) {
  Expr v = own(graph(), x);
  return graph().add(
      ops::ArgReduce{ArgReduceKind::Max, normalize_axis_at(x.loc(), axis, v.rank(), "arg_max"), keep_dims}, {v},
      x.loc());
}
Expr Builder::arg_min(Operand x, std::int64_t axis, bool keep_dims) {
  Expr v = own(graph(), x);
  return graph().add(
      ops::ArgReduce{ArgReduceKind::Min, normalize_axis_at(x.loc(), axis, v.rank(), "arg_min"), keep_dims}, {v},
      x.loc());
}

// -- reductions --

Expr Builder::reduce(ReduceKind fn, Operand x, std::vector<std::int64_t> axes, bool keep_dims,
                     const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(v.rank()));
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
  }
  return shape.check(graph().add(
      ops::Reduce{fn, normalize_axes(x.loc(), std::move(axes), v.rank(), "reduce"), keep_dims}, {v}, x.loc()));
}
Expr Builder::cumulative(CumulativeKind fn, Operand x, std::int64_t axis, bool exclusive, bool reverse,
                         const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  return shape.check(graph().add(
      ops::Cumulative{fn, normalize_axis_at(x.loc(), axis, v.rank(), "cumulative"), exclusive, reverse}, {v}, x.loc()));
}
Expr Builder::softmax(Operand x, std::int64_t axis, const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  return shape.check(graph().add(ops::Softmax{normalize_axis_at(x.loc(), axis, v.rank(), "softmax")}, {v}, x.loc()));
}
Expr Builder::log_softmax(Operand x, std::int64_t axis, const DeclaredShape& shape) {
  Expr v = own(graph(), x);
  return shape.check(
      graph().add(ops::LogSoftmax{normalize_axis_at(x.loc(), axis, v.rank(), "log_softmax")}, {v}, x.loc()));
}

// -- linear algebra --

Expr Builder::matmul(Operand a, Operand b, const DeclaredShape& shape) {
  Pair p = promote_pair(graph(), a, b, "matmul");
  if (p.a.rank() == 0 || p.b.rank() == 0)
    fail(p.loc, ErrorCode::ShapeMismatch,
         concat_text("matmul: ", p.a.shape(), " x ", p.b.shape(), ": a scalar has no columns"), "use * for scalars");
  bool vector_a = p.a.rank() == 1, vector_b = p.b.rank() == 1;
  Expr x = vector_a ? unsqueeze(Operand(p.a, p.loc), 0) : p.a;
  Expr w = vector_b ? unsqueeze(Operand(p.b, p.loc), 1) : p.b;
  Expr y = graph().add(ops::MatMul{}, {x, w}, p.loc);
  if (vector_b) y = squeeze(Operand(y, p.loc), -1);
  if (vector_a) y = squeeze(Operand(y, p.loc), vector_b ? -1 : -2);
  return shape.check(y);
}

Expr Builder::dot_general(Operand a, Operand b, ops::DotGeneral dims, const DeclaredShape& shape) {
  Pair p = dims.out ? Pair{own(graph(), a), own(graph(), b), a.loc()} : promote_pair(graph(), a, b, "dot_general");
  for (auto* list : {&dims.lhs_contract, &dims.lhs_batch})
    for (auto& axis : *list) axis = normalize_axis_at(p.loc, axis, p.a.rank(), "dot_general");
  for (auto* list : {&dims.rhs_contract, &dims.rhs_batch})
    for (auto& axis : *list) axis = normalize_axis_at(p.loc, axis, p.b.rank(), "dot_general");
  return shape.check(graph().add(std::move(dims), {p.a, p.b}, p.loc));
}

// -- normalisation, attention, position --

namespace {
// Operands cast to their common dtype. `what` names the op in the error when they have none.
std::vector<Value> promote_all(Graph& g, const char* what, std::span<const Operand> operands) {
  std::vector<Expr> own_values;
  for (const Operand& o : operands) own_values.push_back(own(g, o));
  std::vector<Value> out;
  if (own_values.empty()) return out;
  DType t = own_values[0].dtype();
  for (std::size_t i = 0; i < own_values.size(); ++i) t = promoted(t, own_values[i].dtype(), what, operands[i].loc());
  for (std::size_t i = 0; i < own_values.size(); ++i) out.push_back(cast_at(g, own_values[i], t, operands[i].loc()));
  return out;
}
std::vector<Value> promote_all(Graph& g, const char* what, std::initializer_list<Operand> operands) {
  return promote_all(g, what, std::span(operands.begin(), operands.size()));
}

// The operands of a layer block, cast to their common dtype; the mask keeps its dtype.
std::vector<Value> block_operands(Graph& g, const char* what, MaskKind mask, const std::vector<Expr>& operands,
                                  SourceLoc loc) {
  const bool masked = (mask == MaskKind::Custom || mask == MaskKind::Bias) && !operands.empty();
  std::vector<Operand> dense;
  for (std::size_t i = 0; i + (masked ? 1 : 0) < operands.size(); ++i) dense.emplace_back(operands[i], loc);
  std::vector<Value> out = promote_all(g, what, dense);
  if (masked) out.push_back(own(g, Operand(operands.back(), loc)));
  return out;
}
}  // namespace

namespace {
template <class Norm>
Expr norm(Graph& g, const char* what, Operand x, const std::optional<Operand>& gamma,
          const std::optional<Operand>& beta, double eps, const std::vector<std::int64_t>& axes) {
  const int rank = own(g, x).rank();
  Norm op;
  op.eps = eps;
  for (std::int64_t axis : axes) op.axes.push_back(normalize_axis_at(x.loc(), axis, rank, what));
  std::sort(op.axes.begin(), op.axes.end());
  std::vector<Operand> given{x};
  std::vector<std::string_view> names{"x"};
  for (const auto& [name, v] : {std::pair{"gamma", &gamma}, std::pair{"beta", &beta}})
    if (*v) given.emplace_back(own_at(g, **v, x.loc()), x.loc()), names.emplace_back(name);
  const std::vector<Value> values = promote_all(g, what, std::span<const Operand>(given));
  std::vector<std::pair<std::string_view, Expr>> operands;
  for (std::size_t i = 0; i < names.size(); ++i) operands.emplace_back(names[i], Expr(&g, values[i]));
  return g.add_named(op, operands, x.loc());
}
}  // namespace
Expr Builder::layer_norm(Operand x, std::optional<Operand> gamma, std::optional<Operand> beta, double eps,
                         const std::vector<std::int64_t>& axes, const DeclaredShape& shape) {
  return shape.check(norm<ops::LayerNorm>(graph(), "layer_norm", x, gamma, beta, eps, axes));
}
Expr Builder::rms_norm(Operand x, std::optional<Operand> gamma, std::optional<Operand> beta, double eps,
                       const std::vector<std::int64_t>& axes, const DeclaredShape& shape) {
  return shape.check(norm<ops::RmsNorm>(graph(), "rms_norm", x, gamma, beta, eps, axes));
}
Expr Builder::attention(Operand q, Operand k, Operand v, ops::Attention op, std::optional<Operand> mask,
                        const DeclaredShape& shape) {
  return attention(q, k, v, op, AttentionOptions{mask, {}, {}, {}}, shape);
}
Expr Builder::attention(Operand q, Operand k, Operand v, ops::Attention op, const AttentionOptions& options,
                        const DeclaredShape& shape) {
  Graph& g = graph();
  const std::vector<Value> stored = promote_all(g, "attention", {k, v});  // in their own dtype, for any dtype of q
  std::vector<std::pair<std::string_view, Expr>> operands{
      {"q", own(g, q)}, {"k", Expr(&g, stored[0])}, {"v", Expr(&g, stored[1])}};
  for (const auto& [name, x] : {std::pair{"mask", &options.mask}, std::pair{"kv_len", &options.kv_len},
                                std::pair{"q_len", &options.q_len}, std::pair{"sinks", &options.sinks}})
    if (*x) operands.emplace_back(name, own_at(g, **x, q.loc()));
  return shape.check(g.add_named(op, operands, q.loc()));
}
Expr Builder::paged_attention(Operand q, Operand k_pool, Operand v_pool, Operand block_table, Operand kv_len,
                              Operand q_start, ops::PagedAttention op, const AttentionOptions& options,
                              const DeclaredShape& shape) {
  Graph& g = graph();
  const std::vector<Value> pools = promote_all(g, "paged_attention", {k_pool, v_pool});
  if (options.kv_len || options.q_len)
    throw Error(ErrorCode::InvalidArgument, "paged_attention: the options kv_len and q_len are not supported",
                "pass kv_len as an operand; the number of new tokens follows from q_start");
  std::vector<std::pair<std::string_view, Expr>> operands{{"q", own(g, q)},
                                                          {"k_pool", Expr(&g, pools[0])},
                                                          {"v_pool", Expr(&g, pools[1])},
                                                          {"block_table", own(g, block_table)},
                                                          {"kv_len", own(g, kv_len)},
                                                          {"q_start", own(g, q_start)}};
  if (options.mask) operands.emplace_back("mask", own_at(g, *options.mask, q.loc()));
  if (options.sinks) operands.emplace_back("sinks", own_at(g, *options.sinks, q.loc()));
  return shape.check(g.add_named(op, operands, q.loc()));
}
Expr Builder::rope(Operand x, Operand cos, Operand sin, ops::Rope op, const DeclaredShape& shape) {
  if (op.n_rot == 0) op.n_rot = op.head_dim;
  return shape.check(graph().add(op, promote_all(graph(), "rope", {x, cos, sin}), x.loc()));
}

Expr Builder::rope(Operand x, Operand cos, Operand sin, Operand positions, ops::Rope op, const DeclaredShape& shape) {
  if (op.n_rot == 0) op.n_rot = op.head_dim;
  Graph& g = graph();
  const std::vector<Value> v = promote_all(g, "rope", {x, cos, sin});
  return shape.check(g.add_named(
      op, {{"x", Expr(&g, v[0])}, {"cos", Expr(&g, v[1])}, {"sin", Expr(&g, v[2])}, {"positions", own(g, positions)}},
      x.loc()));
}

// -- quantized values --

namespace {
// Operands by name; absent ones are empty.
using Given = std::vector<std::pair<std::string_view, std::optional<Operand>>>;
std::vector<std::pair<std::string_view, Expr>> given(Graph& g, const Given& operands, SourceLoc loc) {
  std::vector<std::pair<std::string_view, Expr>> out;
  for (const auto& [name, x] : operands)
    if (x) out.emplace_back(name, own_at(g, *x, loc));
  return out;
}
template <class Op>
void normalize_scale_axis(Op& op, Expr x, SourceLoc loc, const char* what) {
  if (op.axis) op.axis = normalize_axis_at(loc, *op.axis, x.rank(), what);
}
}  // namespace

Expr Builder::quantize(Operand x, Operand scale) { return quantize(x, scale, ops::Quantize{}); }
Expr Builder::dequantize(Operand codes, std::optional<Operand> scale) {
  return dequantize(codes, scale, ops::Dequantize{});
}
Builder::DynamicQuantizeResult Builder::dynamic_quantize(Operand x) {
  return dynamic_quantize(x, ops::DynamicQuantize{});
}
Builder::FakeQuantizeResult Builder::fake_quantize(Operand x) { return fake_quantize(x, ops::FakeQuantize{}); }
Expr Builder::dequant_matmul(Operand x, Operand codes, std::optional<Operand> scale) {
  return dequant_matmul(x, codes, scale, ops::Dequantize{});
}
Expr Builder::quantize(Operand x, Operand scale, ops::Quantize op, std::optional<Operand> zero_point,
                       const DeclaredShape& shape) {
  normalize_scale_axis(op, own(graph(), x), x.loc(), "quantize");
  return shape.check(graph().add_named(
      op, given(graph(), {{"x", x}, {"scale", scale}, {"zero_point", zero_point}}, x.loc()), x.loc()));
}
Expr Builder::quantize(Operand x, QuantScheme scheme, const DeclaredShape& shape) {
  ops::Quantize op;
  op.scheme = scheme;
  op.dtype = DType::U8;
  return shape.check(graph().add_named(op, given(graph(), {{"x", x}}, x.loc()), x.loc()));
}
Expr Builder::dequantize(Operand codes, std::optional<Operand> scale, ops::Dequantize op,
                         std::optional<Operand> zero_point, std::optional<Operand> global_scale,
                         const DeclaredShape& shape) {
  normalize_scale_axis(op, own(graph(), codes), codes.loc(), "dequantize");
  const Given operands{{"codes", codes}, {"scale", scale}, {"zero_point", zero_point}, {"global_scale", global_scale}};
  return shape.check(graph().add_named(op, given(graph(), operands, codes.loc()), codes.loc()));
}
Expr Builder::dequantize(Operand codes, QuantScheme scheme, DType dtype, const DeclaredShape& shape) {
  Expr c = own(graph(), codes);
  ops::Dequantize op;
  op.scheme = scheme;
  op.dtype = dtype;
  if (is_block_scheme(scheme) && c.rank() > 0 && c.dim(-1).is_static()) {
    const BlockLayout& l = block_layout(scheme);
    op.dims = c.shape().dims();
    op.dims.back() = Dim(op.dims.back().value() / l.bytes * l.elements);  // inference reports bytes that do not divide
  }
  return shape.check(graph().add(op, {c}, codes.loc()));
}
Builder::DynamicQuantizeResult Builder::dynamic_quantize(Operand x, ops::DynamicQuantize op) {
  Expr v = own(graph(), x);
  normalize_scale_axis(op, v, x.loc(), "dynamic_quantize");
  Expr e = graph().add(op, {v}, x.loc());
  return {e, e.result(1), e.result(2)};
}
Builder::FakeQuantizeResult Builder::fake_quantize(Operand x, ops::FakeQuantize op, std::optional<Operand> scale) {
  Expr v = own(graph(), x);
  normalize_scale_axis(op, v, x.loc(), "fake_quantize");
  Expr e = graph().add_named(op, given(graph(), {{"x", Operand(v, x.loc())}, {"scale", scale}}, x.loc()), x.loc());
  return {e, e.result(1)};
}
Expr Builder::dequant_matmul(Operand x, Operand codes, std::optional<Operand> scale, ops::Dequantize op,
                             std::optional<Operand> zero_point, std::optional<Operand> global_scale) {
  op.dtype = own(graph(), x).dtype();
  return matmul(x, Operand(dequantize(codes, scale, op, zero_point, global_scale), codes.loc()));
}
Expr Builder::dequant_matmul(Operand x, Operand codes, QuantScheme scheme) {
  Expr v = own(graph(), x), w = dequantize(codes, scheme, v.dtype());
  if (v.rank() < 1 || w.rank() != 2)
    fail(x.loc(), ErrorCode::ShapeMismatch,
         concat_text("dequant_matmul: x must be [.., K] and the quantized values [N, row bytes], got ", v.shape(),
                     " and ", own(graph(), codes).shape()));
  return dot_general(Operand(v, x.loc()), Operand(w, x.loc()), ops::DotGeneral{{v.rank() - 1}, {1}, {}, {}});
}

// -- HIR blocks --

Expr Builder::linear(Operand x, Operand w, std::optional<Operand> bias, std::optional<ActivationKind> activation) {
  std::vector<Value> operands =
      bias ? promote_all(graph(), "linear", {x, w, At{x.loc()}(own_at(graph(), *bias, x.loc()))})
           : promote_all(graph(), "linear", {x, w});
  return graph().add(ops::Linear{activation, bias.has_value()}, std::move(operands), x.loc());
}
Expr Builder::linear_fused(Operand x, Operand w, Operand bias, std::optional<ActivationKind> activation) {
  return graph().add(ops::LinearFused{activation}, promote_all(graph(), "linear_fused", {x, w, bias}), x.loc());
}
std::pair<Expr, Expr> Builder::shared_linear_pair(Operand x, Operand w1, Operand w2) {
  Expr e = graph().add(ops::SharedLinearPair{}, promote_all(graph(), "shared_linear_pair", {x, w1, w2}), x.loc());
  return {e, e.result(1)};
}
Expr Builder::swiglu(Operand x, Operand w_up, Operand w_gate, Operand w_down) {
  return graph().add(ops::SwiGLU{}, promote_all(graph(), "swiglu", {x, w_up, w_gate, w_down}), x.loc());
}
Expr Builder::residual_rms_norm(Operand x, Operand residual, Operand gamma, Operand beta, double eps) {
  return graph().add(ops::ResidualRmsNorm{eps}, promote_all(graph(), "residual_rms_norm", {x, residual, gamma, beta}),
                     x.loc());
}
Expr Builder::residual_layer_norm(Operand x, Operand residual, Operand gamma, Operand beta, double eps) {
  return graph().add(ops::ResidualLayerNorm{eps},
                     promote_all(graph(), "residual_layer_norm", {x, residual, gamma, beta}), x.loc());
}
Expr Builder::encoder_block(ops::EncoderBlock op, const std::vector<Expr>& operands, SourceLoc loc) {
  return graph().add(op, block_operands(graph(), "encoder_block", op.mask, operands, loc), loc);
}
Expr Builder::llama_decoder_block(ops::LlamaDecoderBlock op, const std::vector<Expr>& operands, SourceLoc loc) {
  // Float operands except caches and the mask have one dtype; a cache keeps its own.
  Graph& g = graph();
  const OpBox box(op);
  std::vector<Value> out;
  std::vector<Operand> floats;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand x(operands[i], loc);
    out.push_back(own(g, x));
    const std::string_view name = operand_name(box, static_cast<int>(operands.size()), static_cast<int>(i));
    if (name == "mask" || name == "k_cache" || name == "v_cache" || name == "start") continue;
    floats.push_back(x);
    places.push_back(i);
  }
  if (!floats.empty()) {
    const std::vector<Value> promoted_floats = promote_all(g, "llama_decoder_block", floats);
    for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = promoted_floats[i];
  }
  return g.add(box, std::move(out), loc);
}

// -- operators --

namespace {
// The graph of an operation on a value and a value of an enclosing graph is the inner graph.
Graph& graph_of(const Operand& a, const Operand& b) {
  if (a.is_scalar() || b.is_scalar()) return (a.is_scalar() ? b : a).expr().graph();
  Graph &x = a.expr().graph(), &y = b.expr().graph();
  return &x != &y && BodyScope::encloses(x, y) ? y : x;
}
}  // namespace
Expr operator+(Operand a, Operand b) { return graph_of(a, b).binary(BinaryKind::Add, a, b); }
Expr operator-(Operand a, Operand b) { return graph_of(a, b).binary(BinaryKind::Sub, a, b); }
Expr operator*(Operand a, Operand b) { return graph_of(a, b).binary(BinaryKind::Mul, a, b); }
Expr operator/(Operand a, Operand b) { return graph_of(a, b).binary(BinaryKind::Div, a, b); }
Expr operator-(Operand a) { return a.expr().graph().neg(a); }
Expr operator<(Operand a, Operand b) { return graph_of(a, b).compare(CompareKind::Lt, a, b); }
Expr operator<=(Operand a, Operand b) { return graph_of(a, b).compare(CompareKind::Le, a, b); }
Expr operator>(Operand a, Operand b) { return graph_of(a, b).compare(CompareKind::Gt, a, b); }
Expr operator>=(Operand a, Operand b) { return graph_of(a, b).compare(CompareKind::Ge, a, b); }

}  // namespace rlx
