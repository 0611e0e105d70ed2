// Programs that no kernel table runs as a whole: ranges of one schedule on the devices that run them, and between them
// copies from device to device, branches and loops, which the host takes care of. Internal.
#pragma once

#include <memory>
#include <span>

#include "rlx/device/backend.h"

namespace rlx {

/// A device of a program, by its number (`LirModule::others`), and who makes its code.
struct ProgramDevice {
  const Backend* backend = nullptr;
  BackendOptions options{};
  std::shared_ptr<OpenDevice> device{};  // may be null for the first where it is the only one: runs are given it
};

/// Code for `lir`: the backend's own where the first device runs all of it, else code that submits the parts.
std::unique_ptr<const ExecutableGraph> compile_program(LirModule lir, std::span<const ProgramDevice> devices);

}  // namespace rlx
