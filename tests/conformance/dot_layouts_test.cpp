// Matmuls in every layout: the kernel that runs, the distance from an F64 evaluation, and independence of the number of
// threads.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "rlx/ir/ops/linalg.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/rounding.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

/// A matmul of two inputs, each read through a transpose (empty: none).
struct Layout {
  const char* name;
  Dims lhs, rhs;
  std::vector<std::int64_t> lhs_perm, rhs_perm;
  ops::DotGeneral dot;
};

const Layout kLayouts[] = {
    {"matrices", {70, 33}, {33, 45}, {}, {}, {{1}, {0}, {}, {}}},
    {"left transposed", {33, 70}, {33, 45}, {}, {}, {{0}, {0}, {}, {}}},
    {"right transposed", {70, 33}, {45, 33}, {}, {}, {{1}, {1}, {}, {}}},
    {"both transposed", {33, 70}, {45, 33}, {}, {}, {{0}, {1}, {}, {}}},
    {"weight gradient", {6, 40, 33}, {6, 40, 45}, {}, {}, {{0, 1}, {0, 1}, {}, {}}},
    {"contracted axes crossed", {6, 5, 33}, {5, 6, 45}, {}, {}, {{0, 1}, {1, 0}, {}, {}}},
    {"contracted axes apart", {6, 33, 5}, {6, 5, 45}, {}, {}, {{0, 2}, {0, 1}, {}, {}}},
    {"three contracted axes, none of them neighbours",
     {3, 8, 4, 5, 6},
     {6, 7, 4, 3},
     {},
     {},
     {{0, 2, 4}, {3, 2, 0}, {}, {}}},
    {"batch of attention scores", {2, 3, 40, 8}, {2, 3, 50, 8}, {}, {}, {{3}, {3}, {0, 1}, {0, 1}}},
    {"heads inner", {2, 40, 3, 8}, {2, 50, 3, 8}, {}, {}, {{3}, {3}, {0, 2}, {0, 2}}},
    {"grouped heads, keys", {2, 3, 2, 20, 50}, {2, 3, 2, 20, 8}, {}, {}, {{2, 3}, {2, 3}, {0, 1}, {0, 1}}},
    {"batch axes crossed", {2, 3, 20, 8}, {8, 3, 40, 2}, {}, {}, {{3}, {0}, {0, 1}, {3, 1}}},
    {"rows and columns that do not fold", {4, 9, 5, 7}, {6, 5, 8, 3}, {2, 0, 1, 3}, {1, 0, 3, 2}, {{0}, {0}, {}, {}}},
    {"nothing contracted", {40}, {50}, {}, {}, {{}, {}, {}, {}}},
    {"everything contracted", {6, 40}, {40, 6}, {}, {}, {{0, 1}, {1, 0}, {}, {}}},
    {"everything contracted, a batch", {5, 6, 7}, {7, 5, 6}, {}, {}, {{1, 2}, {2, 0}, {0}, {1}}},
    {"matrix by vector", {90, 70}, {70}, {}, {}, {{1}, {0}, {}, {}}},
    {"vector by matrix", {70}, {70, 90}, {}, {}, {{0}, {0}, {}, {}}},
    {"contracted over nothing", {7, 0, 3}, {0, 3, 5}, {}, {}, {{1, 2}, {0, 1}, {}, {}}},
    {"no rows", {0, 4, 3}, {4, 3, 5}, {}, {}, {{1, 2}, {0, 1}, {}, {}}},
    {"six batch axes",
     {1, 2, 1, 2, 3, 2, 5, 4},
     {2, 3, 2, 1, 2, 4, 1, 3},
     {},
     {},
     {{7}, {5}, {0, 1, 2, 3, 4, 5}, {3, 0, 6, 2, 1, 4}}},
    {"transposed views", {33, 6, 40}, {45, 40, 6}, {1, 2, 0}, {2, 1, 0}, {{0, 1}, {0, 1}, {}, {}}},
    {"enough for two threads", {4, 64, 200}, {4, 64, 160}, {}, {}, {{0, 1}, {0, 1}, {}, {}}},
    {"enough for two threads, a batch", {24, 64, 70}, {24, 64, 50}, {}, {}, {{1}, {1}, {0}, {0}}},
};

