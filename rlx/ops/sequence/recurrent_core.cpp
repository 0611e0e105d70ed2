// Shared rules of Rnn, Gru and Lstm.
#include "rlx/ops/sequence/recurrent_core.h"

#include <algorithm>
#include <cmath>

#include "rlx/ops/quant/block_parts.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

constexpr ActivationKind kRnnFunctions[] = {ActivationKind::Tanh};
constexpr ActivationKind kGruFunctions[] = {ActivationKind::Sigmoid, ActivationKind::Tanh};
constexpr ActivationKind kLstmFunctions[] = {ActivationKind::Sigmoid, ActivationKind::Tanh, ActivationKind::Tanh};

template <class Op>
RecurrentSpec spec_of(const Op& op, std::int64_t gates, std::span<const ActivationKind> functions) {
  return {gates, functions, op.direction, op.batch_first, op.activations, op.alpha, op.beta, op.clip};
}

std::optional<Diagnostic> check_functions(const InferContext& c, const RecurrentSpec& s) {
  const std::size_t each = s.own_functions.size(), all = each * static_cast<std::size_t>(s.directions());
  const std::size_t said = s.activations.size();
  if (said != 0 && said != each && said != all)
    return c.attr_error("needs ", each, " activations for each of ", s.directions(),
                        " directions, or the same for all directions; got ", said);
  for (ActivationKind fn : s.activations)
    if (!contains(function_row(fn).dtypes, DType::F32))
      return c.attr_error("activation '", enum_name(fn), "' does not accept floats");
  for (const auto& list : {s.alpha, s.beta}) {
    if (!list.empty() && list.size() != said)
      return c.attr_error("alpha and beta need one number for each of the ", said, " activations, or none; got ",
                          list.size());
    for (double v : list)
      if (!std::isfinite(v)) return c.attr_error("alpha and beta must be finite, got ", v);
  }
  if (s.clip && !(*s.clip > 0)) return c.attr_error("clip must be above 0, got ", *s.clip);
  return std::nullopt;
}

std::optional<Diagnostic> check_operand(const InferContext& c, std::string_view name, const Dims& dims, DType t) {
  if (!c.has(name)) return std::nullopt;
  const Shape& x = c.input(name);
  if (x.dtype() != t) return c.dtype_error(name, " must be ", dtype_name(t), " like x, got ", x);
  if (x.dims() != dims) return c.error(name, " must be ", dims_text(dims), ", got ", x);
  return std::nullopt;
}

Expr flat(Graph& g, Expr x, Dims dims) { return g.reshape(x, std::move(dims)); }

// The operands of the same op on other values: `x` and the named ones.
using Named = std::vector<std::pair<std::string_view, Expr>>;
Named operands_but(const DecomposeContext& c, std::initializer_list<std::string_view> without) {
  Named out;
  const InputSpec& spec = op_def(c.box()).inputs;
  for (int i = 0; i < spec.count; ++i) {
    const std::string_view name = spec.names[i];
    if (std::find(without.begin(), without.end(), name) == without.end() && c.has(name))
      out.emplace_back(name, c.input(name));
  }
  return out;
}

void set_results(DecomposeContext& c, Expr first) {
  for (int r = 0; r < c.num_results(); ++r) {
    Expr e = first.result(static_cast<std::uint32_t>(r));
    c.set_result(r, c.graph().cast(e, c.result_shape(r).dtype()));
  }
}

// One matmul for all steps and directions. The biases are added in it too.
void project(DecomposeContext& c, const RecurrentSpec& s) {
  Graph& g = c.graph();
  const Expr w = c.input("w");
  const Dim directions(s.directions()), rows = w.dim(1), hidden = c.input("r").dim(2), width = w.dim(2);
  const Expr columns = g.t(flat(g, w, {directions * rows, width}));
  std::optional<Expr> added;
  Named operands = operands_but(c, {"x", "w", "bias"});
  if (c.has("bias")) {
    const Expr bias = c.input("bias");
    const Expr of_w = g.narrow(bias, 1, 0, rows), of_r = g.narrow(bias, 1, rows, rows);
    Expr sum = of_w + of_r;
    if (s.keeps_bias) {
      const Dim first = Dim(2) * hidden;
      sum = g.concat({g.narrow(sum, 1, 0, first), g.narrow(of_w, 1, first, hidden)}, 1);
      operands.emplace_back("bias", g.narrow(of_r, 1, first, hidden));
    }
    added = flat(g, sum, {directions * rows});
  } else if (s.keeps_bias) {
    operands.emplace_back("bias", c.zeros(Shape({directions, hidden}, w.dtype())));
  }
  operands.emplace_back("x", linear_into(c, c.input("x"), columns, added));
  set_results(c, g.add_named(c.box(), operands));
}

