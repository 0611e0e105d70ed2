// The README's program and its neighbours: if one of these fails, nothing else matters.
#include <doctest/doctest.h>

#include "rlx/rlx.h"

// A product before main: no initialiser of the library has run when this file is linked before it.
namespace {
std::vector<float> product_of_ones() {
  rlx::Graph g("early");
  auto x = g.input("x", {{64, 256}, rlx::DType::F32});
  g.set_outputs({g.relu(g.matmul(x, g.param("w", {{256, 512}, rlx::DType::F32}))) * 2.0});
  auto f = rlx::Session(rlx::Device::Cpu).compile(std::move(g));
  f.set_param("w", std::vector<float>(256 * 512, 1.0F));
  return f.run({{"x", std::vector<float>(64 * 256, 1.0F)}})[0];
}
const std::vector<float> kEarly = product_of_ones();
}  // namespace

TEST_CASE("a product runs in the initialiser of a global") { CHECK(kEarly == std::vector<float>(64 * 512, 512.0F)); }

TEST_CASE("the README program") {
  rlx::Graph g("hello");
  auto x = g.input("x", {{1, 4}, rlx::DType::F32});
  auto w = g.param("w", {{4, 2}, rlx::DType::F32});
  g.set_outputs({g.matmul(x, w)});
  auto f = rlx::Session(rlx::Device::Cpu).compile(std::move(g));
  f.set_param("w", {1, 0, 0, 1, 1, 0, 0, 1});
  auto y = f.run({{"x", {1, 2, 3, 4}}});
  CHECK(y[0] == std::vector<float>{4, 6});
}

TEST_CASE("operators, scalars and a symbolic dimension") {
  rlx::Graph g("axpy");
  rlx::Dim n = g.symbol("n", {.min = 1, .max = 1024});
  auto x = g.input("x", {{n}, rlx::DType::F32});
  g.set_outputs({2 * x + 0.5});
  auto f = rlx::Session().compile(std::move(g));
  CHECK(f.run({{"x", {1, 2, 3}}})[0] == std::vector<float>{2.5, 4.5, 6.5});
  CHECK(f.run({{"x", {10}}})[0] == std::vector<float>{20.5});
}
