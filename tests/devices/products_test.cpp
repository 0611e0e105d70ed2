// Every form of the products' kernels on the device: with few rows, in blocks and tiles, cut along what is summed; as
// they are written for hardware and for rasterisers.
#include <doctest/doctest.h>

#include "rlx/ir/ops/linalg.h"
#include "tests/devices/forms.h"
#include "tests/devices/test_device.h"

namespace rlx {
namespace {

Graph product(const Shape& x, const Shape& w, const ops::DotGeneral& op) {
  Graph g("product");
  g.set_outputs({g.dot_general(g.input("x", x), g.input("w", w), op)});
  return g;
}

}  // namespace

TEST_SUITE_BEGIN("kernel_variants");

TEST_CASE("device: products in tiles, cut by edges or not, of every layout") {
  if (!test::generated_kernels_here()) return;
  for (DType t : {DType::F32, DType::F16, DType::BF16, DType::I32, DType::I8}) {
    CAPTURE(dtype_name(t));
    for (const auto& dims : {std::array{64, 128, 32}, std::array{70, 36, 20}, std::array{9, 7, 5}}) {
      const int m = dims[0], n = dims[1], k = dims[2];  // clang 15 captures no structured bindings
      CAPTURE(m);
      test::expect_packed_layouts_by(product(Shape({m, k}, t), Shape({k, n}, t), test::matmul_kn()), "dot_blocks",
                                     "dot_tiles");
      test::expect_packed_layouts_by(product(Shape({m, k}, t), Shape({n, k}, t), test::matmul_nk()), "dot_blocks",
                                     "dot_tiles");
      test::expect_packed_layouts_by(product(Shape({k, m}, t), Shape({k, n}, t), {{0}, {0}, {}, {}}), "dot_blocks",
                                     "dot_tiles");
      test::expect_packed_layouts_by(product(Shape({2, m, k}, t), Shape({2, k, n}, t), {{2}, {1}, {0}, {0}}),
                                     "dot_blocks", "dot_tiles");
    }
  }
}

TEST_CASE("device: products large enough for four steps a turn") {
  if (!test::generated_kernels_here()) return;
  const Shape x({256, 256}, DType::F32), w({256, 256}, DType::F32);
  test::expect_packed_layouts_by(product(x, w, test::matmul_kn()), "dot_blocks", "dot_tiles");
  test::expect_packed_layouts_by(product(x, w, test::matmul_nk()), "dot_blocks", "dot_tiles");
}

TEST_CASE("device: products cut along what is summed") {
  if (!test::generated_kernels_here()) return;
  for (std::int64_t k : {2000, 2048}) {
    CAPTURE(k);
    test::expect_packed_layouts(product(Shape({8, k}, DType::F32), Shape({k, 12}, DType::F32), test::matmul_kn()),
                                "finish_dot");
    test::expect_packed_layouts(
        product(Shape({3, 8, k}, DType::F32), Shape({3, 12, k}, DType::F32), {{2}, {2}, {0}, {0}}), "finish_dot");
  }
  test::expect_packed_layouts(product(Shape({1, 8192}, DType::F32), Shape({8192, 4}, DType::F32), test::matmul_kn()),
                              "finish_dot");
}

TEST_CASE("device: products with few rows or columns") {
  if (!test::generated_kernels_here()) return;
  for (DType t : {DType::F32, DType::F16})
    for (std::int64_t few = 1; few <= 4; ++few)
      for (const auto& dims : {std::pair{96, 64}, std::pair{33, 19}}) {
        const int n = dims.first, k = dims.second;
        CAPTURE(few);
        CAPTURE(n);
        test::expect_packed_layouts(product(Shape({few, k}, t), Shape({n, k}, t), test::matmul_nk()), "gemv_rows");
        test::expect_packed_layouts(product(Shape({few, k}, t), Shape({k, n}, t), test::matmul_kn()), "gemv_columns");
        test::expect_packed_layouts(product(Shape({n, k}, t), Shape({few, k}, t), test::matmul_nk()), "gemv_rows");
        test::expect_packed_layouts(product(Shape({2, k, n}, t), Shape({2, k, few}, t), {{1}, {1}, {0}, {0}}),
                                    "gemv_columns");
      }
}

TEST_SUITE_END();

}  // namespace rlx
