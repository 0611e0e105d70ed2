// The conformance suite on the adversarial test device: every op sample and random programs, through CompiledGraph,
// compared with the exact result within its bounds. It finds accesses to device memory by the host, missing ordering,
// misaligned values and too many bindings.
#include <doctest/doctest.h>

#include "rlx/ir/text.h"
#include "tests/adversarial/adversarial_device.h"
#include "tests/support/needs.h"
#include "tests/support/program_check.h"
#include "tests/support/random_program.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

using test::AdversarialScope;

void expect_exact(const testing::Sample& sample) { test::check_sample(Session(AdversarialScope::kDevice), sample); }

}  // namespace

TEST_CASE("adversarial: every op sample agrees with the exact result") {
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    test::Share share(3);
    test::for_each_run_sample([&](const OpDef&, const testing::Sample& sample) {
      expect_exact(sample);
      for (const testing::Sample& other : test::dtype_samples(sample))
        if (share.next()) expect_exact(other);
    });
  }
}

TEST_CASE("adversarial: large and odd variants of op samples") {
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    test::Share share(6);
    test::for_each_run_sample([&](const OpDef&, const testing::Sample& sample) {
      for (const testing::Sample& large : test::large_samples(sample, 3000))
        if (share.next()) expect_exact(large);
    });
  }
}

TEST_CASE("adversarial: random programs, static and symbolic, with states") {
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    AdversarialScope adversary(mode);
    for (const std::uint64_t seed : test::seeds(250)) {
      std::string text;
      try {
        text = test::check_program(Session(AdversarialScope::kDevice), seed);
      } catch (const Error& e) {
        text = e.what();
      }
      if (!text.empty())
        FAIL_CHECK(test::mode_name(mode) << ", seed " << seed << ": " << text << "\n"
                                         << print_text(test::random_program(seed).graph));
    }
    // Checks that the device reorders steps.
    CHECK(adversary->counts().reordered > 20);
    CHECK(adversary->counts().late > 20);
  }
}

}  // namespace rlx
