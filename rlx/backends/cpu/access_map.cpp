// Byte ranges of rows, and the access history of the halves of a step.
#include "rlx/backends/cpu/access_map.h"

#include <algorithm>
#include <optional>
#include <span>

namespace rlx::cpu {
namespace {

/// Wait bits: `halves` of one step wait for `for_halves` of another.
HalfWaits waits_of(std::uint8_t halves, std::uint8_t for_halves) {
  HalfWaits waits = 0;
  for (const bool upper : {false, true})
    for (const bool for_upper : {false, true})
      if ((halves & (upper ? kUpper : kLower)) != 0 && (for_halves & (for_upper ? kUpper : kLower)) != 0)
        waits |= half_waits(upper, for_upper);
  return waits;
}

std::vector<ByteRange> ranges_of(const BufferHomes& homes, std::span<const Access> accesses) {
  std::vector<ByteRange> ranges;
  ranges.reserve(accesses.size());
  for (const Access& a : accesses) {
    const BufferHome home = homes(a.place, a.index);
    ranges.push_back({home.place, home.index, a.begin, a.end});
  }
  return ranges;
}

/// Bytes [begin, end) from the start of the value's place.
struct Extent {
  std::size_t begin = 0, end = 0;
};

/// The bytes of rows [first, last) of a value whose leading axes are `rows` rows; nullopt for other values.
std::optional<Extent> rows_extent(const View& v, std::int64_t rows, std::int64_t first, std::int64_t last) {
  int axes = 0;
  for (std::int64_t n = 1; axes < v.rank() && n < rows; ++axes) n *= v.dim(axes);
  if (product(std::span(v.dims).first(static_cast<std::size_t>(axes))) != rows) return std::nullopt;
  const auto stride = fold_stride(v, 0, axes);
  if (!stride || *stride < 0 || dtype_bits(v.dtype) % 8 != 0) return std::nullopt;
  std::int64_t inner = 1;  // elements from the first to the last element of a row
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

std::vector<Access> node_accesses(const LowerContext& c, const RowTiling& rows, std::uint8_t halves) {
  std::vector<Access> out;
  const auto touch = [&](const View& v, bool write, bool by_rows) {
    const LirValue& w = *v.where;
    if (w.place == Place::Prepared || w.place == Place::Constant || w.place == Place::None || w.bytes == 0) return;
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
  for (int i = 0; i < c.num_inputs(); ++i) {
    touch(c.in(i), false, rows.rows > 0 && i < 32 && (rows.operands >> i & 1U));
    const Node& from = c.graph().node(c.node().inputs[static_cast<std::size_t>(i)].node);
    if (from.kind() == OpKind::Dequantize || from.kind() == OpKind::Quantize)  // the operand may be what is read
      for (Value v : from.inputs) touch(c.value(v), false, false);
  }
  const auto results = static_cast<int>(c.node().num_results());
  for (int r = 0; r < results; ++r) touch(c.out(r), true, rows.rows > 0 && r < 32 && (rows.results >> r & 1U));
  return out;
}

AccessMap::AccessMap(const LirBufferPlan& plan, std::span<const Access> accesses)
    : homes_(plan), history_(ranges_of(homes_, accesses)) {}

std::vector<Wait> AccessMap::add(std::int32_t step, std::span<const Access> accesses) {
  // Collect all waits before entering any access. An access of this step must not hide what another access of it waits
  // for.
  const std::vector<ByteRange> ranges = ranges_of(homes_, accesses);
  std::vector<Wait> found;
  std::vector<AccessUser> earlier;
  std::uint8_t halves = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Access& a = accesses[i];
    halves |= a.halves;
    earlier.clear();
    history_.find_writers(ranges[i], earlier);
    if (a.write) history_.find_readers(ranges[i], earlier);
    for (const AccessUser& e : earlier)
      if (e.step != kNoStep && e.step != step) found.push_back({e.step, waits_of(a.halves, e.parts)});
  }
  for (std::size_t i = 0; i < ranges.size(); ++i)
    if (!accesses[i].write) history_.read(ranges[i], {step, accesses[i].halves});
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (!accesses[i].write) continue;
    // The entry names every half of this step that reads or writes these bytes. The halves of a step do not wait for
    // each other, so later steps must wait for all of them.
    std::uint8_t by = accesses[i].halves;
    for (std::size_t k = 0; k < ranges.size() && by != halves; ++k)
      if (ranges[i].meets(ranges[k])) by |= accesses[k].halves;
    history_.write(ranges[i], {step, by});
  }
  merge_waits(found);
  return found;
}

}  // namespace rlx::cpu
