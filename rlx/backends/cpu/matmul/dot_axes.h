// The axes of a matmul by role, for kernels of two run-time operands.
#pragma once

#include <algorithm>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/matmul/matmul_kernels.h"

namespace rlx::cpu {

/// Row and column axis of each matmul, the outer (batch) axes, and the contracted axes, the last one fastest. Axes that
/// fold into one stride are merged. Rows of the result are contiguous.
struct DotAxes {
  GemmAxis row, col;
  std::vector<GemmAxis> outer, contracted;
};

/// Drops axes of one element and merges adjacent axes that fold into one stride in all operands.
std::vector<GemmAxis> folded(const std::vector<GemmAxis>& axes);
/// The axes of a DotGeneral or FusedDot. `last_axis_alone`: the columns are only the result's last axis, as a bias
/// needs.
DotAxes dot_axes(const LowerContext& c, bool last_axis_alone = false);
/// With one column it transposes the matmul, so that the row fills whole vectors. Returns true when the operands are
/// swapped.
bool as_gemv(DotAxes& axes);
/// Whether rhs has an axis that is neither contracted nor a batch axis.
bool has_rhs_free_axis(const Graph& g, NodeId id);

/// Writes the axes into the operands of a kernel.
inline void place_axes(const DotAxes& axes, MatmulOperands& p) {
  check(axes.col.extent == 1 || axes.col.c == 1, "the columns of a matmul result are not adjacent");
  check(axes.outer.size() <= kGemmMaxAxes && axes.contracted.size() <= kGemmMaxAxes,
        "a matmul has more axes than its kernel supports");
  p.m = axes.row.extent, p.a_m_stride = axes.row.a;
  p.ldc = axes.row.extent > 1 ? axes.row.c : axes.col.extent;
  p.n = axes.col.extent, p.b_n_stride = axes.col.b;
  std::copy(axes.outer.begin(), axes.outer.end(), p.outer);
  std::copy(axes.contracted.begin(), axes.contracted.end(), p.contracted);
  p.num_outer = static_cast<int>(axes.outer.size());
  p.num_contracted = static_cast<int>(axes.contracted.size());
}

}  // namespace rlx::cpu
