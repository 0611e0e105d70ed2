// Helpers of the random functions: keys, distribution parameters, uniform numbers between bounds.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "rlx/functions/floats.h"
#include "rlx/functions/term.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"

namespace rlx::random::draws {

using functions::abs;
using functions::both;
using functions::chosen;
using functions::combined;
using functions::compared;
using functions::either;
using functions::exp;
using functions::floor;
using functions::larger;
using functions::log;
using functions::log1p;
using functions::sign;
using functions::smaller;
using functions::sqrt;
using functions::square;
using functions::stopped;
using functions::sum;
using functions::Term;

/// The key operand of a call. Throws DTypeMismatch or ShapeMismatch if it is not U32 [2].
inline Term key_of(const Operand& key, const char* what) {
  const Term k(key, what);
  if (k.dtype() != DType::U32 || k.rank() != 1 || !k.dim(0).is_static(2))
    building::fail(k.loc(), k.dtype() == DType::U32 ? ErrorCode::ShapeMismatch : ErrorCode::DTypeMismatch,
                   concat_text(what, ": the key must be u32 [2], got ", k.shape()), "use vmap for several keys");
  return k;
}
inline std::vector<Term> split(const Term& key, std::int64_t count) {
  Graph& g = key.graph();
  const Term all = key.at(g.rng_split(key, Dim(count)));
  std::vector<Term> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(key.at(g.squeeze(key.at(g.narrow(all, 0, Dim(i), Dim(1))), 0)));
  return out;
}

inline void check_floats(const Term& at, const char* what, DType t) {
  if (!is_float(t) || is_storage_only(t))
    building::fail(at.loc(), ErrorCode::DTypeMismatch, concat_text(what, " draws floats, not ", dtype_name(t)));
}
/// The number of fraction (mantissa) bits of a float dtype.
constexpr int fraction_of(DType t) { return t == DType::F64 ? 52 : t == DType::F32 ? 23 : t == DType::F16 ? 10 : 7; }
/// The distance from 1 to the next larger number.
inline double eps_of(DType t) { return std::ldexp(1.0, -fraction_of(t)); }
/// The smallest normal number.
inline double tiny_of(DType t) { return std::ldexp(1.0, t == DType::F64 ? -1022 : t == DType::F16 ? -14 : -126); }

inline Term uniform_from(const Term& key, Dims dims, DType t, double low, double high) {
  return key.at(key.graph().rng_uniform(key, std::move(dims), t, low, high));
}
/// A parameter of a distribution, cast to the dtype of the result.
inline Term parameter(const Term& key, const Operand& given, DType t) {
  if (given.is_scalar()) return key.at(key.graph().scalar(given.scalar(), t, key.loc()));
  return key.at(building::own_at(key.graph(), given, key.loc())).cast(t);
}
/// The next number of the dtype above or below x; the largest finite one next to an infinity.
inline Term next_to(const Term& x, bool up) { return x.at(floats::nextafter(x, x.number(up ? HUGE_VAL : -HUGE_VAL))); }
/// Uniform numbers in [low, high), and low where high is not above it.
inline Term between(const Term& key, const Operand& low, const Operand& high, Dims dims, DType t) {
  check_floats(key, "uniform", t);
  const Term from = parameter(key, low, t), to = parameter(key, high, t);
  // The distance of finite bounds may overflow: then it is halved. The sum may round to `high`.
  const Term far = compared(CompareKind::Eq, abs(to - from), HUGE_VAL), one = from.number(1);
  const Term scale = chosen(far, 0.5, one), start = from * scale;
  const Term u = uniform_from(key, std::move(dims), t, 0, 1);
  const Term drawn = (u * (to * scale - start) + start) * chosen(far, 2.0, one);
  return larger(smaller(drawn, next_to(to, false)), from);
}

}  // namespace rlx::random::draws
