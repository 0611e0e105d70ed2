// Lstm: a recurrence with a cell state and four gates. Composite.
#include "rlx/ops/fold_batch.h"
#include "rlx/ops/rule_helpers.h"
#include "rlx/ops/sequence/recurrent_core.h"

namespace rlx {
namespace {

struct LstmRules {
  static Result<Shapes> infer(const InferContext& c) {
    auto shapes = infer_recurrent(c, recurrent_spec(c.op<ops::Lstm>()), 2);
    if (!shapes || !c.has("peepholes")) return shapes;
    const Shape &p = c.input("peepholes"), &r = c.input("r");
    if (p.dtype() != r.dtype()) return c.dtype_error("peepholes must have the dtype of r ", r, ", got ", p);
    if (const Dims dims{r.dim(0), Dim(3) * r.dim(2)}; p.dims() != dims)
      return c.error("peepholes must be ", dims_text(dims), ", got ", p);
    return shapes;
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::Lstm>();
    const RecurrentSpec s = recurrent_spec(op);
    Graph& g = c.graph();
    const bool couples = op.input_forget;
    decompose_recurrent(c, s, [&, couples](std::int64_t d) -> CellFn {
      const Expr r = g.t(of_direction(g, c.input("r"), d));  // [H, 4 H]
      const std::int64_t hidden = r.dim(0).value();
      std::vector<Expr> p;
      if (c.has("peepholes")) {
        const Expr all = of_direction(g, c.input("peepholes"), d);
        for (std::int64_t i = 0; i < 3; ++i) p.push_back(gate_of(g, all, i, hidden));
      }
      const CellFunction f = cell_function(s, d, 0), of_cell = cell_function(s, d, 1),
                         of_output = cell_function(s, d, 2);
      return [=](Graph& b, Expr gates, const std::vector<Expr>& states) {
        const Expr all = gates + b.matmul(states[0], r), before = states[1];
        const auto gate = [&](std::int64_t part, std::size_t peephole, Expr cell) {
          Expr a = gate_of(b, all, part, hidden);
          return f(b, clipped(b, s, p.empty() ? a : a + p[peephole] * cell));
        };
        const Expr in = gate(0, 0, before), forget = couples ? 1 - in : gate(2, 2, before);
        const Expr cell = forget * before + in * of_cell(b, clipped(b, s, gate_of(b, all, 3, hidden)));
        return std::vector<Expr>{gate(1, 1, cell) * of_output(b, cell), cell};
      };
    });
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static void batch(BatchContext& c) {
    const bool first = c.op<ops::Lstm>().batch_first;
    fold_batch(c, {{"x", first ? 0 : 1}, {"lengths", 0}, {"h0", 1}, {"c0", 1}}, {first ? 0 : 2, 1, 1});
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Lstm>();
    const RecurrentSpec s = recurrent_spec(op);
    const auto r = load_all<double>(a.in("r"));
    const std::int64_t hidden = a.in("r").dim(2), rows = 4 * hidden;
    std::vector<double> p;
    if (a.has("peepholes")) p = load_all<double>(a.in("peepholes"));
    recurrent_reference(
        a, s, 2, [&](std::int64_t d, std::span<const double> gates, std::vector<std::vector<double>>& state) {
          const std::vector<double> h = state[0];
          const CellFunction f = cell_function(s, d, 0), of_cell = cell_function(s, d, 1),
                             of_output = cell_function(s, d, 2);
          for (std::int64_t j = 0; j < hidden; ++j) {
            const auto at = static_cast<std::size_t>(j);
            double& cell = state[1][at];
            const auto gate = [&](std::int64_t part, std::int64_t peephole) {
              const double seen =
                  p.empty() || peephole < 0 ? 0 : p[static_cast<std::size_t>((d * 3 + peephole) * hidden + j)] * cell;
              return clipped(s, gates[static_cast<std::size_t>(part * hidden + j)] + seen +
                                    recurrent_dot(r, d, rows, part * hidden + j, h));
            };
            const double in = f(gate(0, 0)), forget = op.input_forget ? 1 - in : f(gate(2, 2));
            cell = forget * cell + in * of_cell(gate(3, -1));
            state[0][at] = f(gate(1, 1)) * of_output(cell);
          }
        });
  }
  static Cost cost(const CostContext& c) { return recurrent_cost(c, 4); }
  static constexpr AttrField attrs[] = {field<&ops::Lstm::direction>("direction"),
                                        field<&ops::Lstm::batch_first>("batch_first"),
                                        field<&ops::Lstm::input_forget>("input_forget"),
                                        field<&ops::Lstm::activations>("activations"),
                                        field<&ops::Lstm::alpha>("alpha"),
                                        field<&ops::Lstm::beta>("beta"),
                                        field<&ops::Lstm::clip>("clip"),
                                        field<&ops::Lstm::present>("present")};
};

}  // namespace

constinit const OpDef ops::Lstm::def{
    .kind = kind,
    .name = "lstm",
    .what = "A recurrence with a cell state and four gates, over one or both directions.",
    .inputs =
        inputs("x", maybe("w"), "r", maybe("bias"), maybe("lengths"), maybe("h0"), maybe("c0"), maybe("peepholes"))
            .masked_by<&ops::Lstm::present>(),
    .attrs = LstmRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = LstmRules::infer,
    .decompose = LstmRules::decompose,
    .vjp = LstmRules::vjp,
    .jvp = LstmRules::jvp,
    .batch = LstmRules::batch,
    .reference = LstmRules::reference,
    .cost = LstmRules::cost};

}  // namespace rlx
