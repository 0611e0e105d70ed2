// Shared rules of Rnn, Gru and Lstm: checks, the input projection of all steps in one matmul, the loop over time, and
// the reference loop.
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
  std::span<const ActivationKind> own_functions;  // default f, g, h of one direction
  RecurrentDirection direction;
  bool batch_first;
  std::span<const ActivationKind> activations;
  std::span<const double> alpha, beta;
  std::optional<double> clip;
  bool keeps_bias = false;  // without w, the bias b_rn [D, H] stays: Gru with linear_before_reset

  std::int64_t directions() const { return direction == RecurrentDirection::Bidirectional ? 2 : 1; }
  bool reversed(std::int64_t d) const { return direction == RecurrentDirection::Reverse || d == 1; }
};
RecurrentSpec recurrent_spec(const ops::Rnn& op);
RecurrentSpec recurrent_spec(const ops::Gru& op);
RecurrentSpec recurrent_spec(const ops::Lstm& op);

/// Function `i` of direction `d`.
struct CellFunction {
  ActivationKind fn;
  std::optional<double> alpha, beta;  // none: the function's defaults, or it has no parameters

  Expr operator()(Graph& g, Expr x) const { return g.activation(fn, x, alpha, beta); }
  double operator()(double x) const;
};
CellFunction cell_function(const RecurrentSpec& s, std::int64_t d, std::size_t i);

/// The shapes of y and of the `states` last states. Checks everything except peepholes.
Result<Shapes> infer_recurrent(const InferContext& c, const RecurrentSpec& s, int states);
/// 2 (I + H) operations for each gate of each row and step.
Cost recurrent_cost(const CostContext& c, std::int64_t gates);

/// One step in a graph: the input projection of the gates [B, G H] and the states before the step [B, H] -> the states
/// after it, h first.
using CellFn = std::function<std::vector<Expr>(Graph& body, Expr gates, const std::vector<Expr>& states)>;
/// Makes the cell of direction `d`. It builds the values that the cell needs outside of the loop once.
using CellMaker = std::function<CellFn(std::int64_t d)>;

/// Decomposes in stages: narrow floats to F32, the projection of all steps as one matmul, then the loops.
void decompose_recurrent(DecomposeContext& c, const RecurrentSpec& s, const CellMaker& cell);
/// x clamped to [-clip, clip] when there is a clip.
Expr clipped(Graph& g, const RecurrentSpec& s, Expr x);
/// The operand [..] of direction `d`, from [D, ..].
Expr of_direction(Graph& g, Expr x, std::int64_t d);
/// Columns [part, part + 1) * H of [.., G H].
Expr gate_of(Graph& g, Expr gates, std::int64_t part, std::int64_t hidden);

/// One step in the reference rule: it takes the input projection of the step [G H] and updates `states`.
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
