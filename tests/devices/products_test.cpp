// Every form of the products' kernels on the device: with few rows, in blocks and tiles, cut along what is summed, of
// decoded codes, and attention in both of its tiles; as they are written for hardware and for rasterisers.
#include <doctest/doctest.h>

#include <limits>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/tensor/block_schemes.h"
#include "tests/devices/test_device.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

// What is run, and a part of the name of the kernel that has to do it, by what kernels are written for.
struct Form {
  const char* kernels;
  const char* name;
};

// The kernels of a run, one after the other.
std::string kernels_of(CompiledGraph& f, const NamedTensors& values) {
  std::vector<TensorView> inputs;
  for (const IoInfo& in : f.inputs()) inputs.push_back(values.at(in.name).view());
  std::string names;
  for (const NodeTime& t : f.profile(inputs)) names += t.op + ": " + t.kernel + "\n";
  return names;
}

// Values that differ: whole numbers from -3 to 3 or of all bytes, other numbers around 0.
NamedTensors product_values(const Graph& g) {
  NamedTensors values;
  std::uint64_t seed = 1;
  for (NodeId id : g.leaves(OpKind::Input)) {
    const DType t = g.shape(id).dtype();
    const Fill fill = t == DType::U8 ? Fill::Index : is_int(t) ? Fill::Small : Fill::Unit;
    values.emplace(g.leaf_name(id), test::draw(g.shape(id), fill, 256, seed++));
  }
  return values;
}

void expect_form(const Graph& g, const Form& form) {
  INFO("kernels for ", form.kernels);
  CompiledGraph f = Session(DeviceId{test::test_device()}, {{"kernels", form.kernels}}).compile(Graph(g));
  CHECK(test::host_part(f) == "");
  const NamedTensors values = product_values(g);
  const std::string kernels = kernels_of(f, values);
  CHECK_MESSAGE(kernels.find(form.name) != std::string::npos, "no kernel ", form.name, " but ", kernels);
  test::check_runs(f, g, values);
}
void expect_forms(const Graph& g, const char* software, const char* hardware) {
  expect_form(g, {"software", software});
  expect_form(g, {"hardware", hardware});
}

Graph product(const Shape& x, const Shape& w, const ops::DotGeneral& op) {
  Graph g("product");
  g.set_outputs({g.dot_general(g.input("x", x), g.input("w", w), op)});
  return g;
}
ops::DotGeneral plain() { return {{1}, {0}, {}, {}}; }
ops::DotGeneral turned() { return {{1}, {1}, {}, {}}; }  // w [N, K]

}  // namespace

TEST_SUITE_BEGIN("products");

TEST_CASE("device: products in tiles, cut by edges or not, of every layout") {
  if (!test::generated_kernels_here()) return;
  for (DType t : {DType::F32, DType::F16, DType::BF16, DType::I32, DType::I8}) {
    CAPTURE(dtype_name(t));
    for (const auto& dims : {std::array{64, 128, 32}, std::array{70, 36, 20}, std::array{9, 7, 5}}) {
      const int m = dims[0], n = dims[1], k = dims[2];  // clang 15 captures no structured bindings
      CAPTURE(m);
      expect_forms(product(Shape({m, k}, t), Shape({k, n}, t), plain()), "dot_blocks", "dot_tiles");
      expect_forms(product(Shape({m, k}, t), Shape({n, k}, t), turned()), "dot_blocks", "dot_tiles");
      expect_forms(product(Shape({k, m}, t), Shape({k, n}, t), {{0}, {0}, {}, {}}), "dot_blocks", "dot_tiles");
      expect_forms(product(Shape({2, m, k}, t), Shape({2, k, n}, t), {{2}, {1}, {0}, {0}}), "dot_blocks", "dot_tiles");
    }
  }
}

TEST_CASE("device: products large enough for four steps a turn") {
  if (!test::generated_kernels_here()) return;
  const Shape x({256, 256}, DType::F32), w({256, 256}, DType::F32);
  expect_forms(product(x, w, plain()), "dot_blocks", "dot_tiles");
  expect_forms(product(x, w, turned()), "dot_blocks", "dot_tiles");
}

