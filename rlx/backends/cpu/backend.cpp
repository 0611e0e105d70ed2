// The CPU backend: always available, its instruction set chosen once.
#include <algorithm>
#include <array>

#include "rlx/backends/cpu/executable.h"
#include "rlx/backends/cpu/limits.h"
#include "rlx/driver/registry.h"

namespace rlx {
namespace {

using cpu::Isa;

bool reads_strided(const Graph& g, NodeId id, int operand) {
  const cpu::Row* row = cpu::find_row(g, id);
  return row && row->reads_strided && row->reads_strided(g, id, operand);
}

bool in_place(const Graph& g, NodeId id, int operand, int result) {
  const cpu::Row* row = cpu::find_row(g, id);
  return row && row->in_place && row->in_place(g, id, operand, result);
}

// TargetInfo holds plain functions: one per instruction set, because the packed form depends on it.
template <Isa I>
std::optional<TargetInfo::Packing> packing(const Graph& g, NodeId id, int operand, std::int64_t k, std::int64_t n) {
  const cpu::Row* row = cpu::find_row(g, id);
  if (!row || !row->packing) return std::nullopt;
  return row->packing(cpu::kernels_for(I), g, id, operand, k, n);
}

auto packing_of(Isa isa) {
  switch (isa) {
    case Isa::Sse4: return packing<Isa::Sse4>;
    case Isa::Avx2: return packing<Isa::Avx2>;
    case Isa::Avx512: return packing<Isa::Avx512>;
    case Isa::Neon: return packing<Isa::Neon>;
    case Isa::Generic: break;
  }
  return packing<Isa::Generic>;
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string unavailable_reason() const noexcept override {
    try {
      cpu::best_isa();
      return {};
    } catch (const std::bad_alloc&) {
      return "out of memory";  // lies inside the string
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  TargetInfo target(const BackendOptions& options) const override {
    const Isa isa = cpu::parse_isa(options.isa);
    TargetInfo t;
    t.device = Device::Cpu;
    t.threads = checked_thread_count(options.threads, "threads");
    t.name = concat_text("cpu (", cpu::isa_name(isa), ", ", t.threads, t.threads == 1 ? " thread)" : " threads)");
    t.claims = cpu::row_claims();
    t.runtime_symbols = true;
    t.memory.alignment = 64;
    t.reads_strided = reads_strided;
    t.in_place = in_place;
    t.packing = packing_of(isa);
    return t;
  }
  std::unique_ptr<const ExecutableGraph> compile_lir(LirModule lir, const BackendOptions& options) const override {
    return std::make_unique<cpu::Executable>(std::move(lir), cpu::kernels_for(cpu::parse_isa(options.isa)), options);
  }
  std::optional<MachineLimits> measure_limits(const BackendOptions& options) const override {
    return cpu::measure_limits(cpu::kernels_for(cpu::parse_isa(options.isa)));
  }
};

constexpr Device kDevices[] = {Device::Cpu};

}  // namespace

extern const BackendEntry cpu_backend;
const BackendEntry cpu_backend{"cpu", kDevices, []() -> const Backend& {
                                 static const CpuBackend backend;
                                 return backend;
                               }};

}  // namespace rlx
