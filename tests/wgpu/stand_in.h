// What tests ask of the stand-in for wgpu-native (stand_in.cpp), which they open as the real library is opened.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/wgpu/abi.h"

namespace rlx::test {

struct StandInAdapter {
  const char* name = "stand-in";
  wgpu::abi::BackendType backend = wgpu::abi::BackendType::Vulkan;
  wgpu::abi::AdapterType type = wgpu::abi::AdapterType::DiscreteGpu;
  std::uint64_t binding_bytes = std::uint64_t{1} << 30, buffer_bytes = std::uint64_t{2} << 30;
};

/// How a call that a test chose goes wrong.
enum class StandInFault {
  OutOfMemory,  // reported by the call
  Invalid,      // the same
  Lost,         // the call reports that the device is lost, as all later ones of it do
  Silent,       // the device is lost; the next call says so
  MapFails,     // of BufferMapAsync: its callback says that it failed, and the device is there still
};

/// Exported as "stand_in".
struct StandInControl {
  /// As it was when it was opened: one adapter, no faults, nothing noted.
  void (*reset)();
  void (*set_adapters)(const StandInAdapter*, std::size_t);
  /// The `nth` next call, from 0, of the function of this name ("DeviceCreateBuffer") has this fault, and the next ones
  /// up to so many `times`.
  void (*fault)(const char* function, std::size_t nth, StandInFault, std::size_t times);
  /// True when the fault has happened.
  bool (*faulted)();
  /// Work is done when somebody waits for it alone, not when somebody asks.
  void (*lazy)(bool);
  /// The first thing at which the real library would have ended the process; null when there is none.
  const char* (*broken)();
  /// A launch that the library takes and a browser refuses; null when there is none.
  const char* (*refused)();
  /// Objects that were made and not let go of, but for instances, which are never.
  std::size_t (*live)();
  std::size_t (*calls)(const char* function);
};

}  // namespace rlx::test
