// Builder functions of random numbers: compositions of RngBits, in the same way as jax.random uses its bits.
#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/random.h"

namespace rlx {
using namespace building;
namespace {

// 64 random bits as a key of two words: high, low.
Expr as_key(Graph& g, Expr bits, SourceLoc loc) {
  const At at{loc};
  Dims dims = bits.shape().dims();
  dims.push_back(Dim(1));
  const Expr wide = g.reshape(at(bits), dims), shift = g.scalar(32, DType::U64, loc);
  return g.concat({g.cast(at(g.shr(at(wide), at(shift))), DType::U32), g.cast(at(wide), DType::U32)}, -1, {}, loc);
}

void check_float(DType t, const char* what, SourceLoc loc) {
  if (!is_float(t))
    fail(loc, ErrorCode::DTypeMismatch, concat_text(what, " draws floats, not ", dtype_name(t)),
         "use rng_bits for integers");
}

// Uniform in [0, 1): as many bits as the fraction of dtype t has, times the spacing in [1, 2).
Expr fraction(Graph& g, Expr key, Dims dims, DType t, SourceLoc loc) {
  const int fraction_bits = t == DType::F64 ? 52 : t == DType::F32 ? 23 : t == DType::F16 ? 10 : 7;
  const DType source = t == DType::F64   ? DType::U64
                       : t == DType::F32 ? DType::U32
                       : t == DType::F16 ? DType::U16
                                         : DType::U8;
  const Expr bits = g.add(ops::RngBits{std::move(dims), source}, {key}, loc);
  const At at{loc};
  const Expr whole = g.shr(at(bits), at(g.scalar(dtype_bits(source) - fraction_bits, source, loc)));
  return g.mul(at(g.cast(at(whole), t)), at(std::ldexp(1.0, -fraction_bits)));
}

// The least number above -1.
double above_minus_one(DType t) {
  return -1 + std::ldexp(1.0, t == DType::F64 ? -53 : t == DType::F32 ? -24 : t == DType::F16 ? -11 : -8);
}

// low + (high - low) u, and at least low.
Expr between(Graph& g, Expr u, double low, double high, SourceLoc loc) {
  const At at{loc};
  const DType t = u.dtype();
  const Expr from = g.scalar(low, t, loc), width = g.sub(at(g.scalar(high, t, loc)), at(from));
  return g.max(at(g.add(at(g.mul(at(u), at(width))), at(from))), at(from));
}

}  // namespace

Expr Builder::rng_key(std::uint64_t seed, SourceLoc loc) {
  const std::uint32_t words[] = {static_cast<std::uint32_t>(seed >> 32), static_cast<std::uint32_t>(seed)};
  return graph().constant(Tensor::of<std::uint32_t>({2}, words), loc);
}
Expr Builder::rng_bits(Operand key, Dims dims, DType dtype) {
  return graph().add(ops::RngBits{std::move(dims), dtype}, {own(graph(), key)}, key.loc());
}
Expr Builder::rng_split(Operand key, Dim count) {
  return as_key(graph(), rng_bits(key, {std::move(count)}, DType::U64), key.loc());
}
Expr Builder::rng_fold_in(Operand key, Operand data) {
  const Expr n = own(graph(), data);
  if (!is_int(n.dtype()))
    fail(key.loc(), ErrorCode::DTypeMismatch, concat_text("rng_fold_in: data must be an integer, not ", n.shape()));
  const Expr low = cast_at(graph(), cast_at(graph(), n, DType::U32, key.loc()), DType::U64, key.loc());
  return as_key(graph(), graph().add(ops::RngBits{{}, DType::U64}, {own(graph(), key), low}, key.loc()), key.loc());
}
Expr Builder::rng_uniform(Operand key, Dims dims, DType dtype, double low, double high) {
  check_float(dtype, "rng_uniform", key.loc());
  if (!(low < high) || !std::isfinite(low) || !std::isfinite(high))
    fail(key.loc(), ErrorCode::InvalidArgument,
         concat_text("rng_uniform: the range [", low, ", ", high, ") is empty or not finite"));
  const Expr u = fraction(graph(), own(graph(), key), std::move(dims), dtype, key.loc());
  return low == 0 && high == 1 ? u : between(graph(), u, low, high, key.loc());
}
Expr Builder::rng_normal(Operand key, Dims dims, DType dtype) {
  check_float(dtype, "rng_normal", key.loc());
  const Expr u = fraction(graph(), own(graph(), key), std::move(dims), dtype, key.loc());
  const At at{key.loc()};
  const Expr inside = between(graph(), u, above_minus_one(dtype), 1, key.loc());
  return mul(at(erfinv(at(inside))), at(std::numbers::sqrt2));
}
Expr Builder::rng_bernoulli(Operand key, double p, Dims dims) {
  if (!(p >= 0 && p <= 1))
    fail(key.loc(), ErrorCode::InvalidArgument, concat_text("rng_bernoulli: the probability ", p, " is not in [0, 1]"));
  return lt(Operand(rng_uniform(key, std::move(dims)), key.loc()), Operand(p, key.loc()));
}

Builder::SampleResult Builder::sample(Operand logits, Operand key, const SampleSettings& s) {
  const Expr l = own(graph(), logits);
  const auto value = [&](const std::optional<Operand>& given, double otherwise, DType t) {
    if (!given) return graph().scalar(otherwise, t, logits.loc());
    if (!given->is_scalar()) return own_at(graph(), *given, logits.loc());
    const char* hint = is_int(t) ? "give an integer that i32 holds" : "give a number that f32 holds";
    return graph().constant(scalar_tensor(*given, t, hint, logits.loc()), logits.loc());
  };
  std::vector<std::pair<std::string_view, Expr>> operands{{"logits", l},
                                                          {"temperature", value(s.temperature, 1, DType::F32)},
                                                          {"top_k", value(s.top_k, 0, DType::I32)},
                                                          {"top_p", value(s.top_p, 1, DType::F32)},
                                                          {"key", own(graph(), key)}};
  if (s.min_p) operands.emplace_back("min_p", value(s.min_p, 0, DType::F32));
  if (s.mask_bits) operands.emplace_back("mask_bits", own_at(graph(), *s.mask_bits, logits.loc()));
  const Expr e = graph().add_named(ops::Sample{}, operands, logits.loc());
  return {e, e.result(1)};
}

}  // namespace rlx
