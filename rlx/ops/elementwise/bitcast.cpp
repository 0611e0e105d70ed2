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
        return c.dtype_error("reads numbers and codes as one another, not ", dtype_name(from), " as ", dtype_name(to),
                             t == DType::Bool ? ": cast truth values" : ": of complex numbers take the parts");
    const int have = dtype_bits(from), want = dtype_bits(to);
    Dims dims = x.dims();
    if (want < have) dims.emplace_back(have / want);
    if (want > have) {
      const std::int64_t ratio = want / have;
      if (dims.empty() || !dims.back().is_static(ratio))
        return c.error("a ", dtype_name(to), " is made of ", ratio, " elements of ", dtype_name(from),
                       ", which are to be the last axis of the operand, got ", x);
      dims.pop_back();
    }
    return make_shapes(Shape(std::move(dims), to));
  }
  // Values are little-endian, and of 4-bit ones the first is the low half of its byte: the bytes stay as they are.
  static void reference(const RefArgs& a) {
    if (a.out().size_bytes() != 0) std::memcpy(a.out().mutable_data(), a.in(0).data(), a.out().size_bytes());
  }
  static void vjp(VjpContext&) {}
  static void jvp(JvpContext&) {}
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }

  static void samples(SampleSet& s) {
    // The derivative is zero by definition, so finite differences do not apply.
    const auto add = [&](std::string name, Dims dims, DType from, DType to, Fill fill = Fill::Normal,
                         std::int64_t bound = 1) {
      s.add_discrete(std::move(name), {{Shape(std::move(dims), from), fill, bound}}, ops::Bitcast{to});
    };
    constexpr std::int64_t kBytes = 120;  // as the highest byte it makes finite numbers
    add("f32 as i32", {2, 3}, DType::F32, DType::I32);
    add("i32 as f32", {5}, DType::I32, DType::F32, Fill::Index, 1 << 30);
    add("f32 as u8", {3, 2}, DType::F32, DType::U8);
    add("u8 as f32", {3, 4}, DType::U8, DType::F32, Fill::Index, kBytes);
    add("f64 as u16", {3}, DType::F64, DType::U16);
    add("u32 as f64", {2, 2, 2}, DType::U32, DType::F64, Fill::Index, kBytes);
    add("i64 as u64", {3}, DType::I64, DType::U64, Fill::Small);
    add("bf16 as i16", {7}, DType::BF16, DType::I16);
    add("u16 as f16", {7}, DType::U16, DType::F16, Fill::Index, 30000);
    add("u32 as i8", {2, 3}, DType::U32, DType::I8, Fill::Index, 100000);
    add("u8 as f8e4m3", {5}, DType::U8, DType::F8E4M3, Fill::Index, kBytes);
    add("u8 as i4", {5}, DType::U8, DType::I4, Fill::Index, 250);
    add("u4 as u8", {3, 2}, DType::U4, DType::U8, Fill::Index, 16);
    add("the same dtype", {2, 3}, DType::F32, DType::F32);
    add("a scalar", {}, DType::F32, DType::U32);
    add("to a scalar", {2}, DType::U16, DType::F32, Fill::Index, 10000);
    add("no elements", {0, 4}, DType::U8, DType::I32, Fill::Small);
    add("many", {40, 300}, DType::F32, DType::I32);
  }
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
                                        .cost = moves_bytes,
                                        .samples = BitcastRules::samples};

}  // namespace rlx
