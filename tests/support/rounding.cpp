// Running error analysis over the reference rules.
#include "tests/support/rounding.h"

#include <algorithm>
#include <complex>
#include <cstdio>
#include <numeric>
#include <set>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/tensor/visit.h"

namespace rlx::test {
namespace {

using C = std::complex<double>;

struct ActivationAllowance {
  ActivationKind fn;
  double places;
};
constexpr ActivationAllowance kActivations[] = {
    {ActivationKind::Relu, 0},      {ActivationKind::Neg, 0},         {ActivationKind::Abs, 0},
    {ActivationKind::Round, 0},     {ActivationKind::Floor, 0},       {ActivationKind::Ceil, 0},
    {ActivationKind::Sign, 0},      {ActivationKind::Not, 0},         {ActivationKind::Sqrt, 1},
    {ActivationKind::Square, 1},    {ActivationKind::HardSigmoid, 3}, {ActivationKind::Trunc, 0},
    {ActivationKind::LeakyRelu, 2},
};
constexpr double kFunctionPlaces = 4;  // of every other function; a subnormal result of them may also be 0

struct BinaryAllowance {
  BinaryKind fn;
  double places;
};
constexpr BinaryAllowance kBinaries[] = {{BinaryKind::Add, 0.5}, {BinaryKind::Sub, 0.5}, {BinaryKind::Mul, 0.5},
                                         {BinaryKind::Div, 1},   {BinaryKind::Max, 0},   {BinaryKind::Min, 0}};

struct SumAllowance {
  OpKind kind;
  double terms;
};
// Sums of up to some thousand terms: what chance leaves of n roundings is far below n. Where many terms are equal a
// chain drifts, by n / 2 at worst: add_terms allows that up to twice the number here.
constexpr SumAllowance kSums[] = {
    {OpKind::DotGeneral, 8}, {OpKind::Reduce, 8}, {OpKind::Cumulative, 8}, {OpKind::Scatter, 8}};

// -- element access --

Tensor like(const Tensor& t, double value) { return Tensor::full(t.shape().with_dtype(DType::F64), value); }
const double* reals(const Tensor& t) { return reinterpret_cast<const double*>(t.data()); }
double* reals(Tensor& t) { return reinterpret_cast<double*>(t.mutable_data()); }
std::size_t count(const Tensor& t) { return static_cast<std::size_t>(t.num_elements()); }

bool has_bound(DType t) { return is_inexact(t); }
bool stores_floats(DType t) { return is_inexact(t) || t == DType::F8E4M3 || t == DType::F8E5M2 || t == DType::F4E2M1; }

// |x| of each element in F64, infinite and NaN elements as 0: they add nothing to a bound.
Tensor magnitude(const Tensor& t) {
  Tensor out = like(t, 0);
  double* o = reals(out);
  for (std::int64_t i = 0; i < t.num_elements(); ++i) {
    const double m = std::abs(load_element<C>(t.data(), t.dtype(), i));
    o[i] = std::isfinite(m) ? m : 0;
  }
  return out;
}

double value_at(const Tensor& t, std::size_t i) {
  return std::abs(load_element<C>(t.data(), t.dtype(), static_cast<std::int64_t>(i)));
}

// The distance of two elements of one tensor dtype (F64 or C128).
double apart(const Tensor& a, const Tensor& b, std::size_t i) {
  const auto at = static_cast<std::int64_t>(i);
  const C x = load_element<C>(a.data(), a.dtype(), at), y = load_element<C>(b.data(), b.dtype(), at);
  return std::max(difference(x.real(), y.real()), difference(x.imag(), y.imag()));
}

Tensor run1(const OpBox& op, const std::vector<Tensor>& in) { return evaluate_op(op, in)[0]; }
Tensor add_up(const Tensor& a, const Tensor& b) { return run1(ops::Binary{BinaryKind::Add}, {a, b}); }

// `a` expanded to the dims of `like_this`.
Tensor broadcast(const Tensor& a, const Tensor& like_this) { return add_up(a, like(like_this, 0)); }

Tensor shifted(const Tensor& x, const Tensor& by, double factor) {
  if (!is_inexact(x.dtype())) return x;
  Tensor out = Tensor::copy_of(x.data(), x.shape());
  for (std::size_t i = 0; i < count(x); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double step = reals(by)[i];
    if (step == 0) continue;
    store_element(out.mutable_data(), x.dtype(), at, load_element<C>(x.data(), x.dtype(), at) + factor * step);
  }
  return out;
}

bool any(const Tensor& slack) {
  return std::any_of(reals(slack), reals(slack) + count(slack), [](double e) { return e != 0; });
}

// -- the walk --

class Walk {
 public:
  Walk(const Graph& g, int depth) : g_(g), depth_(depth), results_(g.num_nodes()) {}

  void set_leaf(NodeId id, Bounded b) { results_[id.index] = {std::move(b)}; }
  void run() {
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i)
      if (results_[i].empty()) results_[i] = node(g_.node(NodeId{i}));
  }
  const Bounded& at(Value v) const { return results_[v.node.index][v.result]; }

 private:
  // The F64 form of a value and no bound.
  static Bounded exact(const Tensor& t) {
    Tensor wide = widened(t);
    Tensor zero = like(wide, 0);
    return {std::move(wide), std::move(zero)};
  }

