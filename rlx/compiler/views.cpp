// Stride arithmetic over numbers and over symbolic dimensions.
#include "rlx/compiler/views.h"

#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/shape.h"

namespace rlx {
namespace {

std::int64_t as(const Dim& d, std::int64_t) { return d.value(); }
const Dim& as(const Dim& d, const Dim&) { return d; }

// The smaller of two unequal running extents, which takes the next factor. None when that depends on the symbols.
enum class Shorter { First, Second };
std::optional<Shorter> shorter(std::int64_t a, std::int64_t b) { return a < b ? Shorter::First : Shorter::Second; }
std::optional<Shorter> shorter(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return shorter(a.value(), b.value());
  if (exact_div(b, a)) return Shorter::First;
  if (exact_div(a, b)) return Shorter::Second;
  return std::nullopt;
}

}  // namespace

template <class T>
std::vector<T> dense_strides(const std::vector<T>& dims) {
  std::vector<T> strides(dims.size(), T(1));
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

template <class T>
bool is_dense(const std::vector<T>& dims, const std::vector<T>& strides) {
  T expect(1);
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == T(1)) continue;
    if (!(strides[i] == expect)) return false;
    expect = expect * dims[i];
  }
  return true;
}

template <class T>
T touched_extent(const std::vector<T>& dims, const std::vector<T>& strides) {
  T last(0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == T(0)) return T(0);
    last = last + (dims[i] - T(1)) * strides[i];
  }
  return last + T(1);
}

template <class T>
std::optional<std::vector<T>> reshape_strides(const std::vector<T>& dims, const std::vector<T>& strides,
                                              const std::vector<T>& to) {
  // Groups of old axes map onto groups of new axes with equal element counts when the old group is evenly spaced.
  if (std::find(dims.begin(), dims.end(), T(0)) != dims.end()) return dense_strides(to);
  std::vector<T> out(to.size(), T(0)), d, s;  // d, s: without axes of extent 1
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!(dims[i] == T(1))) d.push_back(dims[i]), s.push_back(strides[i]);
  std::size_t i = 0, j = 0;
  while (i < d.size() || j < to.size()) {
    T old_size = i < d.size() ? d[i] : T(1), new_size = j < to.size() ? to[j] : T(1);
    std::size_t i_end = std::min(i + 1, d.size()), j_end = std::min(j + 1, to.size());
    while (!(old_size == new_size)) {
      const std::optional<Shorter> grows = shorter(old_size, new_size);
      if (!grows) return std::nullopt;
      if (*grows == Shorter::First) {
        if (i_end >= d.size()) return std::nullopt;
        old_size = old_size * d[i_end++];
      } else {
        if (j_end >= to.size()) return std::nullopt;
        new_size = new_size * to[j_end++];
      }
    }
    for (std::size_t k = i; k + 1 < i_end; ++k)
      if (!(s[k] == s[k + 1] * d[k + 1])) return std::nullopt;
    T stride = i < i_end ? s[i_end - 1] : T(1);
    for (std::size_t k = j_end; k-- > j;) {
      out[k] = stride;
      stride = stride * to[k];
    }
    i = i_end;
    j = j_end;
  }
  return out;
}

template <class T>
std::optional<ViewPlace<T>> view_place(const Node& n, const std::vector<T>& dims, const std::vector<T>& strides,
                                       const std::vector<T>& to) {
  ViewPlace<T> out;
  switch (n.kind()) {
    case OpKind::StopGradient: out.strides = strides; return out;
    case OpKind::Reshape: {
      std::optional<std::vector<T>> reshaped = reshape_strides(dims, strides, to);
      if (!reshaped) return std::nullopt;
      out.strides = std::move(*reshaped);
      return out;
    }
    case OpKind::Transpose: {
      for (std::int64_t axis : n.op.as<ops::Transpose>().perm)
        out.strides.push_back(strides[static_cast<std::size_t>(axis)]);
      return out;
    }
    case OpKind::Slice: {
      const auto& s = n.op.as<ops::Slice>();
      for (std::size_t i = 0; i < dims.size(); ++i) {
        // The stride of an axis of one element has no effect, and may be too large to multiply.
        const bool steps = !s.strides.empty() && !(to[i] == T(1)) && !(to[i] == T(0));
        out.strides.push_back(steps ? strides[i] * T(s.strides[i]) : strides[i]);
        out.skip = out.skip + as(s.starts[i], T()) * strides[i];
      }
      return out;
    }
    case OpKind::Expand: {
      out.strides.assign(to.size(), T(0));
      const std::size_t extra = to.size() - dims.size();
      for (std::size_t i = 0; i < dims.size(); ++i)
        if (!(dims[i] == T(1)) || to[extra + i] == T(1)) out.strides[extra + i] = strides[i];
      return out;
    }
    default: check(!op_def(n.kind()).is_view(), "a view op has no rule that computes its strides"); return std::nullopt;
  }
}

#define RLX_VIEWS_OF(T)                                                                                      \
  template std::vector<T> dense_strides(const std::vector<T>&);                                              \
  template bool is_dense(const std::vector<T>&, const std::vector<T>&);                                      \
  template T touched_extent(const std::vector<T>&, const std::vector<T>&);                                   \
  template std::optional<std::vector<T>> reshape_strides(const std::vector<T>&, const std::vector<T>&,       \
                                                         const std::vector<T>&);                             \
  template std::optional<ViewPlace<T>> view_place(const Node&, const std::vector<T>&, const std::vector<T>&, \
                                                  const std::vector<T>&)
RLX_VIEWS_OF(std::int64_t);
RLX_VIEWS_OF(Dim);
#undef RLX_VIEWS_OF

}  // namespace rlx
