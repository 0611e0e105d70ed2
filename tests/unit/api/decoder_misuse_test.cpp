// Misuse of decoders and of the classes that they are built of.
#include "rlx/formats/json.h"
#include "rlx/formats/safetensors.h"
#include "rlx/formats/safetensors_folder.h"
#include "rlx/generation/conversation.h"
#include "rlx/generation/conversation_file.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/grammar/answer_grammar.h"
#include "rlx/generation/language_model.h"
#include "rlx/models/decoder.h"
#include "rlx/models/decoder/decoder_fingerprint.h"
#include "rlx/models/decoder/gguf_decoder.h"
#include "rlx/models/decoder_model.h"
#include "rlx/models/memory_check.h"
#include "rlx/models/rope_frequencies.h"
#include "rlx/runtime/session.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

namespace {
const std::string kNoFolder = "/no_such_folder";
using rlx::test::kHigh;
using rlx::test::kLow;

std::shared_ptr<SafetensorsFile> one_tensor(const test::TempDir& folder) {
  write_safetensors(folder.file("model.safetensors"),
                    std::vector<NamedTensor>{{"w.weight", Tensor::zeros(Shape({2, 3}, DType::F32))}});
  return SafetensorsFile::open(folder.file("model.safetensors"));
}
DecoderConfig small_config() {
  return parse_decoder_config(JsonDocument::parse(test::decoder_reference("llama2").config, "c.json"));
}
}  // namespace

TEST_CASE("misuse: safetensors folders") {
  REFUSED("does not exist", SafetensorsFolder::open(kNoFolder));
  REFUSED("does not exist", SafetensorsFolder::open(""));
  const test::TempDir folder;
  REFUSED("holds no model.safetensors", SafetensorsFolder::open(folder.path()));
  REFUSED("is not a folder", SafetensorsFolder::open(folder.write("file", "x")));
  (void)one_tensor(folder);
  const auto f = SafetensorsFolder::open(folder.path());
  CHECK_FALSE(f->find("").has_value());
  CHECK_FALSE(f->identity("").has_value());
  f->drop_pages("", 0, ~std::size_t{0});
  f->drop_pages("w.weight", ~std::size_t{0}, ~std::size_t{0});
  CHECK(f->find("w.weight")->size_bytes == 24);
}

TEST_CASE("misuse: flows") {
  Graph g("g"), other("other");
  REFUSED("no loader", Flow(g, ModelWeights{}));
  Flow declared(g, DType::F64);
  CHECK_FALSE(declared.has("w.weight"));
  CHECK(declared.weight("v", {2, 3}).shape() == Shape({2, 3}, DType::F64));
  CHECK(test::error_text([&] { declared.finish("a model"); }).empty());
  (void)declared.weight("v", {3, 2});
  REFUSED("a model: 'v' is [2, 3], expected [3, 2]", declared.finish("a model"));
  REFUSED("decoder_misuse_test.cpp", declared.linear(g.input("flat", Shape({4, 5}, DType::F32)), "l", -1));
  const test::TempDir folder;
  Flow flow(g, {one_tensor(folder), "the file"});
  CHECK_FALSE(flow.has(""));
  REFUSED("", flow.weight("a", {-1}));
  REFUSED("an empty Expr", flow.embed("e", Expr(), 2, 3));
  REFUSED("belongs to", flow.embed("e", other.input("i", Shape({2}, DType::I32)), 2, 3));
  REFUSED("an empty Expr", flow.linear(Expr(), "l", 2));
  REFUSED("an empty Expr", flow.linear_of_heads(Expr(), "l", 2, 2));
  REFUSED("linear_of_heads: the number and the size of heads",
          flow.linear_of_heads(g.input("y", Shape({1, 4}, DType::F32)), "l", 0, 2));
  REFUSED("", flow.linear(g.input("scalar", Shape({}, DType::F32)), "l", 2));
  REFUSED("", flow.linear(g.input("any", Shape({g.symbol("n")}, DType::F32)), "l", 2));
  REFUSED("an empty Expr", flow.norm(Expr(), "n", NormKind::Rms, 1e-6));
  REFUSED("no expert names were given", flow.experts({}, 2, 3));
  REFUSED("", flow.experts({"x"}, -2, 3));
  REFUSED("the file", flow.finish("a model"));
  REFUSED("belongs to no part of a model: 'w.weight'", flow.finish("a model"));
  CHECK(flow.weight("w.weight", {2, 3}).shape() == Shape({2, 3}, DType::F32));
  REFUSED("does not exist", open_weights(kNoFolder));
  REFUSED("'a' is given twice", weights_in_memory({{"a", Tensor()}, {"a", Tensor()}}));
  Graph one("one");
  one.set_outputs({one.input("x", Shape({1}, DType::F32)) + 1.0});
  CompiledGraph program = Session().compile(std::move(one));
  REFUSED("has no checkpoint", declared.load(program));
  REFUSED("no loader", Flow::trainable(g, ModelWeights{}));
  REFUSED("Flow::trainable", declared.trained_weights(program));
  Graph training("training");
  Flow trained = Flow::trainable(training, 1);
  REFUSED("are states, not params", trained.load(program));
  (void)trained.weight("w", {2});
  REFUSED("'w'", trained.trained_weights(program));
  REFUSED("'w.weight' is [2, 3], expected [3, 2]", (flow.weight("w.weight", {3, 2}), flow.finish("")));
}

