// Calibration records: their values, refusals and text form.
#include "rlx/ir/quant/calibration.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <doctest/doctest.h>

#include "rlx/ir/ops/quantize.h"
#include "rlx/passes/passes.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

CalibrationRecord record_of_three() {
  CalibrationRecord r;
  r.set("layer0/q proj: out", CalibrationEntry::per_channel(1, {0.1, 1e-30, 3}));
  r.set("x", CalibrationEntry::per_tensor(0.3));
  r.set("shifted", {std::nullopt, {0.5}, {-7}});
  return r;
}

TEST_CASE("a calibration record says the same after text and back") {
  const CalibrationRecord r = record_of_three();
  CHECK(r.text() ==
        "calibration 1\n"
        "axis 1, scales 0.1 1e-30 3: layer0/q proj: out\n"
        "scales 0.5, zero_points -7: shifted\n"
        "scales 0.3: x\n");
  CHECK(CalibrationRecord::parse(r.text()) == r);
  CHECK(CalibrationRecord::parse(CalibrationRecord().text()) == CalibrationRecord());
  REQUIRE(r.find("x"));
  CHECK(*r.find("x") == CalibrationEntry::per_tensor(0.3));
  CHECK(r.find("y") == nullptr);
  CalibrationRecord again = r;
  again.set("x", CalibrationEntry::per_tensor(0.4));
  CHECK(again.entries().size() == 3);
  CHECK_FALSE(again == r);
}

TEST_CASE("a calibration record names the line that it cannot read") {
  const auto text_of = [](const std::string& lines) {
    return error_text([&] { (void)CalibrationRecord::parse(lines); });
  };
  CHECK(contains(text_of(""), "expected 'calibration 1'"));
  CHECK(contains(text_of("calibration 2\n"), "line 1 of a calibration record"));
  const auto line = [&](const std::string& second) { return text_of("calibration 1\n" + second); };
  CHECK(contains(line("scale 1: x\n"), "expected 'scales'"));
  CHECK(contains(line("scales 1: x\nscales 1: x\n"), "a second entry of 'x'"));
  CHECK(contains(line("scales 1: x\nscales 1: x\n"), "line 3"));
  CHECK(contains(line("scales 1"), "expected ': ' and a path"));
  CHECK(contains(line("scales one: x"), "expected a number before 'one: x'"));
  CHECK(contains(line("axis 1 scales 1: x"), "expected ', ' after the axis"));
  CHECK(contains(line("scales 1e999: x"), "expected a number"));
  CHECK(contains(line("scales 0: x"), "a scale is 0"));
  CHECK(contains(line("scales nan: x"), "a scale is nan"));
  CHECK(contains(line("scales: x"), "the entry has no scale"));
  CHECK(contains(line("scales 1, zero_points 1 2: x"), "2 zero points for 1 scales"));
  CHECK(contains(line("axis 99999999999999999999, scales 1: x"), "expected a number"));
  CHECK(contains(line("scales 1: "), "a path must be one line of text"));
  CHECK(contains(line("\n"), "line 2"));
}

