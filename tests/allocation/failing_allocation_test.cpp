// The n-th allocation fails, for every n: whatever was being made, the error is the promised one, what was there is
// unchanged, the same call repeated gives the right bits, and nothing is leaked.
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "rlx/formats/json.h"
#include "rlx/formats/npy.h"
#include "rlx/formats/safetensors.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/language_model.h"
#include "rlx/ir/verify.h"
#include "rlx/models/encoder/bert.h"
#include "rlx/models/reranker.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/rlx.h"
#include "rlx/threads/thread_pool.h"
#include "tests/allocation/failing_new.h"
#include "tests/support/encoder_reference.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_model.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::fail_each;
using test::Promise;
using test::Shortage;

constexpr Shortage kShortages[] = {Shortage::One, Shortage::Lasting};

void nothing() {}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// The first result, moved: a copy would be an allocation that is not rlx's.
std::vector<float> first_of(std::vector<std::vector<float>> results) { return std::move(results[0]); }

/// The first pass of expect_no_leak takes a sample of the allocations of a compile.
bool sampling = false;

/// Compiles copies of `graph` with every other allocation failing, those that the other shortage leaves out; the
/// allocations of the copies do not fail.
CompiledGraph compiled(Shortage shortage, const Session& session, const Graph& graph) {
  for (long n = shortage == Shortage::One ? 1 : 2;; n += sampling ? 202 : 2) {
    Graph mine = graph;
    std::optional<CompiledGraph> out;
    test::arm(n, shortage);
    try {
      out.emplace(session.compile(std::move(mine)));
      test::disarm();
    } catch (const Error& e) {
      test::disarm();
      if (e.code() != ErrorCode::OutOfMemory) FAIL("allocation " << n << " of compile failed as: " << e.what());
    }
    if (out && test::counted() < n) return std::move(*out);
  }
}

/// Runs `program` once for what it keeps for good (tables, threads), then asks that it leaves no block behind.
void expect_no_leak(const std::function<void()>& program) {
  sampling = true;
  program();
  sampling = false;
  const long before = test::live_blocks();
  program();
  CHECK(test::live_blocks() == before);
}

/// Calls `make` under failures and returns what it made when nothing failed.
template <class Make>
auto made(Shortage shortage, Promise promise, Make make) {
  std::optional<decltype(make())> result;
  fail_each(
      shortage, promise, [&] { result.emplace(make()); }, nothing);
  return std::move(*result);
}

/// Everything a program of one f32 input does under failures: compile, weights, runs; `graph` is built by calls that
/// may throw std::bad_alloc.
void expect_survives(const Graph& graph, const std::vector<NamedInput>& inputs, int threads) {
  const auto weights_of = [&](CompiledGraph& f, double scale) {
    std::vector<std::pair<std::string, std::vector<float>>> out;
    for (const IoInfo& p : f.params())
      out.emplace_back(p.name, test::sequence(p.shape.static_dims(), scale, 0.01, DType::F32).to_f32());
    return out;
  };
  CompiledGraph good = Session().with_threads(threads).compile(graph);
  const auto old_weights = weights_of(good, 0.02), new_weights = weights_of(good, 0.03);
  for (const auto& [name, values] : old_weights) good.set_param(name, values);
  const std::vector<float> old_result = good.run(inputs)[0];
  for (const auto& [name, values] : new_weights) good.set_param(name, values);
  const std::vector<float> new_result = good.run(inputs)[0];
  CHECK_FALSE(same_bits(old_result, new_result));

  for (const Shortage shortage : kShortages)
    expect_no_leak([&] {
      const Session session = made(shortage, Promise::OutOfMemory, [&] { return Session().with_threads(threads); });
      CompiledGraph f = compiled(shortage, session, graph);
      for (const auto& weight : old_weights)
        fail_each(
            shortage, Promise::OutOfMemory, [&] { f.set_param(weight.first, weight.second); }, nothing);
      std::vector<float> got;
      const auto run = [&] { got = first_of(f.run(inputs)); };
      fail_each(shortage, Promise::OutOfMemory, run, nothing);
      CHECK(same_bits(got, old_result));
      // A weight that could not be set still has its old value.
      const std::size_t num_cloned = std::min<std::size_t>(new_weights.size(), 2);
      for (const auto& weight : std::span(new_weights).first(num_cloned)) {
        CompiledGraph clone = made(shortage, Promise::OutOfMemory, [&] { return f.clone(); });
        fail_each(
            shortage, Promise::OutOfMemory, [&] { clone.set_param(weight.first, weight.second); },
            [&] {
              if (!same_bits(clone.run(inputs)[0], old_result)) FAIL("'" << weight.first << "' lost its old value");
            });
      }
      for (const auto& weight : new_weights)
        fail_each(
            shortage, Promise::OutOfMemory, [&] { f.set_param(weight.first, weight.second); }, nothing);
      fail_each(shortage, Promise::OutOfMemory, run, nothing);
      CHECK(same_bits(got, new_result));
    });
}

