// GatedDeltaNet: the gated delta rule. Each step corrects a state matrix of each head. Composite.
#include "rlx/ops/fold_batch.h"
#include "rlx/ops/rule_helpers.h"
#include "rlx/ops/sequence/state_space.h"

namespace rlx {
namespace {

struct GatedDeltaNetRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::GatedDeltaNet>();
    if (op.chunk < 1 || op.chunk > 1024 || (op.chunk & (op.chunk - 1)) != 0)
      return c.attr_error("chunk must be a power of two up to 1024, got ", op.chunk);
    if (op.scale && !std::isfinite(*op.scale)) return c.attr_error("scale must be finite, got ", *op.scale);
    const Shape &q = c.input("q"), &v = c.input("v");
    if (!is_float(q.dtype())) return c.dtype_error("q must be float, got ", q);
    if (q.rank() != 4) return c.error("q must be [B, S, G, K], got ", q);
    if (v.rank() != 4) return c.error("v must be [B, S, H, V] for q ", q, ", got ", v);
    const Dim &batch = q.dim(0), &steps = q.dim(1), &groups = q.dim(2), &n = q.dim(3), &heads = v.dim(2),
              &width = v.dim(3);
    if (!groups.is_static() || !heads.is_static() || groups.value() < 1 || heads.value() % groups.value() != 0)
      return c.error("the ", heads, " heads of v ", v, " are not a multiple of the heads of q ", q);
    if (!op.scale && !n.is_static()) return c.error("q ", q, " needs a known last extent, or the attribute scale");
    const Shape state({batch, heads, n, width}, accumulator_dtype(q.dtype()));
    return infer_scan(c,
                      {{"k", q.dims(), false},
                       {"v", {batch, steps, heads, width}, false},
                       {"g", {batch, steps, heads}, true},
                       {"beta", {batch, steps, heads}, true}},
                      v, state);
  }
  static double factor(const ops::GatedDeltaNet& op, const Dim& width) {
    if (op.scale) return *op.scale;
    return width.value() == 0 ? 1 : 1 / std::sqrt(static_cast<double>(width.value()));
  }

