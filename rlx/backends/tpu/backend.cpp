// The tpu backend: the devices of a PJRT plug-in.
#include "rlx/backends/tpu/differences.h"
#include "rlx/backends/tpu/executable.h"
#include "rlx/backends/tpu/stablehlo.h"
#include "rlx/device/registry.h"
#include "rlx/ir/op_def.h"

namespace rlx {
namespace tpu {
namespace {

class TpuTarget final : public Target {
 public:
  explicit TpuTarget(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  Device device() const override { return Device::Tpu; }
  bool opaque() const override { return true; }
  bool runtime_symbols() const override { return true; }  // code is compiled when extents are bound
  bool branches_freely() const override { return true; }
  const OpSet& kinds() const override { return stablehlo_kinds(); }
  const char* refuses(const Graph& g, NodeId id) const override { return stablehlo_refuses(g, id); }

 private:
  std::string name_;
};

class TpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "tpu"; }
  Presence probe(Device kind) const noexcept override { return probe_with(kind, {}); }
  Presence probe_with(Device, const DeviceOptions& options) const noexcept override {
    try {
      try {
        const auto client = client_for(options);
        if (!client->devices().empty())
          return {static_cast<int>(client->devices().size()), {}, /*software=*/client->is_cpu()};
        return {0, concat_text("the plug-in ", client->library().path(), " found no device")};
      } catch (const Error& e) {
        const Diagnostic& d = e.diagnostic();
        return {0, d.code == ErrorCode::DeviceUnavailable ? concat_text(d.message, "; ", d.hint) : d.message};
      }
    } catch (const std::bad_alloc&) {
      return {0, "out of memory"};  // fits the small-string buffer
    }
  }
  std::string describe(Device kind) const override {
    const auto client = probe(kind).count != 0 ? known_client({}) : nullptr;
    return client ? client->text() : std::string();
  }
  std::span<const Difference> differences() const override { return kDifferences; }
  std::span<const DeviceOptionInfo> option_infos() const override {
    static constexpr DeviceOptionInfo infos[] = {
        {"plugin", "path of a PJRT plug-in (default: RLX_TPU_PLUGIN, else LIBTPU_PATH, else libtpu.so)", true},
        {"client", "options of the plug-in's client, NAME=VALUE,.., for example cpu_device_count=2 for XLA on the CPU",
         true},
        {"cache", "folder that caches compiled programs for later starts; off: no cache (default: RLX_TPU_CACHE)"},
    };
    return infos;
  }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions& options) const override {
    return std::make_shared<TpuDevice>(client_for(options), id);
  }
  std::shared_ptr<const Target> target(const BackendOptions& options) const override {
    const auto client = known_client(options.options);
    return std::make_shared<const TpuTarget>(client ? concat_text("tpu (StableHLO, ", client->platform(), ")")
                                                    : std::string("tpu (StableHLO)"));
  }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& options) const override {
    return std::make_unique<TpuExecutable>(std::move(lir), known_client(options.options), options.ordinal,
                                           compile_settings(options.options));
  }
};

constexpr Device kDevices[] = {Device::Tpu};

const Backend& the_backend(Device) {
  static const TpuBackend backend;
  return backend;
}

}  // namespace

constexpr BackendEntry kEntry{"tpu", kDevices, the_backend};
}  // namespace tpu

extern const BackendEntry tpu_backend;
const BackendEntry tpu_backend = tpu::kEntry;

}  // namespace rlx