TEST_CASE("device: products cut along what is summed") {
  if (!test::generated_kernels_here()) return;
  for (std::int64_t k : {2000, 2048}) {
    CAPTURE(k);
    expect_forms(product(Shape({8, k}, DType::F32), Shape({k, 12}, DType::F32), plain()), "finish_dot", "finish_dot");
    expect_forms(product(Shape({3, 8, k}, DType::F32), Shape({3, 12, k}, DType::F32), {{2}, {2}, {0}, {0}}),
                 "finish_dot", "finish_dot");
  }
  expect_forms(product(Shape({1, 8192}, DType::F32), Shape({8192, 4}, DType::F32), plain()), "finish_dot",
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
        expect_forms(product(Shape({few, k}, t), Shape({n, k}, t), turned()), "gemv_rows", "gemv_rows");
        expect_forms(product(Shape({few, k}, t), Shape({k, n}, t), plain()), "gemv_columns", "gemv_columns");
        expect_forms(product(Shape({n, k}, t), Shape({few, k}, t), turned()), "gemv_rows", "gemv_rows");
        expect_forms(product(Shape({2, k, n}, t), Shape({2, k, few}, t), {{1}, {1}, {0}, {0}}), "gemv_columns",
                     "gemv_columns");
      }
}

TEST_CASE("device: products of decoded codes, whose kernels read the codes") {
  if (!test::generated_kernels_here()) return;
  const auto check = [](std::int64_t rows, const Expr& w, bool is_turned, const Graph& of, const NamedTensors& codes) {
    Graph g(of);
    const Expr x = g.input("x", Shape({rows, w.dim(is_turned ? 1 : 0)}, DType::F32));
    g.set_outputs({g.dot_general(x, g.expr(w), is_turned ? turned() : plain())});
    for (const char* kernels : {"software", "hardware"}) {
      INFO("kernels for ", kernels);
      CompiledGraph f = Session(DeviceId{test::test_device()}, {{"kernels", kernels}}).compile(Graph(g));
      CHECK(test::host_part(f) == "");
      NamedTensors values = product_values(g);
      for (const auto& [name, value] : codes) values.insert_or_assign(name, value);
      CHECK(kernels_of(f, values).find("dequantize") == std::string::npos);
      test::check_runs(f, g, values);
    }
  };
  for (std::int64_t rows : {1, 3, 20}) {
    CAPTURE(rows);
    for (int i = 1; i < kNumQuantSchemes; ++i) {
      ops::Dequantize op;
      op.scheme = static_cast<QuantScheme>(i);
      CAPTURE(enum_name(op.scheme));
      const BlockLayout& l = block_layout(op.scheme);
      op.dims = {24, 2 * l.elements};
      Graph g("blocks");
      const Expr w = g.add(op, {g.input("codes", Shape({24, 2 * l.bytes}, DType::U8))});
      Tensor codes = Tensor::zeros(g.shape(NodeId{0}));
      const Tensor numbers = test::draw(Shape(op.dims, DType::F32), Fill::Unit, 1, 9);
      quantize_blocks(op.scheme, numbers.values<float>(), {codes.mutable_data(), codes.size_bytes()});
      check(rows, w, true, g, {{"codes", codes}});
    }
    struct Affine {
      DType codes;
      std::optional<std::int64_t> axis;
      std::int64_t block;
    };
    for (const Affine& a : {Affine{DType::I8, {}, 0}, Affine{DType::I8, 0, 0}, Affine{DType::U8, 1, 0},
                            Affine{DType::I8, 1, 8}, Affine{DType::U8, 0, 4}, Affine{DType::I16, 1, 16}}) {
      for (bool is_turned : {false, true}) {
        CAPTURE(dtype_name(a.codes));
        CAPTURE(a.block);
        ops::Dequantize op;
        op.axis = a.axis, op.block = a.block, op.present.bits = 0b110;
        Dims dims{32, 24};
        Graph g("affine");
        Dims of;
        if (a.axis) of = a.block ? dims : Dims{dims[static_cast<std::size_t>(*a.axis)]};
        if (a.block)
          of[static_cast<std::size_t>(*a.axis)] =
              (dims[static_cast<std::size_t>(*a.axis)].value() + a.block - 1) / a.block;
        const Expr codes = g.input("codes", Shape(dims, a.codes)), scale = g.input("scale", Shape(of, DType::F32)),
                   zero = g.input("zero", Shape(of, a.codes));
        check(rows, g.add(op, {codes, scale, zero}), is_turned, g, {});
      }
    }
  }
}

