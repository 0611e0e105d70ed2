// Convolutions on each instruction set. Sums of the operands are exact, so every partition and kernel gives the results
// of the reference rule. Also the kernel chosen for a geometry, and filters that are weights, packed once.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/session.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

struct ConvCase {
  std::int64_t batch, depth, multiple, groups;  // features: groups * depth of x, groups * multiple of the result
  std::int64_t rows, cols, row_taps, col_taps;
  std::int64_t stride = 1, pad = 0, rhs_dilation = 1, lhs_dilation = 1;
  const char* kernel = "conv_product";
};

enum class Filters { Input, Param, Constant };

Tensor small_numbers(Dims dims, int most, unsigned seed) {
  Tensor t = Tensor::zeros(Shape(std::move(dims), DType::F32));
  std::mt19937 dice(seed);
  for (float& v : t.mutable_values<float>()) v = static_cast<float>(static_cast<int>(dice() % (2 * most + 1)) - most);
  return t;
}

// The op of a case, and the extents of x and of the filters.
struct ConvOperands {
  ops::Conv op;
  Dims x, w;
};
ConvOperands operands_of(const ConvCase& c, bool last) {
  ConvOperands at;
  ops::Conv& op = at.op;
  op.strides = {c.stride, c.stride};
  op.low = op.high = {c.pad, c.pad};
  op.rhs_dilation = {c.rhs_dilation, c.rhs_dilation};
  op.lhs_dilation = {c.lhs_dilation, c.lhs_dilation};
  op.groups = c.groups;
  const std::int64_t in = c.groups * c.depth, out = c.groups * c.multiple;
  at.x = {c.batch, in, c.rows, c.cols}, at.w = {out, c.depth, c.row_taps, c.col_taps};
  if (last) {
    op.lhs_spec = op.out_spec = {0, 3, 1, 2}, op.rhs_spec = {3, 2, 0, 1};
    at.x = {c.batch, c.rows, c.cols, in}, at.w = {c.row_taps, c.col_taps, c.depth, out};
  }
  return at;
}

void check_conv(const ConvCase& c, bool last, Filters filters, const KernelTable& table, int threads) {
  INFO("batch ", c.batch, " depth ", c.depth, " multiple ", c.multiple, " groups ", c.groups, " of ", c.rows, "x",
       c.cols, " window ", c.row_taps, "x", c.col_taps, " stride ", c.stride, " pad ", c.pad, " dilation ",
       c.rhs_dilation, "/", c.lhs_dilation, last ? " features last " : " features first ", isa_name(table.isa),
       " threads ", threads, " filters ", static_cast<int>(filters));
  const ConvOperands at = operands_of(c, last);
  const ops::Conv& op = at.op;
  const Tensor x = small_numbers(at.x, 4, 1), w = small_numbers(at.w, 3, 2);
  const Tensor operands[] = {x, w};
  const Tensor want = evaluate_op(op, operands).at(0);

  Graph g;
  const Expr a = g.input("x", x.shape());
  const Expr b = filters == Filters::Input   ? g.input("w", w.shape())
                 : filters == Filters::Param ? g.param("w", w.shape())
                                             : g.constant(w);
  g.set_outputs({g.conv(a, b, op)});
  CompiledGraph f = Session().with_isa(std::string(isa_name(table.isa))).with_threads(threads).compile(std::move(g));
  if (filters == Filters::Param) f.set_param("w", w);
  const Tensor y = filters == Filters::Input ? f.run_typed({{"x", x}, {"w", w}})[0] : f.run_typed({{"x", x}})[0];
  CHECK(y.shape() == want.shape());
  const std::span<const float> got = y.values<float>(), expected = want.values<float>();
  CHECK(std::equal(got.begin(), got.end(), expected.begin(), expected.end()));

  std::vector<TensorView> views;
  std::vector<std::vector<std::int64_t>> dims{x.dims(), w.dims()};
  views.push_back({x.data(), DType::F32, dims[0], x.size_bytes()});
  if (filters == Filters::Input) views.push_back({w.data(), DType::F32, dims[1], w.size_bytes()});
  std::set<std::string> kernels;
  for (const NodeTime& t : f.profile(views)) kernels.insert(t.kernel.substr(0, t.kernel.find(' ')));
  CHECK(kernels == std::set<std::string>{c.kernel});
}

void check_everywhere(const ConvCase& c) {
  for (const KernelTable* t : tables())
    for (const bool last : {false, true})
      for (const int threads : {1, 2}) check_conv(c, last, Filters::Input, *t, threads);
}