  // Products into a wider dtype are those of F64 here.
  std::vector<Bounded> node(const Node& n) {
    const auto* dot = n.op.get_if<ops::DotGeneral>();
    if (!dot || !dot->out || !is_float(*dot->out) || *dot->out == DType::F64) return node_of(n);
    ops::DotGeneral wide = *dot;
    wide.out = DType::F64;
    Node copy = n;
    copy.op = std::move(wide);
    return node_of(copy);
  }
  std::vector<Bounded> node_of(const Node& n) {
    std::vector<const Bounded*> in;
    std::vector<Tensor> values;
    for (Value v : n.inputs) {
      in.push_back(&at(v));
      values.push_back(at(v).value);
    }
    if (n.kind() != OpKind::Constant && n.kind() != OpKind::Iota && n.kind() != OpKind::Cast) {
      const OpDef& def = op_def(n.op);
      if (def.decompose.has()) return composite(n, in);
    }
    std::vector<Bounded> out;
    switch (n.kind()) {
      case OpKind::Constant: {
        out = {exact(n.op.as<ops::Constant>().value)};
        // A number inside a decomposition: kernels hold it in another precision perhaps.
        if (depth_ > 0 && has_bound(n.shape().dtype()) && n.shape().rank() == 0)
          reals(out[0].slack)[0] = last_place(n.shape().dtype(), value_at(out[0].value, 0)) / 2;
        return out;
      }
      case OpKind::Iota: return {exact(run1(n.op, {}))};
      case OpKind::If: return branch(n, in);
      case OpKind::Scan: return scan(n, in);
      case OpKind::While: return loop(n, in);
      case OpKind::Cast: return {cast(n, *in[0])};
      default: break;
    }
    const std::vector<Tensor> results = evaluate_op(n.op, values);
    for (const Tensor& t : results) out.push_back({t, like(t, 0)});
    carry(n, in, values, out);
    if (n.kind() == OpKind::Binary) add_to_sum(n, in, out[0]);
    for (std::size_t r = 0; r < out.size(); ++r) finish(n.shapes[r].dtype(), n.op, in, out[r]);
    return out;
  }

  // A body on operands with bounds. Its constants are those of the program: exact.
  std::vector<Bounded> run_body(const Graph& body, const std::vector<Bounded>& inputs) const {
    Walk inner(body, depth_);
    const std::vector<NodeId> leaves = body.leaves(OpKind::Input);
    for (std::size_t i = 0; i < leaves.size(); ++i) inner.set_leaf(leaves[i], inputs[i]);
    inner.run();
    std::vector<Bounded> out;
    for (Value v : body.outputs()) out.push_back(inner.at(v));
    return out;
  }
  static Bounded row(const Bounded& stack, std::int64_t t) {
    const auto at = [&](const Tensor& x) {
      std::vector<std::int64_t> dims = x.dims();
      dims.erase(dims.begin());
      return x.rows(t, 1).reshaped(dims);
    };
    return {at(stack.value), at(stack.slack)};
  }
  // `rows` along a new axis 0 of `shape`, whose other rows are zero.
  static Bounded stack(const Shape& shape, const std::vector<Bounded>& rows) {
    Bounded out{widened(Tensor::zeros(shape)), {}};
    out.slack = like(out.value, 0);
    const auto put = [&](Tensor& to, std::size_t t, const Tensor& part) {
      if (part.size_bytes() != 0)
        std::copy_n(part.data(), part.size_bytes(), to.mutable_data() + t * part.size_bytes());
    };
    for (std::size_t t = 0; t < rows.size(); ++t) put(out.value, t, rows[t].value), put(out.slack, t, rows[t].slack);
    return out;
  }
  static std::vector<Bounded> copies(const std::vector<const Bounded*>& in, std::size_t first) {
    std::vector<Bounded> out;
    for (std::size_t i = first; i < in.size(); ++i) out.push_back(*in[i]);
    return out;
  }
  // What rounding decides the way of may be anything.
  static std::vector<Bounded> undecided(const Node& n) {
    std::vector<Bounded> out;
    for (const Shape& s : n.shapes) {
      out.push_back({widened(Tensor::zeros(s)), {}});
      out.back().slack = like(out.back().value, kApart);
    }
    return out;
  }

  std::vector<Bounded> branch(const Node& n, const std::vector<const Bounded*>& in) const {
    const auto& op = n.op.as<ops::If>();
    if (any(in[0]->slack)) return undecided(n);
    return run_body(in[0]->value.at_i64(0) != 0 ? *op.then : *op.otherwise, copies(in, 1));
  }

  std::vector<Bounded> scan(const Node& n, const std::vector<const Bounded*>& in) const {
    const auto& op = n.op.as<ops::Scan>();
    const auto invariants = static_cast<std::size_t>(op.invariants), carries = static_cast<std::size_t>(op.carries);
    const std::int64_t length = op.length[0].value();
    std::vector<Bounded> now = copies(in, 0), out;
    std::vector<std::vector<Bounded>> ys(n.num_results() - carries,
                                         std::vector<Bounded>(static_cast<std::size_t>(length)));
    for (std::int64_t step = 0; step < length; ++step) {
      const std::int64_t t = op.reverse ? length - 1 - step : step;
      for (std::size_t x = invariants + carries; x < now.size(); ++x) now[x] = row(*in[x], t);
      std::vector<Bounded> results = run_body(*op.body, now);
      for (std::size_t y = 0; y < ys.size(); ++y) ys[y][static_cast<std::size_t>(t)] = results[carries + y];
      for (std::size_t k = 0; k < carries; ++k) now[invariants + k] = std::move(results[k]);
    }
    for (std::size_t k = 0; k < carries; ++k) out.push_back(now[invariants + k]);
    for (std::size_t y = 0; y < ys.size(); ++y) out.push_back(stack(n.shapes[carries + y], ys[y]));
    return out;
  }

  std::vector<Bounded> loop(const Node& n, const std::vector<const Bounded*>& in) const {
    const auto& op = n.op.as<ops::While>();
    const auto invariants = static_cast<std::size_t>(op.invariants);
    const std::size_t carries = in.size() - invariants;
    std::vector<Bounded> now = copies(in, 0), out;
    std::vector<std::vector<Bounded>> ys(n.num_results() - carries - 1);
    std::int64_t trips = 0;
    for (; !op.max_trips || trips < *op.max_trips; ++trips) {
      const Bounded runs = run_body(*op.cond, now)[0];
      if (any(runs.slack)) return undecided(n);
      if (runs.value.at_i64(0) == 0) break;
      std::vector<Bounded> results = run_body(*op.body, now);
      for (std::size_t y = 0; y < ys.size(); ++y) ys[y].push_back(results[carries + y]);
      for (std::size_t k = 0; k < carries; ++k) now[invariants + k] = std::move(results[k]);
    }
    for (std::size_t k = 0; k < carries; ++k) out.push_back(now[invariants + k]);
    for (std::size_t y = 0; y < ys.size(); ++y) out.push_back(stack(n.shapes[carries + y], ys[y]));
    out.push_back(exact(Tensor::scalar_i64(DType::I64, trips)));
    return out;
  }

