// Gru: a recurrence with an update and a reset gate. Composite.
#include "rlx/ops/fold_batch.h"
#include "rlx/ops/rule_helpers.h"
#include "rlx/ops/sequence/recurrent_core.h"

namespace rlx {
namespace {

struct GruRules {
  static Result<Shapes> infer(const InferContext& c) { return infer_recurrent(c, recurrent_spec(c.op<ops::Gru>()), 1); }
  static void decompose(DecomposeContext& c) {
    const RecurrentSpec s = recurrent_spec(c.op<ops::Gru>());
    Graph& g = c.graph();
    decompose_recurrent(c, s, [&](std::int64_t d) -> CellFn {
      const Expr all = g.t(of_direction(g, c.input("r"), d));  // [H, 3 H]
      const std::int64_t hidden = all.dim(0).value();
      const CellFunction f = cell_function(s, d, 0), of_new = cell_function(s, d, 1);
      const auto next = [](Expr z, Expr n, Expr h) { return std::vector<Expr>{(1 - z) * n + z * h}; };
      if (s.keeps_bias) {
        const Expr bias = of_direction(g, c.input("bias"), d);
        return [=](Graph& b, Expr gates, const std::vector<Expr>& states) {
          const Expr of_h = b.matmul(states[0], all);
          const auto gate = [&](std::int64_t part) {
            return f(b, clipped(b, s, gate_of(b, gates, part, hidden) + gate_of(b, of_h, part, hidden)));
          };
          const Expr n = gate_of(b, gates, 2, hidden) + gate(1) * (gate_of(b, of_h, 2, hidden) + bias);
          return next(gate(0), of_new(b, clipped(b, s, n)), states[0]);
        };
      }
      const Expr of_gates = g.narrow(all, 1, 0, 2 * hidden), of_rest = g.narrow(all, 1, 2 * hidden, hidden);
      return [=](Graph& b, Expr gates, const std::vector<Expr>& states) {
        const Expr of_h = b.matmul(states[0], of_gates);
        const auto gate = [&](std::int64_t part) {
          return f(b, clipped(b, s, gate_of(b, gates, part, hidden) + gate_of(b, of_h, part, hidden)));
        };
        const Expr n = gate_of(b, gates, 2, hidden) + b.matmul(gate(1) * states[0], of_rest);
        return next(gate(0), of_new(b, clipped(b, s, n)), states[0]);
      };
    });
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static void batch(BatchContext& c) {
    const bool first = c.op<ops::Gru>().batch_first;
    fold_batch(c, {{"x", first ? 0 : 1}, {"lengths", 0}, {"h0", 1}}, {first ? 0 : 2, 1});
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Gru>();
    const RecurrentSpec s = recurrent_spec(op);
    const auto r = load_all<double>(a.in("r"));
    const std::int64_t hidden = a.in("r").dim(2), rows = 3 * hidden;
    const bool whole = a.has("w");  // bias [D, 6 H], else [D, H]
    std::vector<double> bias;
    if (s.keeps_bias && a.has("bias")) bias = load_all<double>(a.in("bias"));
    recurrent_reference(
        a, s, 1, [&](std::int64_t d, std::span<const double> gates, std::vector<std::vector<double>>& state) {
          const std::vector<double> h = state[0];
          const CellFunction f = cell_function(s, d, 0), of_new = cell_function(s, d, 1);
          std::vector<double> z(h.size()), reset(h.size()), scaled(h.size());
          const auto gate = [&](std::int64_t part, std::int64_t j) {
            return f(clipped(s, gates[static_cast<std::size_t>(part * hidden + j)] +
                                    recurrent_dot(r, d, rows, part * hidden + j, h)));
          };
          for (std::int64_t j = 0; j < hidden; ++j) {
            const auto at = static_cast<std::size_t>(j);
            z[at] = gate(0, j), reset[at] = gate(1, j);
            scaled[at] = reset[at] * h[at];
          }
          for (std::int64_t j = 0; j < hidden; ++j) {
            const auto at = static_cast<std::size_t>(j);
            double n = gates[static_cast<std::size_t>(2 * hidden + j)];
            if (s.keeps_bias) {
              const double b =
                  bias.empty()
                      ? 0
                      : bias[static_cast<std::size_t>(whole ? d * 2 * rows + rows + 2 * hidden + j : d * hidden + j)];
              n += reset[at] * (recurrent_dot(r, d, rows, 2 * hidden + j, h) + b);
            } else {
              n += recurrent_dot(r, d, rows, 2 * hidden + j, scaled);
            }
            state[0][at] = (1 - z[at]) * of_new(clipped(s, n)) + z[at] * h[at];
          }
        });
  }
  static Cost cost(const CostContext& c) { return recurrent_cost(c, 3); }
  static constexpr AttrField attrs[] = {field<&ops::Gru::direction>("direction"),
                                        field<&ops::Gru::batch_first>("batch_first"),
                                        field<&ops::Gru::linear_before_reset>("linear_before_reset"),
                                        field<&ops::Gru::activations>("activations"),
                                        field<&ops::Gru::alpha>("alpha"),
                                        field<&ops::Gru::beta>("beta"),
                                        field<&ops::Gru::clip>("clip"),
                                        field<&ops::Gru::present>("present")};
};

}  // namespace

constinit const OpDef ops::Gru::def{
    .kind = kind,
    .name = "gru",
    .what = "A recurrence with an update and a reset gate, over one or both directions.",
    .inputs =
        inputs("x", maybe("w"), "r", maybe("bias"), maybe("lengths"), maybe("h0")).masked_by<&ops::Gru::present>(),
    .attrs = GruRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = GruRules::infer,
    .decompose = GruRules::decompose,
    .vjp = GruRules::vjp,
    .jvp = GruRules::jvp,
    .batch = GruRules::batch,
    .reference = GruRules::reference,
    .cost = GruRules::cost};

}  // namespace rlx
