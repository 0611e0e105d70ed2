// Programs that no single device runs as a whole: ranges of one schedule on their devices, with transfers and
// host-controlled branches and loops between them. Internal.
#pragma once

#include <memory>
#include <span>

#include "rlx/device/backend.h"

namespace rlx {

/// A device of a program, by its number (`LirModule::others`), with the backend that compiles for it.
struct ProgramDevice {
  const Backend* backend = nullptr;
  BackendOptions options{};
  std::shared_ptr<OpenDevice> device{};  // may be null for the first device if it is the only one, because runs pass it
};

/// Code for `lir`, whose inputs are on the first device: the backend's own when that device runs all of it, otherwise
/// code that submits each segment (on an opaque device each partition).
std::unique_ptr<const Executable> compile_program(LirModule lir, std::span<const ProgramDevice> devices);

/// The same for a body of a program, whose inputs are on device `home`.
std::unique_ptr<const Executable> compile_body(LirModule lir, std::span<const ProgramDevice> devices,
                                               std::uint32_t home);

}  // namespace rlx
