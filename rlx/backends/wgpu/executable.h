// The kernels of a program: their texts, which are written without a device.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "rlx/backends/wgpu/device.h"
#include "rlx/codegen/kernel.h"
#include "rlx/device/backend.h"

namespace rlx::wgpu {

/// Constants of a program on one device.
struct Constants {
  std::vector<std::shared_ptr<rlx::Buffer>> buffers;
  std::map<std::uint32_t, BufferView> at;  // by node
  Event there;
};

class WgpuExecutable final : public Executable {
 public:
  WgpuExecutable(LirModule lir, const codegen::Dialect& dialect);
  const LirModule& lir() const override { return lir_; }
  std::unique_ptr<Instance> bind(OpenDevice& device, const LirModule& program,
                                 std::span<const BufferView> arenas) const override;
  std::string kernel_name(NodeId node) const override;
  std::string code() const override;

  /// The launches of a step of the schedule; none for a step that this code does not run.
  const codegen::NodeLaunches& launches(std::size_t step) const { return launches_[step]; }
  /// The constants that kernels and copies read, uploaded once per device.
  std::shared_ptr<const Constants> constants(WgpuDevice& device) const;

 private:
  LirModule lir_;
  std::vector<codegen::NodeLaunches> launches_;  // by step
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<std::weak_ptr<OpenDevice>, std::weak_ptr<const Constants>>> constants_;
};

}  // namespace rlx::wgpu
