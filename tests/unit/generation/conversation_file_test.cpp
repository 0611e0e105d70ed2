// Saved conversations: a resumed conversation has the bits of one that was never saved, and no wrong file is accepted.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "rlx/formats/mapped_file.h"
#include "rlx/formats/safetensors.h"
#include "rlx/generation/conversation.h"
#include "rlx/generation/conversation_file.h"
#include "rlx/generation/engine.h"
#include "rlx/ir/serial/fingerprint.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/random_tokens.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_model.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

std::vector<TokenId> tokens_of(unsigned seed, std::size_t size) { return test::random_tokens(seed, size, 96); }
struct SavedModel {
  explicit SavedModel(const std::string& name = "llama2") { test::write_model(folder, test::decoder_reference(name)); }
  DecoderModel load(DecoderOptions o = {}) const {
    if (o.context == 0) o.context = 200;
    return DecoderModel::load(folder.path(), o);
  }
  std::string file() const { return folder.file("c.rlxchat"); }
  test::TempDir folder;
};

}  // namespace

TEST_CASE("conversation files: logits go on bit for bit, in every type of cache, page and place") {
  struct Case {
    const char* model;
    DType dtype;
    std::optional<QuantScheme> scheme;
  };
  test::Share share(3);
  for (const Case& c : {Case{"llama2", DType::F32, {}}, Case{"qwen3", DType::BF16, {}}, Case{"llama2", DType::F16, {}},
                        Case{"deepseek_v2", DType::F32, {}}, Case{"gemma3", DType::F32, {}}}) {
    CAPTURE(c.model);
    const SavedModel files(c.model);
    DecoderOptions o;
    o.cache_dtype = c.dtype, o.cache_scheme = c.scheme;
    const std::vector<TokenId> text = tokens_of(4, 100), more = tokens_of(5, 40);
    DecoderModel saver = files.load(o);
    (void)saver.forward(text, LogitRows::Last);
    Conversation said{text, {{"user", "hi"}, {"assistant", "a \"b\"\n\xE2\x82\xAC"}}};
    save_conversation(files.file(), saver, said, 0);
    const Tensor wanted = saver.forward(more);
    for (const std::int64_t page : {std::int64_t{0}, std::int64_t{64}, std::int64_t{128}}) {
      if (!share.next()) continue;
      CAPTURE(page);
      DecoderOptions other = o;
      other.page = page, other.sequences = 3, other.context = 260;
      DecoderModel m = files.load(other);
      (void)m.forward(std::vector<SequenceTokens>{{1, text}, {0, more}});  // so that other pages are used
      const Conversation got = load_conversation(files.file(), m, 2);
      CHECK(got.tokens == text);
      REQUIRE(got.messages.size() == 2);
      CHECK(got.messages[1].role == "assistant");
      CHECK(got.messages[1].content == said.messages[1].content);
      CHECK(m.length(2) == 100);
      CHECK(test::same_bits(m.forward(std::vector<SequenceTokens>{{2, more}}, LogitRows::All), wanted));
    }
  }
}

TEST_CASE("conversation files: a cache of blocks") {
  const test::TempDir folder;
  test::write_model(folder, test::reference_of_wide_heads());
  for (const QuantScheme scheme : {QuantScheme::Q8_0, QuantScheme::Q4_0}) {
    DecoderOptions o;
    o.context = 160, o.cache_scheme = scheme;
    const std::vector<TokenId> text = tokens_of(1, 70), more = tokens_of(2, 20);
    DecoderModel saver = DecoderModel::load(folder.path(), o);
    (void)saver.forward(text, LogitRows::Last);
    save_conversation(folder.file("c"), saver, {text, {}}, 0);
    const Tensor wanted = saver.forward(more);
    o.page = 64, o.sequences = 2;
    DecoderModel m = DecoderModel::load(folder.path(), o);
    (void)load_conversation(folder.file("c"), m, 1);
    CHECK(test::same_bits(m.forward(std::vector<SequenceTokens>{{1, more}}, LogitRows::All), wanted));
    o.cache_scheme.reset();
    DecoderModel wide = DecoderModel::load(folder.path(), o);
    const std::string refused = error_text([&] { (void)load_conversation(folder.file("c"), wide, 1); });
    CHECK(contains(refused, concat_text("with a cache of ", quant_scheme_name(scheme), ", but the model has f32")));
  }
}