constexpr const char* kFew = "depthwise_f32";

}  // namespace

TEST_CASE("conv kernels: windows over lines and edges of every length") {
  check_everywhere({1, 24, 40, 1, 9, 23, 3, 3, 1, 1});
  check_everywhere({2, 8, 67, 1, 6, 8, 3, 3, 2, 1});
  check_everywhere({1, 16, 48, 1, 7, 5, 3, 3, 1, 2, 2});
  check_everywhere({1, 12, 20, 1, 5, 6, 4, 4, 1, 2, 1, 2});
  check_everywhere({1, 3, 35, 1, 23, 21, 7, 7, 2, 3});
  check_everywhere({2, 3, 20, 1, 9, 34, 3, 3, 2, 1});
  check_everywhere({1, 1, 17, 1, 8, 19, 5, 5, 1, 2});
  check_everywhere({1, 4, 33, 1, 7, 40, 3, 9, 1, 4});
  check_everywhere({1, 3, 5, 1, 40, 3, 3, 3, 1, 2});      // rows of the image
  check_everywhere({2, 5, 21, 1, 33, 31, 30, 29, 1, 1});  // sums in several blocks of k
  check_everywhere({1, 17, 5, 1, 3, 3, 5, 5, 1, 4});
  check_everywhere({1, 24, 40, 3, 6, 7, 3, 3, 1, 1});
}

TEST_CASE("conv kernels: features by themselves, in lines shorter and longer than vectors") {
  for (const std::int64_t cols : {1, 5, 7, 8, 14, 17, 33})
    for (const std::int64_t taps : {3, 5})
      check_everywhere({1, 1, 1, 21, 7, cols, taps, taps, 1, taps / 2, 1, 1, kFew});
  check_everywhere({2, 1, 1, 35, 14, 19, 3, 3, 2, 1, 1, 1, kFew});
  check_everywhere({1, 1, 1, 16, 20, 22, 7, 7, 1, 3, 1, 1, kFew});
  check_everywhere({1, 1, 1, 19, 11, 20, 5, 5, 2, 2, 1, 1, kFew});
  check_everywhere({2, 1, 1, 18, 7, 7, 3, 3, 1, 2, 2, 1, kFew});
  check_everywhere({1, 1, 1, 18, 30, 30, 1, 9, 1, 4, 1, 1, kFew});
}

TEST_CASE("conv kernels: few features in each group") {
  check_everywhere({1, 4, 4, 5, 9, 21, 3, 3, 1, 1, 1, 1, kFew});
  check_everywhere({2, 4, 4, 8, 9, 12, 3, 3, 2, 1, 1, 1, kFew});
  check_everywhere({1, 2, 2, 11, 8, 9, 5, 5, 1, 2, 1, 1, kFew});
  check_everywhere({1, 1, 2, 9, 8, 19, 3, 3, 1, 1, 1, 1, kFew});
  check_everywhere({1, 3, 8, 3, 6, 18, 3, 3, 1, 1, 1, 1, kFew});
  check_everywhere({1, 8, 8, 4, 7, 20, 3, 3, 1, 0, 2, 1, kFew});
}

TEST_CASE("conv kernels: filters of weights and constants lie in panels, those of groups too") {
  const ConvCase plain{1, 24, 40, 1, 6, 7, 3, 3, 1, 1}, groups{2, 12, 24, 3, 6, 7, 3, 3, 1, 1},
      large{1, 96, 80, 1, 4, 4, 3, 3, 1, 1};  // more elements than constants are folded
  for (const KernelTable* t : tables())
    for (const bool last : {false, true})
      for (const Filters filters : {Filters::Param, Filters::Constant})
        for (const ConvCase& c : {plain, groups, large}) check_conv(c, last, filters, *t, 2);
}

// -- integers and complex numbers --

