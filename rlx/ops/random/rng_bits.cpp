// RngBits: random bits from a key and the position of each element.
#include "rlx/ir/math/threefry.h"
#include "rlx/ir/ops/random.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

struct RngBitsRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::RngBits>();
    const Shape& key = c.input(0);
    if (!is_unsigned_int(op.dtype)) return c.dtype_error("makes u8, u16, u32 or u64, not ", dtype_name(op.dtype));
    if (key.dtype() != DType::U32 || key.rank() < 1 || !key.dim(-1).is_static(2))
      return c.error("the key must be u32 [.., 2], not ", key);
    Dims dims(key.dims().begin(), key.dims().end() - 1);
    if (c.has("first")) {
      const Shape& first = c.input("first");
      if (first.dtype() != DType::U64 || (first.rank() != 0 && first.dims() != dims))
        return c.error("first must be u64, [] or ", dims_text(dims), ", not ", first);
    }
    for (const Dim& d : op.dims) {
      if (c.negative(d)) return c.error("has a negative dimension in ", dims_text(op.dims));
      dims.push_back(d);
    }
    return make_shapes(Shape(std::move(dims), op.dtype));
  }
  static void reference(const RefArgs& a) {
    const Tensor& key = a.in(0);
    const DType t = a.out().dtype();
    const std::int64_t keys = key.num_elements() / 2, total = a.out().num_elements();
    std::byte* out = a.out().mutable_data();
    for (std::int64_t k = 0; k < keys && total != 0; ++k) {
      const auto k0 = static_cast<std::uint32_t>(key.at_i64(2 * k)),
                 k1 = static_cast<std::uint32_t>(key.at_i64(2 * k + 1));
      std::uint64_t first = 0;
      if (a.has("first")) first = static_cast<std::uint64_t>(a.in("first").at_i64(a.in("first").rank() == 0 ? 0 : k));
      for (std::int64_t i = 0; i < total / keys; ++i)
        store_element(out, t, k * (total / keys) + i,
                      threefry_bits(k0, k1, first + static_cast<std::uint64_t>(i), dtype_bits(t)));
    }
  }
  static constexpr NoRule vjp = none("its result is an integer");
  static constexpr NoRule jvp = none("its result is an integer");
  static void batch(BatchContext& c) {
    std::vector<Value> operands{c.lifted(0)};
    if (c.has("first")) {
      Expr first = c.input(1);
      if (c.is_batched(1) && c.rank(1) == 0 && c.rank(0) > 1) {
        Dims dims = c.graph().shape(operands[0]).dims();
        dims.pop_back();
        Dims ones(dims.size(), Dim(1));
        ones[0] = dims[0];
        first = c.graph().expand(c.graph().reshape(first, ones), dims);
      } else if (!c.is_batched(1) && c.rank(1) > 0) {
        first = c.lifted(1);
      }
      operands.push_back(first);
    }
    c.set_result(c.graph().add(c.box(), std::move(operands)));
  }
  static Cost cost(const CostContext& c) { return c.with_flops(75 * c.elements()); }
  static constexpr AttrField attrs[] = {field<&ops::RngBits::dims>("dims"), field<&ops::RngBits::dtype>("dtype")};
};

}  // namespace

constinit const OpDef ops::RngBits::def{
    .kind = kind,
    .name = "rng_bits",
    .what = "Random bits from a key and the index of each element: Threefry-2x32-20, as jax.random.bits.",
    .inputs = inputs("key", "first").optional(1),
    .attrs = RngBitsRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = RngBitsRules::infer,
    .decompose = none("a primitive"),
    .vjp = RngBitsRules::vjp,
    .jvp = RngBitsRules::jvp,
    .batch = RngBitsRules::batch,
    .reference = RngBitsRules::reference,
    .cost = RngBitsRules::cost};

}  // namespace rlx