Graph hello() {
  Graph g("hello");
  auto x = g.input("x", {{1, 4}, DType::F32});
  auto w = g.param("w", {{4, 2}, DType::F32});
  g.set_outputs({g.matmul(x, w)});
  return g;
}

TEST_CASE("the first program, every allocation") {
  expect_survives(hello(), {{"x", {1, 2, 3, 4}}}, 1);
  expect_survives(hello(), {{"x", {1, 2, 3, 4}}}, 2);
}

TEST_CASE("builder calls leave the graph as it was") {
  for (const Shortage shortage : kShortages)
    expect_no_leak([&] {
      Graph g("built");
      const auto step = [&](const std::function<void()>& call) {
        const std::string before = print_text(g);
        fail_each(shortage, Promise::BadAlloc, call, [&] {
          if (print_text(g) != before) FAIL("a failed call changed the graph to " << print_text(g));
        });
      };
      // Each call succeeds once, after its failures.
      Expr x, w, y;
      std::optional<Dim> n;
      step([&] { n.emplace(g.symbol("rows_of_the_batch_in_this_run", {.min = 1, .max = 64})); });
      step([&] { x = g.input("an_input_with_a_long_name", {{*n, 4}, DType::F32}); });
      step([&] { w = g.param("a_param_with_a_long_name_too", {{4, 2}, DType::F32}); });
      step([&] { y = g.matmul(x, w); });
      step([&] { y = g.tanh(y); });
      step([&] { g.set_outputs({y}); });
      CHECK(g.num_nodes() == 4);
      CHECK(verify(g, Level::Mir).empty());
    });
}

Graph counting_loop() {
  Graph g("loop");
  auto s = g.state("total", Tensor::zeros(Shape({8, 16}, DType::F32)));
  auto x = g.input("x", {{8, 16}, DType::F32});
  auto next = g.add(g.mul(s, x), g.tanh(s));
  g.set_state("total", g.add(next, x));
  g.set_outputs({g.sum(next, {1})});
  return g;
}

TEST_CASE("a state loop: a failed run leaves the state as it was, or invalid until it is written") {
  const std::vector<NamedInput> inputs = {{"x", test::sequence({8, 16}, 0.3, 0.1, DType::F32).to_f32()}};
  constexpr int kRuns = 4;
  std::vector<std::vector<float>> want;
  const Graph graph = counting_loop();
  CompiledGraph good = Session().compile(graph);
  for (int i = 0; i < kRuns; ++i) want.push_back(good.run(inputs)[0]);
  for (const Shortage shortage : kShortages)
    for (const int threads : {1, 2})
      expect_no_leak([&] {
        const Session session = Session().with_threads(threads);
        CompiledGraph f = compiled(shortage, session, graph);
        for (int i = 0; i < kRuns; ++i) {
          const Tensor before = made(shortage, Promise::OutOfMemory, [&] { return f.read_state("total"); });
          std::vector<float> got;
          fail_each(
              shortage, Promise::OutOfMemory, [&] { got = first_of(f.run(inputs)); },
              [&] {
                const auto after = attempt([&] { return f.read_state("total"); });
                if (after.ok() && !after.value().identical(before)) {
                  // The call that ended well although an allocation failed has made its step.
                  CHECK(same_bits(got, want[static_cast<std::size_t>(i)]));
                }
                f.write_state("total", before);
              });
          CHECK(same_bits(got, want[static_cast<std::size_t>(i)]));
        }
        fail_each(
            shortage, Promise::OutOfMemory, [&] { f.reset(); }, nothing);
        CHECK(same_bits(f.run(inputs)[0], want[0]));
      });
}

