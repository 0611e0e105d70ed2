// Mamba2: the state-space duality scan, with a state matrix for each head. Composite.
#include "rlx/ops/fold_batch.h"
#include "rlx/ops/rule_helpers.h"
#include "rlx/ops/sequence/state_space.h"

namespace rlx {
namespace {

struct Mamba2Rules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Mamba2>();
    const Shape &x = c.input("x"), &b = c.input("b");
    if (op.chunk < 1 || op.chunk > 4096) return c.attr_error("chunk must be between 1 and 4096, got ", op.chunk);
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (x.rank() != 4) return c.error("x must be [B, S, H, P], got ", x);
    const Dim &batch = x.dim(0), &steps = x.dim(1), &heads = x.dim(2), &width = x.dim(3);
    if (b.rank() != 4) return c.error("b must be [B, S, G, N] for x ", x, ", got ", b);
    const Dim &groups = b.dim(2), &n = b.dim(3);
    if (!groups.is_static() || !heads.is_static() || groups.value() < 1 || heads.value() % groups.value() != 0)
      return c.error("the ", heads, " heads of x ", x, " are not a multiple of the groups of b ", b);
    const Dims d = c.has("d") && c.input("d").rank() == 2 ? Dims{heads, width} : Dims{heads};
    const Shape state({batch, heads, width, n}, accumulator_dtype(x.dtype()));
    return infer_scan(c,
                      {{"dt", {batch, steps, heads}, true},
                       {"a", {heads}, true},
                       {"b", {batch, steps, groups, n}, false},
                       {"c", {batch, steps, groups, n}, false},
                       {"d", d, true},
                       {"z", x.dims(), false},
                       {"dt_bias", {heads}, true}},
                      x, state);
  }

