// What Rnn, Gru and Lstm share: checks, the projection of all steps at once, the loop over time, the reference loop.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/ir/functions.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/sequence.h"

namespace rlx {

/// The attributes of a recurrence.
struct RecurrentSpec {
  std::int64_t gates;                             // G
  std::span<const ActivationKind> own_functions;  // f, g, h of one direction where none are said
  RecurrentDirection direction;
  bool batch_first;
  std::span<const ActivationKind> activations;
  std::span<const double> alpha, beta;
  std::optional<double> clip;
  bool keeps_bias = false;  // without w there is a bias b_rn [D, H]: Gru with linear_before_reset

  std::int64_t directions() const { return direction == RecurrentDirection::Bidirectional ? 2 : 1; }
  bool reversed(std::int64_t d) const { return direction == RecurrentDirection::Reverse || d == 1; }
};
RecurrentSpec recurrent_spec(const ops::Rnn& op);
RecurrentSpec recurrent_spec(const ops::Gru& op);
RecurrentSpec recurrent_spec(const ops::Lstm& op);

/// Function `i` of direction `d`.
struct CellFunction {
  ActivationKind fn;
  std::optional<double> alpha, beta;  // none: the function's own, or it has none

  Expr operator()(Graph& g, Expr x) const { return g.activation(fn, x, alpha, beta); }
  double operator()(double x) const;
};
CellFunction cell_function(const RecurrentSpec& s, std::int64_t d, std::size_t i);

/// The shapes of y and the last states (`states` of them); checks everything but peepholes.
Result<Shapes> infer_recurrent(const InferContext& c, const RecurrentSpec& s, int states);
/// 2 (I + H) operations for each gate of each row and step.
Cost recurrent_cost(const CostContext& c, std::int64_t gates);

/// One step in a graph: the gates' projection of this step [B, G H] and the states before it [B, H] -> those after it,
/// h first.
using CellFn = std::function<std::vector<Expr>(Graph& body, Expr gates, const std::vector<Expr>& states)>;
/// What the cell of direction `d` needs of the graph outside of its loop, made once: it gives the cell.
using CellMaker = std::function<CellFn(std::int64_t d)>;

/// Writes out, each at its turn: narrow floats as F32, the projection of all steps as one product, the loops.
void decompose_recurrent(DecomposeContext& c, const RecurrentSpec& s, const CellMaker& cell);
/// x bounded to [-clip, clip] where there is a clip.
Expr clipped(Graph& g, const RecurrentSpec& s, Expr x);
/// Direction `d` of an operand [D, ..]: [..].
Expr of_direction(Graph& g, Expr x, std::int64_t d);
/// Columns [part, part + 1) * H of [.., G H].
Expr gate_of(Graph& g, Expr gates, std::int64_t part, std::int64_t hidden);

/// One step in the reference rule: the projection of the step [G H], the states before it in `states`, which it
/// changes.
using ReferenceCell =
    std::function<void(std::int64_t d, std::span<const double> gates, std::vector<std::vector<double>>&)>;
void recurrent_reference(const RefArgs& a, const RecurrentSpec& s, std::size_t states, const ReferenceCell& cell);
/// Row `row` of r [D, G H, H] of direction d, times h.
double recurrent_dot(std::span<const double> r, std::int64_t d, std::int64_t rows, std::int64_t row,
                     std::span<const double> h);
double clipped(const RecurrentSpec& s, double x);

template <class Op>
inline constexpr AttrField kRecurrentAttrs[] = {field<&Op::direction>("direction"),
                                                field<&Op::batch_first>("batch_first"),
                                                field<&Op::activations>("activations"),
                                                field<&Op::alpha>("alpha"),
                                                field<&Op::beta>("beta"),
                                                field<&Op::clip>("clip"),
                                                field<&Op::present>("present")};

}  // namespace rlx
