// Last writers and readers of byte ranges, as disjoint intervals.
#include "rlx/backends/cpu/access_map.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

namespace rlx::cpu {
namespace {

/// Bits for: those halves of a step wait for those halves of another.
HalfWaits waits_of(std::uint8_t halves, std::uint8_t for_halves) {
  HalfWaits waits = 0;
  for (const bool upper : {false, true})
    for (const bool for_upper : {false, true})
      if ((halves & (upper ? kUpper : kLower)) != 0 && (for_halves & (for_upper ? kUpper : kLower)) != 0)
        waits |= half_waits(upper, for_upper);
  return waits;
}

std::uint64_t memory_of(Place place, std::uint32_t index) { return std::uint64_t(place) << 32 | index; }

/// Bytes from the start of its place.
struct Extent {
  std::size_t begin = 0, end = 0;
};

/// Rows [first, last) of `rows` of a value whose leading axes are the rows; none when they are not.
std::optional<Extent> rows_extent(const View& v, std::int64_t rows, std::int64_t first, std::int64_t last) {
  int axes = 0;
  for (std::int64_t n = 1; axes < v.rank() && n < rows; ++axes) n *= v.dim(axes);
  if (product(std::span(v.dims).first(static_cast<std::size_t>(axes))) != rows) return std::nullopt;
  const auto stride = fold_stride(v, 0, axes);
  if (!stride || *stride < 0 || dtype_bits(v.dtype) % 8 != 0) return std::nullopt;
  std::int64_t inner = 1;  // elements from the first to the last of a row
  for (int i = axes; i < v.rank(); ++i) inner += (v.dim(i) - 1) * v.stride(i);
  if (first >= last || v.elements() == 0) return Extent{};
  const std::size_t bytes = dtype_bits(v.dtype) / 8;
  return Extent{v.where->offset + static_cast<std::size_t>(first * *stride) * bytes,
                v.where->offset + static_cast<std::size_t>((last - 1) * *stride + inner) * bytes};
}

}  // namespace

void merge_waits(std::vector<Wait>& waits) {
  std::sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.step < b.step; });
  std::size_t kept = 0;
  for (const Wait& w : waits) {
    if (kept > 0 && waits[kept - 1].step == w.step)
      waits[kept - 1].waits |= w.waits;
    else
      waits[kept++] = w;
  }
  waits.resize(kept);
}

std::vector<Access> node_accesses(const LowerContext& c, const RowHalves& rows, std::uint8_t halves) {
  std::vector<Access> out;
  const auto touch = [&](const View& v, bool write, bool by_rows) {
    const LirValue& w = *v.where;
    if (w.place == Place::Prepared || w.place == Place::Constant || w.bytes == 0) return;
    const auto add = [&](std::size_t begin, std::size_t end, std::uint8_t by) {
      if (begin < end) out.push_back({w.place, w.index, begin, end, write, by});
    };
    const auto lower = by_rows ? rows_extent(v, rows.rows, 0, rows.lower_end) : std::nullopt;
    const auto upper = by_rows ? rows_extent(v, rows.rows, rows.upper_begin, rows.rows) : std::nullopt;
    if (!lower || !upper) {
      add(w.offset, w.offset + w.bytes, halves);
      return;
    }
    add(lower->begin, std::min(lower->end, upper->begin), kLower);
    add(std::max(lower->begin, upper->begin), std::min(lower->end, upper->end), kBothHalves);
    add(std::max(lower->end, upper->begin), upper->end, kUpper);
  };
  for (int i = 0; i < c.num_inputs(); ++i) touch(c.in(i), false, rows.rows > 0 && i < 32 && (rows.operands >> i & 1U));
  const auto results = static_cast<int>(c.node().num_results());
  for (int r = 0; r < results; ++r) touch(c.out(r), true, rows.rows > 0 && r < 32 && (rows.results >> r & 1U));
  return out;
}

AccessMap::AccessMap(const LirBufferPlan& plan) {
  for (const LirAlias& a : plan.aliases)
    if (a.refused.empty()) donated_[memory_of(Place::Output, a.output)] = memory_of(Place::Input, a.input);
}

// The first range at or after `at`, none of which begins before it.
AccessMap::Ranges::iterator AccessMap::cut(Ranges& ranges, std::size_t at) {
  auto next = ranges.lower_bound(at);
  if (next == ranges.begin()) return next;
  const auto before = std::prev(next);
  if (before->second.end <= at) return next;
  Range rest = before->second;
  before->second.end = at;
  return ranges.emplace_hint(next, at, std::move(rest));
}

std::vector<Wait> AccessMap::add(std::int32_t step, const std::vector<Access>& accesses) {
  std::vector<Wait> found;
  const auto ranges_of = [&](const Access& a) -> Ranges& {
    const std::uint64_t memory = memory_of(a.place, a.index);
    const auto donated = donated_.find(memory);
    return memories_[donated == donated_.end() ? memory : donated->second];
  };
  // All waits first: what this step itself then enters must not hide whom another of its accesses has to wait for.
  for (const Access& a : accesses) {
    if (a.begin >= a.end) continue;
    Ranges& ranges = ranges_of(a);
    auto at = cut(ranges, a.begin);
    cut(ranges, a.end);
    const auto wait = [&](const User& user) {
      if (user.step >= 0 && user.step != step) found.push_back({user.step, waits_of(a.halves, user.halves)});
    };
    for (; at != ranges.end() && at->first < a.end; ++at) {
      wait(at->second.writer);
      if (!a.write) continue;
      for (const User& reader : at->second.readers) wait(reader);
    }
  }
  for (const bool write : {false, true})
    for (const Access& a : accesses)
      if (a.write == write && a.begin < a.end) enter(ranges_of(a), step, a);
  merge_waits(found);
  return found;
}

void AccessMap::enter(Ranges& ranges, std::int32_t step, const Access& a) {
  auto at = cut(ranges, a.begin);
  cut(ranges, a.end);
  User user{step, a.halves};
  if (a.write) {
    for (; at != ranges.end() && at->first < a.end; at = ranges.erase(at)) {
      // What this step itself read or wrote here before is the work of those halves too.
      if (at->second.writer.step == step) user.halves |= at->second.writer.halves;
      for (const User& reader : at->second.readers)
        if (reader.step == step) user.halves |= reader.halves;
    }
    ranges[a.begin] = Range{a.end, user, {}};
    return;
  }
  const auto unwritten = [&](std::size_t end) { return Range{end, User{}, {user}}; };
  std::size_t covered = a.begin;
  for (; at != ranges.end() && at->first < a.end; ++at) {
    if (at->first > covered) at = std::next(ranges.emplace_hint(at, covered, unwritten(at->first)));
    std::vector<User>& readers = at->second.readers;
    if (!readers.empty() && readers.back().step == step)
      readers.back().halves |= a.halves;
    else
      readers.push_back(user);
    covered = at->second.end;
  }
  if (covered < a.end) ranges.emplace(covered, unwritten(a.end));
}

}  // namespace rlx::cpu
