// Answers questions about nodes from the kernel entries, and about memory from the adapters.
#include "rlx/backends/wgpu/target.h"

#include <algorithm>
#include <mutex>
#include <string>

#include "rlx/backends/wgpu/adapters.h"
#include "rlx/codegen/entry.h"
#include "rlx/device/device.h"

namespace rlx::wgpu {
namespace {

constexpr int kBindings = 7;  // of the 8 that every device has; some driver translators add one

/// The limits that all adapters of a kind have, or without adapters those of every WebGPU device.
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

/// Adapters are looked up at the first question that depends on them.
class WgpuTarget final : public EntryTarget<codegen::KernelEntry> {
 public:
  explicit WgpuTarget(Device kind) : EntryTarget(codegen::entry_table()), kind_(kind) {}
  std::string_view name() const override { return known().name; }
  Device device() const override { return kind_; }
  bool runtime_symbols() const override { return true; }
  TargetLimits limits() const override { return known().limits; }
  RegionLimits region_limits() const override { return {kBindings - 1, 0}; }
  const char* refuses(const Graph& g, NodeId id) const override {
    if (const char* why = entries_.refuses(g, id)) return why;
    const Node& n = g.node(id);
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (is_large(g.shape(n.inputs[i])) && !reads_encoded(g, id, static_cast<int>(i)))
        return "an operand has more bytes than a kernel of the device can bind";
    for (const Shape& s : n.shapes)
      if (is_large(s) && !is_quantized_alone(g, id))
        return "a result has more bytes than a kernel of the device can bind";
    const codegen::KernelEntry* row = entries_.find(g, id);
    if (row && row->steps && known().limits_loop_length)
      if (const Dim steps = row->steps(g, id, dialect_of(kind_)); steps.is_static() && steps.value() > kMostSteps)
        return "its kernels have longer loops than Mesa's rasterisers run (65,535 steps)";
    const codegen::ScratchBytes scratch =
        row && row->scratch_bytes ? row->scratch_bytes(g, id) : codegen::ScratchBytes{};
    return refuse_unless(
        scratch.largest <= known().limits.max_buffer_bytes && scratch.all <= known().limits.max_arena_bytes,
        "its kernels need more scratch memory than the device can bind");
  }

 private:
  // True when every reader of a Dequantize's result reads its quantized values instead. The result then has no bytes.
  bool is_quantized_alone(const Graph& g, NodeId id) const {
    if (g.node(id).kind() != OpKind::Dequantize) return false;
    const UseIndex uses(g);
    const Value v(id);
    if (uses.is_output(v)) return false;
    const auto reads = uses.uses(v);
    return std::all_of(reads.begin(), reads.end(), [&](const UseIndex::Use& use) {
      return reads_encoded(g, use.user, static_cast<int>(use.operand));
    });
  }
  bool is_large(const Shape& s) const { return s.is_static() && s.size_bytes() > known().limits.max_buffer_bytes; }
  struct Known {
    TargetLimits limits;
    std::string name;
    bool limits_loop_length = false;
  };
  const Known& known() const {
    std::call_once(once_, [&] {
      const Adapters& found = adapters_of(kind_);
      known_.limits = limits_of(kind_);
      // for another adapter it is checked when a program is bound
      known_.limits_loop_length = !found.list.empty() && found.list.front().limits_loop_length();
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
