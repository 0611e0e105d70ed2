// Kernel entries of sorts and extrema.
#include <cmath>
#include <limits>

#include "rlx/backends/tpu/entries.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::tpu {
namespace {

// True where a sorts before b. NaN is above every number and equal to itself; -0 and 0 are equal.
Hlo before(Writer& w, const Hlo& a, const Hlo& b, bool descending) {
  const Hlo less = w.compare(descending ? "GT" : "LT", a, b);
  if (!is_float(a.dtype)) return less;
  const Hlo by_nan =
      descending ? w.both(w.is_nan(a), w.compare("EQ", b, b)) : w.both(w.compare("EQ", a, a), w.is_nan(b));
  return w.either(less, by_nan);
}

void emit_sort(EmitContext& c) {
  const auto& op = c.op<ops::Sort>();
  const bool nothing = c.in(0).elements() == 0;
  const Hlos out =
      nothing ? Hlos(c.inputs().begin(), c.inputs().end()) : sorted(c.w, c.inputs(), op.axis, op.descending);
  for (std::uint32_t r = 0; r < out.size(); ++r) c.set(r, out[r]);
}

// The first index of the largest or smallest element. A NaN counts as the extremum.
Hlo first_extremum(Writer& w, const Hlo& x, std::int64_t axis, bool largest) {
  const std::int64_t axes[] = {axis};
  std::vector<std::int64_t> others;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) others.push_back(i);
  const bool is_bool = x.dtype == DType::Bool;
  const Hlo v = is_bool ? w.convert(x, DType::U8) : x;
  const Hlo worst = is_float(v.dtype) ? w.scalar(v.dtype, largest ? -HUGE_VAL : HUGE_VAL)
                    : is_signed_int(v.dtype)
                        ? w.scalar_bits(v.dtype, largest ? std::uint64_t{1} << (dtype_bits(v.dtype) - 1)
                                                         : (std::uint64_t{1} << (dtype_bits(v.dtype) - 1)) - 1)
                        : w.scalar_bits(v.dtype, largest ? 0 : ~std::uint64_t{0});
  const Hlo best = w.broadcast(w.reduce(largest ? "maximum" : "minimum", v, worst, axes), v.dims, others);
  Hlo hit = w.compare("EQ", v, best);
  if (is_float(v.dtype)) hit = w.either(hit, w.is_nan(v));
  const Hlo last = w.scalar(DType::I32, static_cast<double>(x.extent(axis)));
  const Hlo places = w.select(hit, w.iota(DType::I32, v.dims, axis), w.broadcast(last, v.dims, {}));
  return w.reduce("minimum", places, last, axes);
}

void emit_arg_reduce(EmitContext& c) {
  const auto& op = c.op<ops::ArgReduce>();
  c.set(c.w.reshape(first_extremum(c.w, widen(c.w, c.in(0)), op.axis, op.fn == ArgReduceKind::Max), c.dims()));
}

// XLA's top_k orders floats by their bits. The key makes values equal that the op treats as equal: all NaNs become the
// largest NaN, and -0 becomes 0.
Hlo top_k_key(Writer& w, const Hlo& x) {
  if (x.dtype == DType::Bool) return w.convert(x, DType::U8);
  if (!is_float(x.dtype)) return x;
  const Hlo wide = widen(w, x);
  return w.select(w.is_nan(wide), std::numeric_limits<double>::quiet_NaN(),
                  w.select(w.compare("EQ", wide, 0), 0, wide));
}

void emit_top_k(EmitContext& c) {
  Writer& w = c.w;
  const Hlo& x = c.in(0);
  const std::int64_t n = x.dims.back();
  const HloType places = c.type(1);
  Hlo at = w.full(DType::I32, 0, places.dims);
  if (at.elements() == 0) {
    c.set(0, w.full(c.type().dtype, 0, places.dims));
    return c.set(1, std::move(at));
  }
  const Hlo key[] = {top_k_key(w, x)};
  const HloType results[] = {{key[0].dtype, places.dims}, places};
  at = w.ops("chlo.top_k", key, results, concat_text("k = ", places.dims.back(), " : i64"))[1];
  // Gathers the elements by their flat indices in x.
  const std::int64_t rows = x.elements() / n, count = at.elements();
  const DType index = x.elements() < (std::int64_t{1} << 31) ? DType::I32 : DType::I64;
  const Hlo first = w.mul(w.iota(index, {rows, places.dims.back()}, 0), static_cast<double>(n));
  const Hlo flat = w.add(first, w.convert(w.reshape(at, first.dims), index));
  c.set(0, w.reshape(rows_at(w, w.reshape(x, {x.elements()}), w.reshape(flat, {count})), places.dims));
  c.set(1, std::move(at));
}

}  // namespace

Hlos sorted(Writer& w, std::span<const Hlo> operands, std::int64_t axis, bool descending) {
  std::vector<HloType> types, scalars;
  for (const Hlo& v : operands) {
    types.push_back(type_of(v));
    scalars.insert(scalars.end(), 2, HloType{v.dtype, {}});
  }
  return w.with_regions(
      "sort", operands, types,
      {{scalars, [&](const Hlos& v) { return Hlos{before(w, widen(w, v[0]), widen(w, v[1]), descending)}; }}},
      concat_text("dimension = ", axis, " : i64, is_stable = true"));
}

std::span<const KernelEntry> order_entries() {
  static constexpr KernelEntry kRows[] = {
      {OpKind::Sort, never_refuses, emit_sort},
      {OpKind::ArgReduce, never_refuses, emit_arg_reduce},
      {OpKind::TopK, never_refuses, emit_top_k},
  };
  return kRows;
}

}  // namespace rlx::tpu
