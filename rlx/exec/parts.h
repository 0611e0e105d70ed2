// Programs whose first device keeps whole values and does not run all of the graph: parts of it, one after the other.
// Internal.
#pragma once

#include <memory>
#include <span>

#include "rlx/exec/program.h"

namespace rlx {

/// Code for `lir`, whose inputs are on device `home`: the backend's own where its plan has no parts.
std::unique_ptr<const ExecutableGraph> compile_parts(LirModule lir, std::span<const ProgramDevice> devices,
                                                     std::uint32_t home);

}  // namespace rlx
