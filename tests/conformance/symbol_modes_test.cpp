// Every sample of every op with a symbolic batch: runtime and bucket modes give the same bits as specialise.
#include <algorithm>
#include <cstring>

#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/needs.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

// All NaN are equal, as sign and payload depend on the processor.
bool same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return false;
  if (a.size_bytes() == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0) return true;
  return !is_complex(a.dtype()) && is_float(a.dtype()) && test::distance(a, b) == 0;
}

// Slices with different values, stacked as [n, slice dims..].
Tensor stacked(const testing::Sample& sample, std::size_t operand, std::int64_t n) {
  Dims dims = sample.inputs[operand].shape.dims();
  dims.insert(dims.begin(), Dim(n));
  Tensor out = Tensor::zeros(Shape(dims, sample.inputs[operand].shape.dtype()));
  std::byte* to = out.mutable_data();
  for (std::int64_t i = 0; i < n; ++i) {
    const Tensor slice = test::draw_operands(sample, static_cast<std::uint64_t>(i))[operand];
    to = std::copy_n(slice.data(), slice.size_bytes(), to);
  }
  return out;
}

}  // namespace

TEST_CASE("every op over a symbolic batch: runtime and bucket give the bits of specialise") {
  test::Share share(2);
  test::for_each_sample([&](const OpDef& def, const testing::Sample& sample) {
    if (sample.inputs.empty() || def.level == Level::Lir || def.is_leaf() || !share.next()) return;
    // Its number of groups is a constant, which a batch multiplies. A symbolic batch is refused, with a hint
    // (ops/dot/grouped_dot.cpp).
    if (const auto* d = sample.op.get_if<ops::GroupedDot>(); d && d->fn == GroupedKind::Contract) return;
    // The same (ops/conv/conv.cpp). unit/ops/conv/conv_test.cpp batches x alone.
    if (sample.op.is<ops::Conv>() || sample.op.is<ops::FusedConv>()) return;
    Graph g = test::sample_graph(sample);
    InAxes in_axes;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      if (dtype_bits(sample.inputs[k].shape.dtype()) < 8) return;  // rows of packed elements are not whole bytes
      in_axes.emplace("x" + std::to_string(k), 0);
    }
    const Graph batched = vmap(g, in_axes, g.symbol("n", {.min = 1, .max = 4})).graph;
    const Session session = Session().with_threads(2);
    CompiledGraph exact = session.compile(Graph(batched));
    for (const SymbolMode& mode : {SymbolMode::runtime(), SymbolMode::bucket({2, 4})}) {
      CompileOptions options;
      options.symbol_modes["n"] = mode;
      CompiledGraph open = session.compile_with(Graph(batched), options);
      for (const std::int64_t n : {3, 1}) {
        NamedTensors in;
        for (std::size_t k = 0; k < sample.inputs.size(); ++k)
          in.emplace("x" + std::to_string(k), stacked(sample, k, n));
        const std::vector<Tensor> want = exact.run_typed(in), got = open.run_typed(in);
        REQUIRE(got.size() == want.size());
        for (std::size_t r = 0; r < got.size(); ++r) {
          INFO("n = ", n, ", result ", r, ": ", got[r].text(), " expected ", want[r].text());
          CHECK(same_bits(got[r], want[r]));
        }
      }
    }
  });
}

}  // namespace rlx
