// MiniLM on the device under test: the known cosines, and the vectors of the cpu.
#include <doctest/doctest.h>

#include "rlx/models/sentence_encoder.h"
#include "tests/devices/test_device.h"
#include "tests/support/needs.h"
#include "tests/support/samples.h"

namespace rlx {

TEST_CASE("device: the three known sentences" * doctest::test_suite(test::kNeedsModel)) {
  if (!test::device_here()) return;
  const std::string folder = test::model_dir();
  if (folder.empty()) return test::skip("the MiniLM model");
  const std::string texts[] = {"The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."};
  SentenceEncoderOptions options;
  options.device = test::test_device();
  const Tensor got = SentenceEncoder(folder, options).embed(texts), cpu = SentenceEncoder(folder).embed(texts);
  const std::span<const float> v = got.values<float>();
  const auto cosine = [&](std::size_t a, std::size_t b) {
    return cosine_similarity(v.subspan(a * 384, 384), v.subspan(b * 384, 384));
  };
  CHECK(cosine(0, 1) == doctest::Approx(0.6660).epsilon(1e-4));
  CHECK(cosine(0, 2) == doctest::Approx(0.1046).epsilon(1e-3));
  CHECK(cosine(1, 2) == doctest::Approx(0.1411).epsilon(1e-3));
  CHECK(test::distance(got, cpu) < 2e-6);
}

}  // namespace rlx
