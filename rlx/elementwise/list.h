// The list of formulas, from which the tape, the tables of kernels and the expressions are made.
#pragma once

/// Functions of one operand: enumerator, name (of the formula, and in text), largest errors in ulp on the cpu in F32
/// and F64 and of the portable F32 expression, and approximate costs on the cpu in ns per element of F32 and F64.
#define RLX_FOR_EACH_FORMULA(X)                  \
  X(Exp, exp, 1.1, 1, 2, 0.25, 1.2)              \
  X(Expm1, expm1, 1.6, 1.8, 2, 0.25, 1.2)        \
  X(Exp2, exp2, 1.1, 1, 2, 0.6, 1.2)             \
  X(Log, log, 1.1, 0.9, 2, 0.25, 1.2)            \
  X(Log2, log2, 2, 1, 2, 0.6, 2.5)               \
  X(Log10, log10, 2, 1, 2.5, 0.6, 2.5)           \
  X(Log1p, log1p, 1.5, 1.2, 3, 0.25, 2.5)        \
  X(Sinh, sinh, 1.1, 2.4, 3, 0.6, 2.5)           \
  X(Cosh, cosh, 0.6, 1.4, 3, 0.6, 2.5)           \
  X(Asinh, asinh, 1, 2.5, 3.5, 0.6, 2.5)         \
  X(Acosh, acosh, 0.6, 2.5, 3.5, 0.6, 2.5)       \
  X(Atanh, atanh, 1, 2, 3.5, 0.6, 2.5)           \
  X(Tanh, tanh, 1.5, 2.5, 2, 0.25, 1.2)          \
  X(Sigmoid, sigmoid, 3, 2.2, 3, 0.25, 1.2)      \
  X(Silu, silu, 3.5, 2.8, 3.5, 0.25, 1.2)        \
  X(Softplus, softplus, 2, 2, 3, 0.25, 2.5)      \
  X(LogSigmoid, log_sigmoid, 2, 2, 3, 0.25, 2.5) \
  X(Mish, mish, 4, 4.4, 4.4, 0.6, 2.5)           \
  X(GeluApprox, gelu_approx, 3, 3, 4, 0.25, 1.2) \
  X(Erf, erf, 1.5, 1.2, 2, 0.25, 2.5)            \
  X(Erfc, erfc, 2, 2.8, 4, 0.6, 2.5)             \
  X(Erfinv, erfinv, 4, 4, 4, 0.6, 2.5)           \
  X(Gelu, gelu, 2.5, 3.4, 4, 0.25, 2.5)
/// Functions of one operand and a parameter.
#define RLX_FOR_EACH_FORMULA_WITH_PARAMETER(X) X(Elu, elu, 1.6, 1.8, 2, 0.25, 1.2)
