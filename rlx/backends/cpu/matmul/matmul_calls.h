// Matmuls for other kernel entries, whose operands are values of the program or memory of the entry.
#pragma once

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/matmul/matmul_kernels.h"

namespace rlx::cpu {

/// An operand: a value of the node, or bytes of its workspace.
struct MatmulSource {
  const View* view = nullptr;
  const void* bytes = nullptr;
};

/// Lowers a DotGeneral or FusedDot with packed B, bf16 pairs that lose nothing included.
void lower_packed_matmul(LowerContext& c);
/// Lowers a DotGeneral or FusedDot of two run-time operands: all types that have a record, and bf16 pairs.
void lower_runtime_matmul(LowerContext& c);
/// Adds the tasks of a matmul whose result is stored to the node's result from element `at` on; for complex numbers
/// `at` counts those. The dtypes select the kernels. The result's dtype decides the accumulator type.
void add_number_product(LowerContext& c, const MatmulOperands& product, const MatmulSource& a, const MatmulSource& b,
                        std::int64_t at);

/// Points `field` at the operand.
template <class T>
void point_source(LowerContext& c, T*& field, const MatmulSource& from) {
  if (from.view != nullptr)
    c.point(field, *from.view);
  else
    field = static_cast<T*>(from.bytes);
}

}  // namespace rlx::cpu
