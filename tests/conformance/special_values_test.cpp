// Special values: a compiled program and the evaluator (hence constant folding) give the same kind of number.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/functions.h"
#include "rlx/rlx.h"
#include "tests/support/closeness.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::kInf;

const std::vector<double>& edges() {
  static const std::vector<double> values = {NAN, kInf, -kInf, 0.0,  -0.0, 1.0,   -1.0,  0.5,    -0.5, 2.0,  -2.0,
                                             3.0, -3.0, 7.5,   -7.5, 60.0, -60.0, 1e-40, -1e-40, 3e38, -3e38};
  return values;
}

/// True within a few units in the last place; zeros must have the same sign.
bool agree(DType t, double got, double want) {
  if (got == 0 && want == 0) return std::signbit(got) == std::signbit(want);
  return test::ulps(t, got, want) <= (t == DType::F32 || t == DType::F64 ? 4 : 1);
}

Tensor tensor_of(const std::vector<double>& values, DType t) {
  return Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values).cast(t);
}

/// Compiles `build` over inputs of one dtype and compares with the evaluator, element by element.
template <class F>
void compare(const std::string& name, const std::vector<std::vector<double>>& operands, DType t, F&& build) {
  Graph g;
  std::vector<Expr> in;
  NamedTensors values;
  for (const auto& operand : operands) {
    const std::string leaf = "x" + std::to_string(in.size());
    in.push_back(g.input(leaf, {{static_cast<std::int64_t>(operand.size())}, t}));
    values.emplace(leaf, tensor_of(operand, t));
  }
  g.set_outputs({build(g, in)});
  const Tensor want = evaluate(g, values).at(0);
  CompiledGraph program = Session().compile(std::move(g));
  const Tensor got = program.run_typed(values).at(0);
  for (std::int64_t i = 0; i < want.num_elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK_MESSAGE(agree(t, got.at(i), want.at(i)), name, " ", dtype_name(t), " of ", operands[0][at],
                  operands.size() > 1 ? ", " + std::to_string(operands[1][at]) : std::string(), ": ", got.at(i),
                  ", the evaluator says ", want.at(i));
  }
}

constexpr DType kFloats[] = {DType::F64, DType::F32, DType::F16, DType::BF16};

TEST_CASE("cpu: activations at infinities, zeros, NaN and the ends of the range are those of the evaluator") {
  for (int i = 0; i < kNumActivationKinds; ++i) {
    const auto fn = static_cast<ActivationKind>(i);
    if (!function_row(fn).real) continue;
    for (DType t : kFloats)
      compare(std::string(enum_name(fn)), {edges()}, t,
              [&](Graph& g, const std::vector<Expr>& x) { return g.activation(fn, x[0]); });
  }
}

TEST_CASE("cpu: binary functions at every pair of edges are those of the evaluator") {
  std::vector<double> a, b;
  for (double x : edges())
    for (double y : edges()) {
      a.push_back(x);
      b.push_back(y);
    }
  for (int i = 0; i < kNumBinaryKinds; ++i) {
    const auto fn = static_cast<BinaryKind>(i);
    if (!binary_row(fn).real) continue;
    for (DType t : kFloats)
      compare(std::string(enum_name(fn)), {a, b}, t,
              [&](Graph& g, const std::vector<Expr>& x) { return g.binary(fn, x[0], x[1]); });
  }
}

TEST_CASE("cpu: a row of -inf is -inf under log_softmax and 0 under softmax; NaN and +inf make NaN") {
  const std::vector<std::vector<double>> rows = {{-kInf, -kInf, -kInf, -kInf, -kInf},
                                                 {-kInf, 1, -kInf, 2, 0},
                                                 {-kInf, NAN, -kInf, -kInf, -kInf},
                                                 {-kInf, kInf, -kInf, -kInf, 3},
                                                 {3e38, -3e38, 0, 1, 2}};
  for (const auto& row : rows)
    for (DType t : kFloats) {
      compare("log_softmax", {row}, t, [](Graph& g, const std::vector<Expr>& x) { return g.log_softmax(x[0]); });
      compare("softmax", {row}, t, [](Graph& g, const std::vector<Expr>& x) { return g.softmax(x[0]); });
    }
}

// Two queries of 4 over 5 keys, with masks as exporters write them: the largest negative number means "masked".
TEST_CASE("cpu: attention under masks and sinks of the largest numbers and infinities is the evaluator's") {
  constexpr double kMost = std::numeric_limits<float>::max();
  const std::vector<std::vector<double>> masks = {{-kMost, -kMost, -kMost, -kMost, -kMost}, {-kMost, 0, -kMost, 0, 0},
                                                  {kMost, 3e38, 0, -kMost, 3e38},           {3e38, 3e38, -kInf, 0, 1},
                                                  {-kInf, -kInf, -kInf, -kInf, -kInf},      {kInf, 0, 0, -kInf, 0}};
  for (const auto& mask : masks)
    for (const double sink : {0.5, kMost, -kMost, kInf, -kInf, static_cast<double>(NAN)}) {
      CAPTURE(&mask - masks.data());
      CAPTURE(sink);
      Graph g;
      ops::Attention op;
      op.num_heads = 2, op.kv_heads = 1, op.head_dim = 4, op.mask = MaskKind::Bias, op.layout = HeadLayout::HeadsFirst;
      const Expr q = g.input("q", {{1, 2, 2, 4}, DType::F32}), k = g.input("k", {{1, 1, 5, 4}, DType::F32}),
                 v = g.input("v", {{1, 1, 5, 4}, DType::F32}), m = g.input("m", {{1, 1, 1, 5}, DType::F32}),
                 s = g.input("s", {{2}, DType::F32});
      const Expr with = g.attention(q, k, v, op, {.mask = m, .sinks = s}),
                 plain = g.attention(q, k, v, op, {.mask = m});
      g.set_outputs({with, with.result(1), plain, plain.result(1)});
      const NamedTensors values = {{"q", test::sequence({1, 2, 2, 4}).cast(DType::F32)},
                                   {"k", test::sequence({1, 1, 5, 4}).cast(DType::F32)},
                                   {"v", test::sequence({1, 1, 5, 4}).cast(DType::F32)},
                                   {"m", tensor_of(mask, DType::F32).reshaped({1, 1, 1, 5})},
                                   {"s", tensor_of({sink, 0.25}, DType::F32)}};
      const std::vector<Tensor> want = evaluate(g, values), got = Session().compile(std::move(g)).run_typed(values);
      for (std::size_t r = 0; r < want.size(); ++r)
        for (std::int64_t i = 0; i < want[r].num_elements(); ++i) {
          CAPTURE(r);
          CAPTURE(i);
          const double have = got[r].at(i), exact = want[r].at(i);
          CAPTURE(have);
          CAPTURE(exact);
          CHECK((std::fabs(have - exact) <= 1e-7 || test::ulps(DType::F32, have, exact) <= 16));
        }
    }
}

}  // namespace
}  // namespace rlx
