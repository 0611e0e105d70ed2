// What calibration found out about values: their scales and zero points, by where the values come from.
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

/// Affine scales of one value, number = (code - zero_point) * scale; without zero points it is symmetric.
struct CalibrationEntry {
  std::optional<std::int64_t> axis{};  // each index along it has a scale; none: one for all
  std::vector<double> scales{};
  std::vector<std::int64_t> zero_points{};

  /// One scale for all, symmetric.
  static CalibrationEntry per_tensor(double scale) { return {std::nullopt, {scale}, {}}; }
  /// A scale for each index of `axis`, which counts from 0 (CalibrationRecord::set refuses a negative one), symmetric.
  static CalibrationEntry per_channel(std::int64_t axis, std::vector<double> scales) {
    return {axis, std::move(scales), {}};
  }
  friend bool operator==(const CalibrationEntry&, const CalibrationEntry&) = default;
};

/// Entries by path, which is that of the QuantMap for a quantised value, else `node_label` of the value's node with
/// "#1" behind it for a later result: so a record serves the graph however it is rewritten, as labels stay, and other
/// graphs with the same labels. A path such as "%10", of a node without a label, holds for that very graph alone.
class CalibrationRecord {
 public:
  using Entries = std::map<std::string, CalibrationEntry, std::less<>>;

  /// What `g` says already: of every affine Dequantize and FakeQuantize that takes its scale and zero point, without
  /// blocks and without a global scale, from constants; `values_in(g)` finds all of them.
  static CalibrationRecord of(const Graph& g);
  /// Enters or replaces what is known of a path. InvalidArgument for an entry that cannot be: scales that are not
  /// finite and above 0, another number of zero points, several scales without an axis, a negative axis, a path of no
  /// or several lines.
  void set(std::string path, CalibrationEntry entry);
  /// The entry of a path, or null.
  const CalibrationEntry* find(std::string_view path) const;
  const Entries& entries() const { return entries_; }
  /// The values of `g` that the entries speak of, in the order of the graph. NotFound for a path that no value has,
  /// InvalidArgument for one that several have and for an entry that does not fit its value (no float, no such axis,
  /// another number of scales than the axis is long).
  std::vector<std::pair<Value, CalibrationEntry>> values_in(const Graph& g) const;
  /// A line for each entry, by path, behind a line with the version; numbers as exact as they are.
  std::string text() const;
  /// The way back; BadFile naming the line for what `text` does not write.
  static CalibrationRecord parse(std::string_view text);
  friend bool operator==(const CalibrationRecord&, const CalibrationRecord&) = default;

 private:
  Entries entries_;
};

}  // namespace rlx
