// Answers about nodes from the rows, about memory from the adapters.
#include "rlx/backends/wgpu/target.h"

#include <algorithm>
#include <mutex>
#include <string>

#include "rlx/backends/wgpu/adapters.h"
#include "rlx/codegen/row.h"
#include "rlx/driver/device.h"

namespace rlx::wgpu {
namespace {

constexpr int kBindings = 7;  // of the 8 that every device has; some drivers' translators add one

/// What all adapters of a kind can do, or, where there is none, every WebGPU device.
TargetLimits limits_of(Device kind) {
  const abi::Limits defaults = default_limits();
  std::uint64_t binding = defaults.storage_buffer_binding_size, buffer = defaults.buffer_size;
  if (const Adapters& found = adapters_of(kind); kind != Device::WebGpu && !found.list.empty()) {
    binding = buffer = ~std::uint64_t{0};
    for (const AdapterFacts& a : found.list) {
      binding = std::min(binding, a.limits.storage_buffer_binding_size);
      buffer = std::min(buffer, a.limits.buffer_size);
    }
  }
  TargetLimits l;
  l.alignment = l.view_alignment = codegen::kBindingAlignment;
  l.copy_granule = 4;
  l.max_buffer_bytes = std::min(binding, buffer);
  l.max_arena_bytes = std::min<std::uint64_t>(buffer - codegen::kBindingAlignment, std::uint64_t{1} << 30);
  l.max_bindings = kBindings;
  return l;
}

/// Adapters are looked for when somebody asks what they decide.
class WgpuTarget final : public Target {
 public:
  explicit WgpuTarget(Device kind) : kind_(kind) {}
  std::string_view name() const override { return known().name; }
  Device device() const override { return kind_; }
  bool runtime_symbols() const override { return true; }
  TargetLimits limits() const override { return known().limits; }
  RegionLimits region_limits() const override { return {kBindings - 1, 0}; }
  const OpSet& kinds() const override { return codegen::row_kinds(); }
  const char* refuses(const Graph& g, NodeId id) const override {
    if (const char* why = codegen::rows_refuse(g, id)) return why;
    const Node& n = g.node(id);
    for (Value v : n.inputs)
      if (is_large(g.shape(v))) return "an operand has more bytes than a kernel of the device can be given";
    for (const Shape& s : n.shapes)
      if (is_large(s)) return "a result has more bytes than a kernel of the device can be given";
    return nullptr;
  }
  bool reads_strided(const Graph& g, NodeId id, int operand) const override {
    const codegen::Row* row = codegen::find_row(g, id);
    return row && row->reads_strided && row->reads_strided(g, id, operand);
  }
  bool reads_encoded(const Graph& g, NodeId id, int operand) const override {
    const codegen::Row* row = codegen::find_row(g, id);
    return row && row->reads_encoded && row->reads_encoded(g, id, operand);
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    const codegen::Row* row = codegen::find_row(g, id);
    return row && row->in_place && row->in_place(g, id, operand, result);
  }
  bool skips_unread(const Graph& g, NodeId id, int result) const override {
    const codegen::Row* row = codegen::find_row(g, id);
    return row && result < 32 && (row->skips_unread >> result & 1U) != 0;
  }

 private:
  bool is_large(const Shape& s) const { return s.is_static() && s.size_bytes() > known().limits.max_buffer_bytes; }
  struct Known {
    TargetLimits limits;
    std::string name;
  };
  const Known& known() const {
    std::call_once(once_, [&] {
      const Adapters& found = adapters_of(kind_);
      known_.limits = limits_of(kind_);
      known_.name =
          concat_text(device_info(kind_).id, " (", found.list.empty() ? "WGSL" : found.list.front().text(), ")");
    });
    return known_;
  }

  Device kind_;
  mutable std::once_flag once_;
  mutable Known known_;
};

}  // namespace

std::shared_ptr<const Target> target_of(Device kind) { return std::make_shared<const WgpuTarget>(kind); }

codegen::Dialect dialect_of(Device kind) {
  codegen::Dialect d;
  d.max_bindings = kBindings;
  const Adapters& found = adapters_of(kind);
  d.software = !found.list.empty() && found.list.front().software();
  return d;
}

}  // namespace rlx::wgpu