void in_f32(DecomposeContext& c) {
  Graph& g = c.graph();
  Named operands = operands_but(c, {});
  for (auto& [name, value] : operands)
    if (is_float(value.dtype())) value = g.cast(value, DType::F32);
  set_results(c, g.add_named(c.box(), operands));
}

}  // namespace

RecurrentSpec recurrent_spec(const ops::Rnn& op) { return spec_of(op, 1, kRnnFunctions); }
RecurrentSpec recurrent_spec(const ops::Gru& op) {
  RecurrentSpec s = spec_of(op, 3, kGruFunctions);
  s.keeps_bias = op.linear_before_reset;
  return s;
}
RecurrentSpec recurrent_spec(const ops::Lstm& op) { return spec_of(op, 4, kLstmFunctions); }

double CellFunction::operator()(double x) const {
  const FunctionRow& row = function_row(fn);
  if (!alpha && !beta) return row.real(x);
  return row.real_with(x, alpha.value_or(row.alpha.value_or(0)), beta.value_or(row.beta.value_or(0)));
}

CellFunction cell_function(const RecurrentSpec& s, std::int64_t d, std::size_t i) {
  const std::size_t each = s.own_functions.size();
  if (s.activations.empty()) return {s.own_functions[i], {}, {}};
  const std::size_t at = s.activations.size() == each ? i : static_cast<std::size_t>(d) * each + i;
  CellFunction f{s.activations[at], {}, {}};
  const FunctionRow& row = function_row(f.fn);
  if (row.alpha && !s.alpha.empty()) f.alpha = s.alpha[at];
  if (row.beta && !s.beta.empty()) f.beta = s.beta[at];
  return f;
}

Result<Shapes> infer_recurrent(const InferContext& c, const RecurrentSpec& s, int states) {
  if (auto e = check_functions(c, s)) return *e;
  const Shape &x = c.input("x"), &r = c.input("r");
  const DType t = x.dtype();
  if (!is_float(t)) return c.dtype_error("x must be float, got ", x);
  if (x.rank() != 3) return c.error("x must be ", s.batch_first ? "[B, S, I]" : "[S, B, I]", ", got ", x);
  const Dim directions(s.directions()), &steps = x.dim(s.batch_first ? 1 : 0), &batch = x.dim(s.batch_first ? 0 : 1);
  if (r.rank() != 3 || !r.dim(2).is_static())
    return c.error("r must be [", directions, ", ", s.gates, " H, H] with a known H, got ", r);
  const Dim &hidden = r.dim(2), rows = Dim(s.gates) * hidden;
  if (auto e = check_operand(c, "r", {directions, rows, hidden}, t)) return *e;
  const bool projects = c.has("w");
  if (projects) {
    const Shape& w = c.input("w");
    if (const Dims dims{directions, rows, x.dim(2)};
        w.dtype() == t && w.rank() == 3 && w.dims() != dims && w.dims() == Dims{directions, rows, w.dim(2)})
      return c.error("w must be ", dims_text(dims), " for x ", x, " of ", x.dim(2), " features, got ", w);
    if (auto e = check_operand(c, "w", {directions, rows, x.dim(2)}, t)) return *e;
    if (auto e = check_operand(c, "bias", {directions, Dim(2) * rows}, t)) return *e;
  } else {
    if (!(x.dim(2) == directions * rows))
      return c.error("without w, x must be the projection with ", directions * rows, " columns, got ", x);
    if (s.keeps_bias != c.has("bias"))
      return c.error(s.keeps_bias ? "bias [D, H] is missing: linear_before_reset needs it in each step"
                                  : "without w there must be no bias: x includes it already");
    if (auto e = check_operand(c, "bias", {directions, hidden}, t)) return *e;
  }
  if (c.has("lengths")) {
    const Shape& lengths = c.input("lengths");
    if (!is_index(lengths.dtype())) return c.dtype_error("lengths must be i32 or i64, got ", lengths);
    if (lengths.dims() != Dims{batch}) return c.error("lengths must be ", dims_text({batch}), ", got ", lengths);
  }
  if (auto e = check_operand(c, "h0", {directions, batch, hidden}, t)) return *e;
  if (states == 2)
    if (auto e = check_operand(c, "c0", {directions, batch, hidden}, t)) return *e;
  Shapes out;
  out.push_back(
      Shape(s.batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden}, t));
  for (int i = 0; i < states; ++i) out.push_back(Shape({directions, batch, hidden}, t));
  return out;
}

