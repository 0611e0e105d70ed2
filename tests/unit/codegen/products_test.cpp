// The kernels that matmuls, norms and attention become, checked without a device.
#include <doctest/doctest.h>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/quantize.h"
#include "tests/support/codegen_target.h"

namespace rlx {
namespace {

using codegen::Dialect;
using codegen::Kernel;

Dialect for_software() {
  Dialect d;
  d.software = true;
  return d;
}

std::string product_kernels(std::int64_t m, std::int64_t n, std::int64_t k, bool turned, const Dialect& dialect) {
  Graph g("product");
  const Expr x = g.input("x", Shape({m, k}, DType::F32));
  const Expr w = g.input("w", Shape(turned ? Dims{n, k} : Dims{k, n}, DType::F32));
  g.set_outputs({g.dot_general(x, w, ops::DotGeneral{{1}, {turned ? 1 : 0}, {}, {}})});
  std::string names;
  for (const Kernel& kernel : test::kernels_of(std::move(g), {}, dialect)) names += kernel.name + " ";
  return names;
}

// The bytes of workgroup memory that a kernel text declares.
std::size_t shared_bytes(const std::string& text) {
  std::size_t bytes = 0;
  for (std::size_t at = 0; (at = text.find("var<workgroup>", at)) != std::string::npos; ++at) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    const std::size_t element = line.find("vec4") != std::string::npos   ? 16
                                : line.find("vec2") != std::string::npos ? 8
                                                                         : 4;
    const std::size_t comma = line.find("array<") == std::string::npos ? std::string::npos : line.rfind(',');
    bytes += element * (comma == std::string::npos ? 1 : std::stoul(line.substr(comma + 1)));
  }
  return bytes;
}

}  // namespace

TEST_CASE("codegen: the form of a product follows from its extents and the dialect") {
  CHECK(product_kernels(64, 64, 64, false, {}) == "dot_tiles_f32 ");
  CHECK(product_kernels(64, 64, 64, false, for_software()) == "dot_blocks_f32 ");
  CHECK(product_kernels(4, 512, 64, true, {}) == "gemv_rows_f32 ");
  CHECK(product_kernels(4, 512, 64, false, {}) == "gemv_columns_f32 ");
  CHECK(product_kernels(512, 3, 64, true, {}) == "gemv_rows_f32 ");
  CHECK(product_kernels(8, 8, 4096, false, {}) == "dot_tiles_f32 finish_dot ");
  CHECK(product_kernels(8, 8, 4096, false, for_software()) == "dot_blocks_f32 finish_dot ");
  CHECK(product_kernels(0, 8, 16, false, {}).empty());
}

TEST_CASE("codegen: rows of groups are tiles where they may be many") {
  const auto kernels = [](const Dim& rows, Graph g) {
    const Expr x = g.input("x", Shape({rows, 16}, DType::F32)), ids = g.input("ids", Shape({rows}, DType::I32));
    g.set_outputs({g.grouped_dot(x, g.input("w", Shape({4, 16, 24}, DType::F32)), ids)});
    std::string names;
    for (const Kernel& kernel : test::kernels_of(std::move(g))) names += kernel.name + " ";
    return names;
  };
  CHECK(kernels(8, Graph("few")) == "gemv_columns_f32 ");
  CHECK(kernels(9, Graph("many")) == "sort grouped_tiles_f32 ");
  Graph g("symbolic");
  const Dim m = g.symbol("m", {.min = 0, .max = 64});
  CHECK(kernels(m, std::move(g)) == "sort grouped_tiles_f32 ");
}

TEST_CASE("codegen: an embedding of codes reads them in its one kernel") {
  Graph g("embedding");
  ops::Dequantize op;
  op.scheme = QuantScheme::Q4_K, op.dims = {32000, 256};
  const Expr table = g.add(op, {g.input("codes", Shape({32000, 144}, DType::U8))});
  g.set_outputs({g.gather(table, g.input("ids", Shape({7}, DType::I32)), 0)});
  const std::vector<Kernel> kernels = test::kernels_of(std::move(g));
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].name == "gather_coded");
  CHECK(kernels[0].bindings.size() == 3);
}

TEST_CASE("codegen: no kernel of products, norms and attention takes more than every device has") {
  const auto check_kernels = [](Graph g) {
    for (bool software : {false, true}) {
      Dialect d;
      d.software = software;
      const std::vector<Kernel> kernels = test::kernels_of(Graph(g), {}, d);
      CHECK(!kernels.empty());
      for (const Kernel& k : kernels) {
        INFO(k.name);
        CHECK(k.bindings.size() <= 7);
        CHECK(shared_bytes(k.text) <= Dialect{}.shared_bytes);
      }
    }
  };
  for (std::int64_t m : {2, 100}) {
    Graph g("product");
    g.set_outputs({g.matmul(g.input("x", Shape({m, 64}, DType::F32)), g.input("w", Shape({64, 64}, DType::F32)))});
    check_kernels(std::move(g));
  }
  for (std::int64_t queries : {1, 100})
    for (std::int64_t depth : {64, 256}) {  // with every optional operand, and both results
      Graph g("attention");
      const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
      const auto i32 = [](Dims d) { return Shape(std::move(d), DType::I32); };
      ops::Attention op;
      op.num_heads = op.kv_heads = 1, op.head_dim = depth, op.mask = MaskKind::Bias, op.present.bits = 0b1110000;
      const Expr y = g.add(op, {g.input("q", f32({2, queries, depth})), g.input("k", f32({2, 600, depth})),
                                g.input("v", f32({2, 600, depth})), g.input("mask", f32({2, 1, queries, 600})),
                                g.input("kv_len", i32({2})), g.input("q_len", i32({2})), g.input("sinks", f32({1}))});
      g.set_outputs({y, y.result(1)});
      check_kernels(std::move(g));
    }
  Graph g("residual");
  ops::FusedResidualLN op;
  op.present.bits = 0b11100;
  const Shape x({6, 20}, DType::F32), v({20}, DType::F32);
  const Expr y =
      g.add(op, {g.input("x", x), g.input("r", x), g.input("b", v), g.input("gamma", v), g.input("beta", v)});
  g.set_outputs({y, y.result(1), y.result(2), y.result(3)});
  check_kernels(std::move(g));
}

TEST_CASE("codegen: results that nobody reads are not bound") {
  Graph g("norm");
  ops::LayerNorm op;
  op.axes = {1};
  g.set_outputs({g.add(op, {g.input("x", Shape({4, 32}, DType::F32))})});
  const std::vector<Kernel> kernels = test::kernels_of(std::move(g));
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].bindings.size() == 2);
}

TEST_CASE("codegen: no text of products, norms and attention holds the value of a symbol that a run knows") {
  Graph g("symbolic");
  const Dim n = g.symbol("n", {.min = 1, .max = 77777});
  const Expr x = g.input("x", Shape({2, n, 64}, DType::F32));
  ops::Attention op;
  op.num_heads = op.kv_heads = 2, op.head_dim = 32;
  const Expr y = g.add(op, {x, x, x});
  g.set_outputs({g.softmax(g.matmul(y, g.input("w", Shape({64, 64}, DType::F32))), 2)});
  const std::vector<Kernel> kernels = test::kernels_of(std::move(g));
  CHECK(kernels.size() == 3);
  for (const Kernel& k : kernels) CHECK(k.text.find("77777") == std::string::npos);
}

}  // namespace rlx
