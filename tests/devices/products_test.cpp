// Every form of the products' kernels on the device: with few rows, in blocks and tiles, cut along what is summed, of
// decoded codes, and attention in both of its tiles; as they are written for hardware and for rasterisers.
#include <doctest/doctest.h>

#include <limits>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/tensor/block_schemes.h"
#include "tests/devices/test_device.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

// What is run, and a part of the name of the kernel that has to do it, by what kernels are written for.
struct Form {
  std::string kernels, name;
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
      INFO("kernels for ", std::string(kernels));
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

// -- codes --

namespace {

// A decoded table: the graph so far, its value, and the codes of blocks, whose scales have to be numbers.
struct CodedTable {
  Graph g{"table"};
  Value decoded;
  NamedTensors codes;
};
CodedTable table_of_blocks(QuantScheme scheme, DType t, std::int64_t rows = 24, std::int64_t columns = 0) {
  CodedTable table;
  ops::Dequantize op;
  op.scheme = scheme, op.dtype = t;
  const BlockLayout& l = block_layout(scheme);
  if (columns == 0) columns = 2 * l.elements;
  op.dims = {rows, columns};
  table.decoded = table.g.add(op, {table.g.input("codes", Shape({rows, columns / l.elements * l.bytes}, DType::U8))});
  Tensor codes = Tensor::zeros(table.g.shape(NodeId{0}));
  const Tensor numbers = test::draw(Shape(op.dims, DType::F32), Fill::Unit, 1, 9);
  quantize_blocks(scheme, numbers.values<float>(), {codes.mutable_data(), codes.size_bytes()});
  table.codes.emplace("codes", codes);
  return table;
}
CodedTable affine_table(DType codes, std::optional<std::int64_t> axis, std::int64_t block, Dims dims) {
  CodedTable table;
  ops::Dequantize op;
  op.axis = axis, op.block = block, op.present.bits = 0b110;
  Dims of;
  if (axis) {
    of = block ? dims : Dims{dims[static_cast<std::size_t>(*axis)]};
    Dim& along = of[block ? static_cast<std::size_t>(*axis) : 0];
    if (block) along = floordiv(along + Dim(block - 1), Dim(block));
  }
  Graph& g = table.g;
  const Expr q = g.input("codes", Shape(dims, codes)), scale = g.input("scale", Shape(of, DType::F32)),
             zero = g.input("zero", Shape(of, codes));
  table.decoded = g.add(op, {q, scale, zero});
  return table;
}

void expect_coded_gather(const CodedTable& table, const ops::Gather& op) {
  Graph g(table.g);
  std::vector<Value> operands{table.decoded};
  NamedTensors values = table.codes;
  for (std::size_t i = 0; i < op.axes.size(); ++i) {
    const std::string name = concat_text("ids", i);
    operands.push_back(g.input(name, Shape({2, 5}, i == 0 ? DType::I32 : DType::I64)));
    Tensor ids = Tensor::zeros(g.shape(operands.back()));
    for (std::int64_t k = 0; k < 10; ++k) ids.set_i64(k, (k * 7 + 3) % 29 - 2);  // some lie outside
    values.emplace(name, ids);
  }
  g.set_outputs({g.add(op, std::move(operands))});
  CompiledGraph f = Session(test::test_device()).compile(Graph(g));
  CHECK(test::host_part(f) == "");
  NamedTensors all = product_values(g);
  for (const auto& [name, value] : values) all.insert_or_assign(name, value);
  const std::string kernels = kernels_of(f, all);
  CHECK_MESSAGE(kernels.find("gather_coded") != std::string::npos, kernels);
  CHECK_MESSAGE(kernels.find("dequantize") == std::string::npos, kernels);
  test::check_runs(f, g, all);
}

}  // namespace

TEST_CASE("device: rows of a table of codes are decoded as they are read") {
  if (!test::generated_kernels_here()) return;
  const ops::Gather rows{{0}}, filled{{0}, IndexMode::Fill, -1.5};
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    const auto scheme = static_cast<QuantScheme>(i);
    CAPTURE(enum_name(scheme));
    expect_coded_gather(table_of_blocks(scheme, DType::F32), rows);
    expect_coded_gather(table_of_blocks(scheme, i % 2 ? DType::F16 : DType::BF16), filled);
    expect_coded_gather(table_of_blocks(scheme, DType::F32), {{1}, IndexMode::Fill, 0});
  }
  expect_coded_gather(table_of_blocks(QuantScheme::Q4_K, DType::F32), {{0, 1}});
  for (DType codes : {DType::I8, DType::U8, DType::I16}) {
    CAPTURE(dtype_name(codes));
    for (const Dims& dims : {Dims{24, 16}, Dims{25, 7}}) {
      expect_coded_gather(affine_table(codes, {}, 0, dims), rows);
      expect_coded_gather(affine_table(codes, 0, 0, dims), rows);
      expect_coded_gather(affine_table(codes, 1, 0, dims), filled);
      expect_coded_gather(affine_table(codes, 1, 4, dims), rows);
      expect_coded_gather(affine_table(codes, 0, 8, dims), {{1}});
    }
  }
}