TEST_CASE("misuse: decoders") {
  CHECK(rope_scaling_name(static_cast<RopeScaling>(77)) == "unknown");
  REFUSED("c.json", parse_decoder_config(JsonDocument::parse("{}", "c.json")));
  REFUSED("c.json", parse_decoder_config(JsonDocument::parse("[]", "c.json")));
  REFUSED("c.json", parse_decoder_of_texts(JsonDocument::parse("[]", "c.json")));
  REFUSED(kNoFolder, read_decoder_config(kNoFolder));
  const RopeSpec plain{.rotated = 8};
  REFUSED("must be even", rope_frequencies({}, 1));
  REFUSED("must be even", rope_frequencies({.rotated = 3}, 1));
  REFUSED("must be even", rope_frequencies({.rotated = kHigh - 1}, 1));
  REFUSED("the context", rope_frequencies(plain, 0));
  REFUSED("the context", rope_frequencies(plain, kHigh));
  REFUSED("theta", rope_frequencies({.theta = -1, .rotated = 8}, 1));
  REFUSED("longrope", rope_frequencies({.rotated = 8, .scaling = RopeScaling::Long, .original_context = 3}, 1));
  REFUSED("trained for", rope_frequencies({.rotated = 8, .scaling = RopeScaling::Yarn}, 1));
  REFUSED("factor", rope_frequencies({.rotated = 8, .scaling = RopeScaling::Linear, .factor = 0}, 1));

  const test::TempDir folder;
  const ModelWeights weights{one_tensor(folder), "the file"};
  REFUSED("vocab_size", build_decoder({}, weights, {}));
  REFUSED("vocab_size", decoder_cache_bytes({}, {}));
  CHECK(longest_window({}) == 0);
  DecoderConfig c = small_config();
  REFUSED("no loader", build_decoder(c, {}, {}));
  REFUSED("the file: the file has 1 tensors", build_decoder(c, weights, {}));
  for (std::int64_t DecoderGraphOptions::*size :
       {&DecoderGraphOptions::sequences, &DecoderGraphOptions::context, &DecoderGraphOptions::max_tokens,
        &DecoderGraphOptions::page, &DecoderGraphOptions::pages_per_sequence, &DecoderGraphOptions::pages})
    for (const std::int64_t value : {std::int64_t{0}, kLow, kHigh}) {
      DecoderGraphOptions o;
      o.*size = value;
      REFUSED("must be in", build_decoder(c, weights, o));
    }
  REFUSED("layers with sliding windows", build_decoder(c, weights, {.window_page = -1}));
  REFUSED("layers with sliding windows", build_decoder(c, weights, {.window_pages = 1}));
  REFUSED("layers with sliding windows", build_decoder(c, weights, {.window_page = 4}));
  REFUSED("layers with sliding windows", build_decoder(c, weights, {.window_page = 4, .window_pages = kHigh}));
  REFUSED("does not fit in", build_decoder(c, weights, {.context = 5, .page = 2, .pages_per_sequence = 2}));
  REFUSED("the KV cache must be", build_decoder(c, weights, {.cache_dtype = DType::I8}));
  REFUSED("77 is not a DType", build_decoder(c, weights, {.cache_dtype = test::kNoDType}));
  REFUSED("blocks", build_decoder(c, weights, {.cache_scheme = QuantScheme::Q4_K}));
  REFUSED("blocks", build_decoder(c, weights, {.cache_scheme = QuantScheme::Q8_0}));  // head_dim 16
  c.kv_heads = 3;
  REFUSED("must divide", build_decoder(c, weights, {}));
  c = small_config(), c.layers[0].rope = 5;
  REFUSED("rope 5", build_decoder(c, weights, {}));
  c = small_config(), c.layers[0].moe = true;
  REFUSED("experts", build_decoder(c, weights, {}));
  c = small_config(), c.layers.clear();
  REFUSED("no layers", build_decoder(c, weights, {}));
  // With latent attention only a part of each head is for the rope.
  c = parse_decoder_config(JsonDocument::parse(test::decoder_reference("deepseek_v2_lite").config, "c.json"));
  c.ropes.at(0).rotated = c.head_dim + 2;
  REFUSED(concat_text("a head has only ", c.mla.value().rope_dim), build_decoder(c, weights, {}));
}

