// Reading known_gaps.txt.
#include "tests/devices/known_gaps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "rlx/ir/op_def.h"
#include "tests/devices/test_device.h"
#include "tests/support/paths.h"

namespace rlx::test {
namespace {

struct KnownGap {
  std::string devices, kinds, reason;
};

std::string trimmed(const std::string& s) {
  const auto begin = s.find_first_not_of(" \t"), end = s.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : s.substr(begin, end - begin + 1);
}

const std::vector<KnownGap>& gaps() {
  static const std::vector<KnownGap> list = [] {
    std::vector<KnownGap> out;
    std::ifstream file(source_path("tests/devices/known_gaps.txt"));
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream parts(line);
      std::string part[3];
      for (std::string& p : part) std::getline(parts, p, '|'), p = trimmed(p);
      out.push_back({part[0], part[1], part[2]});
    }
    return out;
  }();
  return list;
}

bool listed(const std::string& list, std::string_view word) {
  return list == "*" || concat_text(",", list, ",").find(concat_text(",", word, ",")) != std::string::npos;
}

}  // namespace

void expect_known_gap(std::string_view op, const std::string& host) {
  std::istringstream lines(host);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    const std::string kind = line.substr(0, colon), why = line.substr(colon + 2);
    const bool known = std::any_of(gaps().begin(), gaps().end(), [&](const KnownGap& gap) {
      return listed(gap.devices, test_device_name()) && listed(gap.kinds, kind) && why.starts_with(gap.reason);
    });
    CHECK_MESSAGE(known, "the host runs a part of ", op, " that known_gaps.txt does not list: ", line);
    if (const auto named = find_op(kind); named && named->def->kind != OpKind::Custom)
      CHECK_MESSAGE(!named->def->is_composite(), "the host runs a composite: ", line);
  }
}

bool in_share(std::size_t number) {
  const char* text = std::getenv("RLX_TEST_SHARE");
  if (!text) return true;
  unsigned k = 0, n = 1;
  if (std::sscanf(text, "%u/%u", &k, &n) != 2 || n == 0)
    throw Error(ErrorCode::InvalidArgument, concat_text("RLX_TEST_SHARE = ", text, " is not k/n"));
  return number % n == k % n;
}

}  // namespace rlx::test
