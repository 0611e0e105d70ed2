// Mixed precision: which float type each category of ops computes in, applied as a graph rewrite after fusion.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "rlx/ir/graph.h"

namespace rlx {

/// What a session computes F32 graphs in.
enum class Precision : std::uint8_t { F32, F16, BF16 };

/// Ops by how much a narrow float hurts them.
enum class PrecisionCategory : std::uint8_t {
  Compute,    // matrix products, attention
  Reduction,  // norms, softmax, sums, scans
  Elementwise,
  DataMovement,  // reshape, gather, slice, ...
};
inline constexpr int kNumPrecisionCategories = 4;
/// The category of an op kind; leaves and ops outside the policy count as DataMovement.
PrecisionCategory precision_category(OpKind kind);

/// A float dtype per category. Inputs, params and outputs keep their declared dtype (the boundary is always F32).
struct PrecisionPolicy {
  std::array<DType, kNumPrecisionCategories> dtypes{DType::F32, DType::F32, DType::F32, DType::F32};

  DType of(PrecisionCategory c) const {
    if (static_cast<int>(c) >= kNumPrecisionCategories)
      detail::throw_no_enumerator("PrecisionCategory", static_cast<std::int64_t>(c));
    return dtypes[static_cast<std::size_t>(c)];
  }
  /// True when nothing changes.
  bool is_f32() const;
  static PrecisionPolicy always_f32() { return {}; }
  /// Everything in F16, reductions too (their kernels accumulate in F32).
  static PrecisionPolicy always_f16() { return {{DType::F16, DType::F16, DType::F16, DType::F16}}; }
  static PrecisionPolicy always_bf16() { return {{DType::BF16, DType::BF16, DType::BF16, DType::BF16}}; }
  /// F16, reductions in F32.
  static PrecisionPolicy auto_mixed_conservative() { return {{DType::F16, DType::F32, DType::F16, DType::F16}}; }
  static PrecisionPolicy auto_mixed() { return always_f16(); }
  static PrecisionPolicy auto_mixed_bf16() { return always_bf16(); }
  /// What `with_precision` means: the type everywhere, reductions in F32.
  static PrecisionPolicy of_precision(Precision p);
  friend bool operator==(const PrecisionPolicy&, const PrecisionPolicy&) = default;
};

/// Rewrites F32 values to the policy's dtypes with casts between categories. Integers, Bool, F64 and complex values,
/// indices, masks and the targets of Cast ops are left alone; exp, log, pow and their like stay in F32, where they
/// cannot overflow.
Graph apply_precision(const Graph& g, const PrecisionPolicy& policy);

}  // namespace rlx
