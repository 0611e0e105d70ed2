// Indexed axes: shapes, positions of blocks, batching.
#include "rlx/ops/index/indexed.h"

namespace rlx {

Dims picked_dims(const Shape& x, const Dims& indices, const std::vector<std::int64_t>& axes) {
  Dims dims;
  for (std::int64_t a = 0; a < x.rank(); ++a) {
    if (a == axes.front()) dims.insert(dims.end(), indices.begin(), indices.end());
    if (!std::binary_search(axes.begin(), axes.end(), a)) dims.push_back(x.dim(static_cast<int>(a)));
  }
  return dims;
}

std::optional<Diagnostic> check_indexed(const InferContext& c, const Shape& x, const std::vector<std::int64_t>& axes,
                                        int behind) {
  if (axes.empty()) return c.attr_error("needs at least one axis to index");
  if (auto error = check_axes(c, axes, x)) return error;
  if (!std::is_sorted(axes.begin(), axes.end())) return c.attr_error("axes ", dims_text(axes), " must ascend");
  const int count = static_cast<int>(axes.size()), end = c.num_inputs() - behind;
  if (count != end - 1)
    return c.attr_error("has ", count, count == 1 ? " axis" : " axes", ", but ", end - 1, " index operands");
  for (int i = 1; i < end; ++i) {
    const Shape& indices = c.input(i);
    if (!is_index(indices.dtype())) return c.dtype_error("indices must be i32 or i64, not ", indices, "; cast them");
    if (!(indices.dims() == c.input(1).dims()))
      return c.error("indices ", indices, " for axis ", axes[static_cast<std::size_t>(i - 1)],
                     " must have the dimensions of the first indices, ", c.input(1));
  }
  return std::nullopt;
}

std::optional<Diagnostic> check_clamped(const InferContext& c, const Shape& x, const std::vector<std::int64_t>& axes,
                                        const Shape& indices) {
  for (std::int64_t axis : axes)
    if (c.negative(x.dim(static_cast<int>(axis)) - min(Dim(1), indices.num_elements_dim())))
      return c.error("axis ", axis, " of ", x, " is empty, so indices cannot be clamped");
  return std::nullopt;
}

std::optional<std::int64_t> block_at(const IndexedBlocks& blocks, std::span<const Tensor> indices, std::int64_t i,
                                     bool clamp) {
  std::int64_t offset = 0;
  for (std::size_t k = 0; k < blocks.extents.size(); ++k) {
    std::int64_t at = indices[k].at_i64(i);
    if (clamp) at = std::clamp<std::int64_t>(at, 0, blocks.extents[k] - 1);
    if (at < 0 || at >= blocks.extents[k]) return std::nullopt;
    offset += at * blocks.strides[k];
  }
  return offset;
}

std::vector<std::int64_t> move_axis(int rank, std::int64_t axis, std::int64_t to) {
  std::vector<std::int64_t> perm = identity_perm(rank);
  perm.erase(perm.begin() + axis);
  perm.insert(perm.begin() + to, axis);
  return perm;
}

std::vector<Value> batched_indices(BatchContext& c, int first, int last) {
  std::vector<Value> out;
  const Expr some = c.lifted(first);
  Graph& g = c.graph();
  const Dim& batch = c.batch_size();
  out.push_back(g.expand(positions(g, batch, 0, some.rank(), count_dtype(g, {{batch}})), some.shape().dims()));
  for (int i = first; i < last; ++i) out.push_back(c.lifted(i));
  return out;
}

}  // namespace rlx