TEST_CASE("conversation files: other models are refused, and the same one from other files is not") {
  const SavedModel files;
  DecoderModel saver = files.load();
  const std::vector<TokenId> text = tokens_of(4, 30);
  (void)saver.forward(text, LogitRows::Last);
  save_conversation(files.file(), saver, {text, {}}, 0);
  const auto refused = [&](DecoderModel m) {
    const std::string message = error_text([&] { (void)load_conversation(files.file(), m, 0); });
    CHECK(m.length() == 0);
    CHECK(contains(message, files.file()));
    return message;
  };
  DecoderOptions o;
  o.cache_dtype = DType::BF16;
  CHECK(contains(refused(files.load(o)), "a cache of f32, but the model has bf16"));
  o = {};
  o.matmul_precision = MatmulPrecision::Int8;
  CHECK(contains(refused(files.load(o)), "matmul precision exact, but the model has int8"));
  o = {};
  o.context = 20;
  CHECK(contains(refused(files.load(o)), "has 30 tokens, but the model was loaded with a context of 20"));
  CHECK(contains(refused(SavedModel("qwen3").load()), "family llama, but the model has qwen3"));
  CHECK(contains(refused(SavedModel("llama3").load()), "another configuration of a llama"));

  // One weight differs by one bit.
  test::DecoderReference other = test::decoder_reference("llama2");
  auto* bits = reinterpret_cast<unsigned char*>(other.weights.back().tensor.mutable_data());
  bits[0] ^= 1;
  const test::TempDir changed;
  test::write_model(changed, other);
  CHECK(contains(refused(DecoderModel::load(changed.path(), {.context = 200})), "was saved with other weights"));
  // A copy of the model in another folder, in two files.
  const test::TempDir copy;
  test::write_model(copy, test::decoder_reference("llama2"), 2);
  DecoderModel same = DecoderModel::load(copy.path(), {.context = 100});
  CHECK(load_conversation(files.file(), same, 0).tokens == text);

  // Angles that depend on the context.
  const SavedModel dynamic("llama_dynamic");
  DecoderModel short_one = dynamic.load({.context = 150});
  (void)short_one.forward(text, LogitRows::Last);
  save_conversation(dynamic.file(), short_one, {text, {}}, 0);
  DecoderModel long_one = dynamic.load({.context = 400});
  CHECK(contains(error_text([&] { (void)load_conversation(dynamic.file(), long_one, 0); }), "depend on the context"));
}

TEST_CASE("conversation files: cut short, altered, and what cannot be saved") {
  const SavedModel files;
  DecoderModel m = files.load();
  const std::vector<TokenId> text = tokens_of(4, 9);
  (void)m.forward(text, LogitRows::Last);
  save_conversation(files.file(), m, {text, {{"user", "x"}}}, 0);
  const std::string whole = read_file(files.file());
  const auto not_saved = [&](const Conversation& c) {
    return error_text([&] { save_conversation(files.file(), m, c, 0); });
  };
  CHECK(contains(not_saved({text, {{"user", "x"}, {"user", "y\xff"}}}),
                 "the content of message 2 is not valid UTF-8 at byte 1"));
  CHECK(contains(not_saved({text, {{"\xff", "x"}}}), "the role of message 1 is not valid UTF-8 at byte 0"));
  std::vector<TokenId> other = text;
  other[3] = -5;
  CHECK(contains(not_saved({other, {}}), "its token 3 is -5, but the model has ids 0 to"));
  CHECK(read_file(files.file()) == whole);
  m.reset();
  const auto refused = [&](const std::string& bytes) {
    files.folder.write("bad", bytes);
    const std::string message = error_text([&] { (void)load_conversation(files.folder.file("bad"), m, 0); });
    CHECK(m.length() == 0);
    CHECK(contains(message, "bad: "));
    return message;
  };
  std::mt19937 rng(1);
  for (std::size_t size = 0; size < whole.size(); size += 1 + (size > 1500 ? rng() % 700 : 0)) {
    const std::string message = refused(whole.substr(0, size));
    CHECK((contains(message, "cut short") || contains(message, "not a saved conversation")));
  }
  CHECK(contains(refused(whole + "x"), "1 extra bytes at its end"));
  for (int i = 0; i < 400; ++i) {
    std::string altered = whole;
    const std::size_t at = i < 120 ? static_cast<std::size_t>(i) : rng() % whole.size();
    altered[at] = static_cast<char>(altered[at] ^ 1 << rng() % 8);
    CAPTURE(at);
    const std::string message = refused(altered);
    CHECK((contains(message, "checksum") || contains(message, "not a saved conversation") ||
           contains(message, "of version") || contains(message, "cut short")));
  }
  CHECK(contains(error_text([&] { (void)load_conversation(files.folder.file("none"), m, 0); }), "cannot open"));

  // A failed write leaves nothing behind, and the old file stays.
  const auto saved = [&](const std::string& path, const Conversation& c, std::int64_t cached = 0) {
    return error_text([&] { save_conversation(path, m, c, {}, cached); });
  };
  CHECK(contains(saved(files.folder.file("no/folder/c"), {text, {}}), "no/folder"));
  CHECK(contains(saved(files.folder.file("c2"), {text, {}}, 5), "0 pages of 200 tokens cannot hold"));
  (void)m.forward(text, LogitRows::Last);
  CHECK(contains(error_text([&] {
                   save_conversation(files.folder.file("c2"), m, {{1, 2}, {}}, 0);
                 }),
                 "a conversation of 2 tokens cannot have a number of keys and values of 9"));
  CHECK_FALSE(std::filesystem::exists(files.folder.file("c2")));
  CHECK(read_file(files.file()) == whole);
  CHECK(contains(error_text([&] { (void)load_conversation(files.file(), m, 0); }),
                 "has 9 tokens, so a saved conversation cannot"));
  // With enough disk space.
  DecoderOptions small;
  small.sequences = 2, small.context = 128, small.page = 64, small.pages = 2;
  DecoderModel full = files.load(small);
  (void)full.forward(tokens_of(3, 128), LogitRows::Last);
  CHECK(contains(error_text([&] { (void)load_conversation(files.file(), full, 1); }), "the cache is full"));
  CHECK(full.length(1) == 0);
  const ConversationFile file = ConversationFile::open(files.file(), m);
  const KvPages page{{0}}, none{{1}};
  CHECK(
      contains(error_text([&] { file.restore(m, page, 10); }), "keys and values for 9 tokens, but 10 were asked for"));
  CHECK(contains(error_text([&] { file.restore(m, none, 5); }), "page"));
}