  std::vector<Bounded> composite(const Node& n, const std::vector<const Bounded*>& in) {
    Graph parts("parts");
    std::vector<Expr> operands;
    for (Value v : n.inputs) operands.push_back(parts.input(concat_text("x", operands.size()), g_.shape(v)));
    parts.set_outputs(decompose_into(parts, n.op, operands));
    Walk inner(parts, depth_ + 1);
    for (std::size_t i = 0; i < in.size(); ++i) inner.set_leaf(operands[i].value().node, *in[i]);
    inner.run();
    std::vector<Bounded> out;
    for (Value v : parts.outputs()) out.push_back(inner.at(v));
    // Kernels divide by the sum of the weights, of which the largest is 1, at the end: the sum before may overflow.
    if (const auto* attention = n.op.get_if<ops::Attention>())
      if (may_overflow(*in[2], static_cast<double>(keys_of(*attention, in[1]->value)), n.shape().dtype()))
        out[0].slack = like(out[0].value, kApart);
    return out;
  }

  static std::int64_t keys_of(const ops::Attention& op, const Tensor& k) {
    return k.dim(op.layout == HeadLayout::HeadsFirst ? 2 : 1);
  }
  // Whether `n` of the values might add up to more than sums of dtype `t` hold.
  static bool may_overflow(const Bounded& x, double n, DType t) {
    const double largest = float_format(t == DType::F64 ? DType::F64 : DType::F32).largest;
    const Tensor size = magnitude(x.value);
    return std::any_of(reals(size), reals(size) + count(size), [&](double m) { return m * n > largest; });
  }

  // Both ends of the interval through the conversion itself, which is monotone; but a Bool is false at 0 alone, which
  // an interval may hold inside.
  static Bounded cast(const Node& n, const Bounded& x) {
    const DType to = n.op.as<ops::Cast>().to;
    const auto through = [&](const Tensor& t) { return widened(t.cast(to)); };
    Bounded out{through(x.value), like(x.value, 0)};
    const bool float_in = is_inexact(x.value.dtype());
    const Tensor up = float_in ? through(shifted(x.value, x.slack, 1)) : out.value;
    const Tensor down = float_in ? through(shifted(x.value, x.slack, -1)) : out.value;
    const Tensor zero_inside = around_zero(x);
    double* e = reals(out.slack);
    for (std::size_t i = 0; i < count(x.value); ++i) {
      if (float_in && reals(x.slack)[i] < kApart) {
        e[i] = std::max(apart(up, out.value, i), apart(down, out.value, i));
        if (!stores_floats(to) && (e[i] > 0 || (to == DType::Bool && reals(zero_inside)[i] > 0))) e[i] = kApart;
      } else {
        e[i] = reals(x.slack)[i];
      }
    }
    return out;
  }

  // The bounds of the operands in those of the results, without the node's own rounding of sums' results.
  void carry(const Node& n, const std::vector<const Bounded*>& in, const std::vector<Tensor>& values,
             std::vector<Bounded>& out) {
    switch (n.kind()) {
      case OpKind::Reshape:
      case OpKind::Transpose:
      case OpKind::Expand:
      case OpKind::Slice:
      case OpKind::Reverse:
      case OpKind::StopGradient:
        out[0].slack = run1(n.op, {in[0]->slack});
        if (!in[0]->terms.empty()) out[0].terms = run1(n.op, {in[0]->terms});
        return;
      case OpKind::Pad: out[0].slack = run1(n.op, {in[0]->slack, in[1]->slack}); return;
      case OpKind::Concat: {
        std::vector<Tensor> parts;
        for (const Bounded* b : in) parts.push_back(b->slack);
        out[0].slack = run1(n.op, parts);
        return;
      }
      case OpKind::Gather: {
        ops::Gather op = n.op.as<ops::Gather>();
        op.fill = 0;
        std::vector<Tensor> moved = values;
        moved[0] = in[0]->slack;
        out[0].slack = run1(op, moved);
        for (std::size_t k = 1; k < in.size(); ++k)
          if (any(in[k]->slack)) out[0].slack = like(out[0].value, kApart);
        return;
      }
      case OpKind::DynamicSlice:
        out[0].slack = run1(n.op, {in[0]->slack, values[1]});
        if (any(in[1]->slack)) out[0].slack = like(out[0].value, kApart);
        return;
      case OpKind::DynamicUpdateSlice:
        out[0].slack = run1(n.op, {in[0]->slack, in[1]->slack, values[2]});
        if (any(in[2]->slack)) out[0].slack = like(out[0].value, kApart);
        return;
      case OpKind::Where:
        out[0].slack = add_up(run1(n.op, {values[0], in[1]->slack, in[2]->slack}), in[0]->slack);
        return;
      case OpKind::DimSize: return;
      case OpKind::OptimizationBarrier:
        for (std::size_t r = 0; r < out.size(); ++r) out[r].slack = in[r]->slack;
        return;
      case OpKind::Activation: elementwise(n, in, values, out); return;
      case OpKind::Binary: {
        elementwise(n, in, values, out);
        const BinaryKind fn = n.op.as<ops::Binary>().fn;
        if (fn == BinaryKind::Max || fn == BinaryKind::Min) choose_zero(values, out[0]);
        if (fn == BinaryKind::Mul && share_source(n)) vanishing_times_infinity(values, out[0]);
        return;
      }
      case OpKind::Compare: compare(in, out[0]); return;
      case OpKind::Reduce: reduce(n, *in[0], out[0]); return;
      case OpKind::Cumulative: cumulative(n, *in[0], out[0]); return;
      case OpKind::DotGeneral: dot(n, in, out[0]); return;
      case OpKind::Scatter: scatter(n, in, values, out); return;
      case OpKind::Sort: sort(n, in, values, out); return;
      case OpKind::RngBits: return;
      case OpKind::ArgReduce: arg_reduce(n, *in[0], out[0]); return;
      case OpKind::TopK: top_k(n, *in[0], out); return;
      default: elementwise(n, in, values, out); return;  // ops of others: by moving all operands
    }
  }

