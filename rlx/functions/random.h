// Random distributions. They are computed from the bits of a key; Builder::rng_key, rng_split, rng_uniform and the like
// are in rlx/ir/builder.h. Formulas and the order of draws are those of jax.random for distributions with a closed
// formula, so the numbers are JAX's up to rounding.
//
// Keys are U32 [2]. `dims` are the dims of the result, and parameters broadcast to them. Draws by rejection (gamma,
// poisson, binomial and distributions built on them) also depend on the key, the parameters and the position alone.
// Derivatives by the parameters of gamma and of distributions built on it (beta, dirichlet, chisquare, student_t) are
// implicit derivatives of first order; those of the other draws by rejection are 0. In the formulas u is uniform in (0,
// 1) or [0, 1).
#pragma once

#include <cstdint>

#include "rlx/ir/graph.h"

namespace rlx::random {

/// The standard Gumbel distribution: -log(-log u). The argmax of logits plus this noise is a draw from the categorical
/// distribution of the logits.
Expr gumbel(Operand key, Dims dims, DType dtype = DType::F32);
/// The exponential distribution of mean 1: -log(1 - u).
Expr exponential(Operand key, Dims dims, DType dtype = DType::F32);
/// The Laplace distribution of mean 0 and scale 1, density exp(-|x|) / 2.
Expr laplace(Operand key, Dims dims, DType dtype = DType::F32);
/// The logistic distribution of mean 0 and scale 1: log(u / (1 - u)).
Expr logistic(Operand key, Dims dims, DType dtype = DType::F32);
/// The Cauchy distribution of location 0 and scale 1: tan(pi (u - 1/2)).
Expr cauchy(Operand key, Dims dims, DType dtype = DType::F32);
/// The uniform distribution on [low, high). low and high broadcast to dims.
Expr uniform(Operand key, Operand low, Operand high, Dims dims, DType dtype = DType::F32);
/// The standard normal distribution truncated to (lower, upper).
Expr truncated_normal(Operand key, Operand lower, Operand upper, Dims dims, DType dtype = DType::F32);
/// -1 or 1 with probability 1/2 each. DTypeMismatch for Bool and unsigned dtypes.
Expr rademacher(Operand key, Dims dims, DType dtype = DType::I32);
/// The Weibull distribution: scale * e^(1 / concentration) for exponential e.
Expr weibull(Operand key, Operand scale, Operand concentration, Dims dims, DType dtype = DType::F32);
/// The Pareto distribution: x >= 1, and a draw exceeds x with probability x^-b.
Expr pareto(Operand key, Operand b, Dims dims, DType dtype = DType::F32);

/// Integers in [low, high), or low if high <= low. If high - low is not a power of two, some are more likely by at most
/// 2^-32. Bounds are integers of any dtype, clamped to the range of `dtype`.
Expr randint(Operand key, Operand low, Operand high, Dims dims, DType dtype = DType::I32);
/// A random permutation of 0 .. n - 1, I32. InvalidArgument for n < 0.
Expr permutation(Operand key, std::int64_t n);
/// x with its slices along `axis` in random order. With `independent` each line along `axis` has its own order.
Expr shuffle(Operand key, Operand x, std::int64_t axis = 0, bool independent = false);
/// Indices I32 [draws.., dims of logits without axis..] drawn from softmax(logits) along `axis`.
Expr categorical(Operand key, Operand logits, std::int64_t axis = -1, Dims draws = {});
/// categorical without replacement: `count` different indices, I32 [count, dims of logits without axis..].
Expr categorical_distinct(Operand key, Operand logits, std::int64_t count, std::int64_t axis = -1);

/// The gamma distribution, density x^(a - 1) e^-x / Gamma(a), by Marsaglia and Tsang, "A simple method for generating
/// gamma variables", TOMS 2000. a = 0 gives 0, a < 0 gives NaN.
Expr gamma(Operand key, Operand a, Dims dims, DType dtype = DType::F32);
/// The logarithm of a gamma draw. It stays finite for small a, where the draw itself rounds to 0.
Expr log_gamma(Operand key, Operand a, Dims dims, DType dtype = DType::F32);
/// The beta distribution: x / (x + y) of gamma draws x and y.
Expr beta(Operand key, Operand a, Operand b, Dims dims, DType dtype = DType::F32);
/// The Dirichlet distribution [dims.., K]: gamma draws of alpha [.., K] divided by their sum along the last axis.
Expr dirichlet(Operand key, Operand alpha, Dims dims, DType dtype = DType::F32);
/// The chi-squared distribution of df degrees of freedom: the sum of df squared normal draws.
Expr chisquare(Operand key, Operand df, Dims dims, DType dtype = DType::F32);
/// Student's t distribution of df degrees of freedom.
Expr student_t(Operand key, Operand df, Dims dims, DType dtype = DType::F32);
/// Uniform points in the unit ball of the p-norm in d dimensions: [dims.., d].
Expr ball(Operand key, std::int64_t d, double p, Dims dims, DType dtype = DType::F32);
/// The Poisson distribution, integers: Knuth's method for rate < 10, else Hormann's transformed rejection (PTRS, "The
/// transformed rejection method for generating Poisson random variables", 1993). Rates are finite. A rate that is
/// negative or NaN gives -1.
Expr poisson(Operand key, Operand rate, Dims dims, DType dtype = DType::I32);
/// The binomial distribution as floats: sums of geometric draws for n p < 10, else Hormann's BTRS ("The generation of
/// binomial random variates", 1993). NaN unless n >= 0 and 0 <= p <= 1.
Expr binomial(Operand key, Operand n, Operand p, Dims dims, DType dtype = DType::F32);

/// Uniform bits U32 of Philox-4x32-10 (Salmon et al., SC 2011, with Random123's constants). Element i in row-major
/// order is word i mod 4 of the counter {i / 4, 0, 0, 0}.
Expr philox_bits(Operand key, Dims dims);

}  // namespace rlx::random
