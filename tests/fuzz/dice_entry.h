// The entry of fuzz targets that draw what they do from dice: the input is their seed.
#pragma once

#include <cstdint>
#include <cstdio>

#include "rlx/ir/serial/fingerprint.h"
#include "tests/support/random_program.h"

namespace rlx::fuzz {

/// What LLVMFuzzerTestOneInput of such a target returns: `run` on the dice of the bytes; an Error that it throws is
/// printed and goes on.
inline int roll(const std::uint8_t* data, std::size_t size, void (*run)(test::Dice&)) {
  test::Dice dice(fingerprint_bytes(data, size).low);
  try {
    run(dice);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    throw;
  }
  return 0;
}

}  // namespace rlx::fuzz
