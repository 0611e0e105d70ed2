// Random numbers of distributions, made of the bits of a key: Builder::rng_key, rng_split, rng_uniform and the like
// are in ir/builder.h. Formulas and order of draws are those of jax.random where it has a closed formula, so that the
// numbers are JAX's, to rounding.
//
// Keys are U32 [2]. `dims` are those of the result; parameters broadcast to them. What is drawn by rejection (gamma,
// poisson, binomial and what is made of them) depends on key, parameters and place alone too. Derivatives by the
// parameters of gamma and of what is made of it (beta, dirichlet, chisquare, student_t) are implicit ones, of
// first order; those of the other draws by rejection are 0.
#pragma once

#include <cstdint>

#include "rlx/ir/graph.h"

namespace rlx::random {

/// -log(-log u): the largest of logits plus such noise is a draw by the logits.
Expr gumbel(Operand key, Dims dims, DType dtype = DType::F32);
/// -log(1 - u), mean 1.
Expr exponential(Operand key, Dims dims, DType dtype = DType::F32);
/// Mean 0 and scale 1, density exp(-|x|) / 2.
Expr laplace(Operand key, Dims dims, DType dtype = DType::F32);
/// Mean 0 and scale 1: log(u / (1 - u)).
Expr logistic(Operand key, Dims dims, DType dtype = DType::F32);
/// Around 0 with scale 1: tan(pi (u - 1/2)).
Expr cauchy(Operand key, Dims dims, DType dtype = DType::F32);
/// Uniform in [low, high), which broadcast to dims.
Expr uniform(Operand key, Operand low, Operand high, Dims dims, DType dtype = DType::F32);
/// The normal distribution between lower and upper.
Expr truncated_normal(Operand key, Operand lower, Operand upper, Dims dims, DType dtype = DType::F32);
/// -1 or 1, each with probability 1/2, of any dtype but Bool.
Expr rademacher(Operand key, Dims dims, DType dtype = DType::I32);
/// scale e^(1 / concentration) of exponential numbers e.
Expr weibull(Operand key, Operand scale, Operand concentration, Dims dims, DType dtype = DType::F32);
/// At least 1, and above x with probability x^-b.
Expr pareto(Operand key, Operand b, Dims dims, DType dtype = DType::F32);

/// Integers in [low, high), low where high is not above it; of spans that are no power of two some are a little
/// likelier (by 2^-32 at most). Bounds are integers of any dtype, cut to the range of `dtype`.
Expr randint(Operand key, Operand low, Operand high, Dims dims, DType dtype = DType::I32);
/// 0 .. n - 1 in a random order, I32.
Expr permutation(Operand key, std::int64_t n);
/// The rows of x along `axis` in a random order; independent: each row of the other axes in an order of its own.
Expr shuffle(Operand key, Operand x, std::int64_t axis = 0, bool independent = false);
/// Indices I32 [draws.., logits without axis..] drawn by their logits along `axis`.
Expr categorical(Operand key, Operand logits, std::int64_t axis = -1, Dims draws = {});
/// The same without replacement: `count` different indices I32 [count, logits without axis..].
Expr categorical_distinct(Operand key, Operand logits, std::int64_t count, std::int64_t axis = -1);

/// Density x^(a - 1) e^-x / Gamma(a), a > 0: Marsaglia and Tsang, "A simple method for generating gamma variables",
/// TOMS 2000. a = 0 gives 0, what is below NaN.
Expr gamma(Operand key, Operand a, Dims dims, DType dtype = DType::F32);
/// Its logarithm, which small a do not round to that of 0.
Expr log_gamma(Operand key, Operand a, Dims dims, DType dtype = DType::F32);
/// x / (x + y) of gamma numbers x and y.
Expr beta(Operand key, Operand a, Operand b, Dims dims, DType dtype = DType::F32);
/// Numbers [dims.., K] that add up to 1 along the last axis: gamma numbers of alpha [.., K] over their sum.
Expr dirichlet(Operand key, Operand alpha, Dims dims, DType dtype = DType::F32);
/// The sum of df squares of normal numbers.
Expr chisquare(Operand key, Operand df, Dims dims, DType dtype = DType::F32);
/// Student's t with df degrees of freedom.
Expr student_t(Operand key, Operand df, Dims dims, DType dtype = DType::F32);
/// Uniform in the unit ball of norm p in d dimensions: [dims.., d].
Expr ball(Operand key, std::int64_t d, double p, Dims dims, DType dtype = DType::F32);
/// How often something of `rate` happens: integers; Knuth's products below 10, Hormann's transformed rejection (PTRS,
/// "The transformed rejection method for generating Poisson random variables", 1993) from 10 on. -1 for a rate below 0
/// or NaN; rates are finite.
Expr poisson(Operand key, Operand rate, Dims dims, DType dtype = DType::I32);
/// How many of n trials succeed, each with probability p, as floats: sums of geometric numbers where n p < 10, else
/// Hormann's BTRS ("The generation of binomial random variates", 1993). NaN outside n >= 0, 0 <= p <= 1.
Expr binomial(Operand key, Operand n, Operand p, Dims dims, DType dtype = DType::F32);

/// Bits U32 of Philox-4x32-10 (Salmon et al., SC 2011, with Random123's constants): element i in row-major order is
/// word i mod 4 of the counter {i / 4, 0, 0, 0}.
Expr philox_bits(Operand key, Dims dims);

}  // namespace rlx::random
