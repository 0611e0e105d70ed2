// Rnn: the simple recurrence. Composite.
#include "rlx/ops/fold_batch.h"
#include "rlx/ops/rule_helpers.h"
#include "rlx/ops/sequence/recurrent_core.h"

namespace rlx {
namespace {

struct RnnRules {
  static Result<Shapes> infer(const InferContext& c) { return infer_recurrent(c, recurrent_spec(c.op<ops::Rnn>()), 1); }
  static void decompose(DecomposeContext& c) {
    const RecurrentSpec s = recurrent_spec(c.op<ops::Rnn>());
    Graph& g = c.graph();
    decompose_recurrent(c, s, [&](std::int64_t d) -> CellFn {
      const Expr r = g.t(of_direction(g, c.input("r"), d));
      const CellFunction f = cell_function(s, d, 0);
      return [=](Graph& b, Expr gates, const std::vector<Expr>& states) {
        return std::vector<Expr>{f(b, clipped(b, s, gates + b.matmul(states[0], r)))};
      };
    });
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static void batch(BatchContext& c) {
    const bool first = c.op<ops::Rnn>().batch_first;
    fold_batch(c, {{"x", first ? 0 : 1}, {"lengths", 0}, {"h0", 1}}, {first ? 0 : 2, 1});
  }
  static void reference(const RefArgs& a) {
    const RecurrentSpec s = recurrent_spec(a.op<ops::Rnn>());
    const auto r = load_all<double>(a.in("r"));
    const std::int64_t hidden = a.in("r").dim(2);
    recurrent_reference(a, s, 1,
                        [&](std::int64_t d, std::span<const double> gates, std::vector<std::vector<double>>& state) {
                          const std::vector<double> h = state[0];
                          const CellFunction f = cell_function(s, d, 0);
                          for (std::int64_t j = 0; j < hidden; ++j)
                            state[0][static_cast<std::size_t>(j)] =
                                f(clipped(s, gates[static_cast<std::size_t>(j)] + recurrent_dot(r, d, hidden, j, h)));
                        });
  }
  static Cost cost(const CostContext& c) { return recurrent_cost(c, 1); }
};

}  // namespace

constinit const OpDef ops::Rnn::def{
    .kind = kind,
    .name = "rnn",
    .what = "The plain recurrence, over one or both directions.",
    .inputs =
        inputs("x", maybe("w"), "r", maybe("bias"), maybe("lengths"), maybe("h0")).masked_by<&ops::Rnn::present>(),
    .attrs = kRecurrentAttrs<ops::Rnn>,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = RnnRules::infer,
    .decompose = RnnRules::decompose,
    .vjp = RnnRules::vjp,
    .jvp = RnnRules::jvp,
    .batch = RnnRules::batch,
    .reference = RnnRules::reference,
    .cost = RnnRules::cost};

}  // namespace rlx
