// The kernel texts of every step, and constants.
#include "rlx/backends/wgpu/executable.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "rlx/backends/wgpu/bound.h"
#include "rlx/codegen/entry.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::wgpu {

WgpuExecutable::WgpuExecutable(LirModule lir, const codegen::Dialect& dialect) : lir_(std::move(lir)) {
  launches_.resize(lir_.plan.schedule.size());
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const bool ours = lir_.ranges.empty() || std::any_of(lir_.ranges.begin(), lir_.ranges.end(),
                                                         [&](const StepRange& r) { return r.holds(i); });
    if (ours) launches_[i] = codegen::launches_of(lir_, lir_.plan.schedule[i].node, dialect);
  }
}

std::string WgpuExecutable::kernel_name(NodeId node) const {
  std::string names;
  for (const codegen::NodeLaunches& l : launches_)
    if (l.node == node)
      for (const codegen::Kernel& k : l.kernels) names += concat_text(names.empty() ? "" : ", ", k.name);
  return names.empty() ? "none" : concat_text(names, " (wgsl)");
}

std::string WgpuExecutable::code() const {
  std::string out;
  for (const codegen::NodeLaunches& l : launches_)
    for (const codegen::Kernel& k : l.kernels)
      out +=
          concat_text("// ", node_label(lir_.graph, l.node), ": ", k.name, ", ", k.groups, " groups\n", k.text, "\n");
  return out;
}

std::shared_ptr<const Constants> WgpuExecutable::constants(WgpuDevice& device) const {
  std::lock_guard lock(mutex_);
  std::erase_if(constants_, [](const auto& c) { return c.first.expired() || c.second.expired(); });
  for (const auto& [on, known] : constants_)
    if (on.lock().get() == &device)
      if (auto there = known.lock(); there && !there->there.failed()) return there;
  std::set<std::uint32_t> read;
  const auto note = [&](Value v) {
    if (const LirValue& where = lir_.plan.at(v); where.place == Place::Constant) read.insert(where.index);
  };
  for (const codegen::NodeLaunches& l : launches_)
    for (const codegen::Kernel& k : l.kernels)
      for (const codegen::Binding& b : k.bindings)
        for (Value v : b.values) note(v);
  for (const LirOutputCopy& c : lir_.plan.output_copies) note(c.value);
  for (const LirStateCopy& c : lir_.plan.state_copies) note(c.value);
  // Constants are packed into buffers of up to 64 MiB or the device's limit.
  auto made = std::make_shared<Constants>();
  constexpr std::size_t align = codegen::kBindingAlignment;
  const std::size_t most = std::min<std::size_t>(device.gpu()->limits().buffer_size - align, std::size_t{64} << 20);
  const std::shared_ptr<Stream> stream = device.stream(0);
  std::vector<std::pair<std::uint32_t, std::size_t>> places;
  std::size_t bytes = 0;
  const auto place = [&] {
    if (places.empty()) return;
    made->buffers.push_back(device.allocate(bytes, BufferUse::Weights));
    for (const auto& [node, offset] : places) {
      const Tensor& value = lir_.graph.node(NodeId{node}).op.as<ops::Constant>().value;
      const BufferView at(*made->buffers.back(), offset, value.size_bytes());
      stream->upload({value.data(), value.size_bytes()}, at);
      made->at.emplace(node, at);
    }
    places.clear();
    bytes = 0;
  };
  for (std::uint32_t node : read) {
    const std::size_t size = lir_.graph.node(NodeId{node}).op.as<ops::Constant>().value.size_bytes();
    if (bytes != 0 && bytes + size > most) place();
    places.emplace_back(node, bytes);
    bytes += round_up(size, align);
  }
  place();
  made->there = stream->record();
  constants_.emplace_back(device.weak_from_this(), made);
  return made;
}

std::unique_ptr<Instance> WgpuExecutable::bind(OpenDevice& device, const LirModule& program,
                                               std::span<const BufferView> arenas) const {
  auto* const ours = dynamic_cast<WgpuDevice*>(&device);
  check(ours != nullptr, "a program for wgpu was bound to a device of another backend");
  return std::make_unique<WgpuInstance>(*this, ours->self(), program, arenas);
}

}  // namespace rlx::wgpu
