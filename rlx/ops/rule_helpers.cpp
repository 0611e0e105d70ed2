// Helpers shared by the op rules.
#include "rlx/ops/rule_helpers.h"

#include <cstring>

namespace rlx {
namespace {

struct Word16 {
  std::uint64_t low, high;
};

// Walks the block row by row: counters for the outer axes, the last axis in the inner loop.
template <class Move>
void walk(std::span<const std::int64_t> dims, const StridedView& to, const StridedView& from, Move move) {
  for (std::int64_t d : dims)
    if (d <= 0) return;
  if (dims.empty()) return move(to.offset, 0, from.offset, 0, 1);
  const std::size_t last = dims.size() - 1;
  std::vector<std::int64_t> index(dims.size(), 0);
  std::int64_t dst = to.offset, src = from.offset;
  while (true) {
    move(dst, to.strides[last], src, from.strides[last], dims[last]);
    std::size_t axis = last;
    while (axis > 0) {
      --axis;
      dst += to.strides[axis];
      src += from.strides[axis];
      if (++index[axis] < dims[axis]) break;
      dst -= to.strides[axis] * dims[axis];
      src -= from.strides[axis] * dims[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (last == 0) return;
  }
}

template <class Word>
void copy_words(std::span<const std::int64_t> dims, std::byte* dst, const StridedView& to, const std::byte* src,
                const StridedView& from) {
  walk(dims, to, from, [&](std::int64_t d, std::int64_t d_step, std::int64_t s, std::int64_t s_step, std::int64_t n) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(Word));
    if (d_step == 1 && s_step == 1) {
      std::memcpy(dst + d * size, src + s * size, static_cast<std::size_t>(n * size));
      return;
    }
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(dst + (d + i * d_step) * size, src + (s + i * s_step) * size, sizeof(Word));
  });
}

}  // namespace

void copy_strided(DType dtype, std::span<const std::int64_t> dims, std::byte* dst, const StridedView& to,
                  const std::byte* src, const StridedView& from) {
  check(to.strides.size() == dims.size() && from.strides.size() == dims.size(), "one stride per axis");
  switch (dtype_bits(dtype)) {
    case 8: return copy_words<std::uint8_t>(dims, dst, to, src, from);
    case 16: return copy_words<std::uint16_t>(dims, dst, to, src, from);
    case 32: return copy_words<std::uint32_t>(dims, dst, to, src, from);
    case 64: return copy_words<std::uint64_t>(dims, dst, to, src, from);
    case 128: return copy_words<Word16>(dims, dst, to, src, from);
    default: break;
  }
  // Packed 4-bit dtypes: their bit patterns are copied as U4.
  walk(dims, to, from, [&](std::int64_t d, std::int64_t d_step, std::int64_t s, std::int64_t s_step, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      store_element(dst, DType::U4, d + i * d_step, load_element<std::int64_t>(src, DType::U4, s + i * s_step));
  });
}

StridedView whole(std::span<const std::int64_t> dims) { return {0, row_major_strides(dims)}; }

AxisSplit split_at(std::span<const std::int64_t> dims, std::int64_t axis) {
  AxisSplit s;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    (at < axis ? s.outer : at == axis ? s.extent : s.inner) *= dims[i];
  }
  // There are no elements. The other extent may be so large that an empty loop over it would not end.
  if (s.outer == 0 || s.inner == 0) s.outer = s.inner = 0;
  return s;
}

std::optional<Diagnostic> check_axes(const InferContext& c, const std::vector<std::int64_t>& axes, const Shape& x) {
  std::vector<bool> seen(static_cast<std::size_t>(x.rank()), false);
  for (std::int64_t axis : axes) {
    if (auto error = c.check_axis(axis, x)) return error;
    if (seen[static_cast<std::size_t>(axis)]) return c.attr_error("axis ", axis, " is listed twice");
    seen[static_cast<std::size_t>(axis)] = true;
  }
  return std::nullopt;
}

std::vector<std::int64_t> shifted(std::vector<std::int64_t> axes) {
  for (std::int64_t& axis : axes) ++axis;
  return axes;
}

std::vector<std::int64_t> identity_perm(int rank) {
  std::vector<std::int64_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  return perm;
}

std::vector<std::int64_t> inverse_perm(const std::vector<std::int64_t>& perm) {
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return inverse;
}

Dims prepend(const Dim& d, const Dims& dims) {
  Dims out{d};
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

Dims kept_dims(const Shape& x, const std::vector<std::int64_t>& axes) {
  Dims dims = x.dims();
  for (std::int64_t axis : axes) dims[static_cast<std::size_t>(axis)] = Dim(1);
  return dims;
}

Expr group_size(Graph& g, const Shape& x, const std::vector<std::int64_t>& axes, DType dtype) {
  Dims reduced;
  for (std::int64_t axis : axes) reduced.push_back(x.dim(static_cast<int>(axis)));
  return g.cast(dims_product(g, reduced, count_dtype(g, {reduced})), dtype);
}

}  // namespace rlx
