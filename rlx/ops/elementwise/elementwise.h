// Shared helpers of the elementwise ops: broadcasting, and the dtype classes of table rows.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "rlx/ir/functions.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {

/// The NumPy broadcast of operands [first, last) of `c`, or an error naming the first operand that does not fit.
inline Result<Dims> broadcast_operands(const InferContext& c, int first, int last) {
  Dims dims = c.input(first).dims();
  for (int i = first + 1; i < last; ++i) {
    if (c.input(i).dims() == dims) continue;
    auto joined = broadcast_dims(dims, c.input(i).dims());
    if (!joined) {
      if (last - first == 2) return c.error("operands ", c.input(first), " and ", c.input(i), " do not broadcast");
      return c.error("operand ", i, " ", c.input(i), " does not broadcast with ", dims_text(dims));
    }
    dims = std::move(*joined);
  }
  return dims;
}

/// For each element of `to` (row-major), the index of the element of `from` that NumPy broadcasting reads.
inline std::vector<std::int64_t> broadcast_index(const std::vector<std::int64_t>& from,
                                                 const std::vector<std::int64_t>& to) {
  std::int64_t count = 1;
  for (std::int64_t d : to) count *= d;
  std::vector<std::int64_t> index(static_cast<std::size_t>(count));
  std::vector<std::int64_t> strides(to.size(), 0), position(to.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t i = from.size(); i-- > 0;) {
    if (from[i] != 1) strides[to.size() - from.size() + i] = stride;
    stride *= from[i];
  }
  std::int64_t at = 0;
  for (std::int64_t& out : index) {
    out = at;
    for (std::size_t axis = to.size(); axis-- > 0;) {
      at += strides[axis];
      if (++position[axis] < to[axis]) break;
      at -= strides[axis] * to[axis];
      position[axis] = 0;
    }
  }
  return index;
}

/// Every element of `t` as T after broadcasting to `dims`.
template <class T>
std::vector<T> load_broadcast(const Tensor& t, const std::vector<std::int64_t>& dims) {
  std::vector<T> own = load_all<T>(t);
  if (t.dims() == dims) return own;
  std::vector<std::int64_t> index = broadcast_index(t.dims(), dims);
  std::vector<T> out(index.size());
  for (std::size_t i = 0; i < index.size(); ++i) out[i] = own[static_cast<std::size_t>(index[i])];
  return out;
}

/// "float or integer", for messages.
inline std::string dtypes_text(DTypes set) {
  constexpr std::string_view names[] = {"float", "integer", "bool", "complex"};
  std::string out;
  for (int i = 0; i < 4; ++i)
    if (static_cast<int>(set) & (1 << i)) out += concat_text(out.empty() ? "" : " or ", names[i]);
  return out;
}

}  // namespace rlx