TEST_CASE("misuse: decoders of gguf files") {
  REFUSED("no file was given", gguf_weights(nullptr));
  const std::string none = test::GgufBytes().text("general.architecture", "").bytes();
  REFUSED("supported are", read_decoder_config(*GgufFile::from_bytes(std::as_bytes(std::span(none)), "f.gguf")));
}

TEST_CASE("misuse: caches of keys and values") {
  REFUSED("must be in", KvCache(0, 1, 1, 1));
  REFUSED("must be in", KvCache(1, kHigh, 1, 1));
  REFUSED("must be in", KvCache(1, 1, kLow, 1));
  REFUSED("must be in", KvCache(1, 1, 1, -1));
  REFUSED("cannot hold one sequence", KvCache(1, 9, 4, 2));
  REFUSED("exceed 2^31 tokens", KvCache(1, 1 << 20, 1 << 20, 1 << 12));
  KvCache c(2, 8, 4, 3);
  for (const std::int64_t s : {std::int64_t{-1}, std::int64_t{2}, kHigh, kLow}) {
    REFUSED("there is no sequence", c.length(s));
    REFUSED("there is no sequence", c.append(s, 1));
    REFUSED("there is no sequence", c.truncate(s, 0));
    REFUSED("there is no sequence", c.slot(s, 0));
    REFUSED("there is no sequence", c.table(s));
    REFUSED("there is no sequence", c.held(s));
    REFUSED("there is no sequence", c.shortest(s));
    REFUSED("there is no sequence", c.adopt(s, {}));
  }
  REFUSED("cannot append -1", c.append(0, -1));
  REFUSED("the context is full", c.append(0, 9));
  REFUSED("the context is full", c.append(0, kHigh));
  REFUSED("cannot be truncated to 1", c.truncate(0, 1));
  REFUSED("cannot be truncated to -1", c.truncate(0, -1));
  REFUSED("no token at position 0", c.slot(0, 0));
  REFUSED("no token at position -1", c.slot(0, -1));
  c.append(0, 5);
  REFUSED("1 are free", c.append(1, 8));
  CHECK(c.length(1) == 0);
  REFUSED("has 5 tokens", c.adopt(0, {}));
  REFUSED("page 2 is free", c.adopt(1, KvPages{{2}}));
  REFUSED("do not fit in a context", c.adopt(1, KvPages{{0, 1, 1}}));
  c.pool().retain(c.table(0)[1]);
  REFUSED("is shared", c.append(0, 1));
}

