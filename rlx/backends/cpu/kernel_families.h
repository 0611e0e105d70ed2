// How the kernel families enter the table: one filler per family, written in the family's source file.
#pragma once

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {
void fill_gemm_kernels(Isa isa, KernelTable& table);
void fill_attention_kernels(Isa isa, KernelTable& table);
void fill_row_kernels(Isa isa, KernelTable& table);
void fill_tape_kernels(Isa isa, KernelTable& table);
void fill_data_kernels(Isa isa, KernelTable& table);  // reductions, gather, copies
void fill_random_kernels(Isa isa, KernelTable& table);

/// What tiles of AMX multiply.
enum class TileProducts : std::uint8_t { Bytes, BF16 };
/// Whether this machine has such tiles and the system gives them to this process; asked for once.
bool has_tiles(TileProducts products);
}  // namespace rlx::cpu