  // Terms added to a sum may be added in another order than written; a scaled sum is still one.
  static void add_to_sum(const Node& n, const std::vector<const Bounded*>& in, Bounded& out) {
    if (!has_bound(out.value.dtype())) return;
    const BinaryKind fn = n.op.as<ops::Binary>().fn;
    const auto terms = [](const Bounded& b) { return b.terms.empty() ? magnitude(b.value) : b.terms; };
    const bool open = !in[0]->terms.empty() || !in[1]->terms.empty();
    if (fn == BinaryKind::Add || fn == BinaryKind::Sub) {
      out.terms = add_up(terms(*in[0]), terms(*in[1]));
      const double eps = sum_epsilon(n.shape().dtype());
      if (open)
        for (std::size_t i = 0; i < count(out.value); ++i) reals(out.slack)[i] += eps * reals(out.terms)[i];
    } else if (fn == BinaryKind::Mul && open) {
      out.terms = run1(n.op, {terms(*in[0]), terms(*in[1])});
    }
  }

  // Functions of elements: the corners of the operands' intervals.
  static void elementwise(const Node& n, const std::vector<const Bounded*>& in, const std::vector<Tensor>& values,
                          std::vector<Bounded>& out) {
    bool moving = false;
    for (const Bounded* b : in) moving = moving || any(b->slack);
    if (!moving) return;
    const bool whole = !has_bound(out[0].value.dtype());
    if (whole) {  // integers are right or undecided
      for (const Bounded* b : in)
        for (Bounded& o : out) o.slack = add_up(o.slack, b->slack);
      return;
    }
    const std::size_t corners = std::size_t{1} << std::min<std::size_t>(in.size(), 3);
    for (std::size_t corner = 0; corner < corners; ++corner) {
      std::vector<Tensor> moved;
      for (std::size_t k = 0; k < in.size(); ++k) {
        Tensor finite = in[k]->slack;
        for (std::size_t i = 0; i < count(finite); ++i)
          if (!(reals(finite)[i] < kApart)) reals(finite)[i] = 0;  // undecided, set below
        moved.push_back(shifted(values[k], finite, (corner >> std::min<std::size_t>(k, 2) & 1) != 0 ? 1 : -1));
      }
      const std::vector<Tensor> there = evaluate_op(n.op, moved);
      for (std::size_t r = 0; r < out.size(); ++r)
        for (std::size_t i = 0; i < count(out[r].value); ++i)
          reals(out[r].slack)[i] = std::max(reals(out[r].slack)[i], apart(there[r], out[r].value, i));
    }
    for (std::size_t k = 0; k < in.size(); ++k) {
      Tensor lost = like(values[k], 0);
      for (std::size_t i = 0; i < count(lost); ++i)
        if (undecidable(n.op, k, values[k], in[k]->slack, i)) reals(lost)[i] = kApart;
      if (any(lost))
        for (Bounded& o : out) o.slack = add_up(o.slack, broadcast(lost, o.slack));
    }
    if (const auto* b = n.op.get_if<ops::Binary>()) {
      if (b->fn == BinaryKind::Mod) remainder(in, out[0]);
      if (b->fn == BinaryKind::Pow) power(in, out[0]);
    }
  }

  // x * sigmoid(x) is NaN at -inf as it is written, and -0 as the silu that a pass recognises in it.
  static void vanishing_times_infinity(const std::vector<Tensor>& values, Bounded& out) {
    if (!stores_floats(out.value.dtype())) return;
    const Tensor a = broadcast(values[0], out.value), b = broadcast(values[1], out.value);
    for (std::size_t i = 0; i < count(out.value); ++i)
      if (std::isnan(reals(out.value)[i]) && !std::isnan(reals(a)[i]) && !std::isnan(reals(b)[i]))
        reals(out.slack)[i] = kApart;
  }
  // Whether both operands are made of one value, within as many ops as an activation is written in.
  bool share_source(const Node& n) const {
    std::set<std::uint32_t> sources[2];
    for (std::size_t k = 0; k < 2; ++k) {
      std::vector<Value> now{n.inputs[k]};
      for (int depth = 0; depth < 8 && !now.empty(); ++depth) {
        std::vector<Value> before;
        for (Value v : now)
          if (g_.node(v.node).kind() != OpKind::Constant && sources[k].insert(v.node.index).second)
            for (Value in : g_.node(v.node).inputs) before.push_back(in);
        now = std::move(before);
      }
    }
    return std::any_of(sources[0].begin(), sources[0].end(), [&](std::uint32_t v) { return sources[1].contains(v); });
  }
  static void choose_zero(const std::vector<Tensor>& values, Bounded& out) {
    if (!stores_floats(out.value.dtype())) return;
    const ops::Binary times{BinaryKind::Mul};  // a sum with 0 would lose the sign
    const Tensor one = like(out.value, 1), a = run1(times, {values[0], one}), b = run1(times, {values[1], one});
    for (std::size_t i = 0; i < count(out.value); ++i)
      if (reals(a)[i] == 0 && reals(b)[i] == 0 && std::signbit(reals(a)[i]) != std::signbit(reals(b)[i]))
        either_zero(out, i);
  }