TEST_CASE("conversation files: heads that lie, with checksums that fit") {
  const SavedModel files;
  DecoderModel m = files.load();
  const std::vector<TokenId> text = tokens_of(4, 9);
  (void)m.forward(text, LogitRows::Last);
  save_conversation(files.file(), m, {text, {{"user", "x"}}}, 0);
  m.reset();
  const std::string whole = read_file(files.file());
  const auto number = [](std::string& out, std::uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(v >> (8 * i) & 0xFF);
  };
  std::size_t size = 0;
  for (std::size_t i = 4; i-- > 0;) size = size << 8 | static_cast<unsigned char>(whole[12 + i]);
  const std::string head = whole.substr(16, size), rest = whole.substr(16 + size + 16);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string changed = head;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    std::string bytes = whole.substr(0, 12);
    number(bytes, changed.size(), 4);
    bytes += changed;
    const Fingerprint f = fingerprint_bytes(bytes.data(), bytes.size());
    number(bytes, f.low, 8);
    number(bytes, f.high, 8);
    files.folder.write("bad", bytes + rest);
    const std::string message = error_text([&] { (void)load_conversation(files.folder.file("bad"), m, 0); });
    CHECK(m.length() == 0);
    CHECK((message.empty() || contains(message, files.folder.file("bad"))));
    return message;
  };
  CHECK(contains(refused("\"tokens\":9", "\"tokens\":-9"), "token counts are not valid"));
  CHECK(contains(refused("\"tokens\":9", "\"tokens\":8"), "token counts are not valid"));
  CHECK(contains(refused("\"tokens\":9", "\"tokens\":10"), "cut short"));
  CHECK(contains(refused("\"tokens\":9", "\"tokens\":9000000000000000000"), "a context of 200"));
  CHECK(contains(refused("\"tokens\":9", "\"tokens\":\"9\""), "integer"));
  CHECK(contains(refused("\"cached\":9", "\"cached\":-1"), "token counts are not valid"));
  CHECK(contains(refused("\"cached\":9", "\"cached\":8"), "extra bytes"));
  CHECK(contains(refused("\"name\":\"cache.v.1\"", "\"name\":\"cache.w.1\""),
                 "does not match the model's state cache.v.1"));
  CHECK(contains(refused("\"row_bytes\":256", "\"row_bytes\":252"), "does not match the model's state cache.k.0"));
  CHECK(contains(refused("{\"name\":\"cache.k.0\",\"row_bytes\":256},", ""), "does not have as many states"));
  CHECK(contains(refused("\"role\":", "\"rolle\":"), "role"));
  CHECK(contains(refused("\"messages\":[", "\"messages\":[7,"), "role"));
  CHECK(contains(refused("{", "["), "JSON"));
}

