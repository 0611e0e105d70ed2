// Each difference that a backend's table names is there: shown by a value. And of the ops below, those that the table
// does not name give what the rules give.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rlx/device/registry.h"
#include "rlx/ir/op.h"
#include "rlx/ir/op_def.h"
#include "tests/devices/differences.h"
#include "tests/devices/test_device.h"

namespace rlx {
namespace {

using What = Difference::What;

// An op and operands of F32 whose exact result shows the difference.
struct Witness {
  What what;
  OpBox op;
  std::vector<Tensor> operands;
};

Tensor row(const std::vector<double>& values) {
  return Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values).cast(DType::F32);
}
// 0, m, -m, -m, m, m, -m, -m, ...: sums in order stay between -m and m, those of most parts overflow.
Tensor walk_of_large_steps(std::int64_t n) {
  Tensor t = Tensor::zeros(Shape({n}, DType::F32));
  for (std::int64_t i = 1; i < n; ++i) t.set(i, i % 4 < 2 ? 3e38 : -3e38);
  return t;
}

std::vector<Witness> witnesses() {
  constexpr double tiny = 0x1p-140;
  const Tensor zero_and_tiny = row({0, tiny}), tiny_and_zero = row({tiny, 0});
  const Tensor first = Tensor::zeros(Shape({1}, DType::I32)), walk = walk_of_large_steps(1 << 16);
  const ops::DotGeneral inner{{0}, {0}, {}, {}};
  return {
      {What::Subnormals, ops::Activation{ActivationKind::Sqrt}, {row({tiny})}},
      {What::Subnormals, ops::Binary{BinaryKind::Add}, {row({tiny}), row({tiny})}},
      {What::Subnormals, ops::Compare{CompareKind::Eq}, {row({0}), row({tiny})}},
      {What::Subnormals, ops::Cast{DType::Bool}, {row({tiny})}},
      {What::Subnormals, ops::Reduce{ReduceKind::Sum, {0}, false}, {zero_and_tiny}},
      {What::Subnormals, ops::ArgReduce{ArgReduceKind::Max, 0, false}, {zero_and_tiny}},
      {What::Subnormals, ops::Cumulative{CumulativeKind::Sum, 0, false, false}, {zero_and_tiny}},
      {What::Subnormals, ops::Scatter{ScatterKind::Add, {0}, IndexMode::Drop}, {row({0, 1}), first, row({tiny})}},
      {What::Subnormals, ops::TopK{1}, {zero_and_tiny}},
      {What::Subnormals, ops::Sort{0, false}, {tiny_and_zero}},
      {What::Subnormals, inner, {row({tiny}), row({1})}},
      {What::Subnormals, ops::Where{}, {Tensor::full(Shape({1}, DType::Bool), 1), row({tiny}), row({1})}},
      {What::Subnormals, ops::Reverse{{0}}, {zero_and_tiny}},
      {What::PowOfSubnormal, ops::Binary{BinaryKind::Pow}, {row({tiny}), row({0.5})}},
      {What::ReluOfZero, ops::Activation{ActivationKind::Relu}, {row({-0.0})}},
      {What::OrderOfTerms, ops::Reduce{ReduceKind::Sum, {0}, false}, {walk}},
      {What::OrderOfTerms, ops::Cumulative{CumulativeKind::Sum, 0, false, false}, {walk}},
      {What::OrderOfTerms, inner, {walk, Tensor::full(walk.shape(), 1)}},
  };
}

// Whether two tensors have the same numbers, zeros with their signs, to within four units of the last place.
bool same_numbers(const Tensor& a, const Tensor& b) {
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (std::isnan(x) != std::isnan(y) || std::signbit(x) != std::signbit(y)) return false;
    if (!std::isnan(x) && x != y && !(std::fabs(x - y) <= 4 * 0x1p-23 * std::fabs(y))) return false;
  }
  return true;
}

bool device_differs(const Witness& w) {
  Graph g("witness");
  std::vector<Value> in;
  NamedTensors values;
  for (const Tensor& t : w.operands) {
    const std::string name = concat_text("x", in.size());
    in.push_back(g.input(name, t.shape()));
    values.emplace(name, t);
  }
  g.set_outputs({g.add(w.op, in)});
  const Tensor want = evaluate(g, values).at(0);
  CompiledGraph f = Session(test::test_device()).compile(std::move(g));
  REQUIRE(test::host_part(f) == "");
  return !same_numbers(f.run_typed(values).at(0), want);
}

}  // namespace

TEST_SUITE_BEGIN("conformance");

TEST_CASE("device: numbers differ from the rules' where the table of the backend says so, and nowhere else") {
  if (!test::device_here()) return;
  const std::vector<Witness> all = witnesses();
  for (const Witness& w : all) {
    const bool named = w.what == What::Subnormals && !test::takes_subnormals_for_zero()
                           ? false
                           : test::has_difference(w.what, w.op.kind());
    CHECK_MESSAGE(device_differs(w) == named, std::string(op_text_name(w.op)), std::string(named ? " is not" : " is"),
                  " other than its rule, difference ", static_cast<int>(w.what));
  }
  for (const Difference& d : backend_for(test::test_device())->differences())
    for (OpKind kind : d.kinds) {
      const bool shown = std::any_of(all.begin(), all.end(),
                                     [&](const Witness& w) { return w.what == d.what && w.op.kind() == kind; });
      CHECK_MESSAGE(shown, "no value shows a difference of ", std::string(op_def(kind).name));
      CHECK_MESSAGE(!op_def(kind).is_composite(), std::string(op_def(kind).name), " has the differences of its parts");
    }
}

TEST_SUITE_END();

}  // namespace rlx
