// Shared rules of SelectiveScan, Mamba2 and GatedDeltaNet: checks of operands, and steps in the dtype of the state.
#pragma once

#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/sequence.h"

namespace rlx {

/// Error unless the operand, if present, has the given dims and the dtype of x or, with `or_state`, of the state.
std::optional<Diagnostic> check_scan_operand(const InferContext& c, std::string_view name, const Dims& dims,
                                             bool or_state);
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