TEST_CASE("misuse: pages of windows") {
  REFUSED("each must be in", KvWindows::pages_for(1, 1, 0, 1, 1));
  REFUSED("each must be in", KvWindows::pages_for(kHigh, 1, 1, 1, 1));
  REFUSED("each must be in", KvWindows(1, kLow, 1, 1, 1));
  REFUSED("are not a valid cache", KvWindows(1, 8, 4, 4, 0));
  REFUSED("are not a valid cache", KvWindows(1, 8, 4, 1 << 20, 1 << 12));
  KvWindows w(2, 32, 4, 4, 5);
  for (const std::int64_t s : {std::int64_t{-1}, std::int64_t{2}, kHigh, kLow}) {
    const KvRun run[] = {{s, 0, 1}};
    REFUSED("there is no sequence", w.first(s));
    REFUSED("there is no sequence", w.table(s));
    REFUSED("there is no sequence", w.slot(s, 0));
    REFUSED("there is no sequence", w.shortest(s));
    REFUSED("there is no sequence", w.make_room(run));
    REFUSED("there is no sequence", w.reserve(run));
    REFUSED("there is no sequence", w.adopt(s, 0, 0, {}));
    REFUSED("there is no sequence", w.begin(s, 0));
    REFUSED("there is no sequence", w.truncate(s, 0));
  }
  CHECK(w.first_needed(kHigh) > 0);
  const auto reserve = [&](std::int64_t s, std::int64_t done, std::int64_t count) {
    const KvRun run[] = {{s, done, count}};
    w.reserve(run);
  };
  REFUSED("cannot take 0 tokens at position 0", reserve(0, 0, 0));
  REFUSED("cannot take 1 tokens at position 5", reserve(0, 5, 1));
  REFUSED("needs 1 more of its 5 pages", reserve(0, 0, 24));
  reserve(0, 0, 18);
  REFUSED("not token 20", w.slot(0, 20));
  REFUSED("of 32 tokens, so it cannot take", reserve(0, 18, 15));
  REFUSED("cannot start from shared pages", w.adopt(0, 0, 0, {}));
  REFUSED("cannot continue 8 tokens", w.adopt(1, 8, 2, {}));
  REFUSED("page 9", w.adopt(1, 8, 1, std::vector<PageId>{9}));
  REFUSED("cannot start with 33", w.begin(1, 33));
  REFUSED("begin at token 6 on", w.begin(1, 8, 6));
  const PageId last = w.table(0).back();
  w.pool().retain(last);
  REFUSED("is shared", reserve(0, 18, 1));
  w.pool().release(last);
  w.begin(1, 12);  // the other sequence frees the pages outside its window
  CHECK(w.first(0) == 2);
  CHECK(w.first(1) == 1);
  CHECK(w.shortest(0) == 11);
  REFUSED("it cannot be truncated to 10, only to 0 or to at least 11", w.truncate(0, 10));
  REFUSED("not token 7", w.slot(0, 7));
  w.truncate(0, 11);
  w.truncate(0, 0);
  CHECK(w.table(0).empty());
  while (w.pool().alloc()) {
  }
  REFUSED("2 of its 5 pages are needed, 0 are free", w.begin(0, 12));
}

