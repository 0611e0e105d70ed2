// Decoders from GGUF files, in f32 and quantized: the same logits as from the folders that they were converted from.
#include "rlx/models/decoder/gguf_decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "rlx/formats/gguf_writer.h"
#include "rlx/models/convert/model_convert.h"
#include "rlx/models/decoder_model.h"
#include "tests/support/decoder_gguf.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;

DecoderOptions whole_context(const test::DecoderReference& r) {
  DecoderOptions o;
  o.context = static_cast<std::int64_t>(r.tokens.size());  // the RoPE angles of Phi-3 depend on the context
  return o;
}

}  // namespace

TEST_CASE("gguf decoder: files as llama.cpp's converter makes them give the reference's logits") {
  std::set<std::string> families;
  for (const std::string& name : test::decoder_references()) {
    if (!test::has_gguf(name)) continue;
    CAPTURE(name);
    const test::DecoderReference r = test::decoder_reference(name);
    const test::TempDir folder;
    DecoderModel m = DecoderModel::load(folder.write("m.gguf", test::decoder_gguf(r)), whole_context(r));
    families.insert(m.config().family);
    CHECK(test::logit_error(m.forward(r.tokens), r) <= 2e-5);
  }
  for (const std::string& family : gguf_architectures())
    CHECK_MESSAGE(families.contains(family), family, " is not proved");
}

TEST_CASE("gguf decoder: weights in blocks are read as they are, and mean what they decode to") {
  // Rows of 48 or 80 elements (the down projection of OLMo 2) are not a multiple of 32, so they are not quantized. Rows
  // of 64 in Phi-3 are.
  const test::DecoderReference r = test::decoder_reference("phi3");
  const std::string f32 = test::decoder_gguf(r);
  for (const QuantScheme scheme : {QuantScheme::Q8_0, QuantScheme::Q4_0, QuantScheme::Q5_1}) {
    CAPTURE(std::string(quant_scheme_name(scheme)));
    const test::TempDir folder;
    const std::string path = folder.write("blocks.gguf", test::with_blocks(f32, scheme));
    const auto file = GgufFile::open(path);
    // The same values in a file of floats.
    test::GgufBytes plain;
    for (const GgufValue& v : file->metadata())
      plain.value(v.key(), v.kind(), std::string(reinterpret_cast<const char*>(v.raw().data()), v.raw().size()));
    std::int64_t encoded = 0;
    for (const GgufTensor& t : file->tensors()) {
      encoded += !t.info().dtype;
      const Tensor x = file->decoded(t.name);
      plain.records += test::gguf_string(t.name) + test::number_bytes(static_cast<std::uint32_t>(t.dims.size()));
      for (auto d = t.dims.rbegin(); d != t.dims.rend(); ++d)
        plain.records += test::number_bytes(static_cast<std::uint64_t>(*d));
      plain.records += test::number_bytes(std::uint32_t{0}) + test::number_bytes(std::uint64_t{plain.data.size()});
      plain.data.append(reinterpret_cast<const char*>(x.data()), x.size_bytes());
      plain.data.append((32 - plain.data.size() % 32) % 32, '\0');
      ++plain.tensors;
    }
    CHECK(encoded >= 8);
    DecoderModel codes = DecoderModel::load(path, whole_context(r));
    DecoderModel floats = DecoderModel::load(folder.write("plain.gguf", plain.bytes()), whole_context(r));
    test::DecoderReference want = r;
    want.logits = floats.forward(r.tokens);
    CHECK(test::logit_error(codes.forward(r.tokens), want) <= 2e-5);
    CHECK(test::logit_error(want.logits, r) > 1e-3);  // the quantized weights differ from those of the reference
    CHECK(test::logit_error(want.logits, r) < 1);
  }
}