  // x^y of x below 0 is a number for whole y alone; at 0 the sign of x decides, which rounding may choose; x^0 and 1^y
  // are 1 even of NaN.
  static void power(const std::vector<const Bounded*>& in, Bounded& out) {
    const Tensor x = broadcast(in[0]->value, out.value), y = broadcast(in[1]->value, out.value);
    const Tensor x_slack = broadcast(in[0]->slack, out.value), y_slack = broadcast(in[1]->slack, out.value);
    for (std::size_t i = 0; i < count(out.value); ++i) {
      const double base = reals(x)[i], exponent = reals(y)[i], moved = reals(x_slack)[i], bent = reals(y_slack)[i];
      const bool below = base - moved <= 0 && moved + bent > 0;
      const bool to_zero = bent > 0 && std::fabs(exponent) <= bent && !std::isfinite(base);
      const bool of_one = moved > 0 && std::fabs(base - 1) <= moved && !std::isfinite(exponent);
      if (below || to_zero || of_one) reals(out.slack)[i] = kApart;
    }
  }

  // x mod y moves by e_x + |x / y| e_y, and by y where that carries it over a multiple of y.
  static void remainder(const std::vector<const Bounded*>& in, Bounded& out) {
    const Tensor x = broadcast(in[0]->value, out.value), y = broadcast(in[1]->value, out.value);
    const Tensor x_slack = broadcast(in[0]->slack, out.value), y_slack = broadcast(in[1]->slack, out.value);
    for (std::size_t i = 0; i < count(out.value); ++i) {
      double& e = reals(out.slack)[i];
      const double moved = reals(x_slack)[i] + (std::fabs(reals(x)[i] / reals(y)[i]) + 1) * reals(y_slack)[i];
      if (moved == 0 || !std::isfinite(reals(out.value)[i])) continue;
      const double rest = std::fabs(reals(out.value)[i]);
      e = rest - moved > 0 && rest + moved < std::fabs(reals(y)[i]) ? std::max(e, moved) : kApart;
    }
  }

  // Whether the function is no longer described by the corners: an interval over a pole or over a wave.
  static bool undecidable(const OpBox& op, std::size_t operand, const Tensor& x, const Tensor& slack, std::size_t i) {
    const double e = reals(slack)[i];
    if (e == 0) return false;
    if (!(e < kApart)) return true;
    const double size = value_at(x, i);
    if (const auto* a = op.get_if<ops::Activation>()) {
      switch (a->fn) {
        case ActivationKind::Recip: return e >= size;
        case ActivationKind::Sin:
        case ActivationKind::Cos: return e > 0.5;
        case ActivationKind::Tan: return std::fabs(std::cos(size)) <= 2 * e;
        default: return false;
      }
    }
    if (const auto* b = op.get_if<ops::Binary>()) return b->fn == BinaryKind::Div && operand == 1 && e >= size;
    return false;
  }

  static void compare(const std::vector<const Bounded*>& in, Bounded& out) {
    const Tensor e = add_up(in[0]->slack, in[1]->slack);
    for (std::size_t i = 0; i < count(out.value); ++i) {
      if (reals(e)[i] == 0) continue;
      reals(out.slack)[i] = kApart;
    }
    if (!any(out.slack) || !is_float(in[0]->value.dtype())) return;
    const Tensor a = broadcast(in[0]->value, out.value), b = broadcast(in[1]->value, out.value);
    for (std::size_t i = 0; i < count(out.value); ++i)
      if (difference(reals(a)[i], reals(b)[i]) > reals(e)[i]) reals(out.slack)[i] = 0;
  }

  static Tensor with_slack(const Bounded& x, const Tensor& size) { return add_up(size, x.slack); }

  // eps of the dtype that sums are made in.
  static double sum_epsilon(DType t) {
    return epsilon_of(is_complex(t) ? real_dtype(t) : t == DType::F64 ? DType::F64 : DType::F32);
  }

  // slack = (op over |x| + slack) - (op over |x|) + terms * eps * (op over |x|); `added`: how many terms a sum has;
  // `divisor`: of the sums, for a mean
  static void add_terms(const Node& n, Bounded& out, const Tensor& with, const Tensor& without, double added,
                        double divisor = 1) {
    const double terms = allowance_of(n.op).terms, drift = std::clamp(added / 2, terms, 2 * terms);
    const double own = drift * sum_epsilon(n.shape().dtype()) + 4 * epsilon_of(DType::F64);
    const double largest =
        float_format(n.shape().dtype() == DType::F64 || n.shape().dtype() == DType::C128 ? DType::F64 : DType::F32)
            .largest;
    double* e = reals(out.slack);
    for (std::size_t i = 0; i < count(out.value); ++i) {
      if (reals(without)[i] > largest / divisor) {  // a partial sum may overflow
        e[i] = kApart;
        continue;
      }
      const double carried = reals(with)[i] - reals(without)[i];
      e[i] = (carried > 0 || std::isnan(carried) ? carried : 0) + own * reals(without)[i];
    }
  }

  static void spread(const Bounded& x, const OpBox& widest, Bounded& out) {
    out.slack = run1(widest, {x.slack});
    Tensor plus = like(x.value, 0), minus = like(x.value, 0);  // zeros
    if (stores_floats(x.value.dtype()))
      for (std::size_t i = 0; i < count(x.value); ++i)
        if (const double v = load_element<C>(x.value.data(), x.value.dtype(), static_cast<std::int64_t>(i)).real();
            v == 0)
          reals(std::signbit(v) ? minus : plus)[i] = 1;
    plus = run1(widest, {plus});
    minus = run1(widest, {minus});
    for (std::size_t i = 0; i < count(out.slack); ++i) {
      if (!(reals(out.slack)[i] >= 0)) reals(out.slack)[i] = 0;  // the largest of nothing
      if (reals(plus)[i] > 0 && reals(minus)[i] > 0 && value_at(out.value, i) == 0) either_zero(out, i);
    }
  }
  // Of -0 and 0 any may be the largest: a bound that holds both signs and no other number.
  static void either_zero(Bounded& out, std::size_t i) {
    reals(out.slack)[i] = std::max(reals(out.slack)[i], std::numeric_limits<double>::denorm_min());
  }

