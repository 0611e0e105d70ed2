// Text that people write and the printer does not: infinities and NaN as words, omitted types, dimensions in
// parentheses.
#include <doctest/doctest.h>

#include <cmath>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/text.h"
#include "tests/support/error_text.h"

using namespace rlx;

namespace {
Tensor constant(const std::string& tensor, const std::string& type) {
  const Graph g = parse_text("graph @g {\n  %0 = constant() {value = " + tensor + "} : " + type + "\n  return %0\n}");
  return g.node(NodeId{0}).op.as<ops::Constant>().value;
}
std::string refusal(const std::string& body) {
  return test::error_text([&] { (void)parse_text("graph @g {\n" + body + "\n}"); });
}
}  // namespace

TEST_CASE("text by hand: inf, -inf and nan are elements of every float tensor that has them") {
  for (const char* t : {"f32", "f64", "f16", "bf16", "f8e5m2"}) {
    CAPTURE(t);
    const Tensor v = constant(std::string("[4] ") + t + " {inf, -inf, nan, 1}", std::string("[4] ") + t);
    CHECK(v.at(0) == INFINITY);
    CHECK(v.at(1) == -INFINITY);
    CHECK(std::isnan(v.at(2)));
    CHECK(v.at(3) == 1);
  }
  CHECK(std::isnan(constant("[1] c64 {(-inf, nan)}", "[1] c64").cast(DType::C128).at(0)) == false);
  CHECK(constant("[1] c64 {(-inf, nan)}", "[1] c64").at(0) == -INFINITY);
  CHECK(test::contains(refusal("%0 = constant() {value = [1] f8e4m3 {inf}} : [1] f8e4m3"), "f8e4m3 has no 'inf'"));
  CHECK(test::contains(refusal("%0 = constant() {value = [1] f4e2m1 {nan}} : [1] f4e2m1"), "f4e2m1 has no 'nan'"));
  CHECK(test::contains(refusal("%0 = constant() {value = [1] i32 {inf}} : [1] i32"), "expected an integer"));
  CHECK(test::contains(refusal("%0 = constant() {value = [1] f32 {infinite}} : [1] f32"), "expected a number"));
}

TEST_CASE("text by hand: result types may be left out where inference knows them") {
  const Graph g = parse_text(R"(graph @g {
  symbol n [1, 8]
  %x = input() {name = "x"} : [n, 2*(n + 1)] f32
  %a = gelu(%x) @"act"
  %b:2 = top_k(%a) {k = 1}
  %c = add(%a, %x) : [n, 2*n + 2] f32
  return %b#1, %c
})");
  const Graph full = parse_text(R"(graph @g {
  symbol n [1, 8]
  %0 = input() {name = "x"} : [n, 2*n + 2] f32
  %1 = gelu(%0) : [n, 2*n + 2] f32 @"act"
  %2:2 = top_k(%1) {k = 1} : [n, 1] f32, [n, 1] i32
  %3 = add(%1, %0) : [n, 2*n + 2] f32
  return %2#1, %3
})");
  CHECK(print_text(g) == print_text(full));
  const std::string input = "%x = input() {name = \"x\"} : [2, 4] f32\n";
  CHECK(test::contains(refusal("%x = input() {name = \"x\"}"), "expected ':' before the result types of input"));
  CHECK(test::contains(refusal(input + "%y = cast(%x)"), "expected ':' before the result types of cast"));
  CHECK(test::contains(refusal(input + "%y = top_k(%x) {k = 1}"), "%y has 1 result but 2 results"));
  CHECK(test::contains(refusal(input + "%y = top_k(%x) {k = 1}"), "write %y:2"));
  CHECK(test::contains(refusal(input + "%y:2 = gelu(%x)"), "%y has 2 results but 1 result"));
  CHECK(test::contains(refusal(input + "%y = gelu(%x) : [2, 5] f32"),
                       "gelu returns [2, 4] f32, but the text says [2, 5] f32"));
}
