// reduce-broadcasts: a reduction of repeated elements reads each of them once.
#include <algorithm>
#include <cmath>

#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/symbol_order.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

using Axes = std::vector<std::int64_t>;

// A reduction together with the expand that it reads.
struct Broadcast {
  Expr source;
  Axes reduced;       // axes of `source` that still have to be reduced
  Axes dropped;       // axes of `source` of extent 1 whose repetitions are reduced
  Dims repeated;      // the symbolic repetition counts of each element
  bool unit = false;  // a reduced axis of extent 1 is dropped
};

Broadcast look(Graph& g, const Expr& x, const Axes& axes) {
  Broadcast b;
  b.source = x;
  if (const Node& n = g.node(x.value().node); n.kind() == OpKind::Expand) b.source = g.expr(n.inputs[0]);
  const int grown = x.rank() - b.source.rank();
  for (std::int64_t axis : axes) {
    const std::int64_t own = axis - grown;
    const Dim& extent = x.dim(static_cast<int>(axis));
    const bool is_broadcast = own < 0 || b.source.dim(static_cast<int>(own)).is_static(1);
    if (!is_broadcast) {
      b.reduced.push_back(own);
      continue;
    }
    if (own >= 0) b.dropped.push_back(own);
    if (extent.is_static(1))
      b.unit = true;
    else
      b.repeated.push_back(extent);
  }
  return b;
}

bool can_be_zero(const Graph& g, const Dim& d) {
  if (d.is_static()) return d.value() == 0;
  for (const std::string& name : d.symbols())
    if (!g.symbols().contains(name)) return true;
  return bounds_of(g, d).min <= 0;
}

// The number of repetitions of each element as a scalar of `dtype`. An integer keeps its low bits, as the sum does.
Expr count_of(Graph& g, const Dims& repeated, DType dtype) {
  std::uint64_t low_bits = 1;
  double number = 1;
  const DType t = count_dtype(g, {repeated});
  Expr open;
  for (const Dim& d : repeated) {
    if (d.is_static()) {
      low_bits *= static_cast<std::uint64_t>(d.value());
      number *= static_cast<double>(d.value());
    } else {
      const Expr extent = dim_value(g, d, t);
      open = open.valid() ? open * extent : extent;
    }
  }
  const Tensor whole = Tensor::scalar_i64(open.valid() ? t : DType::I64, static_cast<std::int64_t>(low_bits));
  if (open.valid()) return g.cast(low_bits == 1 ? open : open * g.constant(whole), dtype);
  return g.constant(is_float(dtype) ? Tensor::full(Shape({}, dtype), number) : whole.cast(dtype));
}

// True when integers of `dtype` can hold the static `repeated`, as an exponent requires.
bool holds_count(DType dtype, const Dims& repeated) {
  const int bits = static_cast<int>(size_bytes(dtype, 1)) * 8 - (is_signed_int(dtype) ? 1 : 0);
  double count = 1;
  for (const Dim& d : repeated) count *= static_cast<double>(d.value());
  return count < std::ldexp(1.0, std::min(bits, 62));
}

std::optional<Expr> without_repeats(Graph& g, const Node& n, const Expr& x) {
  const auto& op = n.op.as<ops::Reduce>();
  const DType dtype = x.dtype();
  Broadcast b = look(g, x, op.axes);
  const bool is_sum = op.fn == ReduceKind::Sum, is_mean = op.fn == ReduceKind::Mean;
  const bool open = std::any_of(b.repeated.begin(), b.repeated.end(), [](const Dim& d) { return !d.is_static(); });
  if (b.repeated.empty()) {
    // Nothing is repeated. A reduced axis of extent 1 is dropped when another one stays, which keeps signs of zeros.
    if (!b.unit || b.reduced.empty()) return std::nullopt;
  } else {
    // A float power rounds differently from repeated multiplication. The sum of equal complex numbers with an infinite
    // part differs from their product with a number.
    if (op.fn == ReduceKind::Prod && !(is_int(dtype) && !open && holds_count(dtype, b.repeated))) return std::nullopt;
    if (is_sum && is_complex(dtype)) return std::nullopt;
    // Nothing to read: the identity is correct, and no product with 0 could give it for an infinity.
    if (std::any_of(b.repeated.begin(), b.repeated.end(), [](const Dim& d) { return d.is_static(0); }))
      return std::nullopt;
    // Short floats take the f32 path below, which would give other bits than the reduction that remains for a length of
    // 1.
    if (open && is_sum && is_float(dtype) && size_bytes(dtype, 1) < 4) return std::nullopt;
  }

  Expr y = b.source;
  // Short floats are summed and multiplied in f32, so that the result is rounded once and the count is exact.
  const bool widen = is_sum && !b.repeated.empty() && is_float(dtype) && size_bytes(dtype, 1) < 4;
  if (widen) y = g.cast(y, DType::F32);
  if (!b.reduced.empty()) y = g.add(ops::Reduce{op.fn, b.reduced, true}, {y});
  if (!b.repeated.empty()) {
    if (is_sum) y = y * count_of(g, b.repeated, y.dtype());
    if (op.fn == ReduceKind::Prod) y = g.pow(y, count_of(g, b.repeated, dtype));
    // A sum starts from 0, which makes a zero positive.
    if ((is_sum || is_mean) && b.reduced.empty() && is_inexact(dtype))
      y = y + g.constant(Tensor::zeros(Shape({}, y.dtype())));
    if (widen) y = g.cast(y, dtype);
    Dims maybe_none;
    for (const Dim& d : b.repeated)
      if (can_be_zero(g, d)) maybe_none.push_back(d);
    if (!maybe_none.empty()) {
      const Expr none = g.constant(Tensor::zeros(Shape({0}, dtype)));
      const Expr of_none = g.add(ops::Reduce{op.fn, {0}, false}, {none});
      const DType t = count_dtype(g, {maybe_none});
      y = g.where(g.eq(count_of(g, maybe_none, t), g.constant(Tensor::scalar_i64(t, 0))), of_none, y);
    }
  }
  if (!op.keep_dims) {
    Axes gone = b.reduced;
    gone.insert(gone.end(), b.dropped.begin(), b.dropped.end());
    Dims dims;
    for (int i = 0; i < y.rank(); ++i)
      if (std::find(gone.begin(), gone.end(), i) == gone.end()) dims.push_back(y.dim(i));
    if (dims.size() != static_cast<std::size_t>(y.rank())) y = g.reshape(y, dims);
  }
  if (!(y.shape() == n.shape())) y = g.expand(y, n.shape().dims());
  return y;
}

std::optional<Graph> run_reduce_broadcasts(const Graph& g, const PassContext&) {
  if (std::none_of(g.nodes().begin(), g.nodes().end(), [](const Node& n) { return n.kind() == OpKind::Reduce; }))
    return std::nullopt;
  return replace_nodes(g, reduce_broadcasts.name, [&](Rebuilder& r, NodeId id) -> Replacement {
    if (g.node(id).kind() != OpKind::Reduce) return std::nullopt;
    const std::optional<Expr> once = without_repeats(r.graph(), g.node(id), r.operands(id)[0]);
    return once ? Replacement({*once}) : std::nullopt;
  });
}

}  // namespace

const Pass reduce_broadcasts{
    "reduce-broadcasts",
    "Lets a reduction over axes that an expand repeats read the source of the expand: a sum is multiplied by the "
    "count, max, min and mean do not change, a product of integers becomes a power; a count that may be 0 is checked "
    "at run time. Products of floats and complex sums stay. Reduced axes of extent 1 are removed.",
    run_reduce_broadcasts};

}  // namespace rlx
