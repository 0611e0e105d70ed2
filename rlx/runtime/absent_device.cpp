// Absent devices: weights and states of their programs stay on the host.
#include "rlx/runtime/absent_device.h"

#include <limits>
#include <string>
#include <utility>

#include "rlx/compiler/preset_target.h"
#include "rlx/device/host_device.h"
#include "rlx/device/registry.h"
#include "rlx/ir/op_def.h"
#include "rlx/runtime/device_ext.h"

namespace rlx {
namespace {

[[noreturn]] void refuse_plan(Device device, std::string_view graph) {
  std::string why = unavailable_reason(device);
  if (why.empty()) why = "the session was made for the target alone";
  throw Error(ErrorCode::DeviceUnavailable,
              concat_text("graph '", graph, "' was compiled for ", device_info(device).name,
                          " by Session::for_target and cannot run: ", why),
              "run it with a Session on one of rlx::available_devices()");
}

class AbsentExecutable final : public Executable {
 public:
  AbsentExecutable(LirModule lir, Device device, BackendOptions options)
      : lir_(std::move(lir)), device_(device), options_(std::move(options)) {}
  const LirModule& lir() const override { return lir_; }
  void encode(NodeId, std::size_t, const ColumnRange&, DType, const std::byte*, std::byte*) const override { refuse(); }
  void decode(NodeId, std::size_t, const std::byte*, DType, std::byte*) const override { refuse(); }
  std::unique_ptr<Instance> bind(OpenDevice&, const LirModule&, std::span<const BufferView>) const override {
    refuse();
  }
  std::string kernel_name(NodeId node) const override {
    return concat_text(op_text_name(lir_.graph.node(node).op), " (", device_info(device_).id, ", not available)");
  }
  std::string code() const override {
    const std::shared_ptr<const Backend> backend = backend_for(device_);
    return backend ? backend->compile_lir(lir_, options_)->code() : std::string();
  }

 private:
  [[noreturn]] void refuse() const { refuse_plan(device_, lir_.graph.name()); }
  LirModule lir_;
  Device device_;
  BackendOptions options_;
};

class AbsentBackend final : public Backend {
 public:
  explicit AbsentBackend(Device device) : device_(device), target_(target_or_preset(device)) {}
  std::string_view name() const override { return device_info(device_).id; }
  Device device() const { return device_; }
  // No device is opened, so a plan may name any ordinal.
  Presence probe(Device) const noexcept override { return {std::numeric_limits<int>::max()}; }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions&) const override { return open_host_device(id); }
  std::shared_ptr<const Target> target(const BackendOptions&) const override { return target_; }
  std::span<const DeviceOptionInfo> option_infos() const override {
    const std::shared_ptr<const Backend> backend = backend_for(device_);
    return backend ? backend->option_infos() : Backend::option_infos();
  }
  BackendOptions compile_options(const DeviceOptions& options) const override {
    const std::shared_ptr<const Backend> backend = backend_for(device_);
    return backend ? backend->compile_options(options) : Backend::compile_options(options);
  }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& options) const override {
    return std::make_unique<AbsentExecutable>(std::move(lir), device_, options);
  }

 private:
  Device device_;
  std::shared_ptr<const Target> target_;
};

}  // namespace

std::shared_ptr<const Backend> absent_backend(Device device) { return std::make_shared<const AbsentBackend>(device); }

void require_present(const Backend& backend, std::string_view graph) {
  if (const auto* absent = dynamic_cast<const AbsentBackend*>(&backend)) refuse_plan(absent->device(), graph);
}

}  // namespace rlx
