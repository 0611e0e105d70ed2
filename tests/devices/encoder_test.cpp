// Encoders of texts on the device under test: vectors and scores of Python's transformers.
#include <doctest/doctest.h>

#include "tests/devices/test_device.h"
#include "tests/support/encoder_run.h"

namespace rlx {

TEST_CASE("device: encoders of texts give the reference's vectors and scores") {
  if (!test::device_here()) return;
  constexpr double kNear = 2e-4;  // of the largest element
  const Session session(test::test_device());
  // Windows on both sides and gated layers; biases of distances; positions behind the padding and whole blocks.
  for (const char* name : {"modernbert", "mpnet", "roberta"}) {
    CAPTURE(name);
    const test::EncoderReference r = test::encoder_reference(name);
    EncoderGraphOptions options;
    options.output = EncoderOutput::Tokens;
    CHECK(test::relative_error(r.tokens_of(test::run_encoder(r, options, session)), r.hidden) <= kNear);
    options.output = EncoderOutput::Scores;
    CHECK(test::relative_error(test::run_encoder(r, options, session), r.scores) <= kNear);
  }
}

}  // namespace rlx
