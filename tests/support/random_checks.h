// Random programs in every execution mode, compared with the exact result within the rounding bound, and bit by bit
// where the same kernels run.
#pragma once

#include <cstdint>
#include <string>

#include "rlx/runtime/session.h"
#include "tests/support/random_program.h"
#include "tests/support/rounding.h"

namespace rlx::test {

/// The checks that a program got besides its results.
struct Looked {
  bool derivatives = false;  // its reverse derivative was run and compared with the forward one
  bool batches = false;      // it was run over a batch
};

/// The error of a program on the cpu, or "". Modes: evaluator, one and two threads, symbols in each mode, fused and
/// not, kernels and decompositions, lower instruction sets, the reference backend, text and binary form. For some seeds
/// (or all, with `derive`) also its derivatives and a batch of it. The text begins with the mode; `only` selects one
/// mode.
std::string failure_of(const RandomProgram& p, const std::string& only = {}, bool derive = false,
                       Looked* looked = nullptr);
/// A reduced program that still fails in the mode `who`.
RandomProgram smaller(RandomProgram p, const std::string& who);

/// The same on the device of `session`: two sets of extents and two runs each, with states kept from run to run.
/// Subnormal numbers are left out where the device may flush them to zero.
std::string failure_on(const Session& session, const RandomProgram& p, Subnormals subnormals = Subnormals::Kept,
                       bool derive = false, Looked* looked = nullptr);

}  // namespace rlx::test
