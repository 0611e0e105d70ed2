// Shape arithmetic.
#include "rlx/tensor/shape.h"

#include <algorithm>
#include <set>

#include "rlx/error.h"

namespace rlx {

const Dim& Shape::dim(int axis) const { return dims_[static_cast<std::size_t>(normalize_axis(axis, rank(), "dim"))]; }

bool Shape::is_static() const {
  return std::all_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.is_static(); });
}

std::int64_t Shape::num_elements() const {
  std::int64_t n = 1;
  bool none = false;
  for (const Dim& d : dims_) {  // all of them: a zero does not excuse an invalid dimension
    std::int64_t v = d.value();
    if (v < 0) throw Error(ErrorCode::InvalidArgument, concat_text("negative dimension in ", text()));
    none = none || v == 0;
  }
  if (none) return 0;
  for (const Dim& d : dims_)
    if (__builtin_mul_overflow(n, d.value(), &n) || n >= kMaxElements)
      throw Error(ErrorCode::InvalidArgument, concat_text("element count of ", text(), " overflows"));
  return n;
}

Dim Shape::num_elements_dim() const {
  Dim n(1);
  for (const Dim& d : dims_) n = n * d;
  return n;
}

std::vector<std::int64_t> Shape::static_dims() const {
  std::vector<std::int64_t> out;
  out.reserve(dims_.size());
  for (const Dim& d : dims_) out.push_back(d.value());
  return out;
}

Shape Shape::with_dim(int axis, Dim d) const {
  Shape s = *this;
  s.dims_[static_cast<std::size_t>(normalize_axis(axis, rank(), "with_dim"))] = std::move(d);
  return s;
}

Shape Shape::bind(const SymbolBinding& binding) const {
  Shape s = *this;
  for (Dim& d : s.dims_) d = d.bind(binding);
  return s;
}

std::vector<std::string> Shape::symbols() const {
  std::set<std::string> names;
  for (const Dim& d : dims_)
    for (std::string& n : d.symbols()) names.insert(std::move(n));
  return {names.begin(), names.end()};
}

std::string Shape::text() const { return concat_text(dims_text(dims_), " ", dtype_name(dtype_)); }

std::string dims_text(const Dims& dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + dims[i].text();
  return out + "]";
}

std::string dims_text(std::span<const std::int64_t> dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + std::to_string(dims[i]);
  return out + "]";
}

std::int64_t normalize_axis(std::int64_t axis, int rank, std::string_view what) {
  std::int64_t a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank)
    throw Error(ErrorCode::InvalidArgument, concat_text(what, ": axis ", axis, " is outside rank ", rank),
                rank == 0 ? "a scalar has no axes" : concat_text("use ", -rank, " to ", rank - 1));
  return a;
}

std::optional<Dims> broadcast_dims(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Dim one(1);
    const Dim& x = i < a.size() ? a[a.size() - 1 - i] : one;
    const Dim& y = i < b.size() ? b[b.size() - 1 - i] : one;
    if (x == y || y.is_static(1))
      out[out.size() - 1 - i] = x;
    else if (x.is_static(1))
      out[out.size() - 1 - i] = y;
    else
      return std::nullopt;
  }
  return out;
}

std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

}  // namespace rlx
