// Builder functions of complex values and Fourier transforms.
#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fft.h"

namespace rlx {
using namespace building;
namespace {

// A real or imaginary part: integers, Bool and halves become F32.
Expr part_of_complex(Graph& g, const Operand& x, const char* what) {
  const Expr e = own(g, x);
  const DType t = e.dtype();
  if (is_complex(t))
    fail(x.loc(), ErrorCode::DTypeMismatch,
         concat_text(what, ": the real and imaginary parts must be real, got ", e.shape()),
         "use real(x) or imag(x) of it");
  return cast_at(g, e, t == DType::F64 ? t : DType::F32, x.loc());
}

}  // namespace

Expr Builder::complex(Operand re, Operand im) {
  Graph& g = graph();
  const SourceLoc loc = re.is_scalar() ? im.loc() : re.loc();
  Expr a = part_of_complex(g, re, "complex"), b = part_of_complex(g, im, "complex");
  // A number takes the dtype of the other operand.
  const DType t = re.is_scalar()   ? b.dtype()
                  : im.is_scalar() ? a.dtype()
                                   : promoted(a.dtype(), b.dtype(), "complex", loc);
  a = cast_at(g, a, t, loc), b = cast_at(g, b, t, loc);
  return g.add(ops::Complex{}, {a, b}, loc);
}
Expr Builder::real(Operand x) {
  const Expr e = own(graph(), x);
  return is_complex(e.dtype()) ? graph().add(ops::ComplexPart{false}, {e}, x.loc()) : e;
}
Expr Builder::imag(Operand x) {
  Graph& g = graph();
  const Expr e = own(g, x);
  if (is_complex(e.dtype())) return g.add(ops::ComplexPart{true}, {e}, x.loc());
  const At at{x.loc()};
  return g.expand(at(g.constant(Tensor::zeros(Shape({}, e.dtype())), x.loc())), e.shape().dims());
}
Expr Builder::conj(Operand x) {
  const At at{x.loc()};
  const Expr e = own(graph(), x);
  if (!is_complex(e.dtype())) return e;
  return complex(at(real(at(e))), at(activation(ActivationKind::Neg, at(imag(at(e))))));
}
Expr Builder::fft(Operand x, ops::Fft op, const DeclaredShape& shape) {
  const Expr e = own(graph(), x);
  for (std::int64_t& a : op.axes) a = normalize_axis_at(x.loc(), a, e.rank(), "fft");
  return shape.check(graph().add(std::move(op), {e}, x.loc()));
}

}  // namespace rlx
