// For every sample of every op, vmap over a subset of operands equals running the slices one by one.
#include <algorithm>

#include "rlx/transforms/vmap.h"
#include "tests/support/needs.h"
#include "tests/support/rounding.h"
#include "tests/support/samples.h"

namespace rlx::test {
namespace {

// The slices stacked as [slices.size(), slice dims..].
Tensor stacked(const std::vector<Tensor>& slices, const Shape& slice_shape) {
  Dims dims = slice_shape.dims();
  dims.insert(dims.begin(), Dim(static_cast<std::int64_t>(slices.size())));
  Tensor out = Tensor::zeros(Shape(dims, slice_shape.dtype()));
  std::byte* to = out.mutable_data();
  for (const Tensor& t : slices) to = std::copy_n(t.data(), t.size_bytes(), to);
  return out;
}

// All non-empty subsets of a few operands. For many operands: each one alone, all, and every second one.
std::vector<std::vector<bool>> subsets(std::size_t n) {
  std::vector<std::vector<bool>> out;
  if (n <= 4) {
    for (unsigned bits = 1; bits < (1u << n); ++bits) {
      out.emplace_back();
      for (std::size_t k = 0; k < n; ++k) out.back().push_back((bits >> k) & 1);
    }
    return out;
  }
  for (std::size_t one = 0; one < n; ++one) {
    out.emplace_back(n, false);
    out.back()[one] = true;
  }
  out.emplace_back(n, true);
  out.emplace_back(n, false);
  for (std::size_t k = 0; k < n; k += 2) out.back()[k] = true;
  return out;
}

bool packed_bits(DType t) { return dtype_bits(t) < 8; }

TEST_CASE("vmap equals the stacked loop") {
  test::Share share(4);  // over the subsets of all samples
  for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (sample.inputs.empty() || def.level == Level::Lir || (!def.reference.has() && !def.reference.derived())) return;
    Graph g = sample_graph(sample);
    for (Value v : g.outputs())
      if (packed_bits(g.shape(v).dtype())) return;  // rows of packed elements are not whole bytes
    constexpr std::size_t kBatch = 3;
    std::vector<std::vector<Tensor>> slices;
    for (std::size_t b = 0; b < kBatch; ++b) slices.push_back(draw_operands(sample, b));
    for (const std::vector<bool>& batched : subsets(sample.inputs.size())) {
      if (sample.inputs.size() > 1 && !share.next()) continue;
      std::string which;
      InAxes in_axes;
      NamedTensors values;
      for (std::size_t k = 0; k < batched.size(); ++k) {
        std::string name = "x" + std::to_string(k);
        std::vector<Tensor> column;
        for (std::size_t b = 0; b < kBatch; ++b) column.push_back(slices[b][k]);
        if (batched[k]) {
          in_axes.emplace(name, 0);
          which += name + " ";
        }
        values.emplace(name, batched[k] ? stacked(column, sample.inputs[k].shape) : slices[0][k]);
      }
      INFO("batched operands: ", which);
      std::vector<BoundedResult> looped;
      for (std::size_t b = 0; b < kBatch; ++b) {
        std::vector<Tensor> operands;
        for (std::size_t k = 0; k < batched.size(); ++k) operands.push_back(slices[batched[k] ? b : 0][k]);
        looped.push_back(evaluate_bounded(g, bind_operands(operands)));
      }
      std::vector<Tensor> actual = evaluate(vmap(g, in_axes, kBatch).graph, values);
      for (std::size_t r = 0; r < actual.size(); ++r) {
        REQUIRE(actual[r].dim(0) == kBatch);
        for (std::size_t b = 0; b < kBatch; ++b) {
          const Tensor row = actual[r].rows(static_cast<std::int64_t>(b), 1);
          const Gap gap = gap_to(row.reshaped(g.shape(g.outputs()[r]).static_dims()), looped[b].outputs[r]);
          CHECK_MESSAGE(gap.size <= 1, "result ", r, " of slice ", b, ": ", gap.text);
        }
      }
    }
  });
}

TEST_CASE("vmap over an empty batch") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    if (sample.inputs.empty() || def.level == Level::Lir || (!def.reference.has() && !def.reference.derived())) return;
    Graph g = sample_graph(sample);
    InAxes in_axes;
    NamedTensors values;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      in_axes.emplace("x" + std::to_string(k), 0);
      values.emplace("x" + std::to_string(k), stacked({}, sample.inputs[k].shape));
    }
    std::vector<Tensor> results = evaluate(vmap(g, in_axes, 0).graph, values);
    for (std::size_t r = 0; r < results.size(); ++r) {
      Shape expected = g.shape(g.outputs()[r]);
      CHECK(results[r].rank() == expected.rank() + 1);
      CHECK(results[r].dim(0) == 0);
    }
  });
}

}  // namespace
}  // namespace rlx::test