Graph encoder_of_two_layers() {
  Graph g("encoder");
  Expr x = g.input("x", {{2, 8, 32}, DType::F32});
  ops::EncoderBlock block;
  block.num_heads = 2, block.head_dim = 16;
  for (const char* layer : {"l0.", "l1."}) {
    std::vector<Expr> operands{x};
    const auto param = [&](const char* name, Dims dims) {
      operands.push_back(g.param(concat_text(layer, name), {std::move(dims), DType::F32}));
    };
    for (const char* name : {"q", "k", "v", "o"}) {
      param(name, {32, 32});
      param(concat_text(name, "_bias").c_str(), {32});
    }
    param("g1", {32}), param("b1", {32}), param("up", {32, 64}), param("up_bias", {64});
    param("down", {64, 32}), param("down_bias", {32}), param("g2", {32}), param("b2", {32});
    x = g.encoder_block(block, operands);
  }
  g.set_outputs({x});
  return g;
}

TEST_CASE("an encoder of two layers, hidden size 32, every allocation") {
  expect_survives(encoder_of_two_layers(), {{"x", test::sequence({2, 8, 32}, 0.2, 0, DType::F32).to_f32()}}, 2);
}

TEST_CASE("inputs and handles keep their values, shapes their order") {
  Graph g("handles");
  auto n = g.symbol("n", {.min = 1, .max = 64});
  auto x = g.input("x", {{n, 4}, DType::F32});
  g.set_outputs({g.tanh(x), g.mul(x, x)});
  const std::vector<float> old_values(8, 0.5F), new_values(12, 0.25F);
  for (const Shortage shortage : kShortages)
    expect_no_leak([&] {
      CompiledGraph f = Session().with_threads(1).compile(g);
      fail_each(
          shortage, Promise::OutOfMemory, [&] { f.set_input("x", old_values); }, nothing);
      const auto old_result = f.run();
      // A set_input that fails changes nothing; one that got through is undone for the next try.
      fail_each(
          shortage, Promise::OutOfMemory, [&] { f.set_input("x", new_values); },
          [&] {
            if (f.read_handle("x").num_elements() != 12 && !same_bits(f.run()[0], old_result[0]))
              FAIL("the old input is lost");
          });
      CHECK(f.run()[0].size() == 12);
      fail_each(
          shortage, Promise::OutOfMemory,
          [&] {
            f.set_active_extent(ActiveExtent{2, 3});
          },
          nothing);
      CHECK(f.run()[0].size() == 8);
      f.set_active_extent(std::nullopt);
      const auto want = f.run();
      std::vector<TensorView> views;
      fail_each(
          shortage, Promise::OutOfMemory, [&] { views = f.run_raw(); }, nothing);
      CHECK(std::memcmp(views[1].data, want[1].data(), views[1].size_bytes) == 0);
      fail_each(
          shortage, Promise::OutOfMemory, [&] { f.bind_handle("out1", new_values); }, nothing);
      std::vector<std::vector<float>> got;
      fail_each(
          shortage, Promise::OutOfMemory, [&] { got = f.run(); }, nothing);
      CHECK(same_bits(got[1], want[1]));
    });
}

