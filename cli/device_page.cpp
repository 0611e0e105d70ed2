// docs/devices.md: which op runs in which dtype on which device, as the compiler legalizes it, and what was tested.
#include "cli/device_page.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "cli/op_samples.h"
#include "rlx/device/registry.h"
#include "rlx/ir/op_def.h"
#include "rlx/runtime/device_ext.h"

namespace rlx::cli {

namespace {

// A copy of `op` with every dtype attribute set to `t`.
OpBox stating_dtype(const OpBox& op, DType t) {
  auto copy = make_default_op(op.kind());
  for (const AttrField& f : op_def(op.kind()).attrs)
    f.set(copy.get(), f.type == AttrType::DType ? AttrValue(t) : f.get(op.data()));
  return OpBox(op.kind(), std::shared_ptr<const void>(std::move(copy)));
}

}  // namespace

std::optional<Graph> sample_in_dtype(const testing::Sample& sample, DType t, std::string* refusal) {
  const auto is_data = [](const testing::SampleInput& in) {
    return in.fill != Fill::Index && in.fill != Fill::Boolean;
  };
  auto data = std::find_if(sample.inputs.begin(), sample.inputs.end(), is_data);
  // Samples fill quantized values like indices. If the other operands are integers too, such as the bias of a quantized
  // matmul, the quantized values are the data.
  if (data != sample.inputs.end() && !is_inexact(data->shape.dtype()))
    if (const testing::SampleInput& x = sample.inputs.front();
        x.fill == Fill::Index && dtype_bits(x.shape.dtype()) == 8)
      data = sample.inputs.begin();
  // A sample whose operands have two float dtypes is skipped, because it does not show which of them the device takes.
  for (const testing::SampleInput& in : sample.inputs)
    if (is_data(in) && is_float(in.shape.dtype()) && is_float(data->shape.dtype()) &&
        !is_storage_only(in.shape.dtype()) && !is_storage_only(data->shape.dtype()) &&
        in.shape.dtype() != data->shape.dtype())
      return std::nullopt;
  try {
    Graph g("sample");
    std::vector<Value> operands;
    for (const testing::SampleInput& in : sample.inputs) {
      const bool is_first = data != sample.inputs.end() && &in == &*data;
      const bool replaced = is_first || (is_data(in) && in.shape.dtype() == data->shape.dtype());
      operands.push_back(g.input(concat_text("x", operands.size()), replaced ? in.shape.with_dtype(t) : in.shape));
    }
    OpBox op = sample.op;
    if (sample.inputs.empty()) op = stating_dtype(op, t);
    const Expr e = g.add(op, operands);
    if (data == sample.inputs.end() && e.shape().dtype() != t) return std::nullopt;
    std::vector<Value> outputs;
    for (std::uint32_t r = 0; r < g.node(e.value().node).num_results(); ++r) outputs.push_back(e.result(r));
    g.set_outputs(std::move(outputs));
    return g;
  } catch (const Error& e) {
    if (refusal) *refusal = e.what();
    return std::nullopt;
  }
}

std::string DeviceColumn::names() const {
  std::string out;
  for (Device d : devices) out += concat_text(out.empty() ? "" : ", ", device_info(d).id);
  return out;
}

std::vector<DeviceColumn> device_columns() {
  std::vector<DeviceColumn> out;
  for (Device d : registered_devices()) {
    const std::string_view name = backend_for(d)->name();
    const auto it = std::find_if(out.begin(), out.end(),
                                 [&](const DeviceColumn& c) { return backend_for(c.devices[0])->name() == name; });
    if (it == out.end())
      out.push_back({{d}});
    else
      it->devices.push_back(d);
  }
  return out;
}

namespace {

// How the samples of an op run in a dtype. Parts: at least one is decomposed. Some: only some run on the device.
enum class Way : std::uint8_t { None, Kernel, Parts, Some, Host };
constexpr int kWays = 5;

Way both(Way a, Way b) {
  if (a == Way::None) return b;
  if (b == Way::None || a == b) return a;
  return std::max(a, b) < Way::Some ? Way::Parts : Way::Some;
}

Way way_of(const Graph& g, Level level, Device device) {
  const KernelDispatchReport report = dispatch_report_for_device(g, device);
  if (!report.compile_ready()) return Way::Host;
  const bool parts = level == Level::Hir || std::any_of(report.summaries.begin(), report.summaries.end(),
                                                        [](auto& d) { return d.path == DispatchPath::Rewritten; });
  return parts ? Way::Parts : Way::Kernel;
}

using ByDType = std::array<Way, kNumDTypes>;
struct OpRow {
  const OpDef* def;
  std::vector<ByDType> columns;
};

std::vector<OpRow> matrix(const std::vector<DeviceColumn>& columns) {
  std::vector<OpRow> rows;
  for (const OpDef* def : all_op_defs()) {
    if (def->is_leaf() || def->level == Level::Lir) continue;
    OpRow row{def, std::vector<ByDType>(columns.size())};
    const std::vector<testing::Sample> samples = shown_samples(*def);
    for (int t = 0; t < kNumDTypes; ++t)
      for (const testing::Sample& sample : samples)
        if (const std::optional<Graph> g = sample_in_dtype(sample, static_cast<DType>(t)))
          for (std::size_t c = 0; c < columns.size(); ++c) {
            Way& way = row.columns[c][static_cast<std::size_t>(t)];
            way = both(way, way_of(*g, def->level, columns[c].devices[0]));
          }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string cell(const ByDType& ways) {
  std::string lists[kWays], out;
  for (int t = 0; t < kNumDTypes; ++t) {
    std::string& list = lists[static_cast<int>(ways[static_cast<std::size_t>(t)])];
    list += concat_text(list.empty() ? "" : " ", dtype_name(static_cast<DType>(t)));
  }
  for (const auto& [way, mark] :
       {std::pair{Way::Kernel, "**"}, std::pair{Way::Parts, "*"}, std::pair{Way::Some, ""}, std::pair{Way::Host, "~~"}})
    if (const std::string& list = lists[static_cast<int>(way)]; !list.empty())
      out += concat_text(out.empty() ? "" : " ", mark, list, mark);
  return out.empty() ? "no dtype" : out;
}

struct RanOn {
  std::string_view devices, on;
};
// The hardware or software on which tests/devices passed (for the cpu: tests/conformance).
constexpr RanOn kRanOn[] = {
    {"cpu", "x86-64 with AVX-512 and with AVX2 (hardware), SSE4.2 and AVX2 and aarch64 (emulated by QEMU)"},
    {"vulkan", "lavapipe of Mesa 22.3.6 (LLVM 15.0.6, 256 bits): software, November 2026"},
    {"opengl", "llvmpipe of Mesa 22.3.6 (OpenGL 4.5): software, November 2026"},
    {"webgpu", "SwiftShader of Debian's Chromium, WebGPU's default limits: software, November 2026"},
    {"tpu", "XLA's CPU client as a PJRT 0.115 plug-in (lammps-jax-pjrt-cpu 0.11.2): no TPU, November 2026"},
};

}  // namespace

std::string devices_page() {
  const std::vector<DeviceColumn> devices = device_columns();
  std::string out = R"(# Devices and dtypes

Generated by `rlx devices --dtypes -o docs/devices.md`: the compiler legalizes every op sample in every dtype for every
device. No device computes in a narrower type than the graph states.

How the samples of an op run in a dtype: **all by a kernel**; *all on the device, at least one as the ops of its
decomposition*; no mark: some not on the device (a cast from f32 to i32 runs there and one to i64 does not, for
example); ~~none on the device~~. The cpu runs nodes that the device does not, inside the program, and the dispatch
report names them (`HostFallback`); on the cpu itself these are nodes that the reference rule runs, on one thread.
`rlx inspect --stage dispatch` says how each node of a program runs. The op does not take dtypes that are not listed.
Dtypes that only a few ops take are storage types: cast before computing.

| op |)";
  std::string line = "|---|";
  for (const DeviceColumn& c : devices) out += concat_text(" ", c.names(), " |"), line += "---|";
  out += "\n" + line + "\n";
  for (const OpRow& row : matrix(devices)) {
    out += concat_text("| `", row.def->name, "` |");
    for (const ByDType& ways : row.columns) out += concat_text(" ", cell(ways), " |");
    out += "\n";
  }
  out +=
      "\n## Tested on\n\nThe test suites pass on these. Other hardware is untested.\n\n| device | on "
      "|\n|---|---|\n";
  for (const RanOn& r : kRanOn) out += concat_text("| ", r.devices, " | ", r.on, " |\n");
  out +=
      "\n## Devices\n\nIn order of preference; `rlx devices` says which can be used on a machine.\n\n| device | id | "
      "in this "
      "version |\n|---|---|---|\n";
  std::vector<DeviceInfo> by_priority(all_devices().begin(), all_devices().end());
  std::sort(by_priority.begin(), by_priority.end(),
            [](const DeviceInfo& a, const DeviceInfo& b) { return a.priority < b.priority; });
  for (const DeviceInfo& d : by_priority)
    out += concat_text("| ", d.name, " | `", d.id, "` | ",
                       d.build_option.empty() ? "no backend" : concat_text("`", d.build_option, "`, on by default"),
                       " |\n");
  return out;
}

}  // namespace rlx::cli
