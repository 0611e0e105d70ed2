// Shared rules of SelectiveScan, Mamba2 and GatedDeltaNet: checks of operands, and steps in the dtype of the state.
#pragma once

#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/sequence.h"
#include "rlx/ops/control/control.h"

namespace rlx {

/// What an operand, if present, must be: these dims, and the dtype of x or, with `or_state`, of the state.
struct ScanOperand {
  std::string_view name;
  Dims dims;
  bool or_state;
};
/// The shapes of a scan's results, y and the last state. Error unless the operands and the start state are right.
Result<Shapes> infer_scan(const InferContext& c, std::initializer_list<ScanOperand> operands, const Shape& y,
                          const Shape& state);
/// The elements of an operand of the reference, none when it is absent.
std::vector<double> scan_values(const RefArgs& args, std::string_view name);
/// The operand in the dtype of the state.
Expr scan_operand(const DecomposeContext& c, std::string_view name);
/// When x is narrower than the state, decomposes to the same op with every float in the state's dtype; else returns
/// false.
bool decompose_narrow_scan(DecomposeContext& c);
/// A time step: operand + bias, then softplus, in the dtype of the state.
Expr time_step(const DecomposeContext& c, std::string_view name, std::string_view bias, bool softplus, Dims bias_dims);
/// softplus of x in double.
inline double softplus_of(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
inline double silu_of(double x) { return x >= 0 ? x / (1 + std::exp(-x)) : x * std::exp(x) / (1 + std::exp(x)); }

/// Chunks of `steps` steps; none when the steps are processed one by one.
struct Chunks {
  std::int64_t length = 1, count = 0, padding = 0;
};
std::optional<Chunks> chunks_of(const Dim& steps, std::int64_t chunk);
/// x [B, S, H, ..] -> [B H, chunks, length, ..], padded with zeros at the end of S.
Expr in_chunks(Graph& g, Expr x, const Chunks& p);
/// Bool [length, length]: true at j < i, with `diagonal` at j <= i.
Expr lower_mask(Graph& g, std::int64_t length, bool diagonal);
/// exp(sums_i - sums_j) [.., length, length] from sums [.., length], for j <= i; 0 elsewhere.
Expr decay_of(Graph& g, Expr sums, const Expr& mask);
/// The inverse of I + a, where a [.., L, L] is strictly lower triangular and L a power of two. It inverts diagonal
/// blocks of 2, 4, .. rows.
Expr inverse_of_unit_lower(Graph& g, Expr a);

}  // namespace rlx
