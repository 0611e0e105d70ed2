// Running error analysis over the reference rules: the traversal of the nodes.
#include <algorithm>
#include <cstdio>
#include <set>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/tensor/visit.h"
#include "tests/support/rounding_rules.h"

namespace rlx::test {
namespace {

using namespace rounding;

class Walk {
 public:
  Walk(const Graph& g, int depth, Subnormals subnormals)
      : g_(g), depth_(depth), subnormals_(subnormals), results_(g.num_nodes()) {}

  void set_leaf(NodeId id, Bounded b) { results_[id.index] = {std::move(b)}; }
  void run() {
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i)
      if (results_[i].empty()) results_[i] = node(g_.node(NodeId{i}));
  }
  const Bounded& at(Value v) const { return results_[v.node.index][v.result]; }

 private:
  // A value in F64 with a zero bound.
  static Bounded exact(const Tensor& t) {
    Tensor wide = widened(t);
    Tensor zero = like(wide, 0);
    return {std::move(wide), std::move(zero)};
  }

  // Matmuls into a wider dtype are F64 here.
  std::vector<Bounded> node(const Node& n) {
    if (const auto* dot = n.op.get_if<ops::DotGeneral>()) return node_into_f64(n, *dot);
    if (const auto* conv = n.op.get_if<ops::Conv>()) return node_into_f64(n, *conv);
    return node_of(n);
  }
  template <class Op>
  std::vector<Bounded> node_into_f64(const Node& n, const Op& op) {
    if (!op.out || !is_float(*op.out) || *op.out == DType::F64) return node_of(n);
    Op wide = op;
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
      if (def.decompose.has() && n.kind() != OpKind::Interpolate) return composite(n, in);
    }
    std::vector<Bounded> out;
    switch (n.kind()) {
      case OpKind::Constant: {
        out = {exact(n.op.as<ops::Constant>().value)};
        // A number inside a decomposition. Kernels may hold it in another precision, unless every dtype holds it
        // exactly.
        if (depth_ > 0 && has_bound(n.shape().dtype()) && n.shape().rank() == 0)
          if (const double size = value_at(out[0].value, 0);
              std::isfinite(size) && !is_number(DType::BF16, out[0].value, 0))
            reals(out[0].slack)[0] = last_place(n.shape().dtype(), size) / 2;
        return out;
      }
      case OpKind::Iota: return {exact(run1(n.op, {}))};
      case OpKind::If: return branch(n, in);
      case OpKind::Scan: return scan(n, in);
      case OpKind::While: return loop(n, in);
      case OpKind::Cast: return {cast(n, *in[0])};
      case OpKind::Bitcast: return {bitcast(n, *in[0])};
      default: break;
    }
    const std::vector<Tensor> results = evaluate_op(n.op, values);
    for (const Tensor& t : results) out.push_back({t, like(t, 0)});
    carry(n, in, values, out);
    if (n.kind() == OpKind::Binary) add_to_sum(n, in, out[0]);
    for (std::size_t r = 0; r < out.size(); ++r) finish(n.shapes[r].dtype(), n.op, in, out[r]);
    return out;
  }

  // Evaluates a body on operands with bounds. Its constants are exact.
  std::vector<Bounded> run_body(const Graph& body, const std::vector<Bounded>& inputs) const {
    Walk inner(body, depth_, subnormals_);
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
  // Stacks `rows` along a new axis 0 of `shape`; missing rows are zero.
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
  // Results whose control flow rounding decides may be anything.
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
    // Attention kernels flush weights below the normal numbers to 0. Where keys may be masked, a key of weight 0 is not
    // read at all, not even its NaN.
    const bool attends =
        n.kind() == OpKind::Attention || n.kind() == OpKind::AttentionBackward || n.kind() == OpKind::PagedAttention;
    Walk inner(parts, depth_ + 1, attends ? Subnormals::MayBeZero : subnormals_);
    for (std::size_t i = 0; i < in.size(); ++i) inner.set_leaf(operands[i].value().node, *in[i]);
    inner.run();
    std::vector<Bounded> out;
    for (Value v : parts.outputs()) out.push_back(inner.at(v));
    // Kernels divide by the sum of the weights (the largest is 1) at the end, so the sum before that may overflow.
    if (const auto* attention = n.op.get_if<ops::Attention>())
      if (may_overflow(*in[2], static_cast<double>(keys_of(*attention, in[1]->value)), n.shape().dtype()))
        out[0].slack = like(out[0].value, kApart);
    return out;
  }

