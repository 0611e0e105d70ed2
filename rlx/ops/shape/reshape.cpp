// Reshape: the same elements with other dimensions.
#include <algorithm>
#include <cstring>

#include "rlx/ir/ops/shape.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// Element counts with a division or a bound may be equal without being the same expression. Binding decides.
bool has_function(const Dim& d) {
  const std::string text = d.text();
  for (const char* name : {"floordiv(", "mod(", "min(", "max("})
    if (text.find(name) != std::string::npos) return true;
  return false;
}

struct ReshapeRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const Shape out(c.op<ops::Reshape>().dims, x.dtype());
    for (const Dim& d : out.dims())
      if (c.negative(d)) return c.error("the target ", dims_text(out.dims()), " has a negative dimension");
    const Dim have = x.num_elements_dim(), want = out.num_elements_dim();
    const bool undecided = (!have.is_static() || !want.is_static()) && (has_function(have) || has_function(want));
    if (!(have == want) && !undecided)
      return c.error(x, " has ", have, " elements, the target ", dims_text(out.dims()), " has ", want);
    if (undecided && (c.negative(have - want) || c.negative(want - have)))
      return c.error(x, " has ", have, " elements, the target ", dims_text(out.dims()), " has ", want);
    return make_shapes(out);
  }
  static void reference(const RefArgs& a) {
    if (a.out().size_bytes() != 0) std::memcpy(a.out().mutable_data(), a.in(0).data(), a.out().size_bytes());
  }
  static void vjp(VjpContext& c) { c.accumulate(0, c.graph().reshape(c.cotangent(), c.input(0).shape().dims())); }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().reshape(c.tangent(0), c.result_shape().dims()));
  }
  static void batch(BatchContext& c) {
    c.emit_lifted(ops::Reshape{prepend(c.batch_size(), c.op<ops::Reshape>().dims)});
  }
  static constexpr AttrField attrs[] = {field<&ops::Reshape::dims>("dims", AttrPlace::TypeDims)};
};

}  // namespace

constinit const OpDef ops::Reshape::def{.kind = kind,
                                        .name = "reshape",
                                        .what = "The same elements under other dimensions.",
                                        .inputs = inputs("x"),
                                        .attrs = ReshapeRules::attrs,
                                        .level = Level::Mir,
                                        .leaf = LeafKind::None,
                                        .elementwise = ElementwiseKind::No,
                                        .view = ViewKind::ByStrides,
                                        .precision = PrecisionCategory::DataMovement,
                                        .infer = ReshapeRules::infer,
                                        .decompose = none("a primitive"),
                                        .vjp = ReshapeRules::vjp,
                                        .jvp = ReshapeRules::jvp,
                                        .batch = ReshapeRules::batch,
                                        .reference = ReshapeRules::reference,
                                        .cost = no_cost};

}  // namespace rlx