Expr through(Graph& g, Expr x, const std::vector<std::int64_t>& perm) {
  return perm.empty() ? x : g.transpose(x, perm);
}

/// The epilogue of the matmul.
enum class Tail { None, BiasRelu, Residual, Scaled };

Graph graph_of(const Layout& l, Tail tail, DType t) {
  Graph g("dot");
  Expr y = g.dot_general(through(g, g.input("lhs", Shape(l.lhs, t)), l.lhs_perm),
                         through(g, g.input("rhs", Shape(l.rhs, t)), l.rhs_perm), l.dot);
  const Dims dims = y.shape().dims();
  switch (tail) {
    case Tail::None: break;
    case Tail::BiasRelu: y = g.relu(y + g.input("bias", Shape({dims.back()}, t))); break;
    case Tail::Residual: y = y * 0.25 + g.input("residual", Shape(dims, t)); break;
    case Tail::Scaled: y = y * g.input("scale", Shape(dims, t)); break;
  }
  g.set_outputs({y});
  return g;
}

NamedTensors inputs_for(const Graph& g) {
  NamedTensors values;
  std::uint64_t seed = 3;
  for (NodeId id : g.leaves(OpKind::Input))
    values.emplace(g.leaf_name(id), test::draw(g.shape(id), Fill::Normal, 1, ++seed));
  return values;
}

NamedTensors wide(const NamedTensors& values, bool magnitudes) {
  NamedTensors out;
  for (const auto& [name, value] : values) {
    Tensor t = value.cast(DType::F64);
    for (std::int64_t i = 0; magnitudes && i < t.num_elements(); ++i) t.set(i, std::fabs(t.at(i)));
    out.emplace(name, std::move(t));
  }
  return out;
}

std::vector<std::string> kernels_of(CompiledGraph& f, const NamedTensors& values) {
  std::vector<TensorView> views;
  for (const IoInfo& in : f.inputs()) views.push_back(values.at(in.name).view());
  std::vector<std::string> out;
  for (const NodeTime& t : f.profile(views)) out.push_back(t.kernel.substr(0, t.kernel.find(' ')));
  return out;
}

/// The number of elements of `got` that differ from `exact` by more than `factor` roundings of the sum of the terms'
/// magnitudes.
std::int64_t num_wrong(const Tensor& got, const Tensor& exact, const Tensor& terms, double factor) {
  REQUIRE(got.dims() == exact.dims());
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < got.num_elements(); ++i)
    wrong += !(std::fabs(got.at(i) - exact.at(i)) <=
               factor * std::numeric_limits<float>::epsilon() * std::fabs(terms.at(i)));
  return wrong;
}

void expect_gemm(const Layout& l, Tail tail) {
  INFO(l.name, ", tail ", static_cast<int>(tail));
  const Graph g = graph_of(l, tail, DType::F32), exact = graph_of(l, tail, DType::F64);
  const NamedTensors values = inputs_for(g);
  const Tensor want = evaluate(exact, wide(values, false)).at(0);
  // Sums of magnitudes have no cancellation, and relu passes all of them.
  const Tensor terms = evaluate(exact, wide(values, true)).at(0);
  Tensor first;
  for (int threads : {1, 2, 3}) {
    CompiledGraph f = Session().with_threads(threads).compile(g);
    const Tensor got = f.run_typed(values).at(0);
    CHECK(num_wrong(got, want, terms, 8) == 0);
    if (threads == 1)
      first = got;
    else
      CHECK(got.identical(first));
    bool product = want.num_elements() == 0;
    for (const std::string& kernel : kernels_of(f, values)) {
      CHECK(kernel != "generic_dot");
      product = product || kernel.starts_with("gemm_");
    }
    CHECK(product);
  }
}

TEST_CASE("f32 products of every layout run on the matrix kernels") {
  for (const Layout& l : kLayouts) expect_gemm(l, Tail::None);
}

