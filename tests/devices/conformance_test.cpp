// The conformance suite of a device: every op sample, small and large, in every dtype, its gradients and batched forms,
// through CompiledGraph, against the exact result with its bounds. What the device leaves to the host has to be in
// known_gaps.txt. Samples meet every row, so some of each op run always; of the others and of their variants a share.
#include <doctest/doctest.h>

#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/devices/differences.h"
#include "tests/devices/known_gaps.h"
#include "tests/devices/test_device.h"
#include "tests/support/needs.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

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

// What the host runs of what is made of `program`, or is it, has to be known.
void expect_on_device(const OpDef& def, const CompiledGraph& f, const Graph& program) {
  if (const std::string host = test::host_part(f); !host.empty()) test::expect_known_gap(def.name, host, program);
}
void expect_exact(const OpDef& def, const Graph& g, const NamedTensors& values, const Graph& program) {
  expect_on_device(def, test::check_run(Session(test::test_device()), g, values, test::device_subnormals()), program);
}
void expect_exact(const OpDef& def, const testing::Sample& sample) {
  expect_on_device(def, test::check_sample(Session(test::test_device()), sample, test::device_subnormals()),
                   test::sample_graph(sample));
}

}  // namespace

TEST_SUITE_BEGIN("conformance");

TEST_CASE("device: every op sample agrees with the exact result") {
  if (!test::device_here()) return;
  std::size_t of_this_op = 0;
  test::for_each_run_sample([&](const OpDef& def, const testing::Sample& sample) {
    // Of a share of the cases the first of each op, and a sixth of all.
    if (of_this_op++ % 6 == 0 || test::takes_all_cases()) expect_exact(def, sample);
  });
}

TEST_CASE("device: every op sample in every dtype that the op takes") {
  if (!test::device_here()) return;
  std::size_t number = 0;
  test::for_each_run_sample([&](const OpDef& def, const testing::Sample& sample) {
    for (const testing::Sample& other : test::dtype_samples(sample))
      if (test::in_share(number++)) expect_exact(def, other);
  });
}

TEST_CASE("device: large and odd variants of op samples") {
  if (!test::device_here()) return;
  std::size_t number = 0;
  test::for_each_run_sample([&](const OpDef& def, const testing::Sample& sample) {
    for (const testing::Sample& large : test::large_samples(sample))
      if (test::in_share(number++)) expect_exact(def, large);
  });
}

TEST_CASE("device: gradients of op samples") {
  if (!test::device_here()) return;
  std::size_t number = 0;
  test::for_each_run_sample([&](const OpDef& def, const testing::Sample& sample) {
    if (!sample.differentiable || def.vjp.reason()) return;
    std::vector<Wrt> wrt;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k)
      if (is_inexact(sample.inputs[k].shape.dtype())) wrt.push_back("x" + std::to_string(k));
    if (wrt.empty() || !test::in_share(number++)) return;
    INFO("variant '", sample.name, "'");
    const Graph program = test::sample_graph(sample), g = vjp(program, wrt).graph;
    expect_exact(def, g, values_for(g, test::bind_operands(test::draw_operands(sample))), program);
  });
}

TEST_CASE("device: batched forms of op samples") {
  if (!test::device_here()) return;
  std::size_t number = 0;
  test::for_each_run_sample([&](const OpDef& def, const testing::Sample& sample) {
    if (def.batch.reason() || sample.inputs.empty() || !test::in_share(number++)) return;
    INFO("variant '", sample.name, "'");
    InAxes axes;
    NamedTensors values;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      const testing::SampleInput& in = sample.inputs[k];
      Dims dims = in.shape.dims();
      dims.insert(dims.begin(), 2);
      values.emplace("x" + std::to_string(k), test::draw(Shape(dims, in.shape.dtype()), in.fill, in.bound, 31 + k));
      axes.emplace("x" + std::to_string(k), 0);
    }
    const Graph program = test::sample_graph(sample);
    expect_exact(def, vmap(program, axes, 2).graph, values, program);
  });
}

TEST_SUITE_END();

}  // namespace rlx