  // A product of at most `factors` elements in any order; `sum` adds up the same elements. A relative rounding for each
  // factor; a partial product that leaves the normal numbers loses at most the least number, which the factors above 1
  // enlarge; one that overflows (and may then meet a 0) or vanishes (and may meet an infinity) decides nothing.
  static void add_product(const Node& n, const Bounded& x, const OpBox& sum, double factors, const Tensor& with,
                          const Tensor& without, Bounded& out) {
    Tensor above = like(x.value, 0), below = like(x.value, 0), infinite = like(x.value, 0);  // powers of two
    for (std::size_t i = 0; i < count(x.value); ++i) {
      const double size = value_at(x.value, i);
      if (std::isinf(size)) reals(infinite)[i] = 1;
      if (!std::isfinite(size) || size == 0) continue;
      const double power = std::log2(size);
      (power > 0 ? reals(above) : reals(below))[i] = std::fabs(power);
    }
    above = run1(sum, {above});
    below = run1(sum, {below});
    infinite = run1(sum, {infinite});
    const DType dtype = n.shape().dtype() == DType::F64 || n.shape().dtype() == DType::C128 ? DType::F64 : DType::F32;
    const FloatFormat format = float_format(dtype);
    double* e = reals(out.slack);
    for (std::size_t i = 0; i < count(out.value); ++i) {
      const bool overflows = reals(above)[i] >= format.max_exponent;
      const bool vanishes = reals(infinite)[i] > 0 && reals(below)[i] >= -format.min_exponent;
      if (overflows || vanishes) {
        e[i] = kApart;
        continue;
      }
      const double carried = reals(with)[i] - reals(without)[i];
      const double lost =
          reals(below)[i] < -format.min_exponent ? 0 : last_place(dtype, 0) * std::exp2(reals(above)[i]);
      e[i] = (carried > 0 || std::isnan(carried) ? carried : 0) +
             factors * (sum_epsilon(n.shape().dtype()) * reals(without)[i] + lost);
    }
  }

  static void reduce(const Node& n, const Bounded& x, Bounded& out) {
    auto op = n.op.as<ops::Reduce>();
    const bool ordered = op.fn == ReduceKind::Max || op.fn == ReduceKind::Min;
    if (ordered || !has_bound(x.value.dtype())) {
      op.fn = ReduceKind::Max;
      return spread(x, op, out);
    }
    const Tensor size = magnitude(x.value);
    Tensor without = run1(op, {size});
    const Tensor with = run1(op, {with_slack(x, size)});
    if (op.fn == ReduceKind::Prod) {
      const double factors =
          count(out.value) ? static_cast<double>(count(x.value)) / static_cast<double>(count(out.value)) : 0;
      op.fn = ReduceKind::Sum;
      return add_product(n, x, op, factors, with, without, out);
    }
    const double group =
        count(out.value) > 0 ? static_cast<double>(count(x.value)) / static_cast<double>(count(out.value)) : 1;
    add_terms(n, out, with, without, group, op.fn == ReduceKind::Mean ? std::max(1.0, group) : 1);
  }

  static void cumulative(const Node& n, const Bounded& x, Bounded& out) {
    auto op = n.op.as<ops::Cumulative>();
    if (op.fn == CumulativeKind::Max || op.fn == CumulativeKind::Min || !has_bound(x.value.dtype())) {
      op.fn = CumulativeKind::Max;
      return spread(x, op, out);
    }
    const Tensor size = magnitude(x.value);
    const Tensor without = run1(op, {size}), with = run1(op, {with_slack(x, size)});
    const auto extent = static_cast<double>(x.value.dim(static_cast<int>(op.axis)));
    if (op.fn != CumulativeKind::Prod) return add_terms(n, out, with, without, extent);
    op.fn = CumulativeKind::Sum;
    add_product(n, x, op, extent, with, without, out);
  }

  static void dot(const Node& n, const std::vector<const Bounded*>& in, Bounded& out) {
    if (!has_bound(out.value.dtype())) {
      if (any(in[0]->slack) || any(in[1]->slack)) out.slack = like(out.value, kApart);
      return;
    }
    const Tensor a = magnitude(in[0]->value), b = magnitude(in[1]->value);
    out.terms = run1(n.op, {a, b});
    // Below the normal numbers each product is rounded to the least number, and equal ones together.
    const Tensor products = run1(n.op, {like(a, 1), like(b, 1)});
    const double added = count(products) > 0 ? reals(products)[0] : 0;
    add_terms(n, out, run1(n.op, {with_slack(*in[0], a), with_slack(*in[1], b)}), out.terms, added);
    const bool wide = n.shape().dtype() == DType::F64 || n.shape().dtype() == DType::C128;
    for (std::size_t i = 0; i < count(out.value); ++i)
      if (reals(out.slack)[i] > 0) reals(out.slack)[i] += added * last_place(wide ? DType::F64 : DType::F32, 0);
    // What may vanish or change its sign beside an infinity makes a NaN, or the other infinity.
    const Tensor first = run1(n.op, {around_zero(*in[0]), infinite(*in[1])});
    const Tensor second = run1(n.op, {infinite(*in[0]), around_zero(*in[1])});
    for (std::size_t i = 0; i < count(out.value); ++i)
      if (value_at(first, i) + value_at(second, i) > 0) reals(out.slack)[i] = kApart;
  }

  // 1 where 0 lies inside the interval of an element that is not exact, or where the element is infinite, else 0.
  static Tensor around_zero(const Bounded& x) {
    Tensor out = like(x.value, 0);
    for (std::size_t i = 0; i < count(out); ++i)
      reals(out)[i] = reals(x.slack)[i] > 0 && value_at(x.value, i) <= reals(x.slack)[i] ? 1 : 0;
    return out;
  }
  static Tensor infinite(const Bounded& x) {
    Tensor out = like(x.value, 0);
    for (std::size_t i = 0; i < count(out); ++i) reals(out)[i] = std::isinf(value_at(x.value, i)) ? 1 : 0;
    return out;
  }