namespace {

Tensor numbers_as(const Tensor& t, DType to) { return evaluate_op(ops::Cast{to}, std::span(&t, 1)).at(0); }

void check_columns(const ConvCase& c, bool last, DType x_type, DType w_type, DType out, const KernelTable& table,
                   int threads, const char* kernel) {
  INFO("depth ", c.depth, " multiple ", c.multiple, " groups ", c.groups, " of ", c.rows, "x", c.cols, " window ",
       c.row_taps, "x", c.col_taps, " stride ", c.stride, " pad ", c.pad, " dilation ", c.rhs_dilation, "/",
       c.lhs_dilation, last ? " features last " : " features first ", isa_name(table.isa), " threads ", threads, " ",
       dtype_name(x_type), " ", dtype_name(w_type), " ", dtype_name(out));
  const ConvOperands at = operands_of(c, last);
  ops::Conv op = at.op;
  op.high = {c.pad, c.pad - 1};
  if (out != x_type) op.out = out;
  // Integers, whose sums are exact. 8-bit values reach both ends of their range, and sums that are 8-bit wrap.
  const Tensor x = numbers_as(small_numbers(at.x, is_complex(x_type) ? 4 : 127, 1), x_type),
               w = numbers_as(small_numbers(at.w, is_complex(w_type) ? 3 : 127, 2), w_type);
  const Tensor operands[] = {x, w};
  const Tensor want = evaluate_op(op, operands).at(0);
  Graph g;
  const Expr a = g.input("x", x.shape()), b = g.input("w", w.shape());
  g.set_outputs({g.conv(a, b, op)});
  CompiledGraph f = Session().with_isa(std::string(isa_name(table.isa))).with_threads(threads).compile(std::move(g));
  const Tensor y = f.run_typed({{"x", x}, {"w", w}})[0];
  REQUIRE(y.shape() == want.shape());
  CHECK(std::memcmp(y.data(), want.data(), want.size_bytes()) == 0);
  std::vector<std::vector<std::int64_t>> dims{x.dims(), w.dims()};
  std::vector<TensorView> views{{x.data(), x_type, dims[0], x.size_bytes()},
                                {w.data(), w_type, dims[1], w.size_bytes()}};
  for (const NodeTime& t : f.profile(views)) CHECK(t.kernel.substr(0, t.kernel.find(' ')) == kernel);
}

}  // namespace

TEST_CASE("conv kernels: integers and complex numbers are products, with the bits of the reference") {
  const ConvCase cases[] = {{1, 24, 40, 1, 9, 23, 3, 3, 1, 1},   {2, 8, 19, 3, 6, 8, 3, 3, 2, 1},
                            {2, 16, 48, 1, 7, 5, 3, 3, 1, 2, 2}, {1, 12, 20, 1, 5, 6, 4, 4, 1, 2, 1, 2},
                            {3, 3, 35, 1, 13, 21, 7, 7, 2, 3},   {1, 1, 1, 21, 7, 17, 3, 3, 1, 1},
                            {2, 5, 1, 1, 4, 4, 1, 1, 1, 1}};
  const struct {
    DType x, w, out;
  } types[] = {{DType::U8, DType::I8, DType::I32},
               {DType::I8, DType::I8, DType::I8},
               {DType::I32, DType::I32, DType::I32},
               {DType::U64, DType::U64, DType::U64},
               {DType::C64, DType::C64, DType::C64}};
  for (const KernelTable* t : tables())
    for (const bool last : {false, true})
      for (const ConvCase& c : cases)
        for (const auto& type : types) check_columns(c, last, type.x, type.w, type.out, *t, 2, "conv_columns");
  // The conformance tests use the finest partition; here there are parts of the batch, and parts of one batch element.
  check_columns({5, 64, 4, 1, 56, 56, 3, 3, 1, 1}, true, DType::I32, DType::I32, DType::I32, *tables().back(), 2,
                "conv_columns");
  check_columns({2, 64, 3, 1, 120, 130, 3, 3, 1, 1}, false, DType::I32, DType::I32, DType::I32, *tables().back(), 2,
                "conv_columns");
  check_columns({2, 64, 3, 1, 120, 130, 3, 3, 1, 1}, true, DType::U8, DType::U8, DType::I32, *tables().back(), 1,
                "conv_columns");
}

// -- epilogues of a convolution --

