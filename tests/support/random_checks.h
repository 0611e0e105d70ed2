// Random programs in every way of running them: against the exact result within the bound of rounding, and where the
// same kernels run bit by bit.
#pragma once

#include <cstdint>
#include <string>

#include "rlx/runtime/session.h"
#include "tests/support/random_program.h"
#include "tests/support/rounding.h"

namespace rlx::test {

/// What of a program was looked at besides its results.
struct Looked {
  bool derivatives = false;  // its reverse derivative was run, and compared with the forward one
  bool batches = false;      // it was run over a batch
};

/// What is wrong with a program on the cpu: evaluator, one and two threads, symbols in each mode, fused and not,
/// kernels and decompositions, lower instruction sets, the reference backend, text and binary form; of some seeds (or
/// all, with `derive`) its derivatives and a batch of it. "" for nothing; the text begins with the way, which `only`
/// may name.
std::string failure_of(const RandomProgram& p, const std::string& only = {}, bool derive = false,
                       Looked* looked = nullptr);
/// The part of a program that still fails in the way `who`.
RandomProgram smaller(RandomProgram p, const std::string& who);

/// The same on the device of `session`: two sets of extents, two runs each, with states from run to run; subnormal
/// numbers are left out where the device may take them for zero.
std::string failure_on(const Session& session, const RandomProgram& p, Subnormals subnormals = Subnormals::Kept,
                       bool derive = false, Looked* looked = nullptr);

}  // namespace rlx::test
