// Programs whose first device is opaque and does not run the whole graph: a sequence of partitions. Internal.
#pragma once

#include <memory>
#include <span>

#include "rlx/exec/program.h"

namespace rlx {

/// Code for `lir`, which has partitions, and whose inputs are on device `home`.
std::unique_ptr<const Executable> make_parts(LirModule lir, std::span<const ProgramDevice> devices, std::uint32_t home);

}  // namespace rlx
