// Language models on the device under test: logits of Python's transformers, with a cache that stays there.
#include <doctest/doctest.h>

#include <cstring>

#include "rlx/generation/conversation_file.h"
#include "rlx/models/decoder_model.h"
#include "tests/devices/test_device.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/temp_dir.h"

namespace rlx {

TEST_CASE("device: decoders give the reference's logits, in a chunk and then step by step") {
  if (!test::device_here()) return;
  constexpr double kNear = 2e-4;  // of the largest logit
  const Session session(test::test_device());
  // Windows, sinks and stacked experts; latent attention; learned positions; soft caps; experts apart; bf16 weights.
  for (const char* name : {"gpt_oss", "deepseek_v2_lite", "gpt2", "gemma2", "qwen3_moe", "qwen3"}) {
    CAPTURE(name);
    const test::DecoderReference r = test::decoder_reference(name);
    const test::TempDir folder;
    test::write_model(folder, r);
    DecoderOptions options;
    options.context = static_cast<std::int64_t>(r.tokens.size());
    options.page = 16;
    DecoderModel m = DecoderModel::load(folder.path(), options, session);
    const std::span<const TokenId> text = r.tokens;
    CHECK(test::logit_error(m.forward(text.first(33)), r) <= kNear);
    for (std::size_t t = 33; t < 37; ++t)
      CHECK(test::logit_error(m.forward(text.subspan(t, 1)), r, static_cast<std::int64_t>(t)) <= kNear);
    CHECK(test::host_part(m.program()).empty());
  }
}

TEST_CASE("device: a conversation goes on from a file with the bits that it would have had") {
  if (!test::device_here()) return;
  const Session session(test::test_device());
  const test::DecoderReference r = test::decoder_reference("qwen3");
  const test::TempDir folder;
  test::write_model(folder, r);
  for (const DType cache : {DType::F32, DType::BF16}) {
    DecoderOptions options;
    options.context = static_cast<std::int64_t>(r.tokens.size());
    options.page = 16, options.cache_dtype = cache;
    DecoderModel m = DecoderModel::load(folder.path(), options, session);
    const std::span<const TokenId> text = r.tokens;
    (void)m.forward(text.first(37), LogitRows::Last);
    save_conversation(folder.file("c"), m, {{text.begin(), text.begin() + 37}, {}}, 0);
    const Tensor wanted = m.forward(text.subspan(37));
    DecoderModel other = DecoderModel::load(folder.path(), options, session);
    CHECK(load_conversation(folder.file("c"), other, 0).tokens.size() == 37);
    const Tensor got = other.forward(text.subspan(37));
    REQUIRE(got.size_bytes() == wanted.size_bytes());
    CHECK(std::memcmp(got.data(), wanted.data(), got.size_bytes()) == 0);
  }
}

}  // namespace rlx
