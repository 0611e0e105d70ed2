// Mixed precision: which float type each category of ops computes in, applied as a graph rewrite after fusion.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_facts.h"
#include "rlx/ir/packed_layout.h"

namespace rlx {

/// What a session computes F32 graphs in.
enum class Precision : std::uint8_t { F32, F16, BF16 };

/// The categories that have a dtype: those before PrecisionCategory::Stated.
inline constexpr int kNumPrecisionCategories = static_cast<int>(PrecisionCategory::Stated);
/// The category that the record of an op kind states; of a Custom op, see op_def(op).precision.
PrecisionCategory precision_category(OpKind kind);

/// Whether the values of weights that a form with loss stands for stay within reach: in their file, else in memory.
enum class KeepValues : std::uint8_t { Yes, No };

/// A float dtype per category. Inputs, params and outputs keep their declared dtype (the boundary is always F32).
struct PrecisionPolicy {
  std::array<DType, kNumPrecisionCategories> dtypes{DType::F32, DType::F32, DType::F32, DType::F32};
  /// What F32 products may lose, by the forms of their weights; all sums stay as they are, and other operands but for
  /// those of weights in blocks and, where the processor multiplies bf16, those with BF16.
  /// Of x [M, K] times w [K, N] at most (2^-8 + 2^-18) * sum_k |x w| is lost with BF16, among its normal numbers, and
  /// with Int8 sum_k |x| times 1/254 of the column's largest |w|; a column that is not finite gives NaN there. Of
  /// weights in blocks (GGUF's schemes) nothing is lost; with Int8 the cpu rounds x instead, in blocks b of 32 steps of
  /// k: at most sum_b (max_b |x| / 254 + 2^-119) sum_{k in b} |w| is lost, and a row of x that is not finite gives NaN.
  /// Beside weights in blocks Int8 leaves those that are numbers as they are, as the maker of the file did.
  /// Products that `dtypes` computes in another type than F32 have no such forms.
  MatmulPrecision products = MatmulPrecision::Exact;
  /// No: once they are in forms the values of such weights are let go, and asking for them is an error.
  KeepValues keep_values = KeepValues::Yes;

  /// F32 for Stated.
  DType of(PrecisionCategory c) const {
    if (c == PrecisionCategory::Stated) return DType::F32;
    if (static_cast<int>(c) >= kNumPrecisionCategories)
      detail::throw_no_enumerator("PrecisionCategory", static_cast<std::int64_t>(c));
    return dtypes[static_cast<std::size_t>(c)];
  }
  /// True when no dtype changes.
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
  /// F32 everywhere, products with this leave.
  static PrecisionPolicy with_matmul_precision(MatmulPrecision products, KeepValues keep_values = KeepValues::Yes);
  [[deprecated("now with_matmul_precision")]] static PrecisionPolicy with_products(MatmulPrecision products) {
    return with_matmul_precision(products);
  }
  friend bool operator==(const PrecisionPolicy&, const PrecisionPolicy&) = default;
};

/// Rewrites F32 values to the policy's dtypes with casts between categories. Integers, Bool, F64 and complex values,
/// indices, masks and what states its own dtypes (Cast) are left alone; exp, log, pow and their like stay in F32, where
/// they cannot overflow.
Graph apply_precision(const Graph& g, const PrecisionPolicy& policy);

}  // namespace rlx