TEST_CASE("misuse: models of decoders") {
  REFUSED(kNoFolder, DecoderModel::load(kNoFolder));
  const test::TempDir folder;
  test::write_model(folder, test::decoder_reference("llama2"));
  for (std::int64_t DecoderOptions::*size :
       {&DecoderOptions::context, &DecoderOptions::sequences, &DecoderOptions::max_tokens, &DecoderOptions::page,
        &DecoderOptions::pages})
    for (const std::int64_t value : {std::int64_t{-1}, kHigh}) {
      DecoderOptions o;
      o.*size = value;
      REFUSED("must be in", DecoderModel::load(folder.path(), o));
    }
  DecoderModel m = DecoderModel::load(folder.path(), {.context = 8});
  const std::vector<TokenId> tokens{1, 2, 3}, outside{1, 96}, negative{-1}, many(9, 0);
  REFUSED("has no tokens", m.forward(std::span<const TokenId>()));
  REFUSED("no tokens were given", m.forward(std::span<const SequenceTokens>()));
  REFUSED("token 1 of sequence 0 is 96", m.forward(outside));
  REFUSED("ids 0 to 95", m.forward(negative));
  REFUSED("the context is full: sequence 0 has 0 of 8 tokens and cannot take 9 more", m.forward(many));
  const SequenceTokens twice[] = {{0, tokens}, {0, tokens}}, nowhere[] = {{1, tokens}}, below[] = {{-1, tokens}};
  const SequenceTokens adapted[] = {{0, tokens, -1, 0}};
  REFUSED("there is no adapter 0: the model has 0", m.forward(adapted));
  REFUSED("has no name", DecoderModel::load(folder.path(), {.adapters = {{"", {{folder.path()}}}}}));
  const SequenceTokens few[] = {{0, tokens, 4}}, fewer[] = {{0, tokens, -2}};
  REFUSED("has 3 tokens, but logits of 4 were asked for", m.forward(few));
  REFUSED("logits of -2 were asked for", m.forward(fewer));
  REFUSED("given twice", m.forward(twice));
  REFUSED("there is no sequence 1", m.forward(nowhere));
  REFUSED("there is no sequence -1", m.forward(below));
  REFUSED("there is no sequence 1", m.length(1));
  REFUSED("has no tokens", m.profile({}));
  REFUSED("ids 0 to 95", m.profile(negative));
  REFUSED("the context is full", m.profile(many));
  REFUSED("tokens exceed the", m.profile(std::vector<TokenId>(513, 0)));
  REFUSED("cannot be truncated", m.truncate(1));
  REFUSED("no state 'cache.q.0'", m.write_cache("cache.q.0", Tensor(), {0, 1}));
  REFUSED("cache.k.0", m.write_cache("cache.k.0", Tensor::zeros(Shape({1, 3}, DType::F32)), {0, 1}));
  REFUSED("cache.k.0", m.write_cache("cache.k.0", Tensor::zeros(Shape({9, 64}, DType::F32)), {0, 9}));
  REFUSED("there is no sequence", m.truncate(0, kLow));
  CHECK(m.length() == 0);
  CHECK(m.forward(tokens, static_cast<LogitRows>(77)).dim(0) == 1);
  DecoderModel taken = std::move(m);
  const std::string moved = "a DecoderModel was used after it was moved from";
  // NOLINTBEGIN(bugprone-use-after-move)
  REFUSED(moved, m.forward(tokens));
  REFUSED(moved, m.length());
  REFUSED(moved, m.truncate(0));
  REFUSED(moved, m.reset());
  REFUSED(moved, m.config());
  REFUSED(moved, m.context());
  REFUSED(moved, m.max_tokens());
  REFUSED(moved, m.adapters());
  REFUSED(moved, m.cache());
  REFUSED(moved, m.cache_bytes());
  REFUSED(moved, m.program());
  REFUSED(moved, m.profile(tokens));
  REFUSED(moved, m.options());
  REFUSED(moved, m.packed_weights());
  REFUSED(moved, m.config_fingerprint());
  REFUSED(moved, m.weights_fingerprint());
  REFUSED(moved, m.sources_fingerprint());
  REFUSED(moved, m.write_cache("cache.k.0", Tensor(), {0, 1}));
  m = std::move(taken);  // operator=
  // NOLINTEND(bugprone-use-after-move)
  CHECK(m.length() == 3);
}