TEST_CASE("files: readers and writers say that memory is short, not that the file is bad") {
  test::TempDir dir;
  const Tensor values = test::sequence({3, 5}, 1, 0, DType::F32);
  std::string json = "{\"words\": [";
  for (int i = 0; i < 200; ++i) json += concat_text(i ? ", " : "", "\"word number ", i, "\"");
  json += "]}";
  const std::string json_path = dir.write("words.json", json), npy = dir.file("x.npy"), npz = dir.file("x.npz");
  const std::string safetensors = dir.file("x.safetensors");
  const std::vector<NamedTensor> named = {{"a_tensor_with_a_long_name", values}, {"b", values}};
  for (const Shortage shortage : kShortages)
    expect_no_leak([&] {
      const auto check_call = [&](const std::function<void()>& call) {
        fail_each(shortage, Promise::OutOfMemory, call, nothing);
      };
      check_call([&] { write_npy(npy, values); });
      CHECK(made(shortage, Promise::OutOfMemory, [&] { return read_npy(npy); }).identical(values));
      check_call([&] { write_npz(npz, named); });
      CHECK(made(shortage, Promise::OutOfMemory, [&] { return read_npz(npz); })[0].tensor.identical(values));
      check_call([&] { write_safetensors(safetensors, named); });
      const auto file = made(shortage, Promise::OutOfMemory, [&] { return SafetensorsFile::open(safetensors); });
      CHECK(std::memcmp(file->at("b").data, values.data(), values.size_bytes()) == 0);
      check_call([&] {
        const JsonDocument document = JsonDocument::read(json_path);
        if (document.root_object().at("words").elements("words").size() != 200) FAIL("words are missing");
      });
    });
}

TEST_CASE("tensors name what found no room, and an error can be made when nothing is left") {
  const Shape big({Dim(1000), Dim(1000)}, DType::F32);
  std::optional<ErrorCode> code;
  bool text = false;
  test::arm(1, Shortage::Lasting);
  try {
    (void)Tensor::zeros(big);
  } catch (const Error& e) {
    const Error copy = e;  // without memory
    code = copy.code();
    text = std::strlen(copy.what()) > 0 && !copy.diagnostic().message.empty();
  } catch (...) {
  }
  test::disarm();
  CHECK((code == ErrorCode::OutOfMemory));
  CHECK(text);
  bool named = false;
  for (long n = 1; n < 8 && !named; ++n) {
    test::arm(n, Shortage::One);
    try {
      (void)Tensor::zeros(big);
    } catch (const Error& e) {
      test::disarm();
      named = std::string_view(e.what()).find("4000000 bytes") != std::string_view::npos;
    }
    test::disarm();
  }
  CHECK(named);
}

TEST_CASE("threads that cannot be started are done without") {
  for (const Shortage shortage : kShortages)
    expect_no_leak([&] {
      std::optional<ThreadPool> pool;
      fail_each(
          shortage, Promise::BadAlloc, [&] { pool.emplace(1); }, nothing);
      std::atomic<long> total{0};
      fail_each(
          shortage, Promise::BadAlloc,
          [&] {
            total = 0;
            pool.emplace(1);
            pool->parallel_for(
                100, [&](std::int64_t c) { total.fetch_add(c); }, 8);
          },
          [&] { CHECK((total.load() == 4950 || total.load() == 0)); });
      CHECK(total.load() == 4950);
    });
  if (test::can_refuse_threads()) {
    const test::NoNewThreads refuse;
    ThreadPool pool(1);
    std::atomic<long> total{0};
    int threads = 0;
    pool.parallel_for(
        100,
        [&](std::int64_t c) {
          total.fetch_add(c);
          threads = run_threads();
        },
        8);
    CHECK(total.load() == 4950);
    CHECK(threads == 1);
  }
}

// How often `call` allocates.
long allocations_of(const std::function<void()>& call) {
  test::arm(std::numeric_limits<long>::max(), Shortage::One);
  call();
  test::disarm();
  return test::counted();
}

// Makes `call` with allocation `n` failing: it works, or fails for want of memory.
void fail_one(long n, Shortage shortage, const std::function<void()>& call) {
  test::arm(n, shortage);
  try {
    call();
    test::disarm();
  } catch (const Error& e) {
    test::disarm();
    if (e.code() != ErrorCode::OutOfMemory) FAIL("allocation " << n << " failed as: " << e.what());
  }
}

