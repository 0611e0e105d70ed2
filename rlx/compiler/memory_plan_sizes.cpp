// Resizes a memory plan to other extents.
#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/partition.h"
#include "rlx/compiler/plan_bodies.h"
#include "rlx/compiler/views.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/packed_layout.h"

namespace rlx {

std::optional<LirValue> placed_view(const Graph& g, NodeId id, const LirValue& operand) {
  const Node& n = g.node(id);
  const std::vector<std::int64_t> dims = g.shape(n.inputs[0]).static_dims(), to = n.shape().static_dims();
  std::optional<ViewPlace<std::int64_t>> view =
      view_place(n, dims, operand.strides.empty() ? dense_strides(dims) : operand.strides, to);
  if (!view) return std::nullopt;
  const std::size_t element = size_bytes(n.shape().dtype());
  LirValue out;
  out.place = operand.place, out.index = operand.index;
  out.is_view = true;
  out.offset = operand.offset + static_cast<std::size_t>(view->skip) * element;
  out.bytes = op_def(n.kind()).view == ViewKind::Always  // the whole value, so elements may be parts of bytes
                  ? operand.bytes
                  : static_cast<std::size_t>(touched_extent(to, view->strides)) * element;
  if (!is_dense(to, view->strides)) out.strides = std::move(view->strides);
  return out;
}

LirBufferPlan resize_plan(const Graph& g, const LirBufferPlan& plan) {
  LirBufferPlan out = plan;
  for (LirPart& p : out.parts) p = resize_part(g, p);
  if (plan.opaque) return out;
  for (LirBodies& b : out.bodies) b = resize_bodies(g, b);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    for (std::uint32_t r = 0; r < n.num_results(); ++r) {
      LirValue& lv = out.values[i][r];
      if (lv.place == Place::None) continue;
      if (!lv.is_view) {
        lv.bytes = stored_bytes(g, Value(NodeId{i}, r));
        continue;
      }
      std::optional<LirValue> view = placed_view(g, NodeId{i}, out.at(n.inputs[0]));
      check(view.has_value(), "an op is a view for symbolic extents, but not for these values of them");
      lv.offset = view->offset, lv.bytes = view->bytes, lv.strides = std::move(view->strides);
    }
  }
  return out;
}

}  // namespace rlx