namespace {

enum class Follows { Bias, BiasRelu, BiasClip, ScaleSilu, BiasResidualRelu, GeluMul, SigmoidResidual };

Expr follow(Graph& g, Follows f, Expr y, Expr bias, Expr other) {
  switch (f) {
    case Follows::Bias: return y + bias;
    case Follows::BiasRelu: return g.relu(y + bias);
    case Follows::BiasClip: return g.min(g.max(y + bias, 0.0), 6.0);
    case Follows::ScaleSilu: return g.silu(y * 0.125);
    case Follows::BiasResidualRelu: return g.relu(y + bias + other);
    case Follows::GeluMul: return g.gelu(y + bias) * other;
    case Follows::SigmoidResidual: return g.sigmoid(y) + other;
  }
  return y;
}

void check_relocated(const ConvCase& c, bool last, Follows follows, const KernelTable& table, int threads) {
  INFO("depth ", c.depth, " multiple ", c.multiple, " groups ", c.groups, " of ", c.rows, "x", c.cols, " window ",
       c.row_taps, "x", c.col_taps, " stride ", c.stride, last ? " features last " : " features first ",
       isa_name(table.isa), " threads ", threads, " follows ", static_cast<int>(follows));
  const ConvOperands at = operands_of(c, last);
  const ops::Conv& op = at.op;
  const std::int64_t out = c.groups * c.multiple;
  const Dims bias_dims = last ? Dims{out} : Dims{out, 1, 1};
  Tensor x = small_numbers(at.x, 4, 1);
  const Tensor w = small_numbers(at.w, 3, 2), bias = small_numbers(bias_dims, 9, 3);
  // An element is NaN and stays NaN, except in a max that compares.
  x.mutable_values<float>()[x.num_elements() / 2] = std::numeric_limits<float>::quiet_NaN();
  const auto built = [&](bool whole) {
    Graph g;
    const Expr a = g.input("x", x.shape()), b = g.param("w", w.shape()), v = g.param("bias", bias.shape());
    Expr y = g.conv(a, b, op);
    const Expr other = g.input("other", y.shape());
    if (whole) y = follow(g, follows, y, v, other);
    g.set_outputs({y});
    return g;
  };
  const Graph fused_graph = built(true);
  const Tensor other = small_numbers(fused_graph.shape(fused_graph.outputs()[0]).dims(), 5, 4);
  const auto run = [&](bool fuse) {
    CompileOptions options;
    options.fusion.skip_fusion = !fuse;
    Session session;
    CompiledGraph f =
        session.with_isa(std::string(isa_name(table.isa))).with_threads(threads).compile_with(built(true), options);
    f.set_param("w", w);
    f.set_param("bias", bias);
    if (fuse) {
      std::vector<std::vector<std::int64_t>> dims{x.dims(), other.dims()};
      const std::vector<TensorView> views{{x.data(), DType::F32, dims[0], x.size_bytes()},
                                          {other.data(), DType::F32, dims[1], other.size_bytes()}};
      const auto times = f.profile(views);
      CHECK(times.size() == 1);
      for (const NodeTime& t : times) CHECK(t.kernel.substr(0, t.kernel.find(' ')) == c.kernel);
    }
    return f.run_typed({{"x", x}, {"other", other}})[0];
  };
  const Tensor got = run(true), want = run(false);
  REQUIRE(got.size_bytes() == want.size_bytes());
  const std::span<const float> a = got.values<float>(), b = want.values<float>();
  bool same = true;
  for (std::size_t i = 0; i < a.size(); ++i)
    same = same && ((std::isnan(a[i]) && std::isnan(b[i])) || std::memcmp(&a[i], &b[i], sizeof(float)) == 0);
  CHECK(same);
}

}  // namespace

TEST_CASE("conv kernels: what follows is done as elements are written, with the same bits") {
  const ConvCase cases[] = {{2, 24, 67, 1, 9, 23, 3, 3, 1, 1},
                            {1, 8, 20, 1, 6, 8, 3, 3, 2, 1},
                            {1, 3, 35, 1, 23, 21, 7, 7, 2, 3},
                            {1, 12, 24, 3, 6, 7, 3, 3, 1, 1},
                            {1, 700, 9, 1, 4, 5, 3, 3, 1, 1},
                            {1, 6, 33, 1, 5, 7, 1, 1, 2, 0},
                            {2, 1, 1, 35, 14, 19, 3, 3, 2, 1, 1, 1, kFew},
                            {1, 1, 1, 21, 7, 7, 5, 5, 1, 2, 1, 1, kFew},
                            {1, 1, 1, 18, 30, 30, 3, 3, 1, 1, 1, 1, kFew},
                            {1, 4, 4, 5, 9, 21, 3, 3, 1, 1, 1, 1, kFew}};
  const Follows all[] = {Follows::Bias,           Follows::BiasRelu,         Follows::BiasClip,
                         Follows::ScaleSilu,      Follows::BiasResidualRelu, Follows::GeluMul,
                         Follows::SigmoidResidual};
  for (const KernelTable* t : tables())
    for (const bool last : {false, true})
      for (std::size_t i = 0; i < std::size(cases); ++i)
        for (const Follows f : all) check_relocated(cases[i], last, f, *t, i % 2 == 0 ? 1 : 2);
}

}  // namespace rlx::cpu::test
