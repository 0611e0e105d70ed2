// canonicalize-convs: convolutions of one tap become matmuls. Filters from weights get the layout that their kernels
// read.
#include <algorithm>

#include "rlx/ir/math/conv_geometry.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

using ConvAxes = std::vector<std::int64_t>;

// A filter of one tap that reads every element of x once.
bool is_pointwise(const ConvGeometry& g, const Shape& w) {
  return g.groups == 1 && g.batch_groups == 1 && std::all_of(g.space.begin(), g.space.end(), [&](const ConvAxis& a) {
           return w.dim(static_cast<int>(a.w)).is_static(1) && a.stride == 1 && a.low == 0 && a.high == 0 &&
                  a.lhs_dilation == 1;
         });
}

// The position in the result of each axis of x; -1 for the feature axis.
ConvAxes places_in_result(const ConvGeometry& g, int rank) {
  ConvAxes out(static_cast<std::size_t>(rank), -1);
  out[static_cast<std::size_t>(g.x_batch)] = g.y_batch;
  for (const ConvAxis& a : g.space) out[static_cast<std::size_t>(a.x)] = a.y;
  return out;
}

// The matmul transposed to the axis order of the result. `made` lists the result axis of each axis of `product`.
Expr in_order(Expr product, const ConvAxes& made) {
  ConvAxes perm(made.size());
  for (std::size_t i = 0; i < made.size(); ++i) perm[static_cast<std::size_t>(made[i])] = static_cast<std::int64_t>(i);
  return std::is_sorted(perm.begin(), perm.end()) ? product : product.graph().transpose(product, perm);
}

Expr pointwise_matmul(Graph& g, const ops::Conv& op, Expr x, Expr w) {
  const ConvGeometry geo = conv_geometry(op, x.rank());
  const ConvAxes places = places_in_result(geo, x.rank());
  const bool out_first = geo.w_out < geo.w_in;
  const Dim &out = w.dim(static_cast<int>(geo.w_out)), &in = w.dim(static_cast<int>(geo.w_in));
  const Expr matrix = g.reshape(w, out_first ? Dims{out, in} : Dims{in, out});
  const ConvAxes contract{out_first ? 1 : 0}, features{geo.x_feature};
  ConvAxes rows;  // of the result, in the order of x
  for (std::int64_t place : places)
    if (place >= 0) rows.push_back(place);
  ConvAxes made = rows;
  made.push_back(geo.y_feature);
  const bool features_last = std::is_sorted(made.begin(), made.end());
  if (features_last || geo.y_batch != 0 || geo.y_feature != 1 || geo.x_batch != 0)
    return in_order(g.dot_general(x, matrix, ops::DotGeneral{features, contract, {}, {}, op.out}), made);
  // Features before space: the filter is the left matrix, for each member of the batch.
  made = {geo.y_batch, geo.y_feature};
  for (std::size_t a = 1; a < places.size(); ++a)
    if (places[a] >= 0) made.push_back(places[a]);
  if (x.dim(0).is_static(1)) {
    std::swap(made[0], made[1]);
    return in_order(g.dot_general(matrix, x, ops::DotGeneral{contract, features, {}, {}, op.out}), made);
  }
  Dims dims{x.dim(0)};
  dims.insert(dims.end(), matrix.shape().dims().begin(), matrix.shape().dims().end());
  const ConvAxes inner{contract[0] + 1}, batch{0};
  return in_order(g.dot_general(g.expand(matrix, dims), x, ops::DotGeneral{inner, features, batch, batch, op.out}),
                  made);
}

// [space.., features of x, features of the result]: the order that kernels pack, in which output features are adjacent.
std::optional<ConvAxes> filters_last(const ConvGeometry& g) {
  ConvAxes perm;
  for (const ConvAxis& a : g.space) perm.push_back(a.w);
  perm.push_back(g.w_in);
  perm.push_back(g.w_out);
  if (std::is_sorted(perm.begin(), perm.end())) return std::nullopt;
  return perm;
}

std::optional<Graph> run_canonicalize_convs(const Graph& g, const PassContext& context) {
  const auto is_conv = [](const Node& n) { return n.kind() == OpKind::Conv; };
  if (std::none_of(g.nodes().begin(), g.nodes().end(), is_conv)) return std::nullopt;
  ParamOnly param_only;
  return replace_nodes(g, canonicalize_convs.name, [&](Rebuilder& r, NodeId id) -> Replacement {
    const Node& n = g.node(id);
    if (!is_conv(n)) return std::nullopt;
    const std::vector<Expr> in = r.operands(id);
    const auto& op = n.op.as<ops::Conv>();
    const ConvGeometry geo = conv_geometry(op, in[0].rank());
    if (is_pointwise(geo, in[1].shape())) {
      const Expr product = pointwise_matmul(r.graph(), op, in[0], in[1]);
      if (!context.refuses(product, n)) return {{product}};
    }
    const std::optional<ConvAxes> perm = filters_last(geo);
    if (!perm || !param_only(g, n.inputs[1])) return std::nullopt;
    ops::Conv moved = op;
    const std::int64_t rank = in[0].rank();
    moved.rhs_spec = {rank - 1, rank - 2};
    for (std::int64_t a = 0; a + 2 < rank; ++a) moved.rhs_spec.push_back(a);
    const Expr conv = r.graph().add(std::move(moved), {in[0], r.graph().transpose(in[1], *perm)});
    return context.refuses(conv, n) ? std::nullopt : Replacement({conv});
  });
}

}  // namespace

const Pass canonicalize_convs{"canonicalize-convs",
                              "Rewrites a 1x1 convolution without strides, padding and groups as a matmul, and "
                              "transposes filters that depend only on weights to [spatial.., features of x, features "
                              "of the result]. Always legal; the target must claim the new node.",
                              run_canonicalize_convs};

}  // namespace rlx