TEST_CASE("gguf decoder: older files of DeepSeek-V2 have keys and values of latent vectors in one matrix") {
  const test::DecoderReference r = test::decoder_reference("deepseek_v2_lite");
  const test::TempDir folder;
  test::write_model(folder, r);
  convert_to_gguf(folder.path(), folder.file("m.gguf"), {});
  const auto file = GgufFile::open(folder.file("m.gguf"));
  const auto whole_name = [](std::string_view name) {
    return std::string(name.substr(0, name.find("attn_v_b"))) + "attn_kv_b.weight";
  };
  const auto hf = [&](std::string_view name) {  // the matrix of the layer
    const std::string key =
        concat_text("model.layers.", name.substr(4, name.find('.', 4) - 4), ".self_attn.kv_b_proj.weight");
    return std::find_if(r.weights.begin(), r.weights.end(), [&](const NamedTensor& w) { return w.name == key; })
        ->tensor;
  };
  {
    GgufWriter w(folder.file("old.gguf"));
    const std::set<std::string_view> left_out{"attention.key_length", "attention.value_length",
                                              "attention.head_count_kv", "attention.key_length_mla",
                                              "attention.value_length_mla"};
    for (const GgufValue& v : file->metadata())
      if (!v.key().starts_with("deepseek2.") || !left_out.contains(v.key().substr(10))) w.copy(v);
    w.set_int("deepseek2.attention.head_count_kv", GgufKind::U32, 4);
    w.set_int("deepseek2.attention.key_length", GgufKind::U32, 24);
    w.set_int("deepseek2.attention.value_length", GgufKind::U32, 12);
    std::vector<std::span<const std::byte>> data;
    std::vector<Tensor> kept;
    for (const GgufTensor& t : file->tensors()) {
      if (t.name.find("attn_k_b") != t.name.npos) continue;
      const bool both = t.name.find("attn_v_b") != t.name.npos;
      if (both) kept.push_back(hf(t.name));
      w.add_tensor(both ? whole_name(t.name) : std::string(t.name), t.type,
                   both ? kept.back().dims() : std::vector<std::int64_t>(t.dims.begin(), t.dims.end()));
      data.push_back(both ? std::span(static_cast<const std::byte*>(kept.back().data()), kept.back().size_bytes())
                          : t.bytes);
    }
    w.begin();
    for (const auto bytes : data) w.write(bytes);
    w.commit();
  }
  CHECK(test::logit_error(DecoderModel::load(folder.file("old.gguf"), whole_context(r)).forward(r.tokens), r) <= 2e-5);
  convert_to_folder(folder.file("old.gguf"), folder.file("back"), {});
  CHECK(test::logit_error(DecoderModel::load(folder.file("back"), whole_context(r)).forward(r.tokens), r) <= 2e-5);
}

TEST_CASE("gguf decoder: what is wrong with a file is named") {
  const std::string f32 = test::decoder_gguf(test::decoder_reference("llama2"));
  const auto refusal = [](const std::string& bytes) {
    const test::TempDir folder;
    const std::string path = folder.write("m.gguf", bytes);
    return test::error_text([&] { (void)DecoderModel::load(path); });
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string out = f32;
    REQUIRE(from.size() == to.size());
    const std::size_t at = out.find(from);
    REQUIRE(at != std::string::npos);
    return out.replace(at, from.size(), to);
  };
  CHECK(refusal(f32).empty());
  std::string text = refusal(test::GgufBytes().text("general.architecture", "rwkv6").bytes());
  CHECK(contains(text, "\"general.architecture\" is \"rwkv6\", which is not a decoder that rlx supports"));
  for (const std::string& known : gguf_architectures()) CHECK(contains(text, "'" + known + "'"));
  CHECK(contains(refusal(test::GgufBytes().text("general.architecture", "llama").bytes()), "token_embd.weight"));
  CHECK(contains(refusal(changed("llama.block_count", "llama.blokc_count")), "llama.block_count"));
  text = refusal(changed("blk.1.attn_norm.weight", "blk.1.attn_nomr.weight"));
  CHECK(contains(text, "1 tensor is missing: 'blk.1.attn_norm.weight'"));
  CHECK(contains(text, "belongs to no part of a llama of 3 layers: 'blk.1.attn_nomr.weight'"));

  // Variants of supported architectures with a part that is not supported.
  const std::string latent = test::decoder_gguf(test::decoder_reference("deepseek_v2_lite"));
  const auto with = [&](const std::function<void(GgufWriter&)>& more, std::string_view without = "") {
    const test::TempDir folder;
    const auto file = GgufFile::from_bytes(std::as_bytes(std::span(latent)), "latent");
    GgufWriter w(folder.file("m.gguf"));
    for (const GgufValue& v : file->metadata())
      if (v.key() != without) w.copy(v);
    more(w);
    for (const GgufTensor& t : file->tensors()) w.add_tensor(t.name, t.type, t.dims);
    w.begin();
    for (const GgufTensor& t : file->tensors()) w.write(t.bytes);
    w.commit();
    return test::error_text([&] { (void)DecoderModel::load(folder.file("m.gguf")); });
  };
  CHECK(with([](GgufWriter&) {}).empty());
  CHECK(contains(with([](GgufWriter& w) { w.set_int("deepseek2.expert_gating_func", GgufKind::U32, 2); }),
                 "its experts are not selected by softmax"));
  CHECK(contains(with([](GgufWriter& w) { w.set_int("deepseek2.expert_group_count", GgufKind::U32, 4); }),
                 "its experts are selected by groups"));
  CHECK(contains(with([](GgufWriter&) {}, "deepseek2.rope.scaling.yarn_log_multiplier"), "yarn_log_multiplier"));
  CHECK(contains(with([](GgufWriter&) {}, "deepseek2.attention.kv_lora_rank"), "kv_lora_rank"));
  CHECK(contains(with([](GgufWriter& w) { w.set_int("deepseek2.rope.dimension_count", GgufKind::U32, 24); },
                      "deepseek2.rope.dimension_count"),
                 "rope rotates 24 elements of heads of 24"));
}

}  // namespace rlx
