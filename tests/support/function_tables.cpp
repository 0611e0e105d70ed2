// Reads the tables of exact values.
#include "tests/support/function_tables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>

#include "rlx/error.h"
#include "tests/support/paths.h"

namespace rlx::test {
namespace {

double from_bits(const std::string& hex) { return std::bit_cast<double>(std::stoull(hex, nullptr, 16)); }

}  // namespace

FunctionTable function_table(std::string_view name) {
  const std::string path = source_path(concat_text("tests/unit/elementwise/tables/", name, ".txt"));
  std::istringstream lines(read_file(path));
  FunctionTable out;
  bool floats = true;
  for (std::string line; std::getline(lines, line);) {
    if (line == "doubles") {
      floats = false;
      continue;
    }
    std::istringstream words(line);
    std::string hex;
    words >> hex;
    ExactPoint p;
    p.x = from_bits(hex);
    for (ExactNumber* n : {&p.value, &p.slope, &p.curvature}) {
      words >> hex >> n->rest;
      n->nearest = from_bits(hex), n->rest /= 1000;
    }
    check(!words.fail(), concat_text(path, " has a line that is no point: ", line));
    if (floats) out.floats.push_back(p);
    out.points.push_back(p);
  }
  check(out.floats.size() > 50 && out.points.size() > out.floats.size() + 50, concat_text(path, " is too short"));
  return out;
}

double ulps_from(DType t, double got, const ExactNumber& want) {
  const bool wide = t == DType::F64;
  const double rounded = wide ? want.nearest : static_cast<double>(static_cast<float>(want.nearest));
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : HUGE_VAL;
  const double most =
      wide ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
  if (std::isinf(got) || std::isinf(rounded)) {
    if (got == rounded) return 0;
    return std::signbit(got) == std::signbit(rounded) && std::fabs(got) >= most && std::fabs(want.nearest) >= most
               ? 1
               : HUGE_VAL;
  }
  if (got == 0 && rounded == 0) return std::signbit(got) == std::signbit(rounded) ? 0 : HUGE_VAL;
  int e = 0;
  std::frexp(rounded, &e);
  const double unit = std::ldexp(1.0, wide ? std::max(e - 53, -1074) : std::max(e - 24, -149));
  std::frexp(want.nearest, &e);
  const double rest = want.rest * std::ldexp(1.0, std::max(e - 53, -1074));
  return std::fabs((got - want.nearest) / unit - rest / unit);
}

double rounding_of_definition(std::string_view name, double x) {
  if (name == "gelu_approx" && std::fabs(x) < 30) return std::fabs(1.6 * (x + 0.0447 * x * x * x));
  if (name == "gelu" && x < 0 && x > -40) return 1.7 * x * x;  // of the rounded 1 / sqrt(2), and of the product
  return 0;
}

}  // namespace rlx::test
