// Complex: a complex value from its parts. ComplexPart: one part of a complex value.
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ops/elementwise/elementwise.h"

namespace rlx {
namespace {

using ComplexNumber = std::complex<double>;

struct ComplexRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto bad = c.check_same_dtype(0, 2)) return *bad;
    const DType t = c.input(0).dtype();
    if (t != DType::F32 && t != DType::F64)
      return c.dtype_error("needs f32 or f64 parts, got ", c.input(0), "; cast them first");
    Result<Dims> dims = broadcast_operands(c, 0, 2);
    if (!dims) return dims.error();
    return make_shapes(Shape(std::move(*dims), t == DType::F32 ? DType::C64 : DType::C128));
  }
  static void reference(const RefArgs& a) {
    const std::vector<std::int64_t> dims = a.out().dims();
    const std::vector<double> re = load_broadcast<double>(a.in(0), dims), im = load_broadcast<double>(a.in(1), dims);
    std::vector<ComplexNumber> y(re.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = {re[i], im[i]};
    store_all(a.out(), y);
  }
  // A cotangent c of z means that the loss changes by Re(c dz), as in JAX.
  static void vjp(VjpContext& c) {
    Graph& g = c.graph();
    c.accumulate(0, g.real(c.cotangent()));
    c.accumulate(1, -g.imag(c.cotangent()));
  }
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0) && !c.has_tangent(1)) return;
    c.set_tangent(c.graph().add(ops::Complex{}, {c.tangent(0), c.tangent(1)}));
  }
  static void batch(BatchContext& c) {
    const int rank = c.result_shape().rank();
    c.set_result(c.graph().add(c.box(), {c.aligned(0, rank), c.aligned(1, rank)}));
  }
};

struct ComplexPartRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    if (!is_complex(x.dtype())) return c.dtype_error("needs a complex operand, got ", x);
    return make_shapes(x.with_dtype(real_dtype(x.dtype())));
  }
  static void reference(const RefArgs& a) {
    const bool imag = a.op<ops::ComplexPart>().imag;
    const std::vector<ComplexNumber> x = load_all<ComplexNumber>(a.in(0));
    std::vector<double> y(x.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = imag ? x[i].imag() : x[i].real();
    store_all(a.out(), y);
  }
  static void vjp(VjpContext& c) {
    Graph& g = c.graph();
    const Expr ct = c.cotangent(), none = c.zeros(ct.shape());
    c.accumulate(0, c.op<ops::ComplexPart>().imag ? g.complex(none, -ct) : g.complex(ct, none));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().add(c.box(), {c.tangent(0)}));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static constexpr AttrField attrs[] = {field<&ops::ComplexPart::imag>("imag")};
};

}  // namespace

constinit const OpDef ops::Complex::def{.kind = kind,
                                        .name = "complex",
                                        .what = "The complex numbers of two parts, broadcast.",
                                        .inputs = inputs("re", "im"),
                                        .attrs = {},
                                        .level = Level::Mir,
                                        .leaf = LeafKind::None,
                                        .elementwise = ElementwiseKind::Yes,
                                        .view = ViewKind::None,
                                        .precision = PrecisionCategory::Stated,
                                        .infer = ComplexRules::infer,
                                        .decompose = none("a primitive"),
                                        .vjp = ComplexRules::vjp,
                                        .jvp = ComplexRules::jvp,
                                        .batch = ComplexRules::batch,
                                        .reference = ComplexRules::reference,
                                        .cost = moves_bytes};

constinit const OpDef ops::ComplexPart::def{.kind = kind,
                                            .name = "complex_part",
                                            .what = "The real or the imaginary part of complex numbers.",
                                            .inputs = inputs("x"),
                                            .attrs = ComplexPartRules::attrs,
                                            .level = Level::Mir,
                                            .leaf = LeafKind::None,
                                            .elementwise = ElementwiseKind::Yes,
                                            .view = ViewKind::None,
                                            .precision = PrecisionCategory::Stated,
                                            .infer = ComplexPartRules::infer,
                                            .decompose = none("a primitive"),
                                            .vjp = ComplexPartRules::vjp,
                                            .jvp = ComplexPartRules::jvp,
                                            .batch = ComplexPartRules::batch,
                                            .reference = ComplexPartRules::reference,
                                            .cost = moves_bytes};

}  // namespace rlx