TEST_CASE("all-MiniLM-L6-v2: five hundred allocations spread over loading and embedding" *
          doctest::test_suite(test::kNeedsModel)) {
  const std::string folder = test::model_dir();
  if (folder.empty()) return test::skip("the model");
  const std::vector<std::string> texts = {"The cat sat on the mat.",
                                          "Thirty words and more make a longer line of text."};
  SentenceEncoderOptions options;
  options.num_threads = 2;
  const auto embed = [&](SentenceEncoder& e) { return e.embed(texts); };
  const auto want = [&] {
    SentenceEncoder good(folder, options);
    return embed(good);
  }();
  const auto loaded = [&] { return SentenceEncoder(folder, options); };
  const long load_allocations = allocations_of([&] { SentenceEncoder made_one(folder, options); });
  std::optional<SentenceEncoder> encoder(loaded());
  const long embed_allocations = allocations_of([&] { (void)embed(*encoder); });
  MESSAGE("loading allocates ", load_allocations, " times, a first embedding ", embed_allocations);
  constexpr long kLoads = 60, kEmbeds = 440;
  for (long i = 0; i < kLoads; ++i)
    fail_one(1 + load_allocations * i / kLoads, kShortages[i % 2], [&] { SentenceEncoder failing(folder, options); });
  // A failed embedding is made again by the same object, whose shapes are then known: every twentieth starts anew.
  for (long i = 0; i < kEmbeds; ++i) {
    if (i % 20 == 0) encoder.emplace(folder, options);
    const long n = 1 + embed_allocations * ((i * 37) % kEmbeds) / kEmbeds;
    fail_one(n, kShortages[i % 2], [&] { (void)embed(*encoder); });
    const auto again = embed(*encoder);
    if (!again.identical(want)) FAIL("after allocation " << n << " failed, the embedding is another");
  }
}

TEST_CASE("reranker: allocations spread over loading and scoring") {
  const test::FolderReference r = test::folder_reference("rerank_bert");
  const test::TempDir folder;
  test::write_folder(folder, r);
  const std::vector<std::string> passages = {r.pairs[0].second, r.pairs[1].second, r.pairs[3].second};
  RerankerOptions options;
  options.num_threads = 1;
  const auto score = [&](Reranker& x) { return x.score(r.pairs[0].first, passages); };
  std::optional<Reranker> reranker(std::in_place, folder.path(), options);
  const Tensor want = score(*reranker);
  const long loads = allocations_of([&] { Reranker made(folder.path(), options); });
  reranker.emplace(folder.path(), options);
  const long scores = allocations_of([&] { (void)score(*reranker); });
  constexpr long kTimes = 40;
  for (long i = 0; i < kTimes; ++i)
    fail_one(1 + loads * i / kTimes, kShortages[i % 2], [&] { Reranker failing(folder.path(), options); });
  for (long i = 0; i < kTimes; ++i) {
    if (i % 10 == 0) reranker.emplace(folder.path(), options);
    fail_one(1 + scores * i / kTimes, kShortages[i % 2], [&] { (void)score(*reranker); });
    CHECK(score(*reranker).identical(want));
  }
}

