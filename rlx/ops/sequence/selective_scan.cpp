// SelectiveScan: the scan of Mamba, a diagonal recurrence with coefficients for each step. Composite.
#include "rlx/ops/fold_batch.h"
#include "rlx/ops/rule_helpers.h"
#include "rlx/ops/sequence/state_space.h"

namespace rlx {
namespace {

struct SelectiveScanRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &x = c.input("x"), &a = c.input("a");
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (x.rank() != 3) return c.error("x must be [B, S, H], got ", x);
    if (a.rank() != 2) return c.error("a must be [H, N] for x ", x, ", got ", a);
    const Dim &batch = x.dim(0), &steps = x.dim(1), &width = x.dim(2), &n = a.dim(1);
    const Shape state({batch, width, n}, accumulator_dtype(x.dtype()));
    return infer_scan(c,
                      {{"delta", x.dims(), false},
                       {"a", {width, n}, true},
                       {"b", {batch, steps, n}, false},
                       {"c", {batch, steps, n}, false},
                       {"d", {width}, true},
                       {"z", x.dims(), false},
                       {"delta_bias", {width}, true}},
                      x, state);
  }
  // One step after the other. Reverse mode keeps the states and recomputes the rest of a step.
  static void decompose(DecomposeContext& c) {
    if (decompose_narrow_scan(c)) return;
    Graph& g = c.graph();
    const Expr x = scan_operand(c, "x"), a = scan_operand(c, "a");
    const Dim &batch = x.dim(0), &width = x.dim(2), &n = a.dim(1);
    const Expr delta = time_step(c, "delta", "delta_bias", c.op<ops::SelectiveScan>().delta_softplus, {width});
    const auto by_step = [&](Expr e) { return swap_leading(g, e); };
    const Expr init = c.has("state") ? c.input("state") : c.zeros(c.result_shape(1));
    const LoopResult r =
        g.scan(init, {by_step(delta), by_step(delta * x), by_step(scan_operand(c, "b")), by_step(scan_operand(c, "c"))},
               [&](Graph& body, const ExprList& state, const ExprList& at) {
                 const auto column = [&](Expr e) { return body.reshape(e, {batch, width, 1}); };
                 const auto row = [&](Expr e) { return body.reshape(e, {batch, 1, n}); };
                 const Expr next = body.exp(column(at[0]) * a) * state[0] + column(at[1]) * row(at[2]);
                 return LoopStep(next, body.sum(next * row(at[3]), {2}));
               },
               {.checkpoint = true});
    Expr y = g.transpose(r.ys[0], {1, 0, 2});
    if (c.has("d")) y = y + scan_operand(c, "d") * x;
    if (c.has("z")) y = y * g.silu(scan_operand(c, "z"));
    c.set_result(0, g.cast(y, c.result_shape(0).dtype()));
    c.set_result(1, r.carries[0]);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static void batch(BatchContext& c) {
    fold_batch(c, {{"x", 0}, {"delta", 0}, {"b", 0}, {"c", 0}, {"z", 0}, {"state", 0}}, {0, 0});
  }
  static void reference(const RefArgs& args) {
    const auto get = [&](std::string_view name) { return scan_values(args, name); };
    const auto x = get("x"), delta = get("delta"), a = get("a"), b = get("b"), c = get("c"), d = get("d"), z = get("z"),
               bias = get("delta_bias");
    const Tensor& shape = args.in("x");
    const std::int64_t batch = shape.dim(0), steps = shape.dim(1), width = shape.dim(2), n = args.in("a").dim(1);
    std::vector<double> state = get("state");
    state.resize(static_cast<std::size_t>(batch * width * n), 0.0);
    std::vector<double> y(x.size());
    const bool softplus = args.op<ops::SelectiveScan>().delta_softplus;
    for (std::int64_t i = 0; i < batch; ++i) {
      for (std::int64_t t = 0; t < steps; ++t) {
        for (std::int64_t h = 0; h < width; ++h) {
          const auto at = static_cast<std::size_t>((i * steps + t) * width + h);
          double dt = delta[at] + (bias.empty() ? 0 : bias[static_cast<std::size_t>(h)]);
          if (softplus) dt = softplus_of(dt);
          double sum = 0;
          for (std::int64_t k = 0; k < n; ++k) {
            double& s = state[static_cast<std::size_t>((i * width + h) * n + k)];
            const auto of_step = static_cast<std::size_t>((i * steps + t) * n + k);
            s = std::exp(dt * a[static_cast<std::size_t>(h * n + k)]) * s + dt * x[at] * b[of_step];
            sum += c[of_step] * s;
          }
          if (!d.empty()) sum += d[static_cast<std::size_t>(h)] * x[at];
          y[at] = z.empty() ? sum : sum * silu_of(z[at]);
        }
      }
    }
    store_all(args.out(0), y);
    store_all(args.out(1), state);
  }
  static Cost cost(const CostContext& c) {
    const double n = static_cast<double>(c.outputs[1].dim(2).value());
    return c.with_flops(c.elements() * (n * 14 + 4));
  }
  static constexpr AttrField attrs[] = {field<&ops::SelectiveScan::delta_softplus>("delta_softplus"),
                                        field<&ops::SelectiveScan::present>("present")};
};

}  // namespace

constinit const OpDef ops::SelectiveScan::def{
    .kind = kind,
    .name = "selective_scan",
    .what = "The scan of Mamba: a diagonal recurrence with coefficients of each step.",
    .inputs = inputs("x", "delta", "a", "b", "c", maybe("d"), maybe("z"), maybe("delta_bias"), maybe("state"))
                  .masked_by<&ops::SelectiveScan::present>(),
    .attrs = SelectiveScanRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = SelectiveScanRules::infer,
    .decompose = SelectiveScanRules::decompose,
    .vjp = SelectiveScanRules::vjp,
    .jvp = SelectiveScanRules::jvp,
    .batch = SelectiveScanRules::batch,
    .reference = SelectiveScanRules::reference,
    .cost = SelectiveScanRules::cost};

}  // namespace rlx
