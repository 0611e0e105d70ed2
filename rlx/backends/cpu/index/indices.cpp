// Resolves the index operands of a gather or scatter.
#include "rlx/backends/cpu/index/indices.h"

#include "rlx/backends/cpu/generic/generic.h"

namespace rlx::cpu {

void point_blocks(LowerContext& c, NamedBlocks& b, const View& x, const std::vector<std::int64_t>& axes,
                  IndexMode mode) {
  b.blocks = IndexedBlocks(x.dims, axes);
  b.clamp = mode == IndexMode::Clamp;
  b.kernels = &index_kernels(c.kernels().isa);
  b.axes.resize(axes.size());
  b.count = c.in(1).elements();
  std::vector<View> views;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    views.push_back(c.in(1 + static_cast<int>(k)));
    b.axes[k].indices.wide = views[k].dtype == DType::I64;
    c.point(b.axes[k].indices.data, views[k]);
  }
  // Axes of extent 1 are dropped, and adjacent axes that fold in all index tensors are merged.
  const std::vector<std::int64_t>& extents = views[0].dims;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    bool merges = !b.dims.empty();
    for (std::size_t k = 0; k < axes.size() && merges; ++k)
      merges = b.axes[k].strides.back() == views[k].strides[d] * extents[d];
    if (merges)
      b.dims.back() *= extents[d];
    else
      b.dims.push_back(extents[d]);
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (merges)
        b.axes[k].strides.back() = views[k].strides[d];
      else
        b.axes[k].strides.push_back(views[k].strides[d]);
    }
  }
  if (!b.dims.empty()) return;
  b.dims.push_back(1);
  for (NamedBlocks::Axis& a : b.axes) a.strides.push_back(0);
}

const char* index_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(in_shape(g, id, 0))) return why;
  return refuse_high_rank(in_shape(g, id, 1));
}

bool over_first(const Graph& g, NodeId id, int operand, int) { return operand == 0 && is_sole_operand(g, id, 0); }

}  // namespace rlx::cpu
