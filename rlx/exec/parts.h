// Programs whose first device is opaque and does not run the whole graph: a sequence of partitions. Internal.
#pragma once

#include <memory>
#include <span>

#include "rlx/exec/program.h"

namespace rlx {

/// Compiles `lir`, whose inputs are on device `home`. Without partitions the result is the backend's own executable.
std::unique_ptr<const Executable> compile_parts(LirModule lir, std::span<const ProgramDevice> devices,
                                                std::uint32_t home);

}  // namespace rlx
