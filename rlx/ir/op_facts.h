// Facts about ops that passes, planner and policies ask for. Each is a field of every record (OpDef) without a default:
// nobody keeps a list of kinds to know one.
#pragma once

#include <cstdint>

namespace rlx {

/// The graphs an op may appear in: Hir ops only in HIR, Mir ops everywhere, Lir ops only in LIR.
enum class Level : std::uint8_t { Hir, Mir, Lir };

/// Whether a node is a value that a program starts from.
enum class LeafKind : std::uint8_t {
  None,
  Named,     // part of the graph's interface, found by its name: Input, Param, State
  Embedded,  // holds its value: Constant
};

/// Whether each result element depends on one element of each (broadcast) operand.
enum class ElementwiseKind : std::uint8_t {
  No,
  Yes,
  InBodies,  // and bodies of regions and epilogues may hold the op
};

/// Whether the result has the elements of operand 0 and may lie over its bytes.
enum class ViewKind : std::uint8_t {
  None,
  ByStrides,  // where strides can say it: view_place (compiler/views.h) says how
  Always,     // the operand's very bytes: no target needs a kernel
};

/// What the sub-graphs among an op's attributes are.
enum class BodyKind : std::uint8_t {
  None,      // there are none, or they are part of the op as its kernels read it: regions, epilogues
  Programs,  // programs of their own: passes run inside them
};

/// Whether running an op does more than make its results.
enum class OpTrait : std::uint8_t {
  Pure,     // may be merged with its equals, folded, moved, computed again and dropped
  Ordered,  // others see it run: collectives, callbacks. Stays, once, in its order among its like; an op whose body
            // holds one is ordered too (ir/rewrite/roots.h)
};

/// Whether result 0 is operand 0 but for some elements, which alone need be written where both lie in the same bytes.
enum class UpdateKind : std::uint8_t { No, Yes };

/// Ops by how much a narrow float hurts them.
enum class PrecisionCategory : std::uint8_t {
  Compute,       // matrix products, attention
  Reduction,     // norms, softmax, sums, scans
  Elementwise,   // arithmetic on single elements
  DataMovement,  // reshape, gather, slice, ...; leaves
  Stated,        // the op says its dtypes itself, as Cast does: policies give it F32 and leave it as it is
};

}  // namespace rlx