TEST_CASE("engine: an answer goes on from a file as if it had not stopped") {
  const test::TempDir folder;
  test::write_text_model(folder);
  DecoderOptions o;
  o.context = 256, o.page = kEnginePage;
  const auto engine = [&](DecoderOptions with, EngineOptions e = {}) {
    return Engine(DecoderModel::load(folder.path(), with), nullptr, e);
  };
  const auto run = [](Engine& e, const std::vector<TokenId>& prompt, std::int64_t count) {
    GenerationOptions g;
    g.sampling.seed = 8;
    g.max_new_tokens = count;
    (void)e.submit(prompt, g);
    std::vector<TokenId> out;
    while (!e.idle())
      for (const GenerationEvent& event : e.step()) out.push_back(event.token);
    return out;
  };
  const std::vector<TokenId> prompt = tokens_of(6, 90);
  Engine whole = engine(o);
  const std::vector<TokenId> all = run(whole, prompt, 60);
  Engine first = engine(o);
  Conversation c{prompt, {{"user", "x"}}};
  const std::vector<TokenId> begun = run(first, prompt, 50);
  c.tokens.insert(c.tokens.end(), begun.begin(), begun.end());
  CHECK(first.save(folder.file("c"), c) == 128);  // two pages of 140 tokens
  for (const std::int64_t page : {std::int64_t{64}, std::int64_t{128}}) {
    DecoderOptions with = o;
    with.page = page;
    Engine second = engine(with);
    const Conversation got = second.load(folder.file("c"));
    CHECK(got.tokens == c.tokens);
    CHECK(got.messages.size() == 1);
    std::vector<TokenId> rest = run(second, got.tokens, 10);
    rest.insert(rest.begin(), begun.begin(), begun.end());
    CHECK(rest == all);
    CHECK(second.statistics().reused_tokens == 128);
    CHECK(second.statistics().prompt_tokens == 12);
  }
  // Tokens that were not computed yet are computed after loading.
  Engine third = engine(o);
  CHECK(third.save(folder.file("tokens"), c) == 0);
  CHECK(run(third, third.load(folder.file("tokens")).tokens, 10) == std::vector<TokenId>(all.end() - 10, all.end()));
  Engine without = engine(o, {0, false});
  CHECK(contains(error_text([&] { (void)without.save(folder.file("x"), c); }), "without a prefix cache"));
  CHECK(contains(error_text([&] { (void)without.load(folder.file("c")); }), "without a prefix cache"));
  // Pages that are held by requests.
  DecoderOptions small = o;
  small.pages = 4;
  Engine busy = engine(small);
  GenerationOptions endless;
  (void)busy.submit(tokens_of(7, 180), endless);
  (void)busy.step();
  CHECK(contains(error_text([&] { (void)busy.load(folder.file("c")); }),
                 "needs 2 pages of the KV cache, but 1 are free"));
  CHECK(busy.model().cache().free_pages() == 1);
}

TEST_CASE("conversations that are too long lose their oldest turns") {
  using Messages = std::vector<ChatMessage>;
  const auto letters = [](std::span<const ChatMessage> m) {
    std::int64_t n = 0;
    for (const ChatMessage& one : m) n += static_cast<std::int64_t>(one.content.size());
    return n;
  };
  const auto roles = [](const Messages& m) {
    std::string out;
    for (const ChatMessage& one : m) out += concat_text(one.role[0], one.content, " ");
    return out;
  };
  const Messages all{{"system", "S"},      {"user", "aa"}, {"assistant", "bb"}, {"tool", "t"},
                     {"assistant", "bbb"}, {"user", "cc"}, {"assistant", "dd"}, {"user", "ee"}};
  const auto dropped = [&](std::int64_t limit, std::size_t count) {
    Messages m = all;
    CHECK(drop_oldest_turns(m, limit, letters) == count);
    return roles(m);
  };
  CHECK(dropped(100, 0) == roles(all));
  CHECK(dropped(15, 0) == roles(all));
  CHECK(dropped(14, 4) == "sS ucc add uee ");
  CHECK(dropped(7, 4) == "sS ucc add uee ");
  CHECK(dropped(6, 6) == "sS uee ");
  CHECK(dropped(1, 6) == "sS uee ");  // the last question stays
  Messages alone{{"user", "long"}};
  CHECK(drop_oldest_turns(alone, 1, letters) == 0);
  Messages nothing;
  CHECK(drop_oldest_turns(nothing, -1, letters) == 0);
  CHECK(answer_room(4096, 0) == 512);
  CHECK(answer_room(100, 0) == 25);
  CHECK(answer_room(100, 30) == 30);
  CHECK(answer_room(100, 90) == 50);
}

}  // namespace rlx
