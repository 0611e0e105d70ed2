// Calibration results: scales and zero points of values, by the path of the value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// Affine scales of one value: number = (quantized value - zero_point) * scale. Symmetric without zero points.
struct CalibrationEntry {
  std::optional<std::int64_t> axis{};  // each index along it has a scale; none: one scale for all
  std::vector<double> scales{};
  std::vector<std::int64_t> zero_points{};

  /// One symmetric scale for all elements.
  static CalibrationEntry per_tensor(double scale) { return {std::nullopt, {scale}, {}}; }
  /// A symmetric scale for each index of `axis`, which counts from 0 (CalibrationRecord::set refuses a negative axis).
  static CalibrationEntry per_channel(std::int64_t axis, std::vector<double> scales) {
    return {axis, std::move(scales), {}};
  }
  friend bool operator==(const CalibrationEntry&, const CalibrationEntry&) = default;
};

/// Entries by path. The path is that of the QuantMap for a quantized value, else `node_label` of the value's node, with
/// "#1" appended for a later result. Labels survive rewrites, so a record serves every rewritten version of the graph,
/// and other graphs with the same labels. A path such as "%10", of a node without a label, is valid for one graph only.
class CalibrationRecord {
 public:
  using Entries = std::map<std::string, CalibrationEntry, std::less<>>;

  /// The record of what `g` contains: every affine Dequantize and FakeQuantize without blocks and without a global
  /// scale whose scale and zero point are constants. `values_in(g)` finds all of them.
  static CalibrationRecord of(const Graph& g);
  /// Adds or replaces the entry of a path. InvalidArgument for an invalid entry: scales that are not finite and above
  /// 0, another number of zero points, several scales without an axis, a negative axis, an empty path or one of several
  /// lines.
  void set(std::string path, CalibrationEntry entry);
  /// The entry of a path, or null.
  const CalibrationEntry* find(std::string_view path) const;
  const Entries& entries() const { return entries_; }
  /// The values of `g` that have entries, in the order of the graph. NotFound for a path that no value has.
  /// InvalidArgument for a path that several values have, and for an entry that does not fit its value (no float, no
  /// such axis, another number of scales than the extent of the axis).
  std::vector<std::pair<Value, CalibrationEntry>> values_in(const Graph& g) const;
  /// A line with the version, then one line for each entry, sorted by path. Numbers are exact.
  std::string text() const;
  /// Parses such a text. BadFile naming the line for a text that `text` does not write.
  static CalibrationRecord parse(std::string_view text);
  friend bool operator==(const CalibrationRecord&, const CalibrationRecord&) = default;

 private:
  Entries entries_;
};

}  // namespace rlx