Cost recurrent_cost(const CostContext& c, std::int64_t gates) {
  const Shape& r = c.inputs[static_cast<std::size_t>(operand_index(c.box, static_cast<int>(c.inputs.size()), "r"))];
  const bool projects = find_operand(c.box, static_cast<int>(c.inputs.size()), "w").has_value();
  const double width =
      static_cast<double>(r.dim(2).value()) + (projects ? static_cast<double>(c.inputs[0].dim(2).value()) : 0);
  return c.with_flops(static_cast<double>(gates) * c.elements() * (2 * width + 12));
}

void decompose_recurrent(DecomposeContext& c, const RecurrentSpec& s, const CellMaker& cell) {
  const DType t = c.input(0).dtype();
  if (accumulator_dtype(t) != t) return in_f32(c);
  if (c.has("w")) return project(c, s);
  Graph& g = c.graph();
  Expr gates = c.input("x");
  if (s.batch_first) gates = g.transpose(gates, {1, 0, 2});
  const Dim &steps = gates.dim(0), &batch = gates.dim(1), &hidden = c.input("r").dim(2);
  const Dim rows = Dim(s.gates) * hidden;
  const std::vector<std::string_view> names{"h0", "c0"};
  const auto states = static_cast<std::size_t>(c.num_results()) - 1;
  std::vector<Expr> ys;
  std::vector<std::vector<Expr>> last(states);
  for (std::int64_t d = 0; d < s.directions(); ++d) {
    ExprList xs = s.directions() == 1 ? gates : g.narrow(gates, 2, Dim(d) * rows, rows), init;
    for (std::size_t i = 0; i < states; ++i)
      init.push_back(c.has(names[i]) ? of_direction(g, c.input(names[i]), d) : c.zeros(Shape({batch, hidden}, t)));
    std::optional<Expr> lengths;
    if (c.has("lengths")) {
      lengths = g.reshape(c.input("lengths"), {batch, 1});
      xs.push_back(g.iota(Shape({steps}, lengths->dtype()), 0));
    }
    const CellFn step = cell(d);
    ScanOptions options;
    options.reverse = s.reversed(d);
    const LoopResult r = g.scan(
        init, xs,
        [&](Graph& body, const ExprList& carries, const ExprList& x) {
          std::vector<Expr> next = step(body, x[0], carries);
          Expr y = next[0];
          if (lengths) {
            const Expr runs = body.lt(x[1], *lengths);
            y = body.where(runs, y, 0);
            for (std::size_t i = 0; i < states; ++i) next[i] = body.where(runs, next[i], carries[i]);
          }
          return LoopStep(ExprList(std::move(next)), y);
        },
        options);
    ys.push_back(s.batch_first ? g.unsqueeze(g.transpose(r.ys[0], {1, 0, 2}), 2) : g.unsqueeze(r.ys[0], 1));
    for (std::size_t i = 0; i < states; ++i) last[i].push_back(g.unsqueeze(r.carries[i], 0));
  }
  const auto joined = [&](const std::vector<Expr>& parts, std::int64_t axis) {
    return parts.size() == 1 ? parts[0] : g.concat(parts, axis);
  };
  c.set_result(0, joined(ys, s.batch_first ? 2 : 1));
  for (std::size_t i = 0; i < states; ++i) c.set_result(static_cast<int>(i) + 1, joined(last[i], 0));
}

