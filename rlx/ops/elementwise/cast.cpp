// Cast: numeric conversion between element types.
#include "rlx/ops/elementwise/elementwise.h"

#include "rlx/ir/ops/elementwise.h"

namespace rlx {
namespace {

struct CastRules {
  static Result<Shapes> infer(const InferContext& c) {
    DType to = c.op<ops::Cast>().to;
    if (static_cast<int>(to) >= kNumDTypes) return c.attr_error("has an unknown dtype");
    return make_shapes(c.input(0).with_dtype(to));
  }
  static void reference(const RefArgs& a) { a.out() = a.in(0).cast(a.op<ops::Cast>().to); }

  // Real <-> complex pairs are transposes of each other: dropping the imaginary part and adding a zero one.
  static void vjp(VjpContext& c) {
    if (c.wants(0)) c.accumulate(0, c.graph().cast(c.cotangent(), c.input(0).dtype()));
  }
  static void jvp(JvpContext& c) {
    DType to = c.op<ops::Cast>().to;
    if (c.has_tangent(0) && is_inexact(to)) c.set_tangent(c.graph().cast(c.tangent(0), to));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }

  static void samples(SampleSet& s) {
    s.add("f32 to f64", {Shape({2, 3}, DType::F32)}, ops::Cast{DType::F64});
    s.add("f64 to f64", {Shape({2}, DType::F64)}, ops::Cast{DType::F64});
    s.add("f64 to c128", {Shape({2}, DType::F64)}, ops::Cast{DType::C128});
    s.add("c128 to f64", {Shape({2}, DType::C128)}, ops::Cast{DType::F64});
    s.add("no elements", {Shape({0, 2}, DType::F32)}, ops::Cast{DType::F64});
    s.add_discrete("scalar", {Shape({}, DType::F32)}, ops::Cast{DType::BF16});
    for (int i = 0; i < kNumDTypes; ++i) {
      auto t = static_cast<DType>(i);
      s.add_discrete(concat_text("f32 to ", dtype_name(t)), {{Shape({2, 4}, DType::F32), Fill::Positive}},
                     ops::Cast{t});
      if (!is_storage_only(t))
        s.add_discrete(concat_text(dtype_name(t), " to f32"), {{Shape({6}, t), Fill::Index, 2}}, ops::Cast{DType::F32});
    }
    s.add_discrete("i64 to i8", {{Shape({4}, DType::I64), Fill::Index, 1000}}, ops::Cast{DType::I8});
    s.add_discrete("i32 to bool", {{Shape({9}, DType::I32), Fill::Small}}, ops::Cast{DType::Bool});
    s.add_discrete("i64 to bf16", {{Shape({4}, DType::I64), Fill::Index, 100000}}, ops::Cast{DType::BF16});
  }
  static constexpr AttrField attrs[] = {field<&ops::Cast::to>("to", AttrPlace::TypeDType)};
};

}  // namespace

constinit const OpDef ops::Cast::def{.kind = kind,
                                     .name = "cast",
                                     .what = "Numeric conversion to another dtype.",
                                     .inputs = inputs("x"),
                                     .attrs = CastRules::attrs,
                                     .level = Level::Mir,
                                     .leaf = LeafKind::None,
                                     .elementwise = ElementwiseKind::InBodies,
                                     .view = ViewKind::None,
                                     .precision = PrecisionCategory::Stated,
                                     .infer = CastRules::infer,
                                     .decompose = none("a primitive"),
                                     .vjp = CastRules::vjp,
                                     .jvp = CastRules::jvp,
                                     .batch = CastRules::batch,
                                     .reference = CastRules::reference,
                                     .cost = flops_per_element<1>,
                                     .samples = CastRules::samples};

}  // namespace rlx
