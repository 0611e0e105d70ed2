// The conformance suite of a device: every op sample, small and large, in every dtype, its gradients and batched forms,
// through CompiledGraph, against the exact result with its bounds. What the device leaves to the host has to be in
// known_gaps.txt.
#include <doctest/doctest.h>

#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/devices/known_gaps.h"
#include "tests/devices/test_device.h"
#include "tests/support/needs.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

bool runs_on(const OpDef& def) { return def.level != Level::Lir && !def.is_leaf(); }

// Values for every input of `g`: those of `known` by name, the others drawn.
NamedTensors values_for(const Graph& g, const NamedTensors& known) {
  NamedTensors values;
  std::uint64_t seed = 77;
  for (NodeId id : g.leaves(OpKind::Input)) {
    const auto it = known.find(g.leaf_name(id));
    values.emplace(g.leaf_name(id), it != known.end() && it->second.shape() == g.shape(id)
                                        ? it->second
                                        : test::draw(g.shape(id), Fill::Unit, 1, seed++));
  }
  return values;
}

void expect_exact(const Graph& g, const NamedTensors& values, std::string_view op) {
  CompiledGraph f = Session(test::test_device()).compile(Graph(g));
  const std::string host = test::host_part(f);
  if (!host.empty()) test::expect_known_gap(op, host);
  test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(g, values));
}

void expect_exact(const OpDef& def, const Sample& sample) {
  INFO("variant '", sample.name, "'");
  expect_exact(test::sample_graph(sample), test::bind_operands(test::draw_operands(sample)), def.name);
}

// The environment's share of the variants: RLX_TEST_SHARE = "3/20" runs every 20th case, from the 3rd on. The samples
// themselves meet every row, so they run always.
bool taken(std::size_t number) { return test::in_share(number); }

}  // namespace

TEST_SUITE_BEGIN("conformance");

TEST_CASE("device: every op sample agrees with the exact result") {
  if (!test::device_here()) return;
  test::for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (runs_on(def)) expect_exact(def, sample);
  });
}

TEST_CASE("device: every op sample in every dtype that the op takes") {
  if (!test::device_here()) return;
  std::size_t number = 0;
  test::for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (!runs_on(def)) return;
    for (const Sample& other : test::dtype_samples(sample))
      if (taken(number++)) expect_exact(def, other);
  });
}

TEST_CASE("device: large and odd variants of op samples") {
  if (!test::device_here()) return;
  std::size_t number = 0;
  test::for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (!runs_on(def)) return;
    for (const Sample& large : test::large_samples(sample))
      if (taken(number++)) expect_exact(def, large);
  });
}

TEST_CASE("device: gradients of op samples") {
  if (!test::device_here()) return;
  std::size_t number = 0;
  test::for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (!runs_on(def) || !sample.differentiable || def.vjp.reason()) return;
    std::vector<Wrt> wrt;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k)
      if (is_inexact(sample.inputs[k].shape.dtype())) wrt.push_back("x" + std::to_string(k));
    if (wrt.empty() || !taken(number++)) return;
    INFO("variant '", sample.name, "'");
    const Graph g = vjp(test::sample_graph(sample), wrt).graph;
    expect_exact(g, values_for(g, test::bind_operands(test::draw_operands(sample))), def.name);
  });
}

TEST_CASE("device: batched forms of op samples") {
  if (!test::device_here()) return;
  std::size_t number = 0;
  test::for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (!runs_on(def) || def.batch.reason() || sample.inputs.empty() || !taken(number++)) return;
    INFO("variant '", sample.name, "'");
    InAxes axes;
    NamedTensors values;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      const SampleInput& in = sample.inputs[k];
      Dims dims = in.shape.dims();
      dims.insert(dims.begin(), 2);
      values.emplace("x" + std::to_string(k), test::draw(Shape(dims, in.shape.dtype()), in.fill, in.bound, 31 + k));
      axes.emplace("x" + std::to_string(k), 0);
    }
    expect_exact(vmap(test::sample_graph(sample), axes, 2).graph, values, def.name);
  });
}

TEST_SUITE_END();

}  // namespace rlx