TEST_CASE("misuse: engines") {
  REFUSED("FinishReason", finish_reason_name(static_cast<FinishReason>(99)));
  CHECK_FALSE(is_gguf_path("no such file"));
  REFUSED(kNoFolder, load_language_model(kNoFolder));
  const test::TempDir folder;
  test::write_model(folder, test::decoder_reference("llama2"));
  REFUSED("tokenizer.json", load_language_model(folder.path()));
  DecoderOptions o;
  o.context = 16;
  REFUSED(kNoFolder, load_draft_model(kNoFolder, o, DecoderModel::load(folder.path(), o)));
  Engine e(DecoderModel::load(folder.path(), o), nullptr);
  const std::vector<TokenId> three{1, 2, 3}, long_one(16, 1);
  REFUSED("has no tokens", e.submit({}, {}));
  REFUSED("is -1", e.submit(std::vector<TokenId>{1, -1}, {}));
  REFUSED("no room for an answer", e.submit(long_one, {}));
  GenerationOptions options;
  options.max_new_tokens = -1;
  REFUSED("max_new_tokens", e.submit(three, options));
  options.max_new_tokens = 1;
  options.stop = {"x"};
  REFUSED("need a tokeniser", e.submit(three, options));
  options.stop.clear();
  options.sampling.top_p = 0;
  REFUSED("top_p", e.submit(three, options));
  CHECK(e.idle());
  CHECK(e.step().empty());
  REFUSED("the KV cache cannot have the type", set_cache_type(o, "f8"));
  REFUSED("matmul precision", matmul_precision_named("int3", "model.gguf"));
  (void)e.idle_model().forward(three);
  options.sampling.top_p = 1;
  REFUSED("tokens", e.submit(three, options));
  e.idle_model().reset();
  CHECK(e.generate(three, options, [](std::string_view) { return false; }).empty());
  EngineOptions drafting;
  drafting.draft.lookup = -1;
  REFUSED("lookup must be 0 or more, got -1", Engine(DecoderModel::load(folder.path(), o), nullptr, drafting));
  Engine other = std::move(e);
  const std::string moved = "an Engine was used after it was moved from";
  REFUSED(moved, e.submit(three, {}));
  REFUSED(moved, e.cancel(1));
  REFUSED(moved, e.step());
  REFUSED(moved, e.idle());
  REFUSED(moved, e.statistics());
  REFUSED(moved, e.model());
  REFUSED(moved, e.tokenizer());
  REFUSED(moved, e.generate(three, options, [](std::string_view) { return true; }));
  REFUSED(moved, e.save(folder.file("c"), {}));
  REFUSED(moved, e.load(folder.file("c")));
}

TEST_CASE("misuse: fingerprints and memory of decoders") {
  DecoderConfig c = small_config();
  c.ropes[0].rotated = 3;
  REFUSED("rotat", config_fingerprint(c, 8));
  const test::TempDir folder;
  const auto file = one_tensor(folder);
  const std::vector<std::string> names{"w.weight", "v.weight"};
  REFUSED("have no tensor 'v.weight'", weights_fingerprint(*file, names));
  CHECK(sources_fingerprint(*file, names) == Fingerprint());
  CHECK(sources_fingerprint(*file, std::vector<std::string>{"w.weight"}) != Fingerprint());
  c = small_config();
  REFUSED("no loader", least_memory(c, {}, {}, MatmulPrecision::Exact));
  DecoderGraphOptions wrong;
  wrong.pages = -1;
  REFUSED("pages must be in", least_memory(c, {file, "w"}, wrong, MatmulPrecision::Exact));
  REFUSED("pages must be in", program_memory(LirModule{Graph("g"), {}, Graph("p")}, c, wrong));
  MemoryNeed need;
  need.repacked = 1;
  CHECK(need.total() == 1);
  REFUSED("needs 0.0 MB", require_memory("", need, 0, c, {}));
  CHECK_FALSE(available_memory(folder.path()));
  CHECK_NOTHROW((void)available_memory(*Session().open_device()));
}

