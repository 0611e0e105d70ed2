// A row of a result has the same bits whatever other rows are in the batch: batches of every size against the largest.
#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "rlx/ir/ops/attention.h"
#include "rlx/runtime/session.h"

namespace rlx {
namespace {

std::vector<float> numbers(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(rng() % 2000) / 1000.0F - 1;
  return out;
}

constexpr std::int64_t kMost = 33, kWidth = 96;

// y [n, ..] of x [n, kWidth] and a weight [kWidth, kWidth].
using Build = Expr (*)(Graph& g, Expr x, Expr w);

void expect_invariant(const char* what, ParamMode mode, Build build) {
  CAPTURE(what);
  for (const int threads : {1, 3}) {
    Graph g;
    const Dim n = g.symbol("n", {.min = 1, .max = kMost});
    Expr x = g.input("x", {{n, kWidth}, DType::F32}), w = g.param("w", {{kWidth, kWidth}, DType::F32}, mode);
    g.set_outputs({build(g, x, w)});
    CompileOptions options;
    options.symbol_modes["n"] = SymbolMode::runtime();
    CompiledGraph f = Session().with_threads(threads).compile_with(std::move(g), options);
    f.set_param("w", numbers(kWidth * kWidth, 7));
    const std::vector<float> rows = numbers(kMost * kWidth, 1), all = f.run({{"x", rows}})[0];
    const std::size_t per_row = all.size() / kMost;
    for (std::int64_t first : {0, 5}) {
      for (std::int64_t count = 1; first + count <= kMost; ++count) {
        CAPTURE(first);
        CAPTURE(count);
        const auto begin = rows.begin() + first * kWidth;
        const std::vector<float> y = f.run({{"x", std::vector<float>(begin, begin + count * kWidth)}})[0];
        REQUIRE(y.size() == static_cast<std::size_t>(count) * per_row);
        CHECK(std::memcmp(y.data(), all.data() + static_cast<std::size_t>(first) * per_row, y.size() * 4) == 0);
      }
    }
  }
}

Expr attended(Graph& g, Expr x, Expr w) {  // each row is a sequence of 4 tokens
  Expr tokens = g.reshape(x, {x.dim(0), 4, kWidth / 4});
  ops::Attention op;
  op.num_heads = op.kv_heads = 3, op.head_dim = 8, op.mask = MaskKind::Causal;
  return g.attention(g.reshape(g.matmul(x, w), {x.dim(0), 4, kWidth / 4}), tokens, tokens, op);
}

}  // namespace

TEST_CASE("a row of a result does not depend on its neighbours, nor on how many there are") {
  using G = Graph;
  expect_invariant("packed product", ParamMode::Frozen, [](G& g, Expr x, Expr w) { return g.matmul(x, w); });
  expect_invariant("product with a weight that changes", ParamMode::Mutable,
                   [](G& g, Expr x, Expr w) { return g.matmul(x, w); });
  expect_invariant("product with an epilogue", ParamMode::Frozen,
                   [](G& g, Expr x, Expr w) { return g.gelu(g.matmul(x, w) * 0.7 + g.narrow(w, 0, 0, 1)) + x; });
  expect_invariant("softmax and norms", ParamMode::Frozen, [](G& g, Expr x, Expr w) {
    Expr one = g.reshape(g.narrow(w, 0, 0, 1), {kWidth}), two = g.reshape(g.narrow(w, 0, 1, 1), {kWidth});
    return g.softmax(x) + g.layer_norm(x, one, two, 1e-5) + g.rms_norm(x + g.tanh(x), two, one, 1e-5);
  });
  expect_invariant("elementwise", ParamMode::Frozen,
                   [](G& g, Expr x, Expr) { return g.gelu(x) * g.tanh(x) + g.exp(x) - g.mean(x, {1}, true); });
  expect_invariant("attention", ParamMode::Frozen, attended);
}

}  // namespace rlx