  static std::int64_t keys_of(const ops::Attention& op, const Tensor& k) {
    return k.dim(op.layout == HeadLayout::HeadsFirst ? 2 : 1);
  }
  // True if the sum of `n` such values may overflow dtype `t`.
  static bool may_overflow(const Bounded& x, double n, DType t) {
    const double largest = float_format(t == DType::F64 ? DType::F64 : DType::F32).largest;
    const Tensor size = magnitude(x.value);
    return std::any_of(reals(size), reals(size) + count(size), [&](double m) { return m * n > largest; });
  }

  // Bitcasts the stored numbers. An inexact number may become anything.
  Bounded bitcast(const Node& n, const Bounded& x) const {
    Bounded out{widened(run1(n.op, {x.value.cast(g_.shape(n.inputs[0]).dtype())})), {}};
    // The sign and payload of a NaN are not specified.
    const bool nan = is_inexact(x.value.dtype()) && std::any_of(reals(x.value), reals(x.value) + count(x.value),
                                                                [](double v) { return std::isnan(v); });
    out.slack = like(out.value, nan || any(x.slack) ? kApart : 0);
    return out;
  }

  // Converts both ends of the interval, since the conversion is monotone. A Bool, however, is false only at 0, which
  // may be inside the interval.
  Bounded cast(const Node& n, const Bounded& x) const {
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
      // A number of F64 may be subnormal in F32.
      if (subnormals_ == Subnormals::MayBeZero && is_inexact(to))
        if (const double size = value_at(out.value, i); size < smallest_normal(to) && size + e[i] > 0)
          e[i] = std::max(e[i], smallest_normal(to));
    }
    return out;
  }

  // Propagates the operands' bounds to the results, without the node's own rounding of sums.
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
      case OpKind::Activation:
        elementwise(n, in, values, out);
        reflected(n, values, out[0]);
        vanishing_factor(n, values, out[0]);
        sign_of_sum(n, in, values, out);
        return;
      case OpKind::Binary: {
        elementwise(n, in, values, out);
        const BinaryKind fn = n.op.as<ops::Binary>().fn;
        if (fn == BinaryKind::Max || fn == BinaryKind::Min) choose_zero(values, out[0]);
        if (fn == BinaryKind::LogAddExp) log_sum(n.shape().dtype(), values, out[0]);
        if (fn == BinaryKind::Mul && share_source(n)) vanishing_times_infinity(values, out[0]);
        sign_of_sum(n, in, values, out);
        return;
      }
      case OpKind::Complex:
      case OpKind::ComplexPart: complex_parts(n, in, out[0]); return;
      case OpKind::Fft: fourier(n, *in[0], out[0]); return;
      case OpKind::Compare: compare(in, out[0]); return;
      case OpKind::Reduce: reduce(n, *in[0], out[0]); return;
      case OpKind::Interpolate: interpolate(n, *in[0], out[0]); return;
      case OpKind::ReduceWindow: windows(n, *in[0], out); return;
      case OpKind::Cumulative: cumulative(n, *in[0], out[0]); return;
      case OpKind::DotGeneral:
      case OpKind::Conv: dot(n, in, out[0]); return;
      case OpKind::Scatter: scatter(n, in, values, out); return;
      case OpKind::Sort: sort(n, in, values, out); return;
      case OpKind::RngBits: return;
      case OpKind::ArgReduce: arg_reduce(n, *in[0], out[0]); return;
      case OpKind::TopK: top_k(n, *in[0], out); return;
      case OpKind::Cholesky:
      case OpKind::TriangularSolve:
      case OpKind::Lu:
      case OpKind::Qr:
      case OpKind::Eigh:
      case OpKind::Svd: factor(n, g_.shape(n.inputs[0]).dtype(), in, values, out); return;
      default: elementwise(n, in, values, out); return;  // custom ops: by varying all operands
    }
  }

  // The nodes that a value is computed from, without constants, within as many ops as a written-out activation has.
  std::set<std::uint32_t> sources(Value v) const {
    std::set<std::uint32_t> found;
    std::vector<Value> now{v};
    for (int depth = 0; depth < 8 && !now.empty(); ++depth) {
      std::vector<Value> before;
      for (Value at : now)
        if (g_.node(at.node).kind() != OpKind::Constant && found.insert(at.node.index).second)
          for (Value in : g_.node(at.node).inputs) before.push_back(in);
      now = std::move(before);
    }
    return found;
  }
  bool share_source(const Node& n) const {
    const std::set<std::uint32_t> a = sources(n.inputs[0]), b = sources(n.inputs[1]);
    return std::any_of(a.begin(), a.end(), [&](std::uint32_t v) { return b.contains(v); });
  }
  // A sum of zeros is 0 or -0, depending on its first term: the sign is undecided.
  void sign_of_sum(const Node& n, const std::vector<const Bounded*>& in, const std::vector<Tensor>& values,
                   std::vector<Bounded>& out) const {
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (!is_float(values[k].dtype())) continue;
      Tensor other = Tensor::copy_of(values[k].data(), values[k].shape());
      bool zeros = false;
      for (std::size_t i = 0; i < count(other); ++i)
        if (reals(other)[i] == 0) reals(other)[i] = -reals(other)[i], zeros = true;
      if (!zeros) continue;
      const std::set<std::uint32_t> behind = sources(n.inputs[k]);
      if (std::none_of(behind.begin(), behind.end(), [&](std::uint32_t v) { return adds_up(g_.node(NodeId{v}).op); }))
        continue;
      std::vector<Tensor> moved = values;
      moved[k] = std::move(other);
      const std::vector<Tensor> there = evaluate_op(n.op, moved);
      for (std::size_t r = 0; r < out.size(); ++r)
        for (std::size_t i = 0; i < count(out[r].value); ++i)
          if (apart(there[r], out[r].value, i) > 0) reals(out[r].slack)[i] = kApart;
    }
  }
  static bool adds_up(const OpBox& op) {
    return allowance_of(op).terms > 0 || (op_def(op).decompose.has() && op.kind() != OpKind::Cast);
  }
  // True if both parts of an element are representable in dtype `t`.
  static bool is_number(DType t, const Tensor& value, std::size_t i) {
    const C c = load_element<C>(value.data(), value.dtype(), static_cast<std::int64_t>(i));
    const DType real = is_complex(t) ? real_dtype(t) : t;
    const auto fits = [&](double x) { return x == 0 || std::remainder(x, last_place(real, std::fabs(x))) == 0; };
    return fits(c.real()) && fits(c.imag());
  }
  // Adds the rounding of the result and handles overflow.
  void finish(DType t, const OpBox& op, const std::vector<const Bounded*>& in, Bounded& out) const {
    bool lost = false;  // some operand is undecided, so a NaN bound is expected
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
    const double lost_below =
        subnormals_ == Subnormals::MayBeZero && computes(op) ? std::ldexp(1.0, float_format(computed).min_exponent) : 0;
    for (std::size_t i = 0; i < count(out.value); ++i) {
      const double size = value_at(out.value, i);
      if (!std::isfinite(size)) {
        if (std::isnan(e[i])) e[i] = lost ? kApart : 0;
        continue;
      }
      if (std::isnan(e[i])) e[i] = kApart;
      // One correctly rounded operation on exact operands has no error when the result is representable.
      const bool exact = e[i] == 0 && places <= 0.5 && is_number(t, out.value, i);
      if (size + e[i] > 0 && !exact) {
        if (places > 0) e[i] += places * last_place(computed, size);
        if (narrow && computes(op)) e[i] += last_place(t, size + e[i]) / 2;
      }
      if (size < lost_below && size + e[i] > 0) e[i] = std::max(e[i], lost_below);
      if (size + e[i] > largest) e[i] = kApart;
    }
  }

  // Copies and selections return operands unchanged.
  static bool computes(const OpBox& op) {
    const Allowance a = allowance_of(op);
    return a.places > 0 || a.terms > 0;
  }

  const Graph& g_;
  int depth_;
  Subnormals subnormals_;
  std::vector<std::vector<Bounded>> results_;
};

}  // namespace

BoundedResult evaluate_bounded(const Graph& graph, const NamedTensors& values, Subnormals subnormals) {
  std::map<std::string, std::vector<std::int64_t>, std::less<>> dims;
  for (const auto& [name, tensor] : values) dims.emplace(name, tensor.dims());
  const Graph bound = graph.is_static() ? Graph() : graph.bind(solve_symbols(graph, dims));
  const Graph& g = graph.is_static() ? graph : bound;
  Walk walk(g, 0, subnormals);
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
      // The bound is for both parts: when one is NaN or infinite, the other is unknown.
      if (d != 0 && is_complex(wide.dtype()) && !std::isfinite(value_at(wide, i)) &&
          !std::isfinite(value_at(exact.value, i))) {
        if (undecided != nullptr) ++*undecided;
        continue;
      }
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
