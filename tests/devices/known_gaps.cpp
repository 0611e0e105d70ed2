// Reading known_gaps.txt.
#include "tests/devices/known_gaps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "rlx/ir/op_def.h"
#include "tests/devices/test_device.h"
#include "tests/support/paths.h"

namespace rlx::test {
namespace {

std::string trimmed(const std::string& s) {
  const auto begin = s.find_first_not_of(" \t"), end = s.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : s.substr(begin, end - begin + 1);
}

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::vector<std::string> out;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, between);) out.push_back(trimmed(part));
  return out;
}

// A kind that some devices leave to the host, how their sentence about it begins, and of what programs.
struct KnownGap {
  std::vector<std::string> devices;
  std::string kind, reason, where;
  bool of_this_device() const { return std::count(devices.begin(), devices.end(), test_device_name()) != 0; }
  // `line` is one of host_part.
  bool covers(const std::string& line) const { return line.starts_with(concat_text(kind, ": ", reason)); }
};

const std::vector<KnownGap>& gaps() {
  static const std::vector<KnownGap> list = [] {
    std::vector<KnownGap> out;
    std::ifstream file(source_path("tests/devices/known_gaps.txt"));
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      const std::vector<std::string> parts = parts_of(line, '|');
      const std::string where = parts.size() == 4 ? parts[3] : "";
      if (parts.size() < 3 || parts.size() > 4 || !(where.empty() || where == "wide" || where.starts_with("of ")))
        throw Error(ErrorCode::InvalidArgument, concat_text("known_gaps.txt: ", line));
      for (const std::string& kind : parts_of(parts[1], ','))
        out.push_back({parts_of(parts[0], ','), kind, parts[2], where});
    }
    return out;
  }();
  return list;
}

bool is_wide(DType t) { return is_storage_only(t) || dtype_bits(t) > 32; }

bool holds_wide(const Graph& program) {
  for (const Node& n : program.nodes())
    for (const Shape& s : n.shapes)
      if (is_wide(s.dtype())) return true;
  return false;
}

}  // namespace

void expect_known_gap(std::string_view op, const std::string& host, const Graph& program) {
  const bool wide = holds_wide(program);
  for (const std::string& line : parts_of(host, '\n')) {
    const std::string kind = line.substr(0, line.find(": "));
    const bool known = std::any_of(gaps().begin(), gaps().end(), [&](const KnownGap& gap) {
      return gap.of_this_device() && gap.covers(line) &&
             (gap.where.empty() || gap.where == concat_text("of ", op) || (gap.where == "wide" && wide));
    });
    CHECK_MESSAGE(known, "the host runs a part of ", op, " that known_gaps.txt does not list",
                  wide ? "" : " for a program of 32 bits", ": ", line);
    if (const auto named = find_op(kind); named && named->def->kind != OpKind::Custom)
      CHECK_MESSAGE(!named->def->is_composite(), "the host runs a composite: ", line);
  }
}

void expect_gaps_met(const std::string& host) {
  const std::vector<std::string> lines = parts_of(host, '\n');
  for (const KnownGap& gap : gaps())
    if (gap.of_this_device() && !gap.where.starts_with("of "))
      CHECK_MESSAGE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return gap.covers(line); }),
                    "nothing is left to the host any more for this line of known_gaps.txt: ", gap.kind, " | ",
                    gap.reason);
}

}  // namespace rlx::test
