// Grouped matmuls: each row is multiplied by the matrix of its group. Rows are sorted by group, and each group gets
// blocks of its own. A loop runs over the nonempty blocks, so the work grows with the rows and not with rows times
// groups.
#include <algorithm>
#include <bit>

#include "rlx/backends/tpu/entries.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::tpu {
namespace {

constexpr DType kInt = DType::I32;

// The assignment of rows to blocks of `size` places.
struct Blocks {
  std::int64_t size = 0, places = 0;
  Hlo rows;   // the row at each place, or the number of rows
  Hlo place;  // the place of each row, or the number of places
  Hlo ends;   // the total blocks of the groups up to each one
};

std::int64_t block_size(std::int64_t rows, std::int64_t groups) {
  const auto mean = static_cast<std::uint64_t>((rows + groups - 1) / groups);
  return std::min<std::int64_t>(static_cast<std::int64_t>(std::bit_ceil(std::max<std::uint64_t>(mean, 8))), 128);
}

Blocks blocks_of(Writer& w, const Hlo& ids, std::int64_t groups) {
  const std::int64_t m = ids.extent(0);
  Blocks b;
  b.size = block_size(m, groups);
  b.places = (m / b.size + std::min(groups, m)) * b.size;
  const Hlo limit = w.full(ids.dtype, static_cast<double>(groups), ids.dims);
  const Hlo inside = w.both(w.compare("GE", ids, 0), w.compare("LT", ids, limit));
  const Hlo group = w.convert(w.select(inside, ids, limit), kInt);
  const Hlo pair[] = {group, w.iota(kInt, {m}, 0)};
  const Hlos order = sorted(w, pair, 0, false);

  // Per group: its rows, the rows before it, its blocks and the blocks before it.
  const std::int64_t first[] = {0}, second[] = {1};
  const Hlo of_group = w.compare("EQ", w.broadcast(w.iota(kInt, {groups}, 0), {groups, m}, first),
                                 w.broadcast(group, {groups, m}, second));
  const Hlo zero = w.scalar(kInt, 0), size = w.full(kInt, static_cast<double>(b.size), {groups});
  const Hlo count = w.reduce("add", w.convert(of_group, kInt), zero, second);
  const Hlo rows_before = w.sub(running(w, "add", count, zero, 0, false), count);
  const Hlo blocks = w.div(w.add(count, static_cast<double>(b.size - 1)), size);
  b.ends = running(w, "add", blocks, zero, 0, false);
  const Hlo shift = w.sub(w.mul(w.sub(b.ends, blocks), size), rows_before);

  const Hlo belongs = w.compare("LT", order[0], static_cast<double>(groups));
  const Hlo place =
      w.select(belongs, w.add(rows_at(w, shift, order[0]), w.iota(kInt, {m}, 0)), static_cast<double>(b.places));
  b.rows = set_rows(w, w.full(kInt, static_cast<double>(m), {b.places}), place, order[1]);
  b.place = set_rows(w, w.full(kInt, 0, {m}), order[1], place);
  return b;
}

// The group of block `at`: the number of groups that end before it.
Hlo group_of(Writer& w, const Hlo& ends, const Hlo& at) {
  const std::int64_t axis[] = {0};
  const Hlo ended = w.compare("LE", ends, w.broadcast(at, ends.dims, {}));
  return w.reduce("add", w.convert(ended, kInt), w.scalar(kInt, 0), axis);
}

// value [..] where there is a row, else 0.
Hlo zero_outside(Writer& w, const Hlo& value, const Hlo& rows, std::int64_t m) {
  const std::int64_t axis[] = {0};
  const Hlo there = w.broadcast(w.compare("LT", rows, static_cast<double>(m)), value.dims, axis);
  return w.select(there, value, 0);
}

void emit_grouped_dot(EmitContext& c) {
  const auto& op = c.op<ops::GroupedDot>();
  Writer& w = c.w;
  const bool by_rows = op.fn == GroupedKind::Rows;
  const Hlo &x = c.in(0), &other = c.in(1);
  const HloType result = c.type();
  const std::int64_t m = x.extent(0), groups = by_rows ? other.extent(0) : op.groups;
  Hlo zeros = w.full(result.dtype, 0, result.dims);
  if (x.elements() == 0 || other.elements() == 0 || zeros.elements() == 0) return c.set(std::move(zeros));

  const DotTypes types = dot_types(x.dtype, x.dtype, x.dtype);
  const Blocks b = blocks_of(w, c.in(2), groups);
  // The loop carries its inputs, the sums, and the block index.
  const Extents sums = by_rows ? Extents{b.places, other.extent(2)} : result.dims;
  const Hlos start{x, other, b.rows, b.ends, w.full(types.result, 0, sums), w.scalar(kInt, 0)};
  std::vector<HloType> carried;
  for (const Hlo& v : start) carried.push_back(type_of(v));
  const auto more = [&](const Hlos& v) {
    const Hlo last[] = {w.scalar(kInt, static_cast<double>(groups - 1))};
    return Hlos{w.compare("LT", v[5], w.reshape(w.dynamic_slice(v[3], last, {1}), {}))};
  };
  const auto step = [&](const Hlos& v) {
    const Hlo zero = w.scalar(kInt, 0), group = group_of(w, v[3], v[5]);
    const Hlo from[] = {w.mul(v[5], static_cast<double>(b.size))};
    const Hlo rows = w.dynamic_slice(v[2], from, {b.size}), mine = rows_at(w, v[0], rows);
    Hlos next = v;
    if (by_rows) {  // values at places without a row are never read
      const Hlo at[] = {group, zero, zero};
      const std::int64_t k = x.extent(1), n = other.extent(2), one[] = {1}, none[] = {0};
      const Hlo matrix = w.reshape(w.dynamic_slice(v[1], at, {1, k, n}), {k, n});
      const Hlo to[] = {from[0], zero};
      next[4] = w.dynamic_update_slice(v[4], dot_general(w, mine, matrix, {one, none}, types.result), to);
    } else {
      const std::int64_t none[] = {0};
      const Hlo sum = dot_general(w, zero_outside(w, mine, rows, m), zero_outside(w, rows_at(w, v[1], rows), rows, m),
                                  {none, none}, types.result);
      const Hlo at[] = {group, zero, zero};
      const Extents one{1, sum.dims[0], sum.dims[1]};
      const Hlo so_far = w.dynamic_slice(v[4], at, one);
      next[4] = w.dynamic_update_slice(v[4], w.add(so_far, w.reshape(sum, one)), at);
    }
    next[5] = w.add(v[5], 1);
    return next;
  };
  Hlo out = w.convert(w.with_regions("while", start, carried, {{carried, more}, {carried, step}})[4], result.dtype);
  if (!by_rows) return c.set(std::move(out));
  const std::int64_t axis[] = {0};
  const Hlo there = w.broadcast(w.compare("LT", b.place, static_cast<double>(b.places)), result.dims, axis);
  c.set(w.select(there, rows_at(w, out, b.place), zeros));
}

}  // namespace

std::span<const KernelEntry> grouped_entries() {
  static constexpr KernelEntry kRows[] = {{OpKind::GroupedDot, never_refuses, emit_grouped_dot}};
  return kRows;
}

}  // namespace rlx::tpu