  static void scatter(const Node& n, const std::vector<const Bounded*>& in, const std::vector<Tensor>& values,
                      std::vector<Bounded>& results) {
    Bounded& out = results[0];
    const std::size_t last = in.size() - 1;
    for (std::size_t k = 1; k < last; ++k)
      if (any(in[k]->slack)) {
        out.slack = like(out.value, kApart);
        return;
      }
    const auto with = [&](const Tensor& x, const Tensor& updates) {
      std::vector<Tensor> operands = values;
      operands.front() = x;
      operands.back() = updates;
      return operands;
    };
    ops::Scatter op = n.op.as<ops::Scatter>();
    if (op.fn == ScatterKind::Min || op.fn == ScatterKind::Max) op.fn = ScatterKind::Max;  // no more than either moves
    const bool adds = op.fn == ScatterKind::Add, rounds = adds || op.fn == ScatterKind::Mul;
    if (!rounds || !has_bound(out.value.dtype())) {
      if (op.fn == ScatterKind::Mul) op.fn = ScatterKind::Add;  // of integers: right or undecided
      out.slack = run1(op, with(in[0]->slack, in[last]->slack));
      return;
    }
    const auto updates = static_cast<double>(count(values[1]));
    if (!adds) {
      elementwise(n, in, values, results);
      for (std::size_t i = 0; i < count(out.value); ++i)
        reals(out.slack)[i] += (updates + 1) * sum_epsilon(n.shape().dtype()) * value_at(out.value, i);
      return;
    }
    const Tensor a = magnitude(in[0]->value), b = magnitude(in[last]->value);
    add_terms(n, out, run1(n.op, with(with_slack(*in[0], a), with_slack(*in[last], b))), run1(n.op, with(a, b)),
              updates);
  }

  // Keys that move may change places with any other; then only they are known, as well as the worst of them.
  static void sort(const Node& n, const std::vector<const Bounded*>& in, const std::vector<Tensor>& values,
                   std::vector<Bounded>& out) {
    const Tensor& keys = in[0]->slack;
    if (any(keys)) {
      double most = 0;
      for (std::size_t i = 0; i < count(keys); ++i) most = std::max(most, reals(keys)[i]);
      for (std::size_t r = 0; r < out.size(); ++r) out[r].slack = like(out[r].value, r == 0 ? most : kApart);
      return;
    }
    std::vector<Tensor> moved{values[0]};
    for (std::size_t r = 1; r < out.size(); ++r) moved.push_back(in[r]->slack);
    const std::vector<Tensor> there = evaluate_op(n.op, moved);
    for (std::size_t r = 1; r < out.size(); ++r) out[r].slack = there[r];
  }

  static void arg_reduce(const Node& n, const Bounded& x, Bounded& out) {
    if (!any(x.slack)) return;
    const auto& op = n.op.as<ops::ArgReduce>();
    const double sign = op.fn == ArgReduceKind::Max ? 1 : -1;
    const std::vector<std::int64_t> dims = x.value.dims();
    std::int64_t outer = 1, extent = 1, inner = 1;
    for (std::int64_t d = 0; d < x.value.rank(); ++d)
      (d < op.axis ? outer : d == op.axis ? extent : inner) *= dims[static_cast<std::size_t>(d)];
    const Tensor wide = x.value.cast(DType::F64);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t k = 0; k < inner; ++k) {
        const std::int64_t winner = out.value.at_i64(o * inner + k);
        const auto at = [&](std::int64_t j) { return static_cast<std::size_t>((o * extent + j) * inner + k); };
        const double top = sign * reals(wide)[at(winner)], top_slack = reals(x.slack)[at(winner)];
        for (std::int64_t j = 0; j < extent; ++j) {
          const double e = reals(x.slack)[at(j)] + top_slack;
          if (j != winner && e > 0 && !(top - sign * reals(wide)[at(j)] > e)) reals(out.slack)[o * inner + k] = kApart;
        }
      }
  }

  static void top_k(const Node& n, const Bounded& x, std::vector<Bounded>& out) {
    if (!any(x.slack)) return;
    const std::int64_t k = n.op.as<ops::TopK>().k, extent = x.value.dim(-1);
    const Tensor wide = x.value.cast(DType::F64);
    for (std::int64_t row = 0; row * k < out[0].value.num_elements(); ++row) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(extent));
      std::iota(order.begin(), order.end(), row * extent);
      const auto key = [&](auto at) {
        return std::isnan(reals(wide)[at]) ? kApart : reals(wide)[at];
      };  // NaN comes first
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) > key(b); });
      double widest = 0;
      for (std::int64_t i : order) widest = std::max(widest, reals(x.slack)[i]);
      for (std::int64_t i = 0; i < k; ++i) {
        reals(out[0].slack)[row * k + i] = widest;
        for (std::int64_t other : {i - 1, i + 1}) {
          if (other < 0 || other >= extent) continue;
          const auto a = order[static_cast<std::size_t>(i)], b = order[static_cast<std::size_t>(other)];
          if (widest > 0 && !(difference(reals(wide)[a], reals(wide)[b]) > 2 * widest))
            reals(out[1].slack)[row * k + i] = kApart;
        }
      }
    }
  }

  // The rounding of the result, and what may overflow.
  static void finish(DType t, const OpBox& op, const std::vector<const Bounded*>& in, Bounded& out) {
    bool lost = false;  // some operand is undecided: a NaN bound means nothing better
    for (const Bounded* b : in)
      lost = lost ||
             std::any_of(reals(b->slack), reals(b->slack) + count(b->slack), [](double e) { return !(e < kApart); });
    double* e = reals(out.slack);
    if (!has_bound(t)) {
      for (std::size_t i = 0; i < count(out.value); ++i)
        if (std::isnan(e[i])) e[i] = kApart;
      return;
    }
    const bool narrow = t == DType::F16 || t == DType::BF16;
    const DType computed = narrow ? DType::F32 : t;
    const double places = allowance_of(op).places, largest = float_format(t).largest;
    for (std::size_t i = 0; i < count(out.value); ++i) {
      const double size = value_at(out.value, i);
      if (!std::isfinite(size)) {
        if (std::isnan(e[i])) e[i] = lost ? kApart : 0;
        continue;
      }
      if (std::isnan(e[i])) e[i] = kApart;
      // One correctly rounded operation on exact operands: no error when the result is a number of the dtype.
      const bool exact = e[i] == 0 && places <= 0.5 && std::remainder(size, last_place(t, size)) == 0;
      if (size + e[i] > 0 && !exact) {
        if (places > 0) e[i] += places * last_place(computed, size);
        const double smallest_normal = std::ldexp(1.0, float_format(computed).min_exponent);
        if (places == kFunctionPlaces && size < smallest_normal) e[i] = std::max(e[i], smallest_normal);
        if (narrow && computes(op)) e[i] += last_place(t, size + e[i]) / 2;
      }
      if (size + e[i] > largest) e[i] = kApart;
    }
  }

  // Moves and choices return operands as they are.
  static bool computes(const OpBox& op) {
    const Allowance a = allowance_of(op);
    return a.places > 0 || a.terms > 0;
  }

  const Graph& g_;
  int depth_;
  std::vector<std::vector<Bounded>> results_;
};

}  // namespace

