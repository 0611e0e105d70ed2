// The CPU backend. It is always available and chooses its instruction set once.
#include <algorithm>
#include <array>
#include <charconv>

#include "rlx/backends/cpu/executable.h"
#include "rlx/backends/cpu/limits.h"
#include "rlx/device/host_device.h"
#include "rlx/device/registry.h"

namespace rlx {
namespace {

using cpu::Isa;

class CpuTarget final : public EntryTarget<cpu::KernelEntry> {
 public:
  CpuTarget(Isa isa, int threads)
      : EntryTarget(cpu::entry_table()),
        kernels_(cpu::kernels_for(isa)),
        threads_(threads),
        name_(concat_text("cpu (", cpu::isa_name(isa), ", ", threads, threads == 1 ? " thread)" : " threads)")) {}

  std::string_view name() const override { return name_; }
  int threads() const override { return threads_; }
  bool runtime_symbols() const override { return true; }
  bool on_host(const Graph& g, NodeId id) const override { return cpu::runs_on_host(g, id); }
  RegionLimits region_limits() const override { return {cpu::kTapeMaxInputs, cpu::kTapeMaxRegisters}; }
  bool plans_bodies(const Graph& g, NodeId id) const override {
    const cpu::KernelEntry* row = entries_.find(g, id);
    return row && row->plans_bodies;
  }
  std::optional<PackedLayout> packed_layout(const Graph& g, NodeId id, int operand,
                                            const ConstantMatrix& of) const override {
    const cpu::KernelEntry* row = entries_.find(g, id);
    return row && row->packed_layout ? row->packed_layout(kernels_, g, id, operand, of) : std::nullopt;
  }
  bool reads_packed(const Graph& g, NodeId id, int operand, const PackedLayout& layout) const override {
    const cpu::KernelEntry* row = entries_.find(g, id);
    return row && row->reads_packed && row->reads_packed(g, id, operand, layout);
  }

 private:
  const cpu::KernelTable& kernels_;
  int threads_;
  std::string name_;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  Presence probe(Device) const noexcept override {
    try {
      cpu::best_isa();
      return {1};
    } catch (const std::bad_alloc&) {
      return {0, "out of memory"};  // lies inside the string
    } catch (const std::exception& e) {
      return {0, e.what()};
    }
  }
  std::span<const DeviceOptionInfo> option_infos() const override {
    static constexpr DeviceOptionInfo infos[] = {
        {"threads", "threads of a run, 1 to 64; 0: as many processors as the process may use"},
        {"isa", "name of a lower instruction set to use"},
    };
    return infos;
  }
  BackendOptions compile_options(const DeviceOptions& options) const override {
    BackendOptions out;
    out.options = options;
    if (const auto it = options.find("threads"); it != options.end()) {
      const char* const end = it->second.data() + it->second.size();
      const auto read = std::from_chars(it->second.data(), end, out.threads);
      if (read.ec != std::errc() || read.ptr != end)
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("device cpu, option threads = '", it->second, "': it is not a number"),
                    "pass 1 to 64, or 0 for all processors");
      (void)checked_thread_count(out.threads, "device cpu, option threads");
    }
    if (const auto it = options.find("isa"); it != options.end()) {
      (void)cpu::parse_isa(it->second);
      out.isa = it->second;
    }
    return out;
  }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions&) const override { return open_host_device(id); }
  std::shared_ptr<const Target> target(const BackendOptions& options) const override {
    return std::make_shared<const CpuTarget>(cpu::parse_isa(options.isa),
                                             checked_thread_count(options.threads, "threads"));
  }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& options) const override {
    return std::make_unique<cpu::CpuExecutable>(std::move(lir), cpu::kernels_for(cpu::parse_isa(options.isa)), options);
  }
  std::optional<MachineLimits> measure_limits(const BackendOptions& options) const override {
    return cpu::measure_limits(cpu::kernels_for(cpu::parse_isa(options.isa)));
  }
};

constexpr Device kDevices[] = {Device::Cpu};

}  // namespace

extern const BackendEntry cpu_backend;
const BackendEntry cpu_backend{"cpu", kDevices, [](Device) -> const Backend& {
                                 static const CpuBackend backend;
                                 return backend;
                               }};

}  // namespace rlx
