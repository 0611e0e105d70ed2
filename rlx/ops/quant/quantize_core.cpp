// Scales and their elements.
#include "rlx/ops/quant/quantize_core.h"

#include <algorithm>

#include "rlx/ir/ops/reduce.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

Dim blocks_of(const Dim& extent, std::int64_t block) { return floordiv(extent + Dim(block - 1), Dim(block)); }

std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

// x [.., D, ..] as [.., D / block, block, ..].
Dims split_dims(const Dims& x, std::int64_t axis, const Dim& blocks, std::int64_t block) {
  Dims out = x;
  out[at(axis)] = blocks;
  out.insert(out.begin() + axis + 1, Dim(block));
  return out;
}

}  // namespace

bool is_quantized_dtype(DType t) {
  return (is_int(t) && t != DType::U64) || is_float_quantized(t) || t == DType::I4 || t == DType::U4;
}

QuantizedRange quantized_range(DType t) {
  const bool is_unsigned = is_unsigned_int(t) || t == DType::U4;
  const int bits = dtype_bits(t) - (is_unsigned ? 0 : 1);
  const double high = std::ldexp(1.0, bits) - 1;
  return {is_unsigned ? 0 : -high - 1, high};
}

Dims scale_dims(const Dims& x, const ScaleGrid& grid) {
  if (!grid.axis) return {};
  if (grid.block == 0) return {x[at(*grid.axis)]};
  Dims out = x;
  out[at(*grid.axis)] = blocks_of(x[at(*grid.axis)], grid.block);
  return out;
}

std::optional<Diagnostic> check_grid(const InferContext& c, const Shape& x, const ScaleGrid& grid) {
  if (grid.axis)
    if (auto e = c.check_axis(*grid.axis, x)) return e;
  if (grid.block < 0 || grid.block > (std::int64_t{1} << 30))
    return c.attr_error("block must be 0 (no blocks) or the number of adjacent elements that share a scale, got ",
                        grid.block);
  if (grid.block > 0 && !grid.axis) return c.attr_error("block ", grid.block, " needs an axis");
  return std::nullopt;
}

std::optional<Diagnostic> check_scale_dims(const InferContext& c, std::string_view name, const Shape& scale,
                                           const Shape& x, const ScaleGrid& grid) {
  const Dims want = scale_dims(x.dims(), grid);
  if (scale.dims() == want) return std::nullopt;
  const std::string why = !grid.axis   ? std::string("without an axis")
                          : grid.block ? concat_text("axis ", *grid.axis, ", block ", grid.block, " of ", x)
                                       : concat_text("axis ", *grid.axis, " of ", x);
  return c.error(name, " must be ", dims_text(want), " (", why, "), got ", scale);
}

ScaleIndex::ScaleIndex(std::span<const std::int64_t> x, const ScaleGrid& grid) {
  if (!grid.axis) return;
  per_axis_ = true;
  const AxisSplit s = split_at(x, *grid.axis);
  inner_ = s.inner, extent_ = s.extent, block_ = grid.block;
  if (block_ > 0) blocks_ = (extent_ + block_ - 1) / block_;
}

std::size_t ScaleIndex::operator()(std::int64_t i) const {
  if (!per_axis_) return 0;
  const std::int64_t along = i / inner_ % extent_;
  if (block_ == 0) return static_cast<std::size_t>(along);
  const std::int64_t outer = i / inner_ / extent_;
  return static_cast<std::size_t>((outer * blocks_ + along / block_) * inner_ + i % inner_);
}

Expr spread_scale(Graph& g, Expr s, const Dims& x, const ScaleGrid& grid) {
  if (!grid.axis) return s;
  const std::int64_t axis = *grid.axis;
  if (grid.block == 0) return along_axis(s, static_cast<int>(x.size()), axis);
  if (grid.block == 1) return s;
  const Dim blocks = blocks_of(x[at(axis)], grid.block);
  if (blocks.is_static(1)) return s;  // one block: broadcasting along the axis is enough
  s = g.expand(g.reshape(s, split_dims(x, axis, blocks, 1)), split_dims(x, axis, blocks, grid.block));
  Dims joined = x;
  joined[at(axis)] = blocks * Dim(grid.block);
  s = g.reshape(s, joined);
  return joined == x ? s : g.narrow(s, axis, 0, x[at(axis)]);
}

Expr reduce_to_scale(Graph& g, ReduceKind fn, Expr x, const ScaleGrid& grid) {
  std::vector<std::int64_t> axes;
  if (grid.block == 0) {
    for (std::int64_t i = 0; i < x.rank(); ++i)
      if (grid.axis != i) axes.push_back(i);
    return axes.empty() ? x : g.add(ops::Reduce{fn, axes, false}, {x});
  }
  const std::int64_t axis = *grid.axis;
  const Dim extent = x.dim(static_cast<int>(axis)), blocks = blocks_of(extent, grid.block);
  const Dim missing = blocks * Dim(grid.block) - extent;
  if (!missing.is_static(0)) {  // a zero does not change a range that contains zero
    Dims fill = x.shape().dims();
    fill[at(axis)] = missing;
    x = g.concat({x, g.expand(g.scalar(0, x.dtype()), fill)}, axis);
  }
  return g.add(ops::Reduce{fn, {axis + 1}, false},
               {g.reshape(x, split_dims(x.shape().dims(), axis, blocks, grid.block))});
}

Dims with_last(const Dims& lead, std::initializer_list<std::int64_t> last) {
  Dims out = lead;
  for (std::int64_t d : last) out.push_back(Dim(d));
  return out;
}

ScaleBatch::ScaleBatch(const BatchContext& c, int x, const ScaleGrid& grid) : c_(c), grid_(grid), x_(c.lifted(x)) {
  if (!grid.axis) {
    grid_.axis = 0;  // one scale for each batch entry
  } else if (grid.block > 0) {
    ++*grid_.axis;  // the scales have every axis of x, so they have the batch axis too
  } else {
    folded_ = true;
    perm_ = {0, *grid.axis + 1};
    for (std::int64_t i = 1; i < x_.rank(); ++i)
      if (i != *grid.axis + 1) perm_.push_back(i);
    if (perm_ != identity_perm(x_.rank())) x_ = c.graph().transpose(x_, perm_);
    moved_ = x_.shape().dims();
    Dims joined(moved_.begin() + 1, moved_.end());
    joined[0] = moved_[0] * moved_[1];
    x_ = c.graph().reshape(x_, joined);
    grid_.axis = 0;
  }
}

Expr ScaleBatch::fold_scale(Expr lifted) const {
  return folded_ ? c_.graph().reshape(lifted, {lifted.dim(0) * lifted.dim(1)}) : lifted;
}

Expr ScaleBatch::back(Expr y) const {
  if (!folded_) return y;
  y = c_.graph().reshape(y, moved_);
  return perm_ == identity_perm(y.rank()) ? y : c_.graph().transpose(y, inverse_perm(perm_));
}

Expr ScaleBatch::scale_back(Expr s) const { return folded_ ? c_.graph().reshape(s, {moved_[0], moved_[1]}) : s; }

}  // namespace rlx
