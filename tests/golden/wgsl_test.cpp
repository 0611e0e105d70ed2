// Golden texts of generated kernels: tests/golden/wgsl/NAME.wgsl. `golden_tests --update` writes what is generated;
// review the difference.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "tests/support/codegen_target.h"
#include "tests/support/paths.h"
#include "tests/support/shapes.h"
#include "tests/support/update.h"

namespace rlx {
namespace {

struct GoldenKernel {
  const char* name;
  std::function<void(Graph&)> build;
};

const std::vector<GoldenKernel>& golden_kernels() {
  static const std::vector<GoldenKernel> kernels = {
      {"add",
       [](Graph& g) {
         g.set_outputs({g.input("x", test::f32({64, 128})) + g.input("y", test::f32({64, 128}))});
       }},
      {"region_of_a_row",
       [](Graph& g) {
         const Expr x = g.input("x", test::f32({64, 128})), row = g.input("row", test::f32({128}));
         g.set_outputs({g.relu((x + row) * 2.0)});
       }},
      {"region_of_halves",
       [](Graph& g) {
         const Expr x = g.input("x", {{9, 3}, DType::BF16}), y = g.input("y", {{3}, DType::BF16});
         g.set_outputs({g.abs(x * y)});
       }},
      {"symbolic_add",
       [](Graph& g) {
         const Dim n = g.symbol("n", {.min = 1, .max = 64});
         g.set_outputs({g.input("x", test::f32({n, 6})) + g.input("y", test::f32({6}))});
       }},
      {"transpose",
       [](Graph& g) {
         g.set_outputs({g.transpose(g.input("x", {{8, 12, 16}, DType::F16}), {1, 0, 2})});
       }},
      {"sum_of_rows",
       [](Graph& g) {
         g.set_outputs({g.sum(g.input("x", test::f32({5, 1000})), {1})});
       }},
      {"sum_of_columns",
       [](Graph& g) {
         g.set_outputs({g.sum(g.input("x", test::f32({1000, 64})), {0})});
       }},
      {"gather_rows",
       [](Graph& g) {
         g.set_outputs({g.gather(g.input("x", test::f32({100, 64})), g.input("i", {{7}, DType::I64}))});
       }},
      {"scatter_rows",
       [](Graph& g) {
         const Expr x = g.input("x", test::f32({100, 64})), i = g.input("i", {{7}, DType::I32});
         g.set_outputs(
             {g.add(ops::Scatter{ScatterKind::Add, {0}, IndexMode::Drop}, {x, i, g.input("u", test::f32({7, 64}))})});
       }},
      {"product_of_edges",
       [](Graph& g) {
         const Expr y = g.matmul(g.input("x", test::f32({70, 40})), g.input("w", test::f32({40, 90})));
         g.set_outputs({g.relu(y + g.input("b", test::f32({90})))});
       }},
      {"product_of_one_row",
       [](Graph& g) {
         ops::Dequantize codes;
         codes.scheme = QuantScheme::Q4_0, codes.dims = {32, 64};
         const Expr w = g.add(codes, {g.input("codes", Shape({32, 36}, DType::U8))});
         g.set_outputs({g.dot_general(g.input("x", test::f32({1, 64})), w, ops::DotGeneral{{1}, {1}, {}, {}})});
       }},
      {"product_of_one_row_in_groups",  // of codes, whose scales are read once for each
       [](Graph& g) {
         ops::Dequantize codes;
         codes.scheme = QuantScheme::Q4_K, codes.dims = {8, 2048};
         const Expr w = g.add(codes, {g.input("codes", Shape({8, 1152}, DType::U8))});
         g.set_outputs({g.dot_general(g.input("x", test::f32({1, 2048})), w, ops::DotGeneral{{1}, {1}, {}, {}})});
       }},
      {"gather_of_codes",
       [](Graph& g) {
         ops::Dequantize codes;
         codes.scheme = QuantScheme::Q6_K, codes.dims = {100, 256};
         const Expr table = g.add(codes, {g.input("codes", Shape({100, 210}, DType::U8))});
         g.set_outputs({g.gather(table, g.input("i", {{7}, DType::I32}))});
       }},
      {"rows_of_groups",
       [](Graph& g) {
         g.set_outputs({g.grouped_dot(g.input("x", test::f32({20, 12})), g.input("w", test::f32({4, 12, 18})),
                                      g.input("ids", {{20}, DType::I32}))});
       }},
      {"softmax",
       [](Graph& g) {
         g.set_outputs({g.softmax(g.input("x", test::f32({9, 64})), 1)});
       }},
      {"attention_of_one_query",
       [](Graph& g) {
         ops::Attention op;
         op.num_heads = 2, op.kv_heads = 1, op.head_dim = 16, op.mask = MaskKind::Causal;
         g.set_outputs({g.add(op, {g.input("q", test::f32({1, 1, 32})), g.input("k", test::f32({1, 40, 16})),
                                   g.input("v", test::f32({1, 40, 16}))})});
       }},
  };
  return kernels;
}

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("golden texts of generated kernels") {
  std::set<std::string> names;
  for (const GoldenKernel& golden : golden_kernels()) {
    INFO(golden.name);
    Graph g(golden.name);
    golden.build(g);
    std::string got;
    for (const codegen::Kernel& k : test::kernels_of(std::move(g)))
      got += concat_text("// ", k.name, ", ", k.groups, " groups\n", k.text);
    const std::string path = test::source_path(concat_text("tests/golden/wgsl/", golden.name, ".wgsl"));
    names.insert(concat_text(golden.name, ".wgsl"));
    if (test::update_golden() && got != file_text(path)) {
      std::ofstream(path, std::ios::binary) << got;
      MESSAGE("wrote ", path);
    }
    CHECK(got == file_text(path));
  }
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path("tests/golden/wgsl")))
    CHECK_MESSAGE(names.contains(entry.path().filename().string()), entry.path().string(), " is of no kernel");
}

TEST_CASE("golden: no text of a kernel holds the value of a symbol that a run knows") {
  Graph g("symbolic");
  const Dim n = g.symbol("n", {.min = 1, .max = 77777});
  const Expr x = g.input("x", test::f32({n, 6}));
  g.set_outputs({g.sum(g.exp(x) * 2.0, {0}), g.cumsum(x, 0)});
  const std::vector<codegen::Kernel> kernels = test::kernels_of(std::move(g));
  CHECK(kernels.size() > 3);
  for (const codegen::Kernel& k : kernels) CHECK(k.text.find("77777") == std::string::npos);
}

}  // namespace rlx