TEST_CASE("device: attention in tiles of many and of few rows, and cut along the keys") {
  if (!test::generated_kernels_here()) return;
  for (const MaskKind mask : {MaskKind::None, MaskKind::Causal, MaskKind::SlidingWindow})
    for (const auto& [queries, keys] : {std::pair{70, 70}, std::pair{2, 100}, std::pair{1, 1100}, std::pair{37, 600}})
      for (const auto& [depth, kv] : {std::pair{16, 2}, std::pair{6, 1}}) {
        CAPTURE(enum_name(mask));
        CAPTURE(queries);
        CAPTURE(depth);
        Graph g("attention");
        ops::Attention op;
        op.num_heads = 2, op.kv_heads = kv, op.head_dim = depth, op.mask = mask, op.window = 40;
        const Expr y = g.add(op, {g.input("q", Shape({2, queries, 2 * depth}, DType::F32)),
                                  g.input("k", Shape({2, keys, kv * depth}, DType::F32)),
                                  g.input("v", Shape({2, keys, kv * depth}, DType::F32))});
        g.set_outputs({y, y.result(1)});
        const char* name = queries > 8 ? "attention_f32" : keys > 512 ? "attention_merge" : "attention_few_f32";
        expect_forms(g, name, name);
      }
}

TEST_CASE("device: products, norms and attention of extents that a run knows") {
  if (!test::generated_kernels_here()) return;
  Graph g("symbolic");
  const Dim n = g.symbol("n", {.min = 1, .max = 300});
  const Expr x = g.input("x", Shape({2, n, 32}, DType::F32));
  ops::Attention op;
  op.num_heads = op.kv_heads = 2, op.head_dim = 16, op.mask = MaskKind::Causal;
  const Expr y = g.add(op, {x, x, x});
  const Expr z = g.matmul(y, g.input("w", Shape({32, 24}, DType::F32)));
  g.set_outputs({g.softmax(g.dot_general(z, x, ops::DotGeneral{{1}, {1}, {0}, {0}}), 2), g.softmax(z, 1), y.result(1)});
  for (const char* kernels : {"software", "hardware"}) {
    INFO("kernels for ", kernels);
    CompileOptions options;
    options.symbol_modes.emplace("n", SymbolMode::runtime());
    CompiledGraph f = Session(DeviceId{test::test_device()}, {{"kernels", kernels}}).compile_with(Graph(g), options);
    CHECK(test::host_part(f) == "");
    for (std::int64_t of : {1, 8, 33, 130}) {
      CAPTURE(of);
      const Graph bound = g.bind({{"n", of}});
      const NamedTensors values = product_values(bound);
      test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(bound, values));
    }
  }
}

TEST_CASE("device: NaN and infinities in products, softmax and attention") {
  if (!test::generated_kernels_here()) return;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t queries : {2, 12}) {
    CAPTURE(queries);
    Graph g("special");
    const Expr q = g.input("q", Shape({1, queries, 4}, DType::F32)), k = g.input("k", Shape({1, 5, 4}, DType::F32)),
               v = g.input("v", Shape({1, 5, 4}, DType::F32)), mask = g.input("m", Shape({queries, 5}, DType::F32));
    ops::Attention plain_form, biased;
    plain_form.head_dim = biased.head_dim = 4, biased.mask = MaskKind::Bias;
    const Expr y = g.add(biased, {q, k, v, mask}), z = g.add(plain_form, {q, k, v});
    g.set_outputs(
        {y, y.result(1), z, z.result(1), g.softmax(mask, 1), g.softmax(mask, 0), g.matmul(mask, g.reshape(k, {5, 4}))});
    NamedTensors values = product_values(g);
    const auto put = [&](const char* name, std::int64_t i, double x) {
      const Tensor& old = values.at(name);
      Tensor t = Tensor::copy_of(old.data(), old.shape());
      t.set(i, x);
      values.insert_or_assign(name, t);
    };
    SUBCASE("a row that sees nothing, and one that sees the largest numbers") {
      for (int j = 0; j < 5; ++j) put("m", j, -inf);
      put("m", 6, 3e38), put("m", 7, -3e38);
    }
    SUBCASE("NaN at a hidden key, and an infinite value there") {
      for (std::int64_t i = 0; i < queries; ++i) put("m", i * 5 + 2, -inf), put("m", i * 5 + 3, -inf);
      put("v", 8, nan), put("v", 13, inf), put("k", 8, nan);
    }
    SUBCASE("NaN and +inf among the scores") { put("m", 1, nan), put("m", 7, inf), put("v", 4, inf); }
    SUBCASE("NaN of a query") { put("q", 3, nan), put("q", 5, inf); }
    for (const char* kernels : {"software", "hardware"}) {
      INFO("kernels for ", kernels);
      CompiledGraph f = Session(DeviceId{test::test_device()}, {{"kernels", kernels}}).compile(Graph(g));
      test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(g, values));
    }
  }
}

TEST_SUITE_END();

}  // namespace rlx