  static void decompose(DecomposeContext& c) {
    if (decompose_narrow_scan(c)) return;
    Graph& g = c.graph();
    const auto& op = c.op<ops::Mamba2>();
    const Expr x = scan_operand(c, "x");
    const Dim &heads = x.dim(2), &width = x.dim(3);
    const Expr dt = time_step(c, "dt", "dt_bias", op.dt_softplus, {heads});
    const Expr start = c.has("state") ? c.input("state") : c.zeros(c.result_shape(1));
    const auto chunks = chunks_of(x.dim(1), op.chunk);
    std::vector<Expr> out = chunks ? by_chunks(c, *chunks, x, dt, start) : by_steps(c, x, dt, start);
    Expr y = out[0];
    if (c.has("d")) {
      const Expr d = scan_operand(c, "d");
      y = y + g.reshape(d, {heads, d.rank() == 2 ? width : Dim(1)}) * x;
    }
    if (c.has("z")) y = y * g.silu(scan_operand(c, "z"));
    c.set_result(0, g.cast(y, c.result_shape(0).dtype()));
    c.set_result(1, out[1]);
  }
  static std::vector<Expr> by_steps(const DecomposeContext& c, Expr x, Expr dt, Expr start) {
    Graph& g = c.graph();
    const Expr a = scan_operand(c, "a"), b = scan_operand(c, "b"), of_y = scan_operand(c, "c");
    const Dim &batch = x.dim(0), &heads = x.dim(2), &width = x.dim(3), &n = b.dim(3);
    const std::int64_t groups = b.dim(2).value(), each = heads.value() / groups;
    const auto by_step = [&](Expr e) { return swap_leading(g, e); };
    const LoopResult r = g.scan(g.reshape(start, {batch, groups, each, width, n}),
                                {by_step(g.exp(dt * a)), by_step(x * g.unsqueeze(dt, -1)), by_step(b), by_step(of_y)},
                                [&](Graph& body, const ExprList& state, const ExprList& at) {
                                  const auto row = [&](Expr e) { return body.reshape(e, {batch, groups, 1, 1, n}); };
                                  const Expr next = body.reshape(at[0], {batch, groups, each, 1, 1}) * state[0] +
                                                    body.reshape(at[1], {batch, groups, each, width, 1}) * row(at[2]);
                                  return LoopStep(next, body.sum(next * row(at[3]), {4}));
                                },
                                {.checkpoint = true});
    const Expr y = g.reshape(g.transpose(r.ys[0], {1, 0, 2, 3, 4}), x.shape().dims());
    return {y, g.reshape(r.carries[0], c.result_shape(1).dims())};
  }
  // Matmuls inside a chunk, and one state carried from chunk to chunk.
  static std::vector<Expr> by_chunks(const DecomposeContext& c, const Chunks& p, Expr x, Expr dt, Expr start) {
    Graph& g = c.graph();
    const Expr a = scan_operand(c, "a");
    const Dim &batch = x.dim(0), &steps = x.dim(1), &heads = x.dim(2), &width = x.dim(3);
    const Expr b = in_chunks(g, scan_operand(c, "b"), p), of_y = in_chunks(g, scan_operand(c, "c"), p);
    const Dim &n = b.dim(3), &all = b.dim(0);  // B G
    const Dim each(heads.value() / c.input("b").dim(2).value()), count(p.count), length(p.length);
    const auto of_heads = [&](Expr e) {  // [B H, ..] -> [B G, H / G, ..]
      Dims dims{all, each};
      dims.insert(dims.end(), e.shape().dims().begin() + 1, e.shape().dims().end());
      return g.reshape(e, std::move(dims));
    };
    const Expr xs = of_heads(in_chunks(g, x, p)), dts = of_heads(in_chunks(g, dt, p));  // [.., C, L, P], [.., C, L]
    const Expr sums = g.cumsum(of_heads(in_chunks(g, dt * a, p)), -1);
    const Expr last = g.narrow(sums, -1, p.length - 1, 1);
    const Expr bs = g.reshape(b, {all, 1, count, length, n}), cs = g.reshape(of_y, {all, 1, count, length, n});
    const Expr weights =
        g.matmul(cs, g.t(bs)) * decay_of(g, sums, lower_mask(g, p.length, true)) * g.unsqueeze(dts, -2);
    const Expr inside = g.matmul(weights, xs);
    const Expr adds = g.matmul(g.t(xs * g.unsqueeze(dts * g.exp(last - sums), -1)), bs);  // [.., C, P, N]
    const auto by_chunk = [&](Expr e) { return g.transpose(e, {2, 0, 1, 3, 4}); };
    const LoopResult r = g.scan(
        g.reshape(start, {all, each, width, n}), {by_chunk(adds), by_chunk(g.exp(g.unsqueeze(last, -1)))},
        [](Graph&, const ExprList& state, const ExprList& at) { return LoopStep(state[0] * at[1] + at[0], state[0]); });
    const Expr before = g.transpose(r.ys[0], {1, 2, 0, 4, 3});  // [.., C, N, P]
    const Expr y = inside + g.matmul(cs, before) * g.exp(g.unsqueeze(sums, -1));
    const Expr whole = g.transpose(g.reshape(y, {batch, heads, count * length, width}), {0, 2, 1, 3});
    return {g.narrow(whole, 1, 0, steps), g.reshape(r.carries[0], c.result_shape(1).dims())};
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static void batch(BatchContext& c) {
    fold_batch(c, {{"x", 0}, {"dt", 0}, {"b", 0}, {"c", 0}, {"z", 0}, {"state", 0}}, {0, 0});
  }
  static void reference(const RefArgs& args) {
    const auto get = [&](std::string_view name) { return scan_values(args, name); };
    const auto x = get("x"), dt = get("dt"), a = get("a"), b = get("b"), c = get("c"), d = get("d"), z = get("z"),
               bias = get("dt_bias");
    const Tensor& shape = args.in("x");
    const std::int64_t batch = shape.dim(0), steps = shape.dim(1), heads = shape.dim(2), width = shape.dim(3),
                       groups = args.in("b").dim(2), n = args.in("b").dim(3), each = heads / groups;
    std::vector<double> state = get("state");
    state.resize(static_cast<std::size_t>(batch * heads * width * n), 0.0);
    std::vector<double> y(x.size());
    const bool softplus = args.op<ops::Mamba2>().dt_softplus, matrix = args.has("d") && args.in("d").rank() == 2;
    for (std::int64_t i = 0; i < batch; ++i) {
      for (std::int64_t t = 0; t < steps; ++t) {
        for (std::int64_t h = 0; h < heads; ++h) {
          double step = dt[static_cast<std::size_t>((i * steps + t) * heads + h)] +
                        (bias.empty() ? 0 : bias[static_cast<std::size_t>(h)]);
          if (softplus) step = softplus_of(step);
          const double decay = std::exp(step * a[static_cast<std::size_t>(h)]);
          const std::int64_t first = ((i * steps + t) * groups + h / each) * n;
          for (std::int64_t w = 0; w < width; ++w) {
            const auto at = static_cast<std::size_t>(((i * steps + t) * heads + h) * width + w);
            double sum = 0;
            for (std::int64_t k = 0; k < n; ++k) {
              double& s = state[static_cast<std::size_t>(((i * heads + h) * width + w) * n + k)];
              s = decay * s + step * x[at] * b[static_cast<std::size_t>(first + k)];
              sum += s * c[static_cast<std::size_t>(first + k)];
            }
            if (!d.empty()) sum += d[static_cast<std::size_t>(matrix ? h * width + w : h)] * x[at];
            y[at] = z.empty() ? sum : sum * silu_of(z[at]);
          }
        }
      }
    }
    store_all(args.out(0), y);
    store_all(args.out(1), state);
  }
  static Cost cost(const CostContext& c) {
    return c.with_flops(c.elements() * (5 * static_cast<double>(c.outputs[1].dim(3).value()) + 4));
  }
  static constexpr AttrField attrs[] = {field<&ops::Mamba2::dt_softplus>("dt_softplus"),
                                        field<&ops::Mamba2::chunk>("chunk"), field<&ops::Mamba2::present>("present")};
};

}  // namespace

constinit const OpDef ops::Mamba2::def{
    .kind = kind,
    .name = "mamba2",
    .what = "The scan of Mamba-2: a matrix of state for each head.",
    .inputs = inputs("x", "dt", "a", "b", "c", maybe("d"), maybe("z"), maybe("dt_bias"), maybe("state"))
                  .masked_by<&ops::Mamba2::present>(),
    .attrs = Mamba2Rules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = Mamba2Rules::infer,
    .decompose = Mamba2Rules::decompose,
    .vjp = Mamba2Rules::vjp,
    .jvp = Mamba2Rules::jvp,
    .batch = Mamba2Rules::batch,
    .reference = Mamba2Rules::reference,
    .cost = Mamba2Rules::cost};

}  // namespace rlx
