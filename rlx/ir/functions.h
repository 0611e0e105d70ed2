// Elementwise functions of one and two operands: the rows of their tables (function_table.h, binary_table.h), and
// lookups.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/ir/fill.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx {

/// A set of dtype classes.
enum class DTypes : std::uint8_t { Float = 1, Int = 2, Bool = 4, Complex = 8 };
constexpr DTypes operator|(DTypes a, DTypes b) {
  return static_cast<DTypes>(static_cast<int>(a) | static_cast<int>(b));
}
constexpr bool contains(DTypes set, DType t) {
  int bits = static_cast<int>(set);
  return (is_float(t) && (bits & 1)) || (is_int(t) && (bits & 2)) || (t == DType::Bool && (bits & 4)) ||
         (is_complex(t) && (bits & 8));
}

/// The parameters of an Activation; 0 where its function has none.
struct FunctionParams {
  double alpha = 0, beta = 0;
};

/// The values of graph `g` that a derivative is built from: x, y = f(x) and the cotangent or tangent ct.
struct FunctionSlope {
  Graph& g;
  Expr x, y, ct;
  FunctionParams params;
};
/// ct * f'(x). It is linear in ct, so it serves both directions of differentiation.
using FunctionDerivative = Expr (*)(const FunctionSlope& s);
/// The derivative is 0 everywhere, or there is none (integers).
inline constexpr FunctionDerivative kFlat = nullptr;

/// Whether results for ordinary arguments stay in the range of F16. Mixed precision computes functions that leave it in
/// F32.
enum class F16Range : std::uint8_t { Keeps, Leaves };

/// Everything rlx knows about a function except vector kernels. Scalar functions compute in the widest type of a class
/// and round the result once. A class that the function does not support is null. Integer functions get the width of
/// the dtype in bits. The texts are the same expressions in C with <math.h> and the helpers of function_helpers_c().
struct FunctionRow {
  ActivationKind fn;
  Required<DTypes> dtypes;
  std::optional<double> alpha{}, beta{};  // its parameters and their default values
  double order = 0;                       // alpha is a whole number from 0 to this one; 0: any number
  double (*real)(double x) = nullptr;     // with the default parameters
  std::string_view c{};                   // the same as C text
  double (*real_with)(double x, double alpha, double beta) = nullptr;  // with any parameters
  std::string_view c_with{};
  std::complex<double> (*complex)(std::complex<double>) = nullptr;
  std::int64_t (*signed_int)(std::int64_t, int bits) = nullptr;
  std::uint64_t (*unsigned_int)(std::uint64_t, int bits) = nullptr;
  std::uint64_t (*boolean)(std::uint64_t) = nullptr;
  Required<FunctionDerivative> derivative;
  Required<F16Range> f16;
  Required<int> flops;       // of one element, for cost models
  Fill fill = Fill::Normal;  // sample values at which function and derivative are well behaved
};

/// ct * d f / d operand, given both operands and y = f(a, b). Linear in ct.
using BinaryDerivative = Expr (*)(Graph& g, Expr a, Expr b, Expr y, Expr ct);
inline constexpr BinaryDerivative kBinaryFlat = nullptr;

/// The row of a function of two operands, which broadcast. Integer functions get the width of the dtype in bits.
struct BinaryRow {
  BinaryKind fn;
  Required<DTypes> dtypes;
  double (*real)(double a, double b) = nullptr;
  std::string_view c{};
  std::complex<double> (*complex)(std::complex<double>, std::complex<double>) = nullptr;
  std::int64_t (*signed_int)(std::int64_t, std::int64_t, int bits) = nullptr;
  std::uint64_t (*unsigned_int)(std::uint64_t, std::uint64_t, int bits) = nullptr;  // Bool too, as 0 and 1
  Required<BinaryDerivative> da, db;
  Required<F16Range> f16;
  Fill fill_a = Fill::Normal, fill_b = Fill::Normal;
  int differentiable = 2;  // highest order of derivative by every operand; 2: any order
};

/// The row of `fn`; InvalidArgument for a value that is not an enumerator.
const BinaryRow& binary_row(BinaryKind fn);
/// The row of `fn`; InvalidArgument for a value that is not an enumerator.
const FunctionRow& function_row(ActivationKind fn);
/// The parameters in effect: those that `op` gives, else the defaults of its function.
FunctionParams function_params(const ops::Activation& op);
/// True when `op` uses its function's default parameters, which kernels without parameters assume.
bool has_own_params(const ops::Activation& op);
/// C definitions of the helpers that the texts of the rows call, in an order that compiles.
std::string function_helpers_c();

}  // namespace rlx
