// Mixed precision: the float type that each category of ops computes in, applied as a graph rewrite after fusion.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "rlx/base/old_name.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_facts.h"
#include "rlx/ir/packed_layout.h"

namespace rlx {

/// The float type in which a session computes F32 graphs.
enum class Precision : std::uint8_t { F32, F16, BF16 };

/// The number of categories that have a dtype: those before PrecisionCategory::Stated.
inline constexpr int kNumPrecisionCategories = static_cast<int>(PrecisionCategory::Stated);
/// The category in the record of an op kind. For a Custom op, see op_def(op).precision.
PrecisionCategory precision_category(OpKind kind);

/// Whether the values of weights with a lossy packed layout stay available: in their file, else in memory.
enum class KeepValues : std::uint8_t { Yes, No };

/// One float dtype per category. Inputs, params and outputs keep their declared dtype, so the boundary is always F32.
struct PrecisionPolicy {
  std::array<DType, kNumPrecisionCategories> dtypes{DType::F32, DType::F32, DType::F32, DType::F32};
  /// The precision loss that F32 matmuls allow in the packed layouts of their weights. All sums keep their type. So do
  /// the other operands, with two exceptions: those of block-quantized weights, and with BF16 those on processors that
  /// multiply bf16.
  ///
  /// For x [M, K] times w [K, N], BF16 loses at most (2^-8 + 2^-18) * sum_k |x w|, among its normal numbers. Int8 loses
  /// at most sum_k |x| times 1/254 of the column's largest |w|; a column that is not finite gives NaN.
  ///
  /// Block-quantized weights (GGUF's schemes) lose nothing. With Int8 the cpu rounds x instead, in blocks b of 32 steps
  /// of k: it loses at most sum_b (max_b |x| / 254 + 2^-119) sum_{k in b} |w|, and a row of x that is not finite gives
  /// NaN. In a program with block-quantized weights Int8 keeps unquantized weights exact, as the maker of the file did.
  ///
  /// Matmuls that `dtypes` computes in another type than F32 have no such packed layouts.
  MatmulPrecision matmul_precision = MatmulPrecision::Exact;
  /// No: the values of such weights are freed once they are prepacked, and reading them is an error.
  KeepValues keep_values = KeepValues::Yes;
  OldName<MatmulPrecision> products{};  // now matmul_precision

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
  /// F16, with reductions in F32.
  static PrecisionPolicy auto_mixed_conservative() { return {{DType::F16, DType::F32, DType::F16, DType::F16}}; }
  static PrecisionPolicy auto_mixed() { return always_f16(); }
  static PrecisionPolicy auto_mixed_bf16() { return always_bf16(); }
  /// The policy of `with_precision`: the type everywhere, with reductions in F32.
  static PrecisionPolicy of_precision(Precision p);
  /// F32 everywhere, with this allowed precision loss of matmuls.
  static PrecisionPolicy with_matmul_precision(MatmulPrecision precision, KeepValues keep_values = KeepValues::Yes);
  [[deprecated("now with_matmul_precision")]] static PrecisionPolicy with_products(
      MatmulPrecision precision, KeepValues keep_values = KeepValues::Yes) {
    return with_matmul_precision(precision, keep_values);
  }
  /// `matmul_precision`, or the value of its deprecated name.
  MatmulPrecision of_matmuls() const { return products.value().value_or(matmul_precision); }
  friend bool operator==(const PrecisionPolicy&, const PrecisionPolicy&) = default;
};

/// Rewrites F32 values to the policy's dtypes, with casts between categories. Integers, Bool, F64 and complex values,
/// indices, masks and ops that state their own dtypes (Cast) are unchanged. exp, log, pow and similar functions stay in
/// F32, where they cannot overflow.
Graph apply_precision(const Graph& g, const PrecisionPolicy& policy);

}  // namespace rlx
