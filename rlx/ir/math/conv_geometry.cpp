// Fills in the omitted attributes of a convolution.
#include "rlx/ir/math/conv_geometry.h"

namespace rlx {

ConvGeometry conv_geometry(const ops::Conv& op, int rank) {
  ConvGeometry g;
  const auto axis = [](const std::vector<std::int64_t>& spec, std::size_t i) {
    return spec.empty() ? static_cast<std::int64_t>(i) : spec[i];
  };
  const auto amount = [](const std::vector<std::int64_t>& list, std::size_t i, std::int64_t otherwise) {
    return list.empty() ? otherwise : list[i];
  };
  g.x_batch = axis(op.lhs_spec, 0), g.x_feature = axis(op.lhs_spec, 1);
  g.w_out = axis(op.rhs_spec, 0), g.w_in = axis(op.rhs_spec, 1);
  g.y_batch = axis(op.out_spec, 0), g.y_feature = axis(op.out_spec, 1);
  g.groups = op.groups, g.batch_groups = op.batch_groups;
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(rank); ++i)
    g.space.push_back({axis(op.lhs_spec, i + 2), axis(op.rhs_spec, i + 2), axis(op.out_spec, i + 2),
                       amount(op.strides, i, 1), amount(op.low, i, 0), amount(op.high, i, 0),
                       amount(op.lhs_dilation, i, 1), amount(op.rhs_dilation, i, 1)});
  return g;
}

const ops::Conv* conv_of(const OpBox& op) {
  if (const auto* fused = op.get_if<ops::FusedConv>()) return fused;
  return op.get_if<ops::Conv>();
}

}  // namespace rlx
