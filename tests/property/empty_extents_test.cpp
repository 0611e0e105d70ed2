// Empty operands whose other extents are huge: every op returns immediately, by its rule, folded, and compiled.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/runtime/session.h"
#include "tests/support/samples.h"

using namespace rlx;
using namespace rlx::test;

namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 40;
constexpr double kMostElements = 4096;

// True for few or no elements whose number fits in 64 bits; for two huge extents it does not.
bool small(const std::vector<Shape>& shapes) {
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) {
    double elements = 1, others = 1;
    for (const Dim& d : s.dims()) {
      elements *= static_cast<double>(d.value());
      if (d.value() != 0) others *= static_cast<double>(d.value());
    }
    return elements <= kMostElements && others < 0x1p62;
  });
}

// The sample's operand shapes with some extents huge and some 0. Equal extents, or axes at the same position, change
// together.
std::vector<std::vector<Shape>> variants(const testing::Sample& sample) {
  const auto changed = [&](const auto& extent_of) {
    std::vector<Shape> out;
    for (const testing::SampleInput& in : sample.inputs) {
      const Shape& s = in.shape;
      Dims dims = s.dims();
      for (std::size_t a = 0; a < dims.size(); ++a) dims[a] = extent_of(a, dims[a].value());
      out.emplace_back(std::move(dims), s.dtype());
    }
    return out;
  };
  std::set<std::int64_t> extents;
  std::size_t rank = 0;
  for (const testing::SampleInput& in : sample.inputs) {
    const Shape& s = in.shape;
    if (!s.is_static()) return {};
    for (const Dim& d : s.dims()) extents.insert(d.value());
    rank = std::max(rank, s.dims().size());
  }
  std::vector<std::vector<Shape>> out;
  for (std::int64_t huge : extents)
    for (std::int64_t none : extents)
      if (huge != none)
        out.push_back(changed([&](std::size_t, std::int64_t d) { return d == huge ? kHuge : d == none ? 0 : d; }));
  for (std::size_t huge = 0; huge < rank; ++huge)
    for (std::size_t none = 0; none < rank; ++none)
      if (huge != none)
        out.push_back(changed([&](std::size_t a, std::int64_t d) { return a == huge ? kHuge : a == none ? 0 : d; }));
  return out;
}

}  // namespace

TEST_CASE("an op over [2^40, 0] ends at once: by its rule, folded, and compiled") {
  std::map<std::string, int> tried;
  for (const OpDef* def : ops_under_test())
    for (const testing::Sample& sample : samples_of(*def))
      for (const std::vector<Shape>& shapes : variants(sample)) {
        if (!small(shapes)) continue;
        const auto results = infer_shapes(sample.op, shapes);
        if (!results.ok() || !small(*results)) continue;
        std::string text = std::string(def->name) + ", sample '" + sample.name + "':";
        for (const Shape& s : shapes) text += " " + s.text();
        INFO(text);
        testing::Sample empty = sample;
        for (std::size_t i = 0; i < shapes.size(); ++i) empty.inputs[i].shape = shapes[i];
        const std::vector<Tensor> operands = draw_operands(empty);
        const std::vector<Tensor> by_rule = evaluate_op(sample.op, operands);
        REQUIRE(by_rule.size() == results->size());

        Graph folded("folded");
        std::vector<Value> constants;
        for (const Tensor& t : operands) constants.push_back(folded.constant(t));
        const Expr e = folded.add(sample.op, constants);
        std::vector<Value> outputs;
        for (std::uint32_t r = 0; r < by_rule.size(); ++r) outputs.push_back(e.result(r));
        folded.set_outputs(outputs);
        for (const Graph& g : {folded, sample_graph(empty)}) {
          const Result<CompiledGraph> f = Session().with_threads(2).try_compile_with(g, {});
          if (!f.ok()) {  // the cpu refuses it at other extents too
            CHECK(f.error().code == ErrorCode::Unsupported);
            continue;
          }
          const std::vector<Tensor> got =
              f->clone().run_typed(f->inputs().empty() ? NamedTensors() : bind_operands(operands));
          REQUIRE(got.size() == by_rule.size());
          for (std::size_t r = 0; r < got.size(); ++r) CHECK(got[r].shape() == by_rule[r].shape());
        }
        ++tried[std::string(def->name)];
      }
  for (const char* name : {"softmax", "log_softmax", "cumulative", "layer_norm", "rms_norm", "layer_norm_backward",
                           "matmul", "dot_general", "attention", "reduce", "concat", "activation", "binary", "where",
                           "transpose", "arg_reduce", "gather", "scatter", "sort"}) {
    INFO(name);
    CHECK(tried[name] > 0);
  }
}
