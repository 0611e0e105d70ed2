// The table of documented environment variables.
#include "rlx/runtime/env.h"

namespace rlx {
namespace {
constexpr EnvVariable kVariables[] = {
    {"RLX_THREADS", "threads of the CPU backend (default: processors this process may use)"},
    {"RLX_CPU_ISA", "force a lower instruction set that this machine has: avx512, avx2, sse4"},
    {"RLX_WGPU_LIB", "the library wgpu-native 29 to open for the devices gpu, vulkan, opengl and webgpu"},
    {"RLX_GPU_ADAPTER", "of these devices the adapters whose name or driver has this as a part"},
    {"RLX_GPU_ALLOW_SOFTWARE", "software adapters may be the best device too, which else are used by name alone"},
    {"RLX_TPU_PLUGIN", "the PJRT plug-in of device tpu (default: LIBTPU_PATH, else libtpu.so where it is found)"},
    {"RLX_TPU_CACHE", "a folder in which programs of device tpu are kept compiled, for later starts (default: none)"},
    {"RLX_TPU_HLO_DUMP",
     "write the StableHLO text of each program of device tpu to this file, or into this folder when it ends with /"},
    {"RLX_PLUGINS",
     "backends of other projects: shared libraries with ':' between, loaded when a device is first asked for"},
    {"RLX_IR_DUMP",
     "write every stage of each compile of the process to this file, or into this folder when it ends with /"},
    {"RLX_TRACE", "write a timeline of compiles, weights, runs and steps to this file, which Perfetto opens"},
    {"RLX_FUSION_REPORT", "print what was fused and what was missed"},
    {"RLX_DISPATCH_REPORT", "print how each kind of op reaches the device"},
    {"RLX_KERNEL_DISPATCH",
     "native: kernels only, common: decompositions wherever there are some (default: prefer_native)"},
    {"RLX_VERBOSE", "both reports"},
};
}  // namespace

std::span<const EnvVariable> env_variables() { return kVariables; }

}  // namespace rlx
