// Recurrent layers, scans and causal convolutions.
#include "rlx/functions/sequence.h"

#include <string_view>

#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/sequence.h"

namespace rlx::nn {
namespace {

using building::At;
using building::fail;

Expr sequence_value(const Operand& x, const char* what) {
  if (x.is_scalar())
    fail(x.loc(), ErrorCode::InvalidArgument, concat_text(what, ": x must be a value of a graph, got a number"),
         "make the number a value: g.scalar(x)");
  return x.expr();
}

using Operands = std::vector<std::pair<std::string_view, Expr>>;

// Adds an operand cast to `dtype`, with the caller's source line.
void add_operand(Operands& to, Graph& g, std::string_view name, const std::optional<Expr>& e, DType dtype,
                 SourceLoc loc) {
  if (e) to.emplace_back(name, building::cast_at(g, building::own_at(g, Operand(*e, loc), loc), dtype, loc));
}

// -- layers --

// The gates' rows of w [G H, ..], reordered by `order`.
Expr in_order(Graph& g, Expr w, const std::vector<std::int64_t>& order, const At& at) {
  if (order.size() == 1) return w;
  const std::optional<Dim> hidden = exact_div(w.dim(0), static_cast<std::int64_t>(order.size()));
  if (!hidden)
    fail(at.loc, ErrorCode::ShapeMismatch,
         concat_text("a weight ", w.shape(), " does not hold ", order.size(), " gates"),
         "give [G H, ..], the layout of PyTorch");
  std::vector<Expr> parts;
  for (std::int64_t i : order) parts.push_back(g.narrow(at(w), 0, Dim(i) * *hidden, *hidden));
  return g.concat(parts, 0, {}, at.loc);
}

// Stacks the operands of all directions: [D, ..].
Expr side_by_side(Graph& g, const std::vector<Expr>& parts, const At& at) {
  std::vector<Expr> rows;
  for (const Expr& e : parts) rows.push_back(g.unsqueeze(at(e), 0));
  return rows.size() == 1 ? rows[0] : g.concat(rows, 0, {}, at.loc);
}

struct Layers {
  const char* what;
  std::vector<std::int64_t> order;  // PyTorch's gate at each gate position of the op
  bool cell = false;
};

template <class Op>
RecurrentResult layers_of(const Operand& input, const std::vector<RecurrentWeights>& layers,
                          const RecurrentOptions& options, const Layers& form, Op op) {
  Expr x = sequence_value(input, form.what);
  Graph& g = x.graph();
  const At at{input.loc()};
  const std::size_t directions = options.bidirectional ? 2 : 1;
  if (layers.empty() || layers.size() % directions != 0)
    fail(at.loc, ErrorCode::InvalidArgument,
         concat_text(form.what, ": the weights have ", layers.size(), " entries, which is not a multiple of ",
                     directions, " directions"),
         "give the weights of layer 0 forward, layer 0 reverse, layer 1 forward, ..");
  op.direction = options.bidirectional ? RecurrentDirection::Bidirectional : RecurrentDirection::Forward;
  op.batch_first = options.batch_first;
  const DType t = x.dtype();
  std::vector<Expr> last_h, last_c;
  for (std::size_t first = 0; first < layers.size(); first += directions) {
    std::vector<Expr> w, r, bias;
    const bool biased = layers[first].b_ih || layers[first].b_hh;
    for (std::size_t d = first; d < first + directions; ++d) {
      const auto own = [&](const Expr& e) {
        return in_order(g, building::cast_at(g, building::own_at(g, at(e), at.loc), t, at.loc), form.order, at);
      };
      const RecurrentWeights& l = layers[d];
      w.push_back(own(l.w_ih)), r.push_back(own(l.w_hh));
      if (biased != (l.b_ih || l.b_hh))
        fail(at.loc, ErrorCode::InvalidArgument,
             concat_text(form.what, ": one direction has a bias, the other has none"));
      if (!biased) continue;
      const auto zeros = [&](const Expr& like) {
        return g.expand(at(g.constant(Tensor::zeros(Shape({}, t)), at.loc)), like.shape().dims());
      };
      const Expr b_ih = l.b_ih ? own(*l.b_ih) : zeros(*l.b_hh), b_hh = l.b_hh ? own(*l.b_hh) : zeros(*l.b_ih);
      bias.push_back(g.concat({b_ih, b_hh}, 0, {}, at.loc));
    }
    Operands operands{{"x", x}, {"w", side_by_side(g, w, at)}, {"r", side_by_side(g, r, at)}};
    if (biased) operands.emplace_back("bias", side_by_side(g, bias, at));
    if (options.lengths) operands.emplace_back("lengths", building::own_at(g, at(*options.lengths), at.loc));
    const auto start = [&](std::string_view name, const std::optional<Expr>& all) {
      if (!all) return;
      const auto count = static_cast<std::int64_t>(directions);
      add_operand(operands, g, name, g.narrow(at(*all), 0, static_cast<std::int64_t>(first), count), t, at.loc);
    };
    start("h0", options.h0);
    if (form.cell) start("c0", options.c0);
    const Expr out = g.add_named(op, operands, at.loc);
    x = out;
    if (directions == 2 && !options.batch_first) x = g.transpose(at(x), {0, 2, 1, 3});
    const Dims dims{x.dim(0), options.batch_first || directions == 2 ? x.dim(1) : x.dim(2),
                    Dim(static_cast<std::int64_t>(directions)) * x.dim(3)};
    x = g.reshape(at(x), dims);
    last_h.push_back(out.result(1));
    if (form.cell) last_c.push_back(out.result(2));
  }
  const auto joined = [&](const std::vector<Expr>& parts) {
    return parts.size() == 1 ? parts[0] : g.concat(parts, 0, {}, at.loc);
  };
  return {x, joined(last_h), form.cell ? joined(last_c) : Expr{}};
}

// One step: runs the layer on a sequence of length 1.
template <class Op>
RecurrentResult one_step(const Operand& x, const Operand& h, std::optional<Operand> c, const RecurrentWeights& weights,
                         const Layers& form, Op op) {
  const Expr v = sequence_value(x, form.what);
  Graph& g = v.graph();
  const At at{x.loc()};
  const auto row = [&](const Operand& e) { return g.unsqueeze(at(building::own_at(g, e, at.loc)), 0); };
  RecurrentOptions options;
  options.h0 = row(h);
  if (c) options.c0 = row(*c);
  return layers_of(at(row(x)), {weights}, options, form, std::move(op));
}

const Layers kLstm{"lstm", {0, 3, 1, 2}, true}, kGru{"gru", {1, 0, 2}}, kRnn{"rnn", {0}};

ops::Gru linear_gru() {
  ops::Gru op;
  op.linear_before_reset = true;
  return op;
}
ops::Rnn rnn_with(ActivationKind fn) {
  ops::Rnn op;
  op.activations = {fn};
  return op;
}
Expr only(const Expr& h) { return h.graph().squeeze(h, 0); }

ScanResult scan_results(const Expr& first) { return {first, first.result(1)}; }

}  // namespace

RecurrentResult lstm(Operand x, const std::vector<RecurrentWeights>& layers, const RecurrentOptions& options) {
  return layers_of(x, layers, options, kLstm, ops::Lstm{});
}
RecurrentResult gru(Operand x, const std::vector<RecurrentWeights>& layers, const RecurrentOptions& options) {
  return layers_of(x, layers, options, kGru, linear_gru());
}
RecurrentResult rnn(Operand x, const std::vector<RecurrentWeights>& layers, const RecurrentOptions& options,
                    ActivationKind fn) {
  return layers_of(x, layers, options, kRnn, rnn_with(fn));
}

std::pair<Expr, Expr> lstm_cell(Operand x, Operand h, Operand c, const RecurrentWeights& weights) {
  const RecurrentResult r = one_step(x, h, c, weights, kLstm, ops::Lstm{});
  return {only(r.h), only(r.c)};
}
Expr gru_cell(Operand x, Operand h, const RecurrentWeights& weights) {
  return only(one_step(x, h, std::nullopt, weights, kGru, linear_gru()).h);
}
Expr rnn_cell(Operand x, Operand h, const RecurrentWeights& weights, ActivationKind fn) {
  return only(one_step(x, h, std::nullopt, weights, kRnn, rnn_with(fn)).h);
}

// -- scans --

ScanResult selective_scan(Operand x, Operand delta, Operand a, Operand b, Operand c,
                          const SelectiveScanOptions& options) {
  const Expr v = sequence_value(x, "selective_scan");
  Graph& g = v.graph();
  const DType own = v.dtype(), state = accumulator_dtype(own);
  Operands operands{{"x", v}};
  const auto add = [&](std::string_view name, const Operand& e, DType t) {
    operands.emplace_back(name, building::cast_at(g, building::own_at(g, e, x.loc()), t, x.loc()));
  };
  add("delta", delta, own), add("a", a, state), add("b", b, own), add("c", c, own);
  add_operand(operands, g, "d", options.d, state, x.loc());
  add_operand(operands, g, "z", options.z, own, x.loc());
  add_operand(operands, g, "delta_bias", options.delta_bias, state, x.loc());
  add_operand(operands, g, "state", options.state, state, x.loc());
  ops::SelectiveScan op;
  op.delta_softplus = options.delta_softplus;
  return scan_results(g.add_named(op, operands, x.loc()));
}

ScanResult mamba2(Operand x, Operand dt, Operand a, Operand b, Operand c, const Mamba2Options& options) {
  const Expr v = sequence_value(x, "mamba2");
  Graph& g = v.graph();
  const DType own = v.dtype(), state = accumulator_dtype(own);
  Operands operands{{"x", v}};
  const auto add = [&](std::string_view name, const Operand& e, DType t) {
    operands.emplace_back(name, building::cast_at(g, building::own_at(g, e, x.loc()), t, x.loc()));
  };
  add("dt", dt, state), add("a", a, state), add("b", b, own), add("c", c, own);
  add_operand(operands, g, "d", options.d, state, x.loc());
  add_operand(operands, g, "z", options.z, own, x.loc());
  add_operand(operands, g, "dt_bias", options.dt_bias, state, x.loc());
  add_operand(operands, g, "state", options.state, state, x.loc());
  ops::Mamba2 op;
  op.dt_softplus = options.dt_softplus, op.chunk = options.chunk;
  return scan_results(g.add_named(op, operands, x.loc()));
}

ScanResult gated_delta_net(Operand q, Operand k, Operand v, Operand decay, Operand beta,
                           const GatedDeltaOptions& options) {
  const Expr first = sequence_value(q, "gated_delta_net");
  Graph& g = first.graph();
  const DType own = first.dtype(), state = accumulator_dtype(own);
  Operands operands{{"q", first}};
  const auto add = [&](std::string_view name, const Operand& e, DType t) {
    operands.emplace_back(name, building::cast_at(g, building::own_at(g, e, q.loc()), t, q.loc()));
  };
  add("k", k, own), add("v", v, own), add("g", decay, state), add("beta", beta, state);
  add_operand(operands, g, "state", options.state, state, q.loc());
  ops::GatedDeltaNet op;
  op.scale = options.scale, op.chunk = options.chunk;
  return scan_results(g.add_named(op, operands, q.loc()));
}

// -- causal convolution --

CausalConvResult causal_conv1d(Operand x, Operand w, const CausalConvOptions& options) {
  const Expr v = sequence_value(x, "causal_conv1d");
  Graph& g = v.graph();
  const At at{x.loc()};
  const DType t = v.dtype();
  const auto own = [&](const Operand& e) { return building::cast_at(g, building::own_at(g, e, at.loc), t, at.loc); };
  Expr filter = own(w);
  const auto refuse = [&](std::string message) {
    fail(at.loc, ErrorCode::ShapeMismatch, concat_text("causal_conv1d: ", message),
         "x is [B, S, C], w [C, K] or [C, 1, 1, K], context [B, K - 1, C], bias [C]");
  };
  if (v.rank() != 3) refuse(concat_text("x is ", v.shape()));
  if (filter.rank() == 4 && filter.dim(1).is_static(1) && filter.dim(2).is_static(1))
    filter = g.reshape(at(filter), {filter.dim(0), filter.dim(3)});
  const Dim &batch = v.dim(0), &steps = v.dim(1), &channels = v.dim(2);
  if (filter.rank() != 2 || !(filter.dim(0) == channels) || !filter.dim(1).is_static() || filter.dim(1).value() < 1)
    refuse(concat_text("w is ", filter.shape(), " beside x ", v.shape()));
  const std::int64_t taps = filter.dim(1).value();
  const Dims before{batch, Dim(taps - 1), channels};
  Expr context = options.context ? own(at(*options.context))
                                 : g.expand(at(g.constant(Tensor::zeros(Shape({}, t)), at.loc)), before);
  if (context.shape().dims() != before)
    refuse(concat_text("context ", context.shape(), " does not match w ", filter.shape()));
  const Expr all = taps == 1 ? v : g.concat({context, v}, 1, {}, at.loc);
  const Expr by_tap = g.t(at(filter));  // [K, C]
  Expr y;
  for (std::int64_t j = 0; j < taps; ++j) {
    const Expr term = g.mul(at(g.narrow(at(all), 1, j, steps)), at(g.narrow(at(by_tap), 0, j, 1)));
    y = j == 0 ? term : g.add(at(y), at(term));
  }
  if (options.bias) {
    const Expr bias = own(at(*options.bias));
    if (bias.shape().dims() != Dims{channels})
      refuse(concat_text("bias ", bias.shape(), " does not match x ", v.shape()));
    y = g.add(at(y), at(bias));
  }
  if (options.activation) y = g.activation(*options.activation, at(y));
  return {y, taps == 1 ? context : g.narrow(at(all), 1, steps, taps - 1)};
}

}  // namespace rlx::nn
