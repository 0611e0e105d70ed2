// Programs bound to memory.
#pragma once

#include <memory>
#include <span>

#include "rlx/backends/cpu/executable.h"

namespace rlx::cpu {

/// `lir`, compiled by `exe`, as a fixed schedule of kernel calls in these arenas. `is_body`: it is a body of a node of
/// another program, which runs it.
std::unique_ptr<BoundGraph> bind_program(const Executable& exe, const LirModule& lir,
                                         std::span<const BufferView> arenas, bool is_body);

}  // namespace rlx::cpu