Allowance allowance_of(const OpBox& op) {
  if (const auto* a = op.get_if<ops::Activation>()) {
    for (const ActivationAllowance& row : kActivations)
      if (row.fn == a->fn) return {row.places, 0};
    return {kFunctionPlaces, 0};
  }
  if (const auto* b = op.get_if<ops::Binary>()) {
    for (const BinaryAllowance& row : kBinaries)
      if (row.fn == b->fn) return {row.places, 0};
    return {kFunctionPlaces, 0};
  }
  if (const auto* r = op.get_if<ops::Reduce>(); r && (r->fn == ReduceKind::Max || r->fn == ReduceKind::Min)) return {};
  if (const auto* c = op.get_if<ops::Cumulative>(); c && (c->fn == CumulativeKind::Max || c->fn == CumulativeKind::Min))
    return {};
  for (const SumAllowance& row : kSums)
    if (row.kind == op.kind()) return {1, row.terms};
  if (op.kind() == OpKind::Custom) return {kFunctionPlaces, 0};
  return {};
}

BoundedResult evaluate_bounded(const Graph& graph, const NamedTensors& values) {
  std::map<std::string, std::vector<std::int64_t>, std::less<>> dims;
  for (const auto& [name, tensor] : values) dims.emplace(name, tensor.dims());
  const Graph bound = graph.is_static() ? Graph() : graph.bind(solve_symbols(graph, dims));
  const Graph& g = graph.is_static() ? graph : bound;
  Walk walk(g, 0);
  BoundedResult out;
  for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State})
    for (NodeId id : g.leaves(kind)) {
      auto it = values.find(g.leaf_name(id));
      Tensor t = it != values.end() ? it->second : Tensor();
      if (const auto* s = g.node(id).op.get_if<ops::State>(); s && t.empty())
        t = s->init.empty() ? Tensor::zeros(g.shape(id)) : s->init;
      if (t.empty()) throw Error(ErrorCode::NotFound, concat_text("no value for '", g.leaf_name(id), "'"));
      Tensor wide = widened(t), zero = Tensor::zeros(t.shape().with_dtype(DType::F64));
      if (kind == OpKind::State) out.states.insert_or_assign(g.leaf_name(id), Bounded{wide, zero});
      walk.set_leaf(id, {std::move(wide), std::move(zero)});
    }
  walk.run();
  for (Value v : g.outputs()) out.outputs.push_back(walk.at(v));
  for (const Graph::StateUpdate& u : g.state_updates()) out.states.insert_or_assign(u.name, walk.at(u.value));
  return out;
}

Gap gap_to(const Tensor& got, const Bounded& exact, std::int64_t* undecided) {
  const Tensor wide = widened(got);
  if (got.dims() != exact.value.dims() || wide.dtype() != exact.value.dtype())
    return {kApart, -1, concat_text("shape is ", got.shape().text(), ", wanted ", exact.value.shape().text())};
  Gap gap;
  for (std::size_t i = 0; i < count(wide); ++i) {
    const double slack = reals(exact.slack)[i];
    if (!(slack < kApart)) {
      if (undecided != nullptr) ++*undecided;
      continue;
    }
    double size = 0;
    if (stores_floats(wide.dtype())) {
      const double d = apart(wide, exact.value, i);
      size = d == 0 ? 0 : slack == 0 ? kApart : d / slack;
    } else {
      const auto at = static_cast<std::int64_t>(i);
      size = load_element<std::int64_t>(wide.data(), wide.dtype(), at) ==
                     load_element<std::int64_t>(exact.value.data(), wide.dtype(), at)
                 ? 0
                 : kApart;
    }
    if (size > gap.size) gap = {size, static_cast<std::int64_t>(i), {}};
  }
  if (gap.index >= 0) {
    const auto value = [&](const Tensor& t) {
      char text[80];
      const C c = load_element<C>(t.data(), t.dtype(), gap.index);
      std::snprintf(text, sizeof text, is_complex(t.dtype()) ? "(%.17g, %.17g)" : "%.17g", c.real(), c.imag());
      return std::string(text);
    };
    gap.text = concat_text("element ", gap.index, " of ", got.shape().text(), " is ", value(got), ", exactly ",
                           value(exact.value), ": ", gap.size, " times the bound ", value(exact.slack).c_str());
  }
  return gap;
}

}  // namespace rlx::test
