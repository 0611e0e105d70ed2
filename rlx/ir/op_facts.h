// Facts about ops that the passes, the planner and the policies ask for. Each fact is a field of every record (OpDef)
// without a default, so no code keeps a list of op kinds.
#pragma once

#include <cstdint>

namespace rlx {

/// The graphs an op may appear in: Hir ops only in HIR, Mir ops everywhere, Lir ops only in LIR.
enum class Level : std::uint8_t { Hir, Mir, Lir };

/// Whether a node is a leaf, a value that a program starts from.
enum class LeafKind : std::uint8_t {
  None,
  Named,     // part of the graph's interface, found by its name: Input, Param, State
  Embedded,  // holds its value: Constant
};

/// Whether each result element depends on one element of each (broadcast) operand.
enum class ElementwiseKind : std::uint8_t {
  No,
  Yes,
  InBodies,  // yes, and bodies of regions and epilogues may hold the op
};

/// Whether the result has the elements of operand 0 and can share its bytes.
enum class ViewKind : std::uint8_t {
  None,
  ByStrides,  // when strides can express it; view_place (compiler/views.h) computes them
  Always,     // the operand's bytes unchanged: no target needs a kernel
};

/// What the sub-graphs among an op's attributes are.
enum class BodyKind : std::uint8_t {
  None,      // there are none, or kernels read them as part of the op: regions, epilogues
  Programs,  // separate programs: passes run inside them
};

/// Whether running an op does more than compute its results.
enum class OpTrait : std::uint8_t {
  Pure,     // may be merged with equal ops, folded, moved, recomputed and dropped
  Ordered,  // other code observes its run: collectives, callbacks. It stays, runs once, and keeps its order among
            // ordered ops; an op whose body holds one is ordered too (ir/rewrite/roots.h)
};

/// Whether result 0 equals operand 0 except for some elements. When both share their bytes, only those are written.
enum class UpdateKind : std::uint8_t { No, Yes };

/// Classes of ops by their sensitivity to low-precision floats.
enum class PrecisionCategory : std::uint8_t {
  Compute,       // matmuls, attention
  Reduction,     // norms, softmax, sums, scans
  Elementwise,   // arithmetic on single elements
  DataMovement,  // reshape, gather, slice, ...; leaves
  Stated,        // the op states its dtypes, as Cast does: policies give it F32 and do not change it
};

}  // namespace rlx