TEST_CASE("misuse: conversations") {
  const test::TempDir folder;
  test::write_model(folder, test::decoder_reference("llama2"));
  DecoderModel m = DecoderModel::load(folder.path(), {.context = 16});
  const std::string path = folder.file("c");
  const KvPages page{{0}}, none{{7}}, negative{{-1}};
  const Conversation c{{1, 2, 3}, {}};
  REFUSED("1 pages of 16 tokens", save_conversation(path, m, c, page, 17));
  REFUSED("1 pages of 16 tokens", save_conversation(path, m, c, page, kLow));
  REFUSED("cannot have a number of keys and values of 4", save_conversation(path, m, c, page, 4));
  REFUSED("page", save_conversation(path, m, c, none, 1));
  REFUSED("page", save_conversation(path, m, c, negative, 1));
  REFUSED("there is no sequence 5", save_conversation(path, m, c, 5));
  REFUSED("there is no sequence -1", load_conversation(path, m, -1));
  REFUSED("cannot open", load_conversation(path, m, 0));
  REFUSED("cannot open", ConversationFile::open("", m));
  save_conversation(path, m, c, page, 3);
  ConversationFile f = ConversationFile::open(path, m);
  REFUSED("keys and values for 3 tokens, but 4 were asked for", f.restore(m, page, 4));
  REFUSED("cannot hold", f.restore(m, page, -1));
  REFUSED("page", f.restore(m, none, 1));
  CHECK_FALSE(f.restores(4));
  CHECK_FALSE(f.restores(kLow));
  ConversationFile other = std::move(f);
  const std::string moved = "a ConversationFile was used after it was moved from";
  // NOLINTBEGIN(bugprone-use-after-move)
  REFUSED(moved, f.conversation());
  REFUSED(moved, f.cached());
  REFUSED(moved, f.first());
  REFUSED(moved, f.restores(1));
  REFUSED(moved, f.restore(m, page, 1));
  f = std::move(other);  // operator=
  // NOLINTEND(bugprone-use-after-move)
  CHECK(f.cached() == 3);
  std::vector<ChatMessage> messages{{"user", "x"}};
  REFUSED("the function that counts tokens is empty", drop_oldest_turns(messages, 1, {}));
  CHECK(answer_room(kLow, kLow) < 0);
  Engine e(std::move(m), nullptr, {0, false});
  REFUSED("without a prefix cache", e.save(path, c));
  REFUSED("without a prefix cache", e.load(path));
}

TEST_CASE("misuse: grammars of tokenisers") {
  const auto t = tokenizer_from_json(
      JsonDocument::parse(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}})", "t.json"));
  REFUSED("must have 1 to 2^30 tokens, got 0", token_bytes(*t, 0, {}));
  REFUSED("must have 1 to 2^30 tokens", token_bytes(*t, kHigh, {}));
  GrammarCache cache;
  Grammar grammar = Grammar::from_gbnf("root ::= \"x\"");
  const std::vector<TokenId> outside{2};
  REFUSED("end token 2", cache.masks(grammar, *t, 2, outside));
  REFUSED("no token of the vocabulary can follow", AnswerGrammar(cache.masks(grammar, *t, 2, {})));
  AnswerGrammar a(cache.masks(Grammar::from_gbnf("root ::= \" a\""), *t, 2, {}));
  REFUSED("token 1 is not allowed", a.accept(1));
  REFUSED("token", a.accept(2));
  REFUSED("token", a.accept(-1));
  CHECK(a.accept(0) == " a");
  CHECK(a.must_end());
  CHECK(a.flush().empty());
  const Grammar taken = std::move(grammar);
  REFUSED("moved from", cache.masks(grammar, *t, 2, {}));  // NOLINT(bugprone-use-after-move)
  const AnswerGrammar other = std::move(a);
  REFUSED("moved from", a.mask());  // NOLINT(bugprone-use-after-move)
}