TEST_CASE("device: products of codes that a thread walks in whole groups") {
  if (!test::generated_kernels_here()) return;
  const auto check = [](std::int64_t rows, std::int64_t n, QuantScheme scheme, DType t, const char* kernel) {
    CAPTURE(rows);
    CAPTURE(enum_name(scheme));
    const CodedTable w = table_of_blocks(scheme, t, n, 4096);
    Graph g(w.g);
    g.set_outputs({g.dot_general(g.input("x", Shape({rows, 4096}, t)), g.expr(w.decoded), turned())});
    NamedTensors values = product_values(g);
    for (const auto& [name, value] : w.codes) values.insert_or_assign(name, value);
    for (const char* kernels : {"software", "hardware"}) {
      CompiledGraph f = Session(DeviceId{test::test_device()}, {{"kernels", kernels}}).compile(Graph(g));
      const std::string names = kernels_of(f, values);
      CHECK_MESSAGE((names.find(kernel) != std::string::npos || rows > 4), names);
      test::check_runs(f, g, values);
    }
  };
  for (QuantScheme scheme :
       {QuantScheme::Q8_0, QuantScheme::Q5_1, QuantScheme::Q3_K, QuantScheme::Q4_K, QuantScheme::Q6_K}) {
    check(1, 40, scheme, DType::F32, "gemv_rows");
    check(3, 6, scheme, DType::BF16, "finish_dot");  // in parts
    check(64, 64, scheme, DType::F32, "dot");
  }
}

TEST_CASE("device: a table that is too large for a kernel once it is decoded is read as codes") {
  if (!test::generated_kernels_here()) return;
  const auto host = [](bool sums) {
    Graph g("embedding");
    ops::Dequantize op;
    op.scheme = QuantScheme::Q4_0, op.dims = {200000, 256};  // 195 MiB of numbers, 27 of codes; a binding has 128
    const Expr table = g.add(op, {g.input("codes", Shape({200000, 144}, DType::U8))});
    const Expr rows = g.gather(table, g.input("ids", Shape({3}, DType::I32)), 0);
    g.set_outputs({sums ? g.sum(table, {1}) : g.dot_general(rows, table, turned())});
    return test::host_part(Session(DeviceId{Device::WebGpu}).compile(std::move(g)));
  };
  if (test::test_device() != Device::WebGpu) return;  // the limit of others is their driver's
  CHECK(host(false) == "");
  CHECK(host(true) != "");
}

// -- rows of groups --

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
    NamedTensors values = product_values(g);
    Tensor own = Tensor::zeros(of.shape());
    for (std::int64_t i = 0; i < rows; ++i) own.set_i64(i, (i * 3 + i / 7) % 7 - 1);  // -1 and 5 are none
    values.insert_or_assign("of", own);
    for (const char* kernels : {"software", "hardware"}) {
      CompiledGraph f = Session(DeviceId{test::test_device()}, {{"kernels", kernels}}).compile(Graph(g));
      CHECK(test::host_part(f) == "");
      const std::string names = kernels_of(f, values);
      CHECK_MESSAGE(names.find(rows > 8 ? "grouped_tiles" : "gemv_columns") != std::string::npos, names);
      test::check_runs(f, g, values);
    }
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
    NamedTensors values = product_values(bound);
    const Tensor& numbers = values.at("w");
    Tensor hot = Tensor::copy_of(numbers.data(), numbers.shape()), own = Tensor::zeros(Shape({rows}, DType::I32));
    hot.set(100, std::numeric_limits<double>::infinity());
    hot.set(170, std::numeric_limits<double>::quiet_NaN());
    for (std::int64_t i = 0; i < rows; ++i) own.set_i64(i, (i * 5) % 4);  // 3 is none
    values.insert_or_assign("w", hot), values.insert_or_assign("ids", own);
    test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(bound, values));
  }
}

TEST_CASE("device: attention in tiles of many and of few rows, and cut along the keys") {
  if (!test::generated_kernels_here()) return;
  for (const MaskKind mask : {MaskKind::None, MaskKind::Causal, MaskKind::SlidingWindow})
    for (const auto& [rows, keys] : {std::pair{70, 70}, std::pair{2, 100}, std::pair{1, 1100}, std::pair{37, 600}})
      for (const auto& [width, kv] : {std::pair{16, 2}, std::pair{6, 1}}) {
        const int queries = rows, depth = width;  // clang captures no structured bindings
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
    INFO("kernels for ", std::string(kernels));
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
      INFO("kernels for ", std::string(kernels));
      CompiledGraph f = Session(DeviceId{test::test_device()}, {{"kernels", kernels}}).compile(Graph(g));
      test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(g, values));
    }
  }
}

TEST_SUITE_END();

}  // namespace rlx
