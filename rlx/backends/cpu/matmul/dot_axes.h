// The axes of a product by role, as kernels of two run-time operands walk them.
#pragma once

#include <algorithm>
#include <vector>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// Rows and columns of each product, the axes it is repeated over, and the contracted ones, the last fastest; axes that
/// one stride walks are one. Columns of the result are adjacent.
struct DotAxes {
  GemmAxis row, col;
  std::vector<GemmAxis> outer, contracted;
};

/// Without axes of one element; neighbours that walk everything in one stride are one.
std::vector<GemmAxis> folded(const std::vector<GemmAxis>& axes);
/// Of a DotGeneral or FusedDot. `last_axis_alone`: the columns are the result's last axis and no other, as a bias
/// needs.
DotAxes dot_axes(const LowerContext& c, bool last_axis_alone = false);
/// Where there is one column: makes the transposed product of it, whose row fills whole vectors of the processor. True:
/// the operands have changed places.
bool turn_vector(DotAxes& axes);
/// Whether the second operand has an axis that is neither contracted nor of the batch.
bool has_rhs_free_axis(const Graph& g, NodeId id);

/// Puts them into the operands of a kernel: GemmStridedF32, MatmulOperands.
template <class Operands>
void place_axes(const DotAxes& axes, Operands& p) {
  check(axes.col.extent == 1 || axes.col.c == 1, "columns of a product are adjacent");
  check(axes.outer.size() <= kGemmMaxAxes && axes.contracted.size() <= kGemmMaxAxes, "a product of this many axes");
  p.m = axes.row.extent, p.a_m_stride = axes.row.a;
  p.ldc = axes.row.extent > 1 ? axes.row.c : axes.col.extent;
  p.n = axes.col.extent, p.b_n_stride = axes.col.b;
  std::copy(axes.outer.begin(), axes.outer.end(), p.outer);
  std::copy(axes.contracted.begin(), axes.contracted.end(), p.contracted);
  p.num_outer = static_cast<int>(axes.outer.size());
  p.num_contracted = static_cast<int>(axes.contracted.size());
}

}  // namespace rlx::cpu