TEST_CASE("language models: allocations spread over loading, answering, saving and going on") {
  const test::TempDir folder;
  test::write_text_model(folder);
  DecoderOptions o;
  o.context = 192, o.page = kEnginePage, o.sequences = 2;
  const Session session = Session().with_threads(1);
  const std::string path = folder.path();
  const auto loaded = [&] {
    LanguageModel m = load_language_model(path, o, session);
    return Engine(std::move(m.decoder), m.tokenizer, {.draft = {.tokens = 3, .lookup = 1}});
  };
  constexpr long kLoads = 40, kAnswers = 400;
  const long loads = allocations_of([&] { (void)loaded(); });
  for (long i = 0; i < kLoads; ++i) fail_one(1 + loads * i / kLoads, kShortages[i % 2], [&] { (void)loaded(); });

  const std::vector<TokenId> prompts[2] = {std::vector<TokenId>(70, 5), {7, 8, 9}};
  GenerationOptions options[2];
  options[0].sampling.seed = 3, options[0].max_new_tokens = 12, options[0].stop = {"zzzz"}, options[0].logprobs = 2;
  options[0].sampling.mirostat = 2;
  options[1].sampling.seed = 4, options[1].max_new_tokens = 24;
  options[1].grammar = Grammar::from_gbnf("root ::= [a-e]+ \"x\"? [0-9]*", "g");
  const std::string file = folder.file("c.rlxchat");
  struct Told {
    std::vector<TokenId> tokens[2];
    bool failed = false, ended[2] = {false, false};
  };
  // Two answers, step by step; what the test itself makes is made before.
  const auto answers = [&](Engine& e, Told& told, RequestId* ids) {
    for (int i = 0; i < 2; ++i)
      if (ids[i] == 0) ids[i] = e.submit(prompts[i], options[i]);
    while (!e.idle())
      for (const GenerationEvent& event : e.step()) {
        const int i = event.request == ids[0] ? 0 : 1;
        if (event.token >= 0 && !event.problem) told.tokens[i].push_back(event.token);
        if (event.problem && event.problem->code != ErrorCode::OutOfMemory) FAIL(event.problem->message);
        told.failed = told.failed || event.problem.has_value();
        told.ended[i] = told.ended[i] || event.finish != FinishReason::None;
      }
  };
  const auto fresh = [] {
    Told told;
    for (auto& tokens : told.tokens) tokens.reserve(64);
    return told;
  };
  std::optional<Engine> engine(loaded());
  Told want = fresh();
  RequestId first_ids[2] = {0, 0};
  const long steps = allocations_of([&] { answers(*engine, want, first_ids); });
  REQUIRE(want.tokens[0].size() == 12);
  REQUIRE(want.tokens[1].size() > 2);
  Conversation said{prompts[0]};
  said.tokens.insert(said.tokens.end(), want.tokens[0].begin(), want.tokens[0].end());
  const long saves = allocations_of([&] { (void)engine->save(file, said); });
  int failed_answers = 0, failed_steps = 0;
  for (long i = 0; i < kAnswers; ++i) {
    if (i % 10 == 0) engine.emplace(loaded());
    Told told = fresh();
    RequestId ids[2] = {0, 0};
    const long n = 1 + steps * i / kAnswers;
    test::arm(n, kShortages[i % 2]);
    try {
      answers(*engine, told, ids);
      test::disarm();
    } catch (const Error& e) {
      test::disarm();
      ++failed_steps;
      if (e.code() != ErrorCode::OutOfMemory) FAIL("allocation " << n << " failed as: " << e.what());
    }
    answers(*engine, told, ids);  // goes on where it stopped
    CAPTURE(n);
    for (int r = 0; r < 2; ++r) {
      CHECK(told.ended[r]);
      if (told.tokens[r] != want.tokens[r]) {
        CHECK(told.failed);
        CHECK(told.tokens[r].size() < want.tokens[r].size());
        CHECK(std::equal(told.tokens[r].begin(), told.tokens[r].end(), want.tokens[r].begin()));
      }
    }
    failed_answers += told.failed;
    KvCache& cache = engine->idle_model().cache();
    CHECK(cache.free_pages() == cache.pages());
    Told again = fresh();
    RequestId more[2] = {0, 0};
    answers(*engine, again, more);
    CHECK(again.tokens[0] == want.tokens[0]);
    CHECK(again.tokens[1] == want.tokens[1]);
  }
  CHECK(failed_steps > kAnswers / 10);
  CHECK(failed_answers < kAnswers / 2);
  for (long i = 0; i < saves; i += 1 + saves / 60) {
    fail_one(1 + i, kShortages[i % 2], [&] { (void)engine->save(file, said); });
    fail_one(1 + i, kShortages[i % 2], [&] { (void)engine->load(file); });
    CHECK(engine->load(file).tokens == said.tokens);
    KvCache& cache = engine->idle_model().cache();
    CHECK(cache.free_pages() == cache.pages());
  }
}

}  // namespace
}  // namespace rlx
