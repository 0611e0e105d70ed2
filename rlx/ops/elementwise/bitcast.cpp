// Bitcast: the bits of elements read as another dtype.
#include <cstring>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

struct BitcastRules {
  static Result<Shapes> infer(const InferContext& c) {
    const DType to = c.op<ops::Bitcast>().to;
    if (static_cast<int>(to) >= kNumDTypes) return c.attr_error("has an unknown dtype");
    const Shape& x = c.input(0);
    const DType from = x.dtype();
    if (from == to) return make_shapes(x);
    for (const DType t : {from, to})
      if (t == DType::Bool || is_complex(t))
        return c.dtype_error(
            "cannot reinterpret ", dtype_name(from), " as ", dtype_name(to),
            t == DType::Bool ? ": use cast for Bool" : ": use the real and imaginary parts of complex numbers");
    const int have = dtype_bits(from), want = dtype_bits(to);
    Dims dims = x.dims();
    if (want < have) dims.emplace_back(have / want);
    if (want > have) {
      const std::int64_t ratio = want / have;
      if (dims.empty() || !dims.back().is_static(ratio))
        return c.error("a ", dtype_name(to), " is made of ", ratio, " elements of ", dtype_name(from),
                       ", which must be the last axis of the operand, got ", x);
      dims.pop_back();
    }
    return make_shapes(Shape(std::move(dims), to));
  }
  // Values are little-endian, and the first of two 4-bit values is the low half of its byte. So the bytes do not
  // change.
  static void reference(const RefArgs& a) {
    if (a.out().size_bytes() != 0) std::memcpy(a.out().mutable_data(), a.in(0).data(), a.out().size_bytes());
  }
  static void vjp(VjpContext&) {}
  static void jvp(JvpContext&) {}
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }

  static constexpr AttrField attrs[] = {field<&ops::Bitcast::to>("to", AttrPlace::TypeDType)};
};

}  // namespace

constinit const OpDef ops::Bitcast::def{.kind = kind,
                                        .name = "bitcast",
                                        .what = "The bits of x as another dtype; other widths change the last axis.",
                                        .inputs = inputs("x"),
                                        .attrs = BitcastRules::attrs,
                                        .level = Level::Mir,
                                        .leaf = LeafKind::None,
                                        .elementwise = ElementwiseKind::No,
                                        .view = ViewKind::None,
                                        .precision = PrecisionCategory::Stated,
                                        .infer = BitcastRules::infer,
                                        .decompose = none("a primitive"),
                                        .vjp = BitcastRules::vjp,
                                        .jvp = BitcastRules::jvp,
                                        .batch = BitcastRules::batch,
                                        .reference = BitcastRules::reference,
                                        .cost = moves_bytes};

}  // namespace rlx
