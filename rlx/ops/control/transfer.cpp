// Transfer: copies a value to another device of the program.
#include <cstring>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/lir.h"

namespace rlx {
namespace {

struct TransferRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (c.op<ops::Transfer>().to < 0) return c.attr_error("to must be the number of a device of the program");
    return make_shapes(c.input(0));
  }
  static void reference(const RefArgs& a) {
    if (a.out().size_bytes() != 0) std::memcpy(a.out().mutable_data(), a.inputs[0].data(), a.out().size_bytes());
  }
  static constexpr NoRule vjp = none("derivatives are taken before values go to devices");
  static constexpr NoRule jvp = none("derivatives are taken before values go to devices");
  static constexpr NoRule batch = none("batching happens before values go to devices");
  static constexpr AttrField attrs[] = {field<&ops::Transfer::to>("to")};
};

}  // namespace

constinit const OpDef ops::Transfer::def{.kind = kind,
                                         .name = "transfer",
                                         .what = "The value on another device of the program.",
                                         .inputs = inputs("x"),
                                         .attrs = TransferRules::attrs,
                                         .level = Level::Lir,
                                         .leaf = LeafKind::None,
                                         .elementwise = ElementwiseKind::No,
                                         .view = ViewKind::None,
                                         .precision = PrecisionCategory::DataMovement,
                                         .infer = TransferRules::infer,
                                         .decompose = none("it is made by the compiler, for one program"),
                                         .vjp = TransferRules::vjp,
                                         .jvp = TransferRules::jvp,
                                         .batch = TransferRules::batch,
                                         .reference = TransferRules::reference,
                                         .cost = moves_bytes};

}  // namespace rlx