TEST_CASE("f32 products with an epilogue, of every layout") {
  for (const Layout& l : kLayouts) {
    const Dims dims =
        graph_of(l, Tail::None, DType::F32).shape(graph_of(l, Tail::None, DType::F32).outputs()[0]).dims();
    if (dims.empty()) continue;
    for (Tail tail : {Tail::BiasRelu, Tail::Residual, Tail::Scaled}) expect_gemm(l, tail);
  }
}

TEST_CASE("products of the other dtypes, of every layout, are within the bound of sums and no plain loop") {
  for (const DType t : {DType::F64, DType::F16, DType::BF16, DType::C64, DType::C128, DType::I8, DType::U16, DType::I32,
                        DType::I64, DType::U64})
    for (const Layout& l : kLayouts) {
      INFO(l.name, " of ", dtype_name(t));
      const Graph g = graph_of(l, Tail::None, t);
      const NamedTensors values = inputs_for(g);
      const test::BoundedResult exact = test::evaluate_bounded(g, values);
      Tensor first;
      for (int threads : {1, 3}) {
        CompiledGraph f = Session().with_threads(threads).compile(g);
        const Tensor got = f.run_typed(values).at(0);
        const test::Gap gap = test::gap_to(got, exact.outputs[0]);
        CHECK_MESSAGE(gap.size <= 1, gap.text);
        if (threads == 1)
          first = got;
        else
          CHECK(got.identical(first));
        for (const std::string& kernel : kernels_of(f, values)) CHECK(kernel != "generic_dot");
      }
    }
}

TEST_CASE("a weight of bf16 gives the bits that an operand of a run gives, where there are instructions for pairs") {
  for (const std::int64_t rows : {1, 5, 40})
    for (const DType out : {DType::BF16, DType::F32}) {
      const Shape wide({70, 53}, DType::BF16);
      const auto program = [&](bool weight) {
        Graph g("layer");
        const Expr x = g.input("x", Shape({rows, 70}, DType::BF16));
        const Expr w = weight ? g.param("w", wide) : g.input("w", wide);
        ops::DotGeneral dot{{1}, {0}, {}, {}};
        dot.out = out;
        g.set_outputs({g.dot_general(x, w, dot)});
        return g;
      };
      Tensor x = test::draw(Shape({rows, 70}, DType::BF16), Fill::Normal, 1, 5),
             w = test::draw(wide, Fill::Normal, 1, 6);
      x.set(3, 0x1p-130);  // subnormal: row 0
      w.set(3 * 53 + 2, 0x1p100);
      CompiledGraph f = Session().with_threads(2).compile(program(true));
      f.set_param("w", w);
      const Tensor got = f.run_typed({{"x", x}}).at(0);
      const NamedTensors values{{"x", x}, {"w", w}};
      CHECK(test::gap_to(got, test::evaluate_bounded(program(false), values).outputs[0]).size <= 1);
      bool pairs = false;
      for (const std::string& kernel : kernels_of(f, values)) pairs = pairs || kernel == "gemm_bf16_pairs";
      if (pairs) CHECK(got.identical(Session().with_threads(1).compile(program(false)).run_typed(values).at(0)));
    }
}

TEST_CASE("the gradients of a linear layer are products as they lie: no transpose, no plain loop") {
  Graph g("layer");
  const Expr x = g.input("x", Shape({4, 50, 64}, DType::F32));
  const Expr w = g.param("w", Shape({64, 96}, DType::F32), ParamMode::Mutable);
  g.set_outputs({g.sum(g.square(g.matmul(x, w)))});
  CompiledGraph f = Session().with_threads(1).compile(value_and_grad(g, {"x", "w"}).graph);
  f.set_param("w", test::draw(Shape({64, 96}, DType::F32), Fill::Normal, 1, 7));
  const NamedTensors values{{"x", test::draw(Shape({4, 50, 64}, DType::F32), Fill::Normal, 1, 8)}};
  int products = 0;
  for (const std::string& kernel : kernels_of(f, values)) {
    CHECK(kernel != "generic_dot");
    CHECK(kernel != "copy");
    products += kernel.starts_with("gemm_");
  }
  CHECK(products == 3);
}

}  // namespace
}  // namespace rlx
