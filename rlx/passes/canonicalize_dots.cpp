// canonicalize-dots: every matmul becomes a DotGeneral that reads its operands in place.
#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

using Axes = std::vector<std::int64_t>;

bool contains(const Axes& axes, std::int64_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// One side of a matmul: the operand, and its contracted and batch axes.
struct DotSide {
  Expr x;
  Axes contract, batch;

  Axes free() const {
    Axes out;
    for (std::int64_t a = 0; a < x.rank(); ++a)
      if (!contains(contract, a) && !contains(batch, a)) out.push_back(a);
    return out;
  }
};

struct Dot {
  DotSide lhs, rhs;
  std::optional<DType> out{};
};

ops::DotGeneral dims_of(const Dot& d) { return {d.lhs.contract, d.rhs.contract, d.lhs.batch, d.rhs.batch, d.out}; }

const Node& producer(const Expr& e) { return e.graph().node(e.value().node); }

// The side without its transpose, if the order of its free axes (which is the order of the result) does not change.
std::optional<DotSide> without_transpose(const DotSide& s) {
  const auto* t = producer(s.x).op.get_if<ops::Transpose>();
  if (!t) return std::nullopt;
  DotSide out{s.x.graph().expr(producer(s.x).inputs[0]), {}, {}};
  auto moved = [&](std::int64_t axis) { return t->perm[static_cast<std::size_t>(axis)]; };
  for (std::int64_t a : s.contract) out.contract.push_back(moved(a));
  for (std::int64_t a : s.batch) out.batch.push_back(moved(a));
  std::int64_t last = -1;
  for (std::int64_t a : s.free()) {
    if (moved(a) < last) return std::nullopt;
    last = moved(a);
  }
  return out;
}

// Removes an expand of rhs over batch axes of lhs. These become free axes of lhs, and rhs is read once. Legal when the
// result keeps its order: the dropped axes are the last batch axes, in the order of lhs, before every free axis of lhs.
std::optional<Dot> without_expand(const Dot& d) {
  const DotSide& rhs = d.rhs;
  if (producer(rhs.x).kind() != OpKind::Expand) return std::nullopt;
  Expr source = rhs.x.graph().expr(producer(rhs.x).inputs[0]);
  const int grown = rhs.x.rank() - source.rank();
  auto repeated = [&](std::int64_t axis) {
    if (axis < grown) return true;
    return source.dim(static_cast<int>(axis) - grown).is_static(1) && !rhs.x.dim(static_cast<int>(axis)).is_static(1);
  };
  // Any other repeated axis needs the expanded operand.
  for (std::int64_t a = 0; a < rhs.x.rank(); ++a)
    if (repeated(a) && !contains(rhs.batch, a)) return std::nullopt;
  std::size_t kept = rhs.batch.size();
  while (kept > 0 && repeated(rhs.batch[kept - 1])) --kept;
  if (kept == rhs.batch.size()) return std::nullopt;
  for (std::size_t i = 0; i < kept; ++i)
    if (repeated(rhs.batch[i])) return std::nullopt;
  std::int64_t last = -1;
  for (std::size_t i = kept; i < d.lhs.batch.size(); ++i) {
    if (d.lhs.batch[i] < last) return std::nullopt;
    last = d.lhs.batch[i];
  }
  for (std::int64_t a : d.lhs.free())
    if (a < last) return std::nullopt;
  // rhs without the dropped axes.
  Axes dropped(rhs.batch.begin() + static_cast<std::ptrdiff_t>(kept), rhs.batch.end());
  Dims dims;
  Axes position(static_cast<std::size_t>(rhs.x.rank()), -1);
  for (std::int64_t a = 0; a < rhs.x.rank(); ++a) {
    if (contains(dropped, a)) continue;
    position[static_cast<std::size_t>(a)] = static_cast<std::int64_t>(dims.size());
    dims.push_back(rhs.x.dim(static_cast<int>(a)));
  }
  Dot out = d;
  out.lhs.batch.resize(kept);
  out.rhs = DotSide{source.shape().dims() == dims ? source : source.graph().reshape(source, dims), {}, {}};
  for (std::int64_t a : rhs.contract) out.rhs.contract.push_back(position[static_cast<std::size_t>(a)]);
  for (std::size_t i = 0; i < kept; ++i) out.rhs.batch.push_back(position[static_cast<std::size_t>(rhs.batch[i])]);
  return out;
}

// True when a transposed lhs of a matmul with one weight should keep its transpose node, because packed kernels read
// rows of lhs.
bool is_row_by_weight(const Graph& g, const Dot& d, ParamOnly& param_only) {
  return d.lhs.batch.empty() && d.lhs.contract.size() == 1 && d.lhs.contract[0] == d.lhs.x.rank() - 1 &&
         d.rhs.x.rank() == 2 && param_only(g, d.rhs.x.value());
}

// The matmul `d` with all layout ops of its operands absorbed that can be.
Dot absorbed(Graph& g, Dot d, ParamOnly& param_only) {
  while (true) {
    if (std::optional<Dot> wide = without_expand(d))
      d = std::move(*wide);
    else if (std::optional<DotSide> rhs = without_transpose(d.rhs))
      d.rhs = std::move(*rhs);
    else if (std::optional<DotSide> lhs = is_row_by_weight(g, d, param_only) ? std::nullopt : without_transpose(d.lhs))
      d.lhs = std::move(*lhs);
    else
      return d;
  }
}

Dot as_dot(const ops::DotGeneral& dot, Expr lhs, Expr rhs) {
  return {{lhs, dot.lhs_contract, dot.lhs_batch}, {rhs, dot.rhs_contract, dot.rhs_batch}, dot.out};
}

std::optional<Graph> run_canonicalize_dots(const Graph& g, const PassContext& context) {
  const auto is_product = [](const Node& n) { return n.kind() == OpKind::MatMul || n.kind() == OpKind::DotGeneral; };
  if (std::none_of(g.nodes().begin(), g.nodes().end(), is_product)) return std::nullopt;
  ParamOnly param_only;  // of the new graph
  return replace_nodes(g, canonicalize_dots.name, [&](Rebuilder& r, NodeId id) -> Replacement {
    const Node& n = g.node(id);
    if (!is_product(n)) return std::nullopt;
    std::vector<Expr> in = r.operands(id);
    Expr product;  // MatMul is defined by its decomposition: expands and a reshape around one dot
    Dot plain;
    if (const auto* dot = n.op.get_if<ops::DotGeneral>()) {
      plain = as_dot(*dot, in[0], in[1]);
    } else {
      product = decompose_into(r.graph(), n.op, in)[0];
      const Node made = producer(product);
      plain = as_dot(made.op.as<ops::DotGeneral>(), r.graph().expr(made.inputs[0]), r.graph().expr(made.inputs[1]));
    }
    Dot best = absorbed(r.graph(), plain, param_only);
    if (best.lhs.x == plain.lhs.x && best.rhs.x == plain.rhs.x)
      return product.valid() ? Replacement({product}) : std::nullopt;
    // Reading in place is better only when the target's kernel takes the strides.
    Expr candidate = r.graph().dot_general(best.lhs.x, best.rhs.x, dims_of(best));
    if (context.refuses(candidate, n)) {
      if (!product.valid()) product = r.graph().dot_general(in[0], in[1], dims_of(plain));
      if (!context.refuses(product, n)) candidate = product;
    }
    return {{candidate}};
  });
}

}  // namespace

const Pass canonicalize_dots{"canonicalize-dots",
                             "Rewrites MatMul as DotGeneral, and lets dots read through transposes and batch expands "
                             "of their operands, where the axis order of the result stays and the target claims the "
                             "new dot. A matmul with a weight is [.., K] x [K, N] or [N, K], without batch axes.",
                             run_canonicalize_dots};

}  // namespace rlx
