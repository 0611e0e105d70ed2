#include "tests/devices/forms.h"

#include <doctest/doctest.h>

#include "rlx/ir/text.h"
#include "tests/devices/test_device.h"
#include "tests/support/run_check.h"

namespace rlx::test {

std::string kernels_of(CompiledGraph& f, const NamedTensors& values) {
  std::vector<TensorView> inputs;
  for (const IoInfo& in : f.inputs()) inputs.push_back(values.at(in.name).view());
  std::string names;
  for (const NodeTime& t : f.profile(inputs)) names += t.op + ": " + t.kernel + "\n";
  return names;
}

NamedTensors packed_values(const Graph& g, const NamedTensors& known) {
  NamedTensors values = known;
  std::uint64_t seed = 1;
  for (NodeId id : g.leaves(OpKind::Input)) {
    const DType t = g.shape(id).dtype();
    const Fill fill = t == DType::U8 ? Fill::Index : is_int(t) ? Fill::Small : Fill::Unit;
    values.try_emplace(g.leaf_name(id), draw(g.shape(id), fill, 256, seed++));
  }
  return values;
}

void expect_packed_layout(const Graph& g, const char* kernels, const std::string& name, const NamedTensors& known,
                          const std::string& never) {
  INFO("kernels for ", std::string(kernels), "\n", print_text(g));
  CompiledGraph f = Session(DeviceId{test_device()}, {{"kernels", kernels}}).compile(Graph(g));
  CHECK(host_part(f) == "");
  const NamedTensors values = packed_values(g, known);
  const std::string all = kernels_of(f, values);
  CHECK_MESSAGE(all.find(name) != std::string::npos, "no kernel ", name, " but ", all);
  if (!never.empty()) CHECK_MESSAGE(all.find(never) == std::string::npos, "a kernel ", never, " in ", all);
  check_runs(f, g, values);
}

namespace {

void deal(const Graph& g, const char* kernels, const std::string& name, const NamedTensors& known,
          const std::string& never) {
  static std::size_t number = 0;
  if (is_dealt_here(number++)) expect_packed_layout(g, kernels, name, known, never);
}

}  // namespace

void expect_packed_layouts(const Graph& g, const std::string& name, const NamedTensors& known,
                           const std::string& never) {
  for (const char* kernels : {"software", "hardware"}) deal(g, kernels, name, known, never);
}
void expect_packed_layouts_by(const Graph& g, const std::string& software, const std::string& hardware) {
  deal(g, "software", software, {}, {});
  deal(g, "hardware", hardware, {}, {});
}

}  // namespace rlx::test
