// The table of documented environment variables.
#include "rlx/runtime/env.h"

namespace rlx {
namespace {
constexpr EnvVariable kVariables[] = {
    {"RLX_THREADS", "threads of the CPU backend (default: processors this process may use)"},
    {"RLX_CPU_ISA", "force a lower instruction set that this machine has: avx512, avx2, sse4"},
    {"RLX_WGPU_LIB", "path of the library wgpu-native 29, for the devices gpu, vulkan, opengl and webgpu"},
    {"RLX_GPU_ADAPTER", "use only the adapters of these devices whose name or driver contains this text"},
    {"RLX_GPU_ALLOW_SOFTWARE",
     "1: a software adapter may be the best device; without it, only a device named by the user"},
    {"RLX_TPU_PLUGIN",
     "path of the PJRT plug-in of device tpu (default: LIBTPU_PATH, else libtpu.so where it is found)"},
    {"RLX_TPU_CACHE", "folder that caches compiled programs of device tpu for later starts (default: none)"},
    {"RLX_TPU_HLO_DUMP",
     "write the StableHLO text of each program of device tpu to this file, or into this folder when it ends with /"},
    {"RLX_PLUGINS", "plug-in backends: shared libraries separated by ':', loaded when a device is first used"},
    {"RLX_SHARED_CACHES",
     "1: use folders of packed weights and compiled programs though other users may write to them"},
    {"RLX_IR_DUMP",
     "write every stage of each compile of the process to this file, or into this folder when it ends with /"},
    {"RLX_TRACE", "write a timeline of compiles, weights, runs and steps to this file, for Perfetto"},
    {"RLX_NAN_CHECK", "1: a run that gives NaN fails, and names the op, element and line; inf: infinities too"},
    {"RLX_FUSION_REPORT", "print what was fused and what was missed"},
    {"RLX_DISPATCH_REPORT", "print how each kind of op reaches the device"},
    {"RLX_KERNEL_DISPATCH",
     "native: kernels only; common: a decomposition of every op that has one (default: prefer_native)"},
    {"RLX_VERBOSE", "print both reports"},
};
}  // namespace

std::span<const EnvVariable> env_variables() { return kVariables; }

}  // namespace rlx
