// A library that says it is some version of wgpu-native and has nothing else.
#include <cstdint>

extern "C" __attribute__((visibility("default"))) std::uint32_t wgpuGetVersion() { return RLX_FALSE_VERSION; }
