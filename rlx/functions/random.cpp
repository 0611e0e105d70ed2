// Distributions with a closed form, random integers, permutations and choices.
#include "rlx/functions/random.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/functions/draws.h"
#include "rlx/functions/special.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/random.h"

namespace rlx::random {

using namespace draws;

namespace {

// From here on the difference of two erf loses digits.
constexpr double kTailFrom = 3;

// Normal numbers between bounds with kTailFrom <= from <= to, from uniform numbers u. The probabilities of the tails
// beyond the bounds, below 1 / 2, keep their digits where those of the other side are near 1.
Term tail_between(const Term& from, const Term& to, const Term& u) {
  const auto beyond = [](const Term& x) { return x.at(special::ndtr((-x).value())); };
  // From here on ndtr is subnormal. There the tail beyond x is exp(-x^2 / 2) / x up to 1 / x^2.
  const double end = from.dtype() == DType::F64 ? 37 : 12;
  const Term far = compared(CompareKind::Gt, from, end);
  const Term near_from = chosen(far, end, from), p = beyond(near_from), q = beyond(larger(to, near_from));
  const Term near = -from.at(special::ndtri((p - u * (p - q)).value()));
  const Term first = chosen(far, from, end), width = larger(to - first, 0.0);
  const auto mass = [&](const Term& d) { return first * d + square(d) * 0.5 + log1p(d / first); };
  const Term e = -log1p(-u * (1.0 - exp(-mass(width))));
  const auto root = [&](const Term& y) { return 2.0 * y / (first + first * sqrt(1.0 + 2.0 * y / first / first)); };
  Term d = root(e);
  for (int i = 0; i < 2; ++i) d = root(larger(e - log1p(d / first), 0.0));
  return chosen(far, first + d, near);
}

}  // namespace

Expr gumbel(Operand key, Dims dims, DType dtype) {
  const Term u = uniform_from(key_of(key, "gumbel"), std::move(dims), dtype, tiny_of(dtype), 1);
  return -log(-log(u));
}
Expr exponential(Operand key, Dims dims, DType dtype) {
  return -log1p(-uniform_from(key_of(key, "exponential"), std::move(dims), dtype, 0, 1));
}
Expr laplace(Operand key, Dims dims, DType dtype) {
  const Term u = uniform_from(key_of(key, "laplace"), std::move(dims), dtype, eps_of(dtype) / 2 - 1, 1);
  return sign(u) * log1p(-abs(u));
}
Expr logistic(Operand key, Dims dims, DType dtype) {
  const Term u = uniform_from(key_of(key, "logistic"), std::move(dims), dtype, tiny_of(dtype), 1);
  return log(u) - log1p(-u);
}
Expr cauchy(Operand key, Dims dims, DType dtype) {
  const Term u = uniform_from(key_of(key, "cauchy"), std::move(dims), dtype, eps_of(dtype), 1);
  return ((u - 0.5) * std::numbers::pi)(ActivationKind::Tan);
}
Expr uniform(Operand key, Operand low, Operand high, Dims dims, DType dtype) {
  return between(key_of(key, "uniform"), low, high, std::move(dims), dtype);
}
Expr truncated_normal(Operand key, Operand lower, Operand upper, Dims dims, DType dtype) {
  const Term k = key_of(key, "truncated_normal");
  check_floats(k, "truncated_normal", dtype);
  const DType t = dtype == DType::F64 ? dtype : DType::F32;
  const Term from = parameter(k, lower, dtype), to = parameter(k, upper, dtype), low = from.cast(t), high = to.cast(t);
  const auto erf = [](const Term& x) { return (x * (1 / std::numbers::sqrt2))(ActivationKind::Erf); };
  const Term u = between(k, erf(low), erf(high), dims, t);
  const Term middle = u(ActivationKind::Erfinv) * std::numbers::sqrt2;
  const Term above = compared(CompareKind::Ge, low, kTailFrom), below = compared(CompareKind::Le, high, -kTailFrom);
  const Term tail = either(above, below);
  Graph& g = k.graph();
  const Expr any = g.gt(g.reduce_max(g.cast(tail, DType::I32)), 0);
  const SourceLoc loc = k.loc();
  const Expr drawn = g.cond(
      any, ExprList{middle, k, low, high, tail, below},
      [&](Graph&, const ExprList& in) {
        const Term x(in[0], loc), l(in[2], loc), h(in[3], loc), in_tail(in[4], loc), minus(in[5], loc);
        const Term first = chosen(in_tail, chosen(minus, -h, l), kTailFrom);
        const Term last = chosen(in_tail, chosen(minus, -l, h), kTailFrom + 1);
        const Term far = tail_between(first, last, uniform_from(Term(in[1], loc), dims, t, 0, 1));
        return ExprList{chosen(in_tail, chosen(minus, -far, far), x)};
      },
      [](Graph&, const ExprList& in) { return ExprList{in[0]}; })[0];
  const Term inside = smaller(larger(k.at(drawn).cast(dtype), next_to(from, true)), next_to(to, false));
  return larger(inside, from);  // bounds without a number between them
}
Expr rademacher(Operand key, Dims dims, DType dtype) {
  const Term k = key_of(key, "rademacher");
  if (dtype == DType::Bool || is_storage_only(dtype) || is_unsigned_int(dtype))
    building::fail(k.loc(), ErrorCode::DTypeMismatch,
                   concat_text("rademacher draws -1 and 1, which ", dtype_name(dtype), " cannot hold"));
  const Term yes = compared(CompareKind::Lt, uniform_from(k, std::move(dims), DType::F32, 0, 1), 0.5);
  return chosen(yes, k.at(k.graph().scalar(1, dtype, k.loc())), -1.0);
}
Expr weibull(Operand key, Operand scale, Operand concentration, Dims dims, DType dtype) {
  const Term k = key_of(key, "weibull");
  const Term e = k.at(exponential(key, std::move(dims), dtype));
  return combined(BinaryKind::Pow, e, 1.0 / parameter(k, concentration, dtype)) * parameter(k, scale, dtype);
}
Expr pareto(Operand key, Operand b, Dims dims, DType dtype) {
  const Term k = key_of(key, "pareto");
  return exp(k.at(exponential(key, std::move(dims), dtype)) / parameter(k, b, dtype));
}

// -- integers --

namespace {

// Returns x clamped to the range of t, and whether x was above that range (an end beyond the largest number of t).
struct Bound {
  Term value;
  std::optional<Term> beyond;
};
Bound bound_of(const Term& k, const Operand& given, DType t, const char* what) {
  const Term x = k.at(building::own_at(k.graph(), given, k.loc()));
  if (!is_int(x.dtype()))
    building::fail(k.loc(), ErrorCode::DTypeMismatch,
                   concat_text("randint: ", what, " must be an integer, got ", x.shape()));
  const auto bits = [](DType d) { return dtype_bits(d) - (is_unsigned_int(d) ? 0 : 1); };
  const auto limit = [&](DType d, bool high) {  // the limit of dtype d, in x's dtype
    const std::uint64_t most = ~std::uint64_t{0} >> (64 - bits(d));
    const std::uint64_t word = high ? most : is_unsigned_int(d) ? 0 : ~most;
    return x.at(k.graph().constant(Tensor::scalar_i64(x.dtype(), static_cast<std::int64_t>(word)), k.loc()));
  };
  Term cut = x;
  std::optional<Term> beyond;
  if (bits(x.dtype()) > bits(t)) {
    beyond = x.at(k.graph().gt(x, limit(t, true)));
    cut = smaller(cut, limit(t, true));
  }
  if (!is_unsigned_int(x.dtype()) && (is_unsigned_int(t) || bits(x.dtype()) > bits(t)))
    cut = larger(cut, limit(t, false));
  return {cut.cast(t), beyond};
}

// x mod n. n = 0 stands for 2^bits, the whole range of the dtype, and gives x.
Term modulo(const Term& x, const Term& n) {
  const Term none = compared(CompareKind::Eq, n, 0.0);
  return chosen(none, x, combined(BinaryKind::Mod, x, chosen(none, 1.0, n)));
}

}  // namespace

Expr randint(Operand key, Operand low, Operand high, Dims dims, DType dtype) {
  const Term k = key_of(key, "randint");
  Graph& g = k.graph();
  if (!is_int(dtype))
    building::fail(k.loc(), ErrorCode::DTypeMismatch,
                   concat_text("randint draws integers of 8 bits or more, not ", dtype_name(dtype)),
                   "use uniform for floats");
  const Bound from = bound_of(k, low, dtype, "low"), to = bound_of(k, high, dtype, "high");
  const DType word = dtype_bits(dtype) == 64 ? DType::U64 : DType::U32;
  const Term one = k.at(g.scalar(1, word, k.loc()));
  const Term some = k.at(g.lt(from.value, to.value));
  Term span = chosen(some, to.value.cast(word) - from.value.cast(word), one);
  if (to.beyond) span = chosen(both(some, *to.beyond), span + one, span);
  const std::vector<Term> keys = split(k, 2);
  const auto bits = [&](const Term& own) { return own.at(g.rng_bits(own, dims, word)); };
  const Term upper = bits(keys[0]), lower = bits(keys[1]);
  const std::int64_t half = std::int64_t{1} << (word == DType::U64 ? 32 : 16);
  const Term root = modulo(one.at(g.scalar(half, word, k.loc())), span);
  const Term factor = modulo(root * root, span);
  const Term offset = modulo(modulo(upper, span) * factor + modulo(lower, span), span);
  return from.value + offset.cast(dtype);
}

// -- orders and choices --

namespace {

// I32 indices of a random permutation along `axis` of `dims`: argsort of random bits, enough bits that ties are
// unlikely.
Term order_of(const Term& k, const Dims& dims, std::int64_t axis) {
  Graph& g = k.graph();
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  double count = 1;
  if (const Dim& n = dims[static_cast<std::size_t>(axis)]; n.is_static() && n.value() > kMost)
    building::fail(k.loc(), ErrorCode::Unsupported, concat_text("a random order of ", n, " entries: indices are I32"),
                   concat_text("at most ", kMost, " entries are possible"));
  for (const Dim& d : dims) {
    if (!d.is_static())
      building::fail(k.loc(), ErrorCode::Unsupported,
                     concat_text("a random order of ", dims_text(dims), " needs known extents"),
                     "bind the symbol first");
    count *= static_cast<double>(d.value());
  }
  const int rounds = static_cast<int>(std::ceil(3 * std::log(std::max(1.0, count)) / std::log(4294967295.0)));
  Term order = k.at(g.expand(k.at(positions(g, dims[static_cast<std::size_t>(axis)], axis,
                                            static_cast<int>(dims.size()), DType::I32, k.loc())),
                             dims));
  Term left = k;
  for (int i = 0; i < rounds; ++i) {
    const std::vector<Term> keys = split(left, 2);
    left = keys[0];
    const Term places = k.at(g.argsort(k.at(g.rng_bits(keys[1], dims)), axis));
    order = k.at(g.take_along_axis(order, places, axis));
  }
  return order;
}

}  // namespace

Expr permutation(Operand key, std::int64_t n) {
  const Term k = key_of(key, "permutation");
  if (n < 0)
    building::fail(k.loc(), ErrorCode::InvalidArgument,
                   concat_text("permutation: the number of entries must not be negative, got ", n));
  return order_of(k, {Dim(n)}, 0);
}
Expr shuffle(Operand key, Operand x, std::int64_t axis, bool independent) {
  const Term k = key_of(key, "shuffle"), v = k.at(building::own_at(k.graph(), x, k.loc()));
  const std::int64_t a = building::normalize_axis_at(k.loc(), axis, v.rank(), "shuffle");
  Graph& g = k.graph();
  if (independent) return g.take_along_axis(v, order_of(k, v.shape().dims(), a), a);
  return g.gather(v, order_of(k, {v.dim(static_cast<int>(a))}, 0), a);
}

namespace {
Term logits_of(const Term& k, const Operand& given, const char* what) {
  const Term x = k.at(building::own_at(k.graph(), given, k.loc()));
  check_floats(x, what, x.dtype());
  return x;
}
}  // namespace

Expr categorical(Operand key, Operand logits, std::int64_t axis, Dims draws) {
  const Term k = key_of(key, "categorical"), x = logits_of(k, logits, "categorical");
  const std::int64_t a = building::normalize_axis_at(k.loc(), axis, x.rank(), "categorical");
  const auto count = static_cast<std::int64_t>(draws.size());
  draws.insert(draws.end(), x.shape().dims().begin(), x.shape().dims().end());
  const Term noisy = k.at(gumbel(k, std::move(draws), x.dtype())) + x;
  return k.graph().cast(k.at(k.graph().arg_max(noisy, count + a)), DType::I32);
}
Expr categorical_distinct(Operand key, Operand logits, std::int64_t count, std::int64_t axis) {
  const Term k = key_of(key, "categorical_distinct"), x = logits_of(k, logits, "categorical_distinct");
  const std::int64_t a = building::normalize_axis_at(k.loc(), axis, x.rank(), "categorical_distinct");
  const Dim& among = x.dim(static_cast<int>(a));
  if (count < 0 || (among.is_static() && count > among.value()))
    building::fail(
        k.loc(), ErrorCode::InvalidArgument,
        concat_text("categorical_distinct: cannot draw ", count, " of ", among, " indices without replacement"),
        "draw fewer, or use categorical, which draws with replacement");
  Graph& g = k.graph();
  const Term noisy = k.at(gumbel(k, x.shape().dims(), x.dtype())) + x;
  const Term order = k.at(g.argsort(-noisy, a));
  std::vector<std::int64_t> perm{a};
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (i != a) perm.push_back(i);
  return g.narrow(k.at(g.transpose(order, perm)), 0, Dim(0), Dim(count));
}

// -- Philox --

Expr philox_bits(Operand key, Dims dims) {
  const Term k = key_of(key, "philox_bits");
  Graph& g = k.graph();
  Dim count(1);
  for (const Dim& d : dims) count = count * d;
  const Dim blocks = floordiv(count + Dim(3), Dim(4));
  const auto word = [&](std::uint32_t v) { return k.at(g.scalar(v, DType::U32, k.loc())); };
  const auto wide = [](const Term& x) { return x.cast(DType::U64); };
  // The high and low word of a 32 x 32 bit product.
  const auto product = [&](const Term& x, std::uint32_t by) {
    const Term all = wide(x) * wide(word(by));
    return std::pair(k.at(g.shr(all, k.at(g.scalar(32, DType::U64, k.loc())))).cast(DType::U32), all.cast(DType::U32));
  };
  const auto exclusive = [](const Term& a, const Term& b) { return combined(BinaryKind::BitXor, a, b); };
  const Term at = k.at(g.iota(Shape({blocks}, DType::U64), 0, k.loc()));
  const Term low = at.cast(DType::U32),
             high = k.at(g.shr(at, k.at(g.scalar(32, DType::U64, k.loc())))).cast(DType::U32);
  const Term none = k.at(g.expand(word(0), {blocks}));
  Term c[4] = {low, high, none, none};
  Term keys[2] = {k.at(g.squeeze(k.at(g.narrow(k, 0, Dim(0), Dim(1))), 0)),
                  k.at(g.squeeze(k.at(g.narrow(k, 0, Dim(1), Dim(1))), 0))};
  for (int round = 0; round < 10; ++round) {
    if (round > 0) keys[0] = keys[0] + word(0x9E3779B9U), keys[1] = keys[1] + word(0xBB67AE85U);
    const auto first = product(c[0], 0xD2511F53U), second = product(c[2], 0xCD9E8D57U);
    const Term next[4] = {exclusive(exclusive(second.first, c[1]), keys[0]), second.second,
                          exclusive(exclusive(first.first, c[3]), keys[1]), first.second};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
  }
  std::vector<Expr> words;
  for (const Term& w : c) words.push_back(g.unsqueeze(w, 1));
  const Term all = k.at(g.reshape(k.at(g.concat(words, 1, {}, k.loc())), {blocks * Dim(4)}));
  const Term some = blocks * Dim(4) == count ? all : k.at(g.narrow(all, 0, Dim(0), count));
  return g.reshape(some, std::move(dims));
}

}  // namespace rlx::random
