// No line of known_gaps.txt is stale. Asked of the compiler, which needs no device.
#include <doctest/doctest.h>

#include "rlx/compiler/pipeline.h"
#include "rlx/device/registry.h"
#include "tests/devices/known_gaps.h"
#include "tests/devices/test_device.h"
#include "tests/support/samples.h"

namespace rlx {

TEST_CASE("device: known_gaps.txt has what samples leave to the host in any dtype, and nothing else") {
  const std::shared_ptr<const Target> target = backend_for(test::test_device())->target({});
  std::string host;
  const auto add = [&](const testing::Sample& sample) {
    const Graph program = test::sample_graph(sample);
    const CompileResult made = CompilePipeline(target).compile_graph(Graph(program));
    const std::string part = test::host_part(made.dispatch);
    INFO("sample '", sample.name, "'");
    test::expect_known_gap(op_text_name(sample.op), part, program);
    host += part;
  };
  for (const OpDef* def : test::ops_under_test()) {
    if (def->level == Level::Lir || def->is_leaf()) continue;
    for (const testing::Sample& sample : test::samples_of(*def)) {
      add(sample);
      for (const testing::Sample& other : test::dtype_samples(sample)) add(other);
    }
  }
  test::expect_gaps_met(host);
}

}  // namespace rlx
