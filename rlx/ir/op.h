// The op vocabulary: includes every op struct. Files that use a few ops include ops/<family>.h, so that an edit of one
// op recompiles only its users.
//
// Semantics common to all ops:
// * Operands have equal dtypes unless an op says otherwise; builder functions insert the cast (`promote`).
// * Integer arithmetic wraps; integer division and mod by zero give 0; floats follow IEEE 754, and NaN propagates
//   through max, min, relu, clamp and every reduction.
// * Reductions accumulate in at least F32, in an order fixed by the shape; an empty sum is 0, an empty product 1, an
//   empty max or min the lowest or highest value of the dtype (minus or plus infinity), an empty mean NaN.
// * Axes in attributes are normalised: in [0, rank). Indices are I32 or I64, and clamped into range where an op says
//   so.
// * Broadcasting is NumPy's: right-aligned, 1 stretches.
// * Infinities, ties, kinks of derivatives, casts and overflow: docs/numerics.md.
#pragma once

#include "rlx/ir/op_kind.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/collectives.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/custom.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fft.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/ops/loss.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/ops/random.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/ir/ops/sequence.h"
#include "rlx/ir/ops/shape.h"