  static void decompose(DecomposeContext& c) {
    if (decompose_narrow_scan(c)) return;
    Graph& g = c.graph();
    const auto& op = c.op<ops::GatedDeltaNet>();
    const Dim &steps = c.input("q").dim(1), &heads = c.input("v").dim(2);
    const auto of_heads = [&](Expr e) {  // [B, S, G, K] -> [B, S, H, K]
      if (e.dim(2) == heads) return e;
      const Dim each(heads.value() / e.dim(2).value());
      const Dims dims{e.dim(0), e.dim(1), e.dim(2), each, e.dim(3)}, all{e.dim(0), e.dim(1), heads, e.dim(3)};
      return g.reshape(g.expand(g.unsqueeze(e, 3), dims), all);
    };
    const Expr q = of_heads(scan_operand(c, "q")) * factor(op, c.input("q").dim(3)), k = of_heads(scan_operand(c, "k"));
    const Expr start = c.has("state") ? c.input("state") : c.zeros(c.result_shape(1));
    const auto chunks = chunks_of(steps, op.chunk);
    const std::vector<Expr> out = chunks ? by_chunks(c, *chunks, q, k, start) : by_steps(c, q, k, start);
    c.set_result(0, g.cast(out[0], c.result_shape(0).dtype()));
    c.set_result(1, out[1]);
  }
  static std::vector<Expr> by_steps(const DecomposeContext& c, Expr q, Expr k, Expr start) {
    Graph& g = c.graph();
    const auto by_step = [&](Expr e) { return swap_leading(g, e); };
    const auto column = [&](Expr e) { return g.unsqueeze(g.unsqueeze(e, -1), -1); };
    const LoopResult r = g.scan(
        start,
        {by_step(g.unsqueeze(q, -2)), by_step(g.unsqueeze(k, -2)), by_step(g.unsqueeze(scan_operand(c, "v"), -2)),
         by_step(column(g.exp(scan_operand(c, "g")))), by_step(column(scan_operand(c, "beta")))},
        [&](Graph& body, const ExprList& state, const ExprList& at) {
          const Expr kept = state[0] * at[3];
          const Expr u = (at[2] - body.matmul(at[1], kept)) * at[4];  // [B, H, 1, V]
          const Expr next = kept + body.t(at[1]) * u;
          return LoopStep(next, body.matmul(at[0], next));
        },
        {.checkpoint = true});
    return {g.reshape(g.transpose(r.ys[0], {1, 0, 2, 3, 4}), c.result_shape(0).dims()), r.carries[0]};
  }
  // With G the running product of exp(g): within a chunk the corrections solve (I + A) u = beta (v - G k^T S), where A
  // is the strictly lower part of beta_i k_i . k_j G_i / G_j. The inverse is the same for all S.
  static std::vector<Expr> by_chunks(const DecomposeContext& c, const Chunks& p, Expr q4, Expr k4, Expr start) {
    Graph& g = c.graph();
    const Dim &batch = q4.dim(0), &steps = q4.dim(1), &heads = q4.dim(2), &n = q4.dim(3), &width = c.input("v").dim(3);
    const Dim all = batch * heads;
    const Expr q = in_chunks(g, q4, p), k = in_chunks(g, k4, p), v = in_chunks(g, scan_operand(c, "v"), p);
    const Expr beta = g.unsqueeze(in_chunks(g, scan_operand(c, "beta"), p), -1);  // [B H, C, L, 1]
    const Expr sums = g.cumsum(in_chunks(g, scan_operand(c, "g"), p), -1), last = g.narrow(sums, -1, p.length - 1, 1);
    const Expr decay = decay_of(g, sums, lower_mask(g, p.length, true)), grown = g.unsqueeze(g.exp(sums), -1);
    const Expr kt = g.t(k), kb = k * beta;
    const Expr a = g.where(lower_mask(g, p.length, false), g.matmul(kb, kt) * decay, 0);
    const Expr inverse = inverse_of_unit_lower(g, a);
    const auto by_chunk = [&](Expr e) { return g.transpose(e, {1, 0, 2, 3}); };
    const LoopResult r =
        g.scan(g.reshape(start, {all, n, width}),
               {by_chunk(g.matmul(inverse, v * beta)), by_chunk(g.matmul(inverse, kb * grown)),
                by_chunk(g.matmul(q, kt) * decay), by_chunk(q * grown),
                by_chunk(kt * g.unsqueeze(g.exp(last - sums), -2)), by_chunk(g.unsqueeze(g.exp(last), -1))},
               [](Graph& body, const ExprList& state, const ExprList& at) {
                 const Expr u = at[0] - body.matmul(at[1], state[0]);
                 return LoopStep(state[0] * at[5] + body.matmul(at[4], u),
                                 body.matmul(at[3], state[0]) + body.matmul(at[2], u));
               });
    const Expr y = g.transpose(r.ys[0], {1, 0, 2, 3});  // [B H, C, L, V]
    const Expr whole = g.transpose(g.reshape(y, {batch, heads, Dim(p.count * p.length), width}), {0, 2, 1, 3});
    return {g.narrow(whole, 1, 0, steps), g.reshape(r.carries[0], c.result_shape(1).dims())};
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static void batch(BatchContext& c) {
    fold_batch(c, {{"q", 0}, {"k", 0}, {"v", 0}, {"g", 0}, {"beta", 0}, {"state", 0}}, {0, 0});
  }
  static void reference(const RefArgs& args) {
    const auto get = [&](std::string_view name) { return scan_values(args, name); };
    const auto q = get("q"), k = get("k"), v = get("v"), decay = get("g"), beta = get("beta");
    const Tensor &qs = args.in("q"), &vs = args.in("v");
    const std::int64_t batch = qs.dim(0), steps = qs.dim(1), groups = qs.dim(2), n = qs.dim(3), heads = vs.dim(2),
                       width = vs.dim(3), each = heads / groups;
    const double scale = factor(args.op<ops::GatedDeltaNet>(), n);
    std::vector<double> state = get("state");
    state.resize(static_cast<std::size_t>(batch * heads * n * width), 0.0);
    std::vector<double> y(v.size());
    for (std::int64_t i = 0; i < batch; ++i) {
      for (std::int64_t t = 0; t < steps; ++t) {
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t of_head = (i * steps + t) * heads + h, key = ((i * steps + t) * groups + h / each) * n;
          const double kept = std::exp(decay[static_cast<std::size_t>(of_head)]);
          double* const s = state.data() + (i * heads + h) * n * width;
          for (std::int64_t j = 0; j < width; ++j) {
            double seen = 0, out = 0;
            for (std::int64_t m = 0; m < n; ++m) {
              s[m * width + j] *= kept;
              seen += k[static_cast<std::size_t>(key + m)] * s[m * width + j];
            }
            const double u =
                (v[static_cast<std::size_t>(of_head * width + j)] - seen) * beta[static_cast<std::size_t>(of_head)];
            for (std::int64_t m = 0; m < n; ++m) {
              s[m * width + j] += k[static_cast<std::size_t>(key + m)] * u;
              out += q[static_cast<std::size_t>(key + m)] * s[m * width + j];
            }
            y[static_cast<std::size_t>(of_head * width + j)] = out * scale;
          }
        }
      }
    }
    store_all(args.out(0), y);
    store_all(args.out(1), state);
  }
  static Cost cost(const CostContext& c) {
    return c.with_flops(c.elements() * (7 * static_cast<double>(c.outputs[1].dim(2).value()) + 2));
  }
  static constexpr AttrField attrs[] = {field<&ops::GatedDeltaNet::scale>("scale"),
                                        field<&ops::GatedDeltaNet::chunk>("chunk"),
                                        field<&ops::GatedDeltaNet::present>("present")};
};

}  // namespace

constinit const OpDef ops::GatedDeltaNet::def{
    .kind = kind,
    .name = "gated_delta_net",
    .what = "The gated delta rule: a matrix of state for each head that each step corrects.",
    .inputs = inputs("q", "k", "v", "g", "beta", maybe("state")).masked_by<&ops::GatedDeltaNet::present>(),
    .attrs = GatedDeltaNetRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = GatedDeltaNetRules::infer,
    .decompose = GatedDeltaNetRules::decompose,
    .vjp = GatedDeltaNetRules::vjp,
    .jvp = GatedDeltaNetRules::jvp,
    .batch = GatedDeltaNetRules::batch,
    .reference = GatedDeltaNetRules::reference,
    .cost = GatedDeltaNetRules::cost};

}  // namespace rlx
