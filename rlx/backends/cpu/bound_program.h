// Programs bound to memory.
#pragma once

#include <memory>
#include <span>

#include "rlx/backends/cpu/executable.h"

namespace rlx::cpu {

/// Binds `lir`, compiled by `exe`, to these arenas as a fixed schedule of kernel calls. `is_body`: the program is a
/// body of a node, and the program of that node runs it.
std::unique_ptr<BoundGraph> bind_program(const Executable& exe, const LirModule& lir,
                                         std::span<const BufferView> arenas, bool is_body);

}  // namespace rlx::cpu
