// Shared rules of matrix factors.
#include "rlx/ops/linalg/factor_rules.h"

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx::factors {

std::optional<Diagnostic> check_matrix(const InferContext& c, int i, const char* name) {
  const Shape& x = c.input(i);
  const DType t = x.dtype();
  if (t != DType::F32 && t != DType::F64 && t != DType::C64 && t != DType::C128) {
    Diagnostic d = c.dtype_error(name, " is ", x, "; matrix factorizations need f32, f64, c64 or c128");
    d.hint = is_float(t) ? "cast it to f32, and cast the results back" : "cast it to f32 or f64";
    return d;
  }
  if (x.rank() < 2) return c.error(name, " ", x, " is not a matrix: it must have at least two axes");
  return std::nullopt;
}

std::optional<Diagnostic> check_square(const InferContext& c, int i, const char* name) {
  if (auto e = check_matrix(c, i, name)) return e;
  const Shape& x = c.input(i);
  if (!(x.dim(-1) == x.dim(-2)))
    return c.error(name, " ", x, " is not square: it has ", x.dim(-2), " rows and ", x.dim(-1), " columns");
  return std::nullopt;
}

Result<Dim> least_extent(const InferContext& c, int i, const char* name) {
  const Dim &m = c.input(i).dim(-2), &n = c.input(i).dim(-1);
  if (m == n) return m;
  if (m.is_static() && n.is_static()) return Dim(std::min(m.value(), n.value()));
  Diagnostic d = c.error(name, " ", c.input(i), ": which of ", m, " and ", n, " is smaller is not known");
  d.hint = "the extents of a matrix may be symbolic only if both are equal; leading axes may be symbolic";
  return d;
}

Shape with_matrix(const Shape& x, Dim rows, Dim columns) {
  return x.with_dim(x.rank() - 2, std::move(rows)).with_dim(x.rank() - 1, std::move(columns));
}
Shape with_vector(const Shape& x, Dim extent, DType dtype) {
  Dims dims(x.dims().begin(), x.dims().end() - 1);
  dims.back() = std::move(extent);
  return Shape(std::move(dims), dtype);
}

double matrix_count(const Shape& x) {
  double count = 1;
  for (int i = 0; i + 2 < x.rank(); ++i) count *= static_cast<double>(x.dim(i).value());
  return count;
}
double multiply_add(DType t) { return is_complex(t) ? 8 : 2; }

Expr anchors(Expr v) {
  Graph& g = v.graph();
  const Expr re = real_of(v), im = imag_of(v), size = re * re + im * im;
  if (v.dim(-2).is_static(0)) return size;  // an empty axis has no largest element
  const Expr largest = g.reduce_max(size, {-2}, true);
  const Expr candidate = g.cast(g.ge(size, largest * ops::Eigh::kAnchor), DType::I32);
  const Expr at = g.unsqueeze(g.arg_max(candidate, -2), v.rank() - 2);
  const DType t = at.dtype();
  return g.cast(g.eq(places(v, 0, t), at), size.dtype());
}
Expr anchor_rotation(Expr v, Expr dv) {
  Graph& g = v.graph();
  const Expr here = anchors(v);
  return g.sum(imag_of(dv) * here, {-2}, true) / g.sum(real_of(v) * here, {-2}, true);
}
Expr times_i(Expr x, Expr phi) { return complex_of(-(imag_of(x) * phi), real_of(x) * phi); }
Expr anchor_turn_transposed(Expr v, Expr rates) {
  Graph& g = v.graph();
  const Expr here = anchors(v);
  const Expr im = here * (rates / g.sum(real_of(v) * here, {-2}, true));
  return complex_of(im * 0.0, im);
}

}  // namespace rlx::factors