Expr clipped(Graph& g, const RecurrentSpec& s, Expr x) { return s.clip ? g.clamp(x, -*s.clip, *s.clip) : x; }
double clipped(const RecurrentSpec& s, double x) {
  if (!s.clip) return x;
  return x > *s.clip ? *s.clip : x < -*s.clip ? -*s.clip : x;
}

Expr of_direction(Graph& g, Expr x, std::int64_t d) {
  Dims dims(x.shape().dims().begin() + 1, x.shape().dims().end());
  return g.reshape(g.narrow(x, 0, d, 1), std::move(dims));
}

Expr gate_of(Graph& g, Expr gates, std::int64_t part, std::int64_t hidden) {
  return g.narrow(gates, -1, part * hidden, hidden);
}

double recurrent_dot(std::span<const double> r, std::int64_t d, std::int64_t rows, std::int64_t row,
                     std::span<const double> h) {
  const auto width = static_cast<std::int64_t>(h.size());
  const double* const from = r.data() + (d * rows + row) * width;
  double sum = 0;
  for (std::int64_t k = 0; k < width; ++k) sum += from[k] * h[static_cast<std::size_t>(k)];
  return sum;
}

void recurrent_reference(const RefArgs& a, const RecurrentSpec& s, std::size_t states, const ReferenceCell& cell) {
  const Tensor &x = a.in("x"), &r = a.in("r");
  const std::int64_t steps = x.dim(s.batch_first ? 1 : 0), batch = x.dim(s.batch_first ? 0 : 1), width = x.dim(2);
  const std::int64_t directions = s.directions(), hidden = r.dim(2), rows = s.gates * hidden;
  const auto xs = load_all<double>(x);
  std::vector<double> w, bias, first[2];
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(batch), steps);
  if (a.has("w")) w = load_all<double>(a.in("w"));
  if (a.has("w") && a.has("bias")) bias = load_all<double>(a.in("bias"));
  if (a.has("lengths")) lengths = load_all<std::int64_t>(a.in("lengths"));
  const std::string_view names[] = {"h0", "c0"};
  for (std::size_t i = 0; i < states; ++i)
    if (a.has(names[i])) first[i] = load_all<double>(a.in(names[i]));
  Tensor& y = a.out(0);
  std::vector<double> gates(static_cast<std::size_t>(rows));
  for (std::int64_t d = 0; d < directions; ++d) {
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<std::vector<double>> state(states, std::vector<double>(static_cast<std::size_t>(hidden), 0.0));
      for (std::size_t i = 0; i < states; ++i)
        if (!first[i].empty()) std::copy_n(first[i].begin() + (d * batch + b) * hidden, hidden, state[i].begin());
      for (std::int64_t n = 0; n < steps; ++n) {
        const std::int64_t t = s.reversed(d) ? steps - 1 - n : n;
        if (t >= lengths[static_cast<std::size_t>(b)]) continue;  // the results are already zero
        const double* const row = xs.data() + (s.batch_first ? b * steps + t : t * batch + b) * width;
        for (std::int64_t j = 0; j < rows; ++j) {
          double sum = w.empty() && !a.has("w") ? row[d * rows + j] : 0;
          if (!w.empty())
            for (std::int64_t k = 0; k < width; ++k)
              sum += row[k] * w[static_cast<std::size_t>((d * rows + j) * width + k)];
          if (!bias.empty()) {
            const bool inside = s.keeps_bias && j >= 2 * hidden;  // the cell adds the bias of r
            sum += bias[static_cast<std::size_t>(d * 2 * rows + j)] +
                   (inside ? 0 : bias[static_cast<std::size_t>(d * 2 * rows + rows + j)]);
          }
          gates[static_cast<std::size_t>(j)] = sum;
        }
        cell(d, gates, state);
        const std::int64_t to = s.batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
        for (std::int64_t j = 0; j < hidden; ++j)
          store_element(y.mutable_data(), y.dtype(), to * hidden + j, state[0][static_cast<std::size_t>(j)]);
      }
      for (std::size_t i = 0; i < states; ++i) {
        Tensor& out = a.out(static_cast<int>(i) + 1);
        for (std::int64_t j = 0; j < hidden; ++j)
          store_element(out.mutable_data(), out.dtype(), (d * batch + b) * hidden + j,
                        state[i][static_cast<std::size_t>(j)]);
      }
    }
  }
}

}  // namespace rlx
