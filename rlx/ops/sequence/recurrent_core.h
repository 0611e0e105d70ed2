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

/// Adds what the samples of all three share to an op with its own attributes set; `states` 1 or 2.
template <class Op>
void recurrent_samples(SampleSet& s, std::int64_t gates, int states);

template <class Op>
inline constexpr AttrField kRecurrentAttrs[] = {field<&Op::direction>("direction"),
                                                field<&Op::batch_first>("batch_first"),
                                                field<&Op::activations>("activations"),
                                                field<&Op::alpha>("alpha"),
                                                field<&Op::beta>("beta"),
                                                field<&Op::clip>("clip"),
                                                field<&Op::present>("present")};

// -- samples --

struct RecurrentSample {
  const char* name;
  std::int64_t steps = 3, batch = 2, in = 2, hidden = 3;
  std::uint32_t present = 0b10;  // of w, bias, lengths, h0, [c0, peepholes], from bit 1 on; bit 2 is r's
  DType dtype = DType::F32;
  bool discrete = false;
};
/// Operands of a sample of an op with `gates` gates.
std::vector<SampleInput> recurrent_operands(const RecurrentSample& s, std::int64_t gates, std::int64_t directions,
                                            bool batch_first, bool keeps_bias);

template <class Op>
void add_recurrent_sample(SampleSet& set, std::int64_t gates, Op op, const RecurrentSample& s) {
  op.present.bits = s.present;
  const RecurrentSpec spec = recurrent_spec(op);
  auto operands = recurrent_operands(s, gates, spec.directions(), op.batch_first, spec.keeps_bias);
  if (s.discrete)
    set.add_discrete(s.name, std::move(operands), op);
  else
    set.add(s.name, std::move(operands), op);
}
inline constexpr std::uint32_t kHasW = 1U << 1, kHasBias = 1U << 3, kHasLengths = 1U << 4, kHasH0 = 1U << 5,
                               kHasC0 = 1U << 6, kHasPeepholes = 1U << 7;

template <class Op>
void recurrent_samples(SampleSet& set, std::int64_t gates, int states) {
  const std::uint32_t first = states == 2 ? kHasH0 | kHasC0 : kHasH0;
  Op op;
  const auto add = [&](const RecurrentSample& s) { add_recurrent_sample(set, gates, op, s); };
  add({.name = "forward", .present = kHasW});
  add({.name = "bias, lengths and states",
       .steps = 4,
       .batch = 3,
       .present = kHasW | kHasBias | kHasLengths | first,
       .dtype = DType::F64});
  add({.name = "projected", .present = first});
  add({.name = "no steps", .steps = 0, .present = kHasW | kHasBias | first});
  add({.name = "no sequences", .batch = 0, .present = kHasW | kHasBias});
  add({.name = "one of everything", .steps = 1, .batch = 1, .in = 1, .hidden = 1, .present = kHasW | kHasBias});
  add({.name = "no columns", .in = 0, .present = kHasW | kHasBias});
  add({.name = "wider",
       .steps = 5,
       .batch = 7,
       .in = 9,
       .hidden = 37,
       .present = kHasW | kHasBias | kHasLengths,
       .discrete = true});
  op.direction = RecurrentDirection::Reverse;
  add({.name = "reverse", .steps = 4, .present = kHasW | kHasBias | kHasLengths});
  op.direction = RecurrentDirection::Bidirectional;
  add({.name = "both directions", .present = kHasW | kHasBias | first, .dtype = DType::F64});
  add({.name = "both directions, projected", .present = kHasLengths});
  op.batch_first = true;
  add({.name = "batch first, both directions", .present = kHasW | kHasLengths | first});
  op.direction = RecurrentDirection::Forward;
  add({.name = "batch first", .hidden = 20, .present = kHasW | kHasBias, .discrete = true});
  add({.name = "batch first, bf16", .present = kHasW | kHasBias | first, .dtype = DType::BF16, .discrete = true});
  op.batch_first = false;
  add({.name = "f16", .present = kHasW | kHasBias, .dtype = DType::F16, .discrete = true});
  op.clip = 0.4;
  add({.name = "clip", .present = kHasW | kHasBias, .discrete = true});
}

}  // namespace rlx
