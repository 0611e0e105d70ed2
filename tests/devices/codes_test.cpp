// Kernels that read codes and decode them: products and gathers, of every scheme of blocks and of affine codes.
#include <doctest/doctest.h>

#include <optional>

#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/tensor/block_schemes.h"
#include "tests/devices/forms.h"
#include "tests/devices/test_device.h"
#include "tests/support/block_codes.h"
#include "tests/support/samples.h"

namespace rlx {
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
  const std::span<std::byte> bytes{codes.mutable_data(), codes.size_bytes()};
  if (makes_blocks(scheme))
    quantize_blocks(scheme, test::draw(Shape(op.dims, DType::F32), Fill::Unit, 1, 9).values<float>(), bytes);
  else
    test::fill_blocks(scheme, bytes, 9);
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
  test::expect_packed_layouts(g, "gather_coded", values, "dequantize");
}

// x [rows, K] times the table, as [N, K] if it is turned, by a kernel that reads its codes.
void expect_coded_product(const CodedTable& w, std::int64_t rows, bool is_turned, const char* kernel) {
  Graph g(w.g);
  const Shape table = g.shape(w.decoded);
  const Expr x = g.input("x", Shape({rows, table.dim(is_turned ? 1 : 0)}, table.dtype()));
  g.set_outputs({g.dot_general(x, g.expr(w.decoded), is_turned ? test::matmul_nk() : test::matmul_kn())});
  test::expect_packed_layouts(g, kernel, w.codes, "dequantize");
}

}  // namespace

TEST_SUITE_BEGIN("kernel_variants");

TEST_CASE("device: products of decoded codes, whose kernels read the codes") {
  if (!test::generated_kernels_here()) return;
  for (std::int64_t rows : {1, 3, 20}) {
    for (int i = 1; i < kNumQuantSchemes; ++i)
      if (block_layout(static_cast<QuantScheme>(i)).plain())
        expect_coded_product(table_of_blocks(static_cast<QuantScheme>(i), DType::F32), rows, true, "");
    struct Affine {
      DType codes;
      std::optional<std::int64_t> axis;
      std::int64_t block;
    };
    for (const Affine& a : {Affine{DType::I8, {}, 0}, Affine{DType::I8, 0, 0}, Affine{DType::U8, 1, 0},
                            Affine{DType::I8, 1, 8}, Affine{DType::U8, 0, 4}, Affine{DType::I16, 1, 16}})
      for (bool is_turned : {false, true})
        expect_coded_product(affine_table(a.codes, a.axis, a.block, {32, 24}), rows, is_turned, "");
  }
}

TEST_CASE("device: rows of a table of codes are decoded as they are read") {
  if (!test::generated_kernels_here()) return;
  const ops::Gather rows{{0}}, filled{{0}, IndexMode::Fill, -1.5};
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    const auto scheme = static_cast<QuantScheme>(i);
    if (!block_layout(scheme).plain()) continue;
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
  for (QuantScheme scheme :
       {QuantScheme::Q8_0, QuantScheme::Q5_1, QuantScheme::Q3_K, QuantScheme::Q4_K, QuantScheme::Q6_K}) {
    expect_coded_product(table_of_blocks(scheme, DType::F32, 40, 4096), 1, true, "gemv_rows");
    expect_coded_product(table_of_blocks(scheme, DType::BF16, 6, 4096), 3, true, "finish_dot");  // in parts
    // Chains of 4096 terms, as software adapters make them, leave the bound.
    expect_coded_product(table_of_blocks(scheme, DType::F32, 64, 512), 64, true, "dot_");
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
    g.set_outputs({sums ? g.sum(table, {1}) : g.dot_general(rows, table, test::matmul_nk())});
    return test::host_part(Session(DeviceId{Device::WebGpu}).compile(std::move(g)));
  };
  if (test::test_device() != Device::WebGpu) return;  // the limit of others is their driver's
  CHECK(host(false) == "");
  CHECK(host(true) != "");
}

TEST_SUITE_END();

}  // namespace rlx
