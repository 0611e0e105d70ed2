// The dtypes, rules and devices of each op, from the op table, the samples and the compiler. No list is written by
// hand. Every hole has a reason, or is counted as unexplained.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx::cli {

using DTypeSet = std::array<bool, kNumDTypes>;
/// The text of a set of dtypes: "bool ints floats complex f8e4m3". A complete class is one word.
std::string dtypes_text(const DTypeSet& set);

/// How an op runs on a device, by dtype.
struct DeviceWay {
  DTypeSet kernel{}, parts{}, host{};  // a dtype may be in several lists, because samples differ
  bool any(const DTypeSet& set) const;
  std::string text() const;  // "kernel", "parts", "kernel+parts, host f64"
};

/// A gap in the matrix, and its reason.
struct CoverageHole {
  std::string where;   // "vjp", "forward", "cpu"
  std::string what{};  // "in bool c64", empty for all
  std::string reason;  // empty: unexplained
};

struct OpCoverage {
  const OpDef* def = nullptr;
  std::size_t samples = 0;
  DTypeSet forward{};                                      // dtypes whose samples the reference rule runs
  std::vector<std::pair<std::string, std::string>> rules;  // "vjp", "own"
  std::vector<DeviceWay> devices;                          // as device_columns()
  std::vector<CoverageHole> holes;
};

/// The coverage of every op. Takes seconds: it runs the reference rule on every sample in every dtype.
std::vector<OpCoverage> op_coverage();
/// The matrix, then the reasons of its holes, then the number of unexplained holes.
std::string coverage_text(const std::vector<OpCoverage>& ops, bool markdown);

/// Columns padded to their widest cell.
std::string padded_columns(const std::vector<std::vector<std::string>>& rows);
/// A row of a table of Markdown.
std::string markdown_row(const std::vector<std::string>& cells);

}  // namespace rlx::cli