TEST_CASE("a calibration record refuses entries that cannot be") {
  const auto refused = [](const std::string& path, const CalibrationEntry& e) {
    CalibrationRecord r;
    return error_text([&] { r.set(path, e); });
  };
  CHECK(contains(refused("x", {}), "calibration of 'x': the entry has no scale"));
  CHECK(contains(refused("x", {std::nullopt, {1, 2}, {}}), "2 scales, but no axis"));
  CHECK(contains(refused("x", CalibrationEntry::per_channel(-1, {1})), "axis -1 is negative"));
  CHECK(contains(refused("x", CalibrationEntry::per_channel(-1, {1})), "hint: count from the first axis"));
  for (double s : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK(contains(refused("x", CalibrationEntry::per_tensor(s)), "finite and above 0"));
  CHECK(contains(refused("", CalibrationEntry::per_tensor(1)), "one line"));
  CHECK(contains(refused("a\nb", CalibrationEntry::per_tensor(1)), "one line"));
}

Graph labelled_values() {
  Graph g("labelled");
  const Expr x = g.input("x", Shape({2, 3}, DType::F32)), w = g.param("w", Shape({3, 4}, DType::F32));
  const Expr y = g.matmul(x, w);
  g.set_label(y.value().node, "layer0/y");
  const Expr mean = g.layer_norm(y, std::nullopt, std::nullopt, 1e-5, {1});
  g.set_label(mean.value().node, "norm");
  const auto top = g.top_k(y, 2);
  g.set_outputs({g.relu(y), mean, mean.result(1), top.indices});
  return g;
}

TEST_CASE("a calibration record finds its values in a graph and in what rewrites make of it") {
  CalibrationRecord r;
  r.set("x", CalibrationEntry::per_tensor(0.3));
  r.set("w", CalibrationEntry::per_channel(1, {1, 2, 3, 4}));
  r.set("layer0/y", CalibrationEntry::per_tensor(2));
  r.set("norm#1", CalibrationEntry::per_tensor(1));
  const Graph g = labelled_values();
  const auto values = r.values_in(g);
  REQUIRE(values.size() == 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value v = values[i].first;
    CHECK(values[i].second == *r.find(node_label(g, v.node) + (v.result ? "#1" : "")));
    if (i > 0) CHECK(values[i - 1].first < v);
  }
  const std::vector<const Pass*> passes{&eliminate_dead_code, &eliminate_common_subexpressions};
  CHECK(r.values_in(run_passes(Graph(g), passes, PassContext{})).size() == 4);
}

TEST_CASE("a calibration record says which of its entries do not fit a graph") {
  const Graph g = labelled_values();
  const auto refused = [&](const std::string& path, const CalibrationEntry& e) {
    CalibrationRecord r;
    r.set(path, e);
    return error_text([&] { (void)r.values_in(g); });
  };
  const CalibrationEntry one = CalibrationEntry::per_tensor(1);
  CHECK(contains(refused("layer0/z", one), "no value with the path 'layer0/z'"));
  CHECK(contains(refused("layer0/z", one), "layer0/y"));
  CHECK(contains(refused("w", CalibrationEntry::per_channel(1, {1, 2})), "2 scales along axis 1 of [3, 4] f32"));
  CHECK(contains(refused("w", CalibrationEntry::per_channel(2, {1, 2})), "has no axis 2"));
  Graph twice;
  Expr y = twice.input("x", Shape({2}, DType::F32));
  {
    const auto scope = twice.scope("same");
    y = twice.tanh(twice.tanh(y));
  }
  twice.set_outputs({y, twice.cast(y, DType::I32)});
  CalibrationRecord r;
  r.set("same", one);
  CHECK(contains(error_text([&] { (void)r.values_in(twice); }), "2 values have this path"));
  const std::string whole = node_label(twice, twice.outputs()[1].node);
  CalibrationRecord i;
  i.set(whole, one);
  CHECK(contains(error_text([&] { (void)i.values_in(twice); }), "must be float, got [2] i32"));
}

TEST_CASE("what a record takes from a graph it finds there, under scopes and without labels") {
  Graph g("scoped");
  const Expr x = g.input("x", Shape({2, 4}, DType::F32));
  const auto weight = [&](const char* name, float scale) {
    return g.dequantize(g.param(name, Shape({4, 4}, DType::I8)), Operand(g.scalar(scale)));
  };
  Expr y = x;
  {
    const auto layer = g.scope("layer0");
    y = g.matmul(g.matmul(y, weight("q_proj", 0.5F)), weight("k_proj", 0.25F));
    ops::FakeQuantize fixed;
    fixed.mode = ScaleMode::Fixed;
    y = g.fake_quantize(y, fixed, Operand(g.scalar(2.0F))).y;
  }
  y = g.matmul(y, weight("out", 0.125F));
  const Expr moved =
      g.dequantize(g.transpose(g.param("last", Shape({4, 4}, DType::I8)), {1, 0}), Operand(g.scalar(4.0F)));
  const Expr tied = g.param("tied", Shape({4, 4}, DType::I8));
  const Expr a = g.dequantize(tied, Operand(g.scalar(8.0F))), b = g.dequantize(tied, Operand(g.scalar(16.0F)));
  g.set_outputs({g.matmul(y, moved), a, b});
  const CalibrationRecord r = CalibrationRecord::of(g);
  const auto scale_of = [&](const std::string& path) {
    const CalibrationEntry* e = r.find(path);
    return e ? e->scales.at(0) : 0;
  };
  CHECK(r.entries().size() == 7);
  CHECK(scale_of("layer0/q_proj") == 0.5);
  CHECK(scale_of("layer0/k_proj") == 0.25);
  CHECK(scale_of("layer0") == 2);
  CHECK(scale_of("out") == 0.125);
  CHECK(scale_of(moved.value().node.text()) == 4);
  CHECK(scale_of("tied/" + a.value().node.text()) == 8);
  CHECK(scale_of("tied/" + b.value().node.text()) == 16);
  const auto values = r.values_in(g);
  CHECK(values.size() == 7);
  CHECK(std::count(values.begin(), values.end(), std::pair{b.value(), CalibrationEntry::per_tensor(16)}) == 1);
}

TEST_CASE("a calibration record holds what the constants of a quantised graph say") {
  Graph g("quantised");
  ops::Dequantize by_column;
  by_column.axis = 1;
  const Tensor zeros = Tensor::of<std::int8_t>({2}, std::vector<std::int8_t>{-3, 4});
  const Expr a = g.dequantize(g.param("w", Shape({3, 2}, DType::I8)),
                              Operand(g.constant(test::doubles({2}, {0.5, 0.25}).cast(DType::F32))), by_column,
                              Operand(g.constant(zeros)));
  const Expr run = g.dequantize(g.param("v", Shape({3}, DType::I8)), Operand(g.input("s", Shape({}, DType::F32))));
  const Expr blocks = g.dequantize(g.param("b", Shape({1, 34}, DType::U8)), QuantScheme::Q8_0);
  ops::FakeQuantize fixed;
  fixed.mode = ScaleMode::Fixed;
  const Expr faked = g.fake_quantize(g.input("x", Shape({2}, DType::F32)), fixed, Operand(g.scalar(0.125F))).y;
  g.set_label(faked.value().node, "act");
  const Expr measured = g.fake_quantize(g.input("y", Shape({2}, DType::F32))).y;
  g.set_outputs({a, run, blocks, faked, measured});
  const CalibrationRecord r = CalibrationRecord::of(g);
  CHECK(r.entries().size() == 2);
  REQUIRE(r.find("w"));
  CHECK(*r.find("w") == CalibrationEntry{1, {0.5, 0.25}, {-3, 4}});
  REQUIRE(r.find("act"));
  CHECK(*r.find("act") == CalibrationEntry::per_tensor(0.125));
  const auto values = r.values_in(g);
  REQUIRE(values.size() == 2);
  CHECK(values[0].first == a.value());
  CHECK(values[1].first == faked.value());
}

}  // namespace
}  // namespace rlx
