// Transfer: copies a value to another device of the program.
#include <cstring>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/lir.h"

namespace rlx {
namespace {

struct TransferRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (c.op<ops::Transfer>().to < 0) return c.attr_error("to must be the index of a device of the program");
    return make_shapes(c.input(0));
  }
  static void reference(const RefArgs& a) {
    if (a.out().size_bytes() != 0) std::memcpy(a.out().mutable_data(), a.inputs[0].data(), a.out().size_bytes());
  }
  static constexpr NoRule vjp = none("the compiler inserts transfers after derivatives are computed");
  static constexpr NoRule jvp = none("the compiler inserts transfers after derivatives are computed");
  static constexpr NoRule batch = none("the compiler inserts transfers after batching");
  static constexpr AttrField attrs[] = {field<&ops::Transfer::to>("to")};
};

}  // namespace

constinit const OpDef ops::Transfer::def{.kind = kind,
                                         .name = "transfer",
                                         .what = "Copies a value to another device of the program.",
                                         .inputs = inputs("x"),
                                         .attrs = TransferRules::attrs,
                                         .level = Level::Lir,
                                         .leaf = LeafKind::None,
                                         .elementwise = ElementwiseKind::No,
                                         .view = ViewKind::None,
                                         .precision = PrecisionCategory::DataMovement,
                                         .infer = TransferRules::infer,
                                         .decompose = none("only the compiler makes it"),
                                         .vjp = TransferRules::vjp,
                                         .jvp = TransferRules::jvp,
                                         .batch = TransferRules::batch,
                                         .reference = TransferRules::reference,
                                         .cost = moves_bytes};

}  // namespace rlx
