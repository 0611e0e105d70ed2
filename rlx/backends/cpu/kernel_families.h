// One function per kernel family that fills its part of the kernel table. Each is defined in the family's source file.
#pragma once

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {
void fill_matmul_kernels(Isa isa, KernelTable& table);
void fill_packed_b_kernels(Isa isa, KernelTable& table);  // its packers
void fill_attention_kernels(Isa isa, KernelTable& table);
void fill_row_kernels(Isa isa, KernelTable& table);
void fill_tape_kernels(Isa isa, KernelTable& table);
void fill_copy_reduce_kernels(Isa isa, KernelTable& table);  // reductions, gather, copies
void fill_random_kernels(Isa isa, KernelTable& table);

/// Operand types of AMX tile matmuls.
enum class TileType : std::uint8_t { Bytes, BF16 };
/// Whether this machine has AMX tiles of this type and the system permits this process to use them. Asked once.
bool has_tiles(TileType type);
}  // namespace rlx::cpu
