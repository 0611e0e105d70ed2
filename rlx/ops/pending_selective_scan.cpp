// Scaffold: the op's author replaces this file.
#include "rlx/ir/ops/sequence.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {

constinit const OpDef ops::SelectiveScan::def{.kind = kind,
    .name = "selective_scan", .what = "Pending.", .inputs = inputs("x"), .attrs = {}, .level = Level::Mir, .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No, .view = ViewKind::None, .precision = PrecisionCategory::DataMovement,
    .infer = none("pending"), .decompose = none("pending"), .vjp = none("pending"), .jvp = none("pending"),
    .batch = none("pending"), .reference = none("pending"), .cost = moves_bytes, .samples = none("pending")};

}  // namespace rlx
