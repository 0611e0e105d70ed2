// Products of rows with the matrices of their groups.
#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/forms.h"
#include "tests/devices/test_device.h"
#include "tests/support/run_check.h"

namespace rlx {

TEST_SUITE_BEGIN("kernel_variants");

TEST_CASE("device: rows of many groups, in tiles where they are many") {
  if (!test::generated_kernels_here()) return;
  const auto check = [](std::int64_t rows, std::int64_t n, std::int64_t k, bool is_turned, DType t, DType ids) {
    CAPTURE(rows);
    CAPTURE(n);
    CAPTURE(dtype_name(t));
    constexpr std::int64_t groups = 5;
    Graph g("groups");
    const Expr x = g.input("x", Shape({rows, k}, t)),
               w = g.input("w", Shape(is_turned ? Dims{groups, n, k} : Dims{groups, k, n}, t)),
               of = g.input("of", Shape({rows}, ids));
    g.set_outputs({g.grouped_dot(x, is_turned ? g.transpose(w, {0, 2, 1}) : w, of)});
    Tensor own = Tensor::zeros(of.shape());
    for (std::int64_t i = 0; i < rows; ++i) own.set_i64(i, (i * 3 + i / 7) % 7 - 1);  // -1 and 5 are none
    test::expect_packed_layouts(g, rows > 8 ? "grouped_tiles" : "gemv_columns", {{"of", own}});
  };
  for (bool is_turned : {false, true})
    for (std::int64_t rows : {3, 9, 70}) {
      check(rows, 24, 16, is_turned, DType::F32, DType::I32);
      check(rows, 13, 6, is_turned, DType::F32, DType::I64);
    }
  for (DType t : {DType::BF16, DType::F16, DType::I32})
    for (std::int64_t rows : {3, 20}) check(rows, 13, 16, false, t, DType::I32);
  check(512, 256, 128, false, DType::F32, DType::I32);  // large enough for four steps a turn
  check(512, 256, 128, true, DType::F32, DType::I32);
}

TEST_CASE("device: what is infinite in a matrix does no harm to rows of other groups, known or not how many") {
  if (!test::generated_kernels_here()) return;
  Graph g("groups");
  const Dim m = g.symbol("m", {.min = 0, .max = 3000});
  const Expr x = g.input("x", Shape({m, 8}, DType::F32)), w = g.input("w", Shape({3, 8, 12}, DType::F32)),
             ids = g.input("ids", Shape({m}, DType::I32)), y = g.input("y", Shape({m, 12}, DType::F32));
  g.set_outputs({g.grouped_dot(x, w, ids), g.grouped_dot_contract(x, y, ids, 3)});
  CompileOptions options;
  options.symbol_modes.emplace("m", SymbolMode::runtime());
  CompiledGraph f = Session(test::test_device()).compile_with(Graph(g), options);
  CHECK(test::host_part(f) == "");
  for (std::int64_t rows : {0, 1, 21, 1500}) {
    CAPTURE(rows);
    const Graph bound = g.bind({{"m", rows}});
    NamedTensors values = test::packed_values(bound);
    const Tensor& numbers = values.at("w");
    Tensor hot = Tensor::copy_of(numbers.data(), numbers.shape()), own = Tensor::zeros(Shape({rows}, DType::I32));
    hot.set(100, std::numeric_limits<double>::infinity());
    hot.set(170, std::numeric_limits<double>::quiet_NaN());
    for (std::int64_t i = 0; i < rows; ++i) own.set_i64(i, (i * 5) % 4);  // 3 is none
    values.insert_or_assign("w", hot), values.insert_or_assign("ids", own);
    test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(bound, values));
  }
}

TEST_SUITE_END();

}  // namespace rlx
