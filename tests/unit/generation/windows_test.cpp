// Layers with a sliding window keep only the last keys of a sequence: every bit equals that of a cache that keeps all
// keys.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <random>

#include "rlx/generation/conversation_file.h"
#include "rlx/generation/engine.h"
#include "rlx/models/memory_check.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/random_tokens.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

std::vector<TokenId> said(unsigned seed, std::size_t size) { return test::random_tokens(seed, size, 64); }

struct WindowModel {
  explicit WindowModel(const std::string& name) { test::write_model(folder, test::decoder_reference(name)); }
  DecoderModel load(DecoderOptions o, bool whole = false) const {
    if (o.context == 0) o.context = 900;
    if (o.max_tokens == DecoderOptions{}.max_tokens) o.max_tokens = 40;
    o.whole_windows = whole;
    DecoderModel m = DecoderModel::load(folder.path(), o);
    CHECK((m.cache().windows() == nullptr) == whole);
    return m;
  }
  test::TempDir folder;
};
const std::string kWindowModels[] = {"gemma2", "gemma3", "gpt_oss", "mistral", "phi3_short", "qwen2_window"};

}  // namespace

TEST_CASE("windows: prompts, chunks and steps have the bits of a cache that keeps all") {
  for (const std::string& name : kWindowModels) {
    CAPTURE(name);
    const WindowModel files(name);
    for (const std::int64_t page : {std::int64_t{0}, std::int64_t{4}, std::int64_t{64}}) {
      CAPTURE(page);
      DecoderOptions o;
      o.page = page, o.sequences = 2;
      DecoderModel whole = files.load(o, true), last = files.load(o);
      CHECK(last.cache_bytes() < whole.cache_bytes());
      CHECK(last.cache_bytes() == decoder_cache_bytes(last.config(), [&] {
              DecoderGraphOptions g;
              g.context = 900, g.sequences = 2, g.page = whole.cache().page(), g.pages = whole.cache().pages();
              g.pages_per_sequence = whole.cache().pages_per_sequence();
              g.window_page = last.cache().windows()->page(), g.window_pages = last.cache().windows()->pages();
              return g;
            }()));
      const std::vector<TokenId> a = said(1, 700), b = said(2, 700);
      std::size_t done = 0;
      for (const std::size_t count : {std::size_t{1}, std::size_t{350}, std::size_t{1}, std::size_t{7}, std::size_t{1},
                                      std::size_t{200}, std::size_t{1}, std::size_t{50}}) {
        const std::vector<SequenceTokens> parts{{0, std::span(a).subspan(done, count)},
                                                {1, std::span(b).subspan(done, count)}};
        const Tensor wanted = whole.forward(parts);
        CHECK(test::same_bits(last.forward(parts), wanted));
        done += count;
      }
      for (std::int64_t s = 0; s < 2; ++s) {
        CHECK(last.length(s) == static_cast<std::int64_t>(done));
        CHECK(last.cache().shortest(s) > 0);
        CHECK(last.cache().shortest(s) < static_cast<std::int64_t>(done));
      }
      (void)last.profile(std::span(a).subspan(done, 20));
      CHECK(
          test::same_bits(last.forward(std::span(a).subspan(done, 20)), whole.forward(std::span(a).subspan(done, 20))));
    }
  }
}

TEST_CASE("windows: every type of cache") {
  const WindowModel files("gemma3");
  for (const DType dtype : {DType::BF16, DType::F16}) {
    DecoderOptions o;
    o.cache_dtype = dtype;
    DecoderModel whole = files.load(o, true), last = files.load(o);
    const std::vector<TokenId> text = said(3, 260);
    CHECK(test::same_bits(last.forward(text), whole.forward(text)));
  }
  // A model with windows whose heads fit into quantized blocks.
  test::DecoderReference wide = test::reference_of_wide_heads();
  const auto change = [&](const std::string& from, const std::string& to) {
    const std::size_t at = wide.config.find(from);
    REQUIRE(at != std::string::npos);
    wide.config.replace(at, from.size(), to);
  };
  change("\"full_attention\",\"full_attention\"", "\"full_attention\",\"sliding_attention\"");
  change("\"sliding_window\":null", "\"sliding_window\":20");
  change("\"use_sliding_window\":false", "\"use_sliding_window\":true");
  const test::TempDir folder;
  test::write_model(folder, wide);
  for (const QuantScheme scheme : {QuantScheme::Q8_0, QuantScheme::Q4_0}) {
    DecoderOptions o;
    o.context = 400, o.max_tokens = 30, o.cache_scheme = scheme;
    o.whole_windows = true;
    DecoderModel whole = DecoderModel::load(folder.path(), o);
    o.whole_windows = false;
    DecoderModel last = DecoderModel::load(folder.path(), o);
    REQUIRE(last.cache().windows() != nullptr);
    const std::vector<TokenId> text = said(3, 260);
    CHECK(test::same_bits(last.forward(text), whole.forward(text)));
  }
}

TEST_CASE("windows: with adapters") {
  const test::AdapterReference adapter = test::adapter_reference("gemma2");
  const WindowModel files(adapter.of);
  const test::TempDir folder;
  test::write_adapter(folder, adapter);
  DecoderOptions o;
  o.page = 8, o.sequences = 2, o.adapters = {{"style", {{folder.path()}}}};
  DecoderModel whole = files.load(o, true), last = files.load(o);
  const std::vector<TokenId> a = said(1, 200), b = said(2, 170), more = said(3, 9);
  for (const std::vector<SequenceTokens>& parts :
       {std::vector<SequenceTokens>{{0, a, -1, 0}, {1, b}}, std::vector<SequenceTokens>{{1, more}, {0, more, -1, 0}}}) {
    const Tensor wanted = whole.forward(parts);
    CHECK(test::same_bits(last.forward(parts), wanted));
  }
}

TEST_CASE("windows: on another device") {
  const WindowModel files("qwen2_window");
  DecoderOptions o;
  o.context = 128, o.max_tokens = 8, o.page = 8;
  DecoderModel last = DecoderModel::load(files.folder.path(), o, Session::on_backend("reference"));
  REQUIRE(last.cache().windows() != nullptr);
  o.whole_windows = true;
  DecoderModel whole = DecoderModel::load(files.folder.path(), o, Session::on_backend("reference"));
  const std::vector<TokenId> text = said(1, 60);
  CHECK(test::same_bits(last.forward(text), whole.forward(text)));
  CHECK(last.cache().shortest(0) > 0);
}

TEST_CASE("windows: sequences are cut where the keys are there, and refused elsewhere") {
  const WindowModel files("gemma3");
  for (const std::int64_t page : {std::int64_t{0}, std::int64_t{64}, std::int64_t{4}}) {
    CAPTURE(page);
    DecoderOptions o;
    o.page = page;
    DecoderModel whole = files.load(o, true), last = files.load(o);
    const std::vector<TokenId> text = said(4, 560), more = said(5, 40);
    (void)whole.forward(text), (void)last.forward(text);
    const std::int64_t size = last.cache().windows()->page(), shortest = last.cache().shortest(0);
    CHECK(shortest <= 560 - size);  // at least one page can be taken back
    for (const std::int64_t length : {std::int64_t{559}, 560 - size, std::max(shortest, 560 - 2 * size), shortest}) {
      whole.reset(), last.reset();
      (void)whole.forward(text), (void)last.forward(text);
      REQUIRE(last.cache().shortest(0) == shortest);
      whole.truncate(length), last.truncate(length);
      CHECK(test::same_bits(last.forward(more), whole.forward(more)));
    }
    last.reset();
    (void)last.forward(text);
    last.truncate(shortest);
    const std::string text_of = error_text([&] { last.truncate(shortest - 1); });
    CHECK(contains(text_of,
                   concat_text("cannot be truncated to ", shortest - 1, ", only to 0 or to at least ", shortest)));
    CHECK(contains(text_of, "whole_windows"));
    CHECK(last.length() == shortest);
    last.truncate(0);
    CHECK(last.cache().windows()->pool().num_free() == last.cache().windows()->pages());
    whole.reset();
    CHECK(test::same_bits(last.forward(text), whole.forward(text)));
  }
}

TEST_CASE("windows: engines give the same tokens, with beginnings shared, drafts, few pages and conversations") {
  struct Case {
    const char* model;
    std::int64_t sequences, page, pages, max_tokens;
    bool drafts;
  };
  for (const Case& c :
       {Case{"gemma3", 3, 64, 0, 40, false}, Case{"gemma3", 3, 4, 0, 24, true}, Case{"mistral", 2, 16, 0, 40, true},
        Case{"gpt_oss", 4, 8, 70, 33, false}, Case{"gemma2", 1, 64, 0, 40, true}, Case{"gemma3", 2, 0, 0, 40, true}}) {
    CAPTURE(c.model);
    CAPTURE(c.page);
    const WindowModel files(c.model);
    DecoderOptions o;
    o.sequences = c.sequences, o.page = c.page, o.pages = c.pages, o.max_tokens = c.max_tokens;
    if (c.pages != 0) o.context = 500;
    std::map<RequestId, std::vector<TokenId>> answers[2];
    for (const bool whole : {true, false}) {
      EngineOptions options;
      if (c.drafts) options.draft.lookup = 2;
      std::optional<DraftModel> draft;
      if (c.drafts) draft = DraftModel{files.load(o, whole), nullptr};
      Engine e(files.load(o, whole), nullptr, options, std::move(draft));
      std::mt19937 rng(7);
      const std::vector<TokenId> common = said(8, 150);
      for (int round = 0; round < 2; ++round) {
        for (unsigned i = 0; i < 6; ++i) {
          std::vector<TokenId> prompt = said(100 + i, 10 + 20 * i);
          if (i % 2) prompt.insert(prompt.begin(), common.begin(), common.end());
          GenerationOptions g;
          g.sampling.seed = i;
          g.sampling.temperature = i % 3 ? 0.7F : 0.0F;
          g.max_new_tokens = 30 + 10 * i;
          (void)e.submit(prompt, g);
        }
        while (!e.idle())
          for (const GenerationEvent& event : e.step()) {
            CHECK_FALSE(event.problem.has_value());
            if (event.token >= 0) answers[whole][event.request].push_back(event.token);
          }
      }
      if (c.page != 0 && std::string(c.model) == "gemma3") CHECK(e.statistics().reused_tokens > 0);
      if (c.drafts) CHECK(e.statistics().drafted_tokens > 0);
      DecoderModel& m = e.idle_model();  // every page is free again
      CHECK(m.cache().free_pages() == m.cache().pages());
      if (const KvWindows* w = m.cache().windows()) CHECK(w->pool().num_free() == w->pages());
    }
    CHECK(answers[0] == answers[1]);
  }
}

TEST_CASE("windows: a conversation goes on where its window is in the cache") {
  const WindowModel files("gemma3");
  DecoderOptions o;
  o.page = 64;
  Engine e(files.load(o), nullptr);
  std::vector<TokenId> text = said(1, 200);
  for (int turn = 0; turn < 3; ++turn) {
    const std::int64_t before = e.statistics().reused_tokens, size = static_cast<std::int64_t>(text.size());
    GenerationOptions g;
    g.sampling.seed = 3, g.max_new_tokens = 20;
    (void)e.submit(text, g);
    while (!e.idle())
      for (const GenerationEvent& event : e.step()) text.push_back(event.token);
    if (turn > 0) CHECK(e.statistics().reused_tokens - before == (size - 31) / 64 * 64);
    const std::vector<TokenId> next = said(50 + static_cast<unsigned>(turn), 30);
    text.insert(text.end(), next.begin(), next.end());
  }
}

TEST_CASE("windows: conversations in files have the rows that are there") {
  const WindowModel files("gemma3");
  const std::string path = files.folder.file("c.rlxchat");
  const std::vector<TokenId> text = said(6, 430), more = said(7, 60);
  for (const std::int64_t page : {std::int64_t{0}, std::int64_t{64}, std::int64_t{4}}) {
    CAPTURE(page);
    DecoderOptions o;
    o.page = page;
    DecoderModel whole = files.load(o, true), last = files.load(o);
    (void)whole.forward(text), (void)last.forward(text);
    save_conversation(path, last, {text, {}}, 0);
    const Tensor wanted = whole.forward(more);
    for (const std::int64_t other : {std::int64_t{0}, std::int64_t{64}, std::int64_t{4}, std::int64_t{128}}) {
      if ((page == 4) != (other == 4)) continue;  // other page sizes give other bits
      CAPTURE(other);
      DecoderOptions p;
      p.page = other, p.sequences = 2, p.context = 1000;
      DecoderModel m = files.load(p);
      (void)m.forward(std::vector<SequenceTokens>{{0, more}});
      const Conversation got = load_conversation(path, m, 1);
      CHECK(got.tokens == text);
      REQUIRE(m.length(1) == 430);
      const std::int64_t shortest = m.cache().shortest(1);
      CHECK(shortest <= 430);
      CHECK(test::same_bits(m.forward(std::vector<SequenceTokens>{{1, more}}), wanted));
      m.truncate(std::max(shortest, m.cache().shortest(1)), 1);
      // A model that keeps whole windows loads the tokens and computes the keys again.
      DecoderModel all = files.load(p, true);
      CHECK(ConversationFile::open(path, all).cached() == 0);
      CHECK(load_conversation(path, all, 1).tokens == text);
      CHECK(all.length(1) == 0);
    }
    // A model without windows reads a file of such a model.
    whole.truncate(430);
    save_conversation(path, whole, {text, {}}, 0);
    last.reset();
    (void)load_conversation(path, last, 0);
    CHECK(test::same_bits(last.forward(more), wanted));
    last.reset();
    const ConversationFile file = ConversationFile::open(path, last);
    CHECK(file.first() == 0);
    CHECK(file.restores(100));
  }
  // With engines.
  DecoderOptions o;
  o.page = 64;
  GenerationOptions g;
  g.sampling.seed = 8, g.max_new_tokens = 60;
  const auto run = [&](Engine& e, const std::vector<TokenId>& prompt, std::int64_t count) {
    g.max_new_tokens = count;
    (void)e.submit(prompt, g);
    std::vector<TokenId> out;
    while (!e.idle())
      for (const GenerationEvent& event : e.step()) out.push_back(event.token);
    return out;
  };
  Engine first(files.load(o), nullptr);
  const std::vector<TokenId> all = run(first, text, 70);
  Engine again(files.load(o), nullptr);
  Conversation c{text, {}};
  const std::vector<TokenId> begun = run(again, text, 50);
  c.tokens.insert(c.tokens.end(), begun.begin(), begun.end());
  CHECK(again.save(path, c) == 448);
  for (const std::int64_t page : {std::int64_t{64}, std::int64_t{32}, std::int64_t{128}, std::int64_t{0}}) {
    CAPTURE(page);
    DecoderOptions with = o;
    with.page = page;
    Engine next(files.load(with), nullptr);
    std::vector<TokenId> rest = run(next, next.load(path).tokens, 20);
    rest.insert(rest.begin(), begun.begin(), begun.end());
    CHECK(rest == all);
    CHECK(next.statistics().reused_tokens == (page == 64 || page == 32 ? 448 : 0));
  }
}

TEST_CASE("windows: memory is counted as it is taken") {
  const WindowModel files("gemma3");
  DecoderOptions o;
  o.context = 4096;
  const DecoderModel whole = files.load(o, true), last = files.load(o);
  const KvWindows& w = *last.cache().windows();
  std::size_t windows = 0;
  for (const DecoderLayer& l : last.config().layers) windows += l.window != 0;
  CHECK(windows > 0);
  // A page of 64 at each end of the kept keys, one more page, and a run.
  CHECK(w.pages() == (w.window() - 1 + 63) / 64 + 2 + 1);
  std::size_t bytes = 0;
  for (const IoInfo& state : last.program().states()) bytes += state.shape.size_bytes();
  CHECK(bytes == last.cache_bytes());
  const std::size_t row = whole.cache_bytes() / 4096 / whole.config().layers.size();
  CHECK(last.cache_bytes() ==
        row * (4096 * (last.config().layers.size() - windows) + static_cast<std::size_t>(w.pages()) * 64 * windows));
  const auto refusal = [&](bool all, std::size_t limit) {
    DecoderOptions p = o;
    p.max_tokens = 40, p.whole_windows = all, p.memory_limit = limit;
    return error_text([&] { (void)DecoderModel::load(files.folder.path(), p); });
  };
  const std::size_t between = whole.cache_bytes();
  CHECK(contains(refusal(true, between), "out of memory"));
  CHECK(refusal(false, between).empty());
  CHECK(contains(refusal(false, 1000), "1024 tokens take"));
}

TEST_CASE("windows: random sequences take and give back pages, and none is lost") {
  std::mt19937 rng(11);
  for (const std::int64_t page : {std::int64_t{1}, std::int64_t{3}, std::int64_t{8}}) {
    constexpr std::int64_t kSequences = 3, kContext = 100, kMost = 12;
    for (const std::int64_t window : {std::int64_t{1}, std::int64_t{5}, std::int64_t{16}}) {
      const std::int64_t pages = KvWindows::pages_for(kSequences, kContext, window, page, kMost);
      KvWindows w(kSequences, kContext, window, page, pages);
      std::vector<std::int64_t> lengths(kSequences, 0);
      for (int step = 0; step < 3000; ++step) {
        std::vector<KvRun> run;
        std::int64_t left = kMost;
        for (std::int64_t s = 0; s < kSequences; ++s) {
          std::int64_t& length = lengths[static_cast<std::size_t>(s)];
          const std::int64_t count =
              std::min<std::int64_t>({left, kContext - length, static_cast<std::int64_t>(rng() % 13)});
          if (count == 0) continue;
          run.push_back({s, length, count});
          left -= count;
        }
        w.reserve(run);  // never too few pages
        for (const KvRun& r : run) {
          for (std::int64_t p = std::max<std::int64_t>(0, r.done - window + 1); p < r.done + r.count; ++p)
            REQUIRE(w.slot(r.sequence, p) % page == p % page);
          lengths[static_cast<std::size_t>(r.sequence)] += r.count;
        }
        for (std::int64_t s = 0; s < kSequences; ++s) {
          std::int64_t& length = lengths[static_cast<std::size_t>(s)];
          REQUIRE(w.shortest(s) <= length);
          if (rng() % 4 == 0)
            w.truncate(s, length = std::max(w.shortest(s), length - static_cast<std::int64_t>(rng() % 5)));
          if (rng() % 40 == 0 || length == kContext) w.truncate(s, length = 0);
        }
        std::vector<bool> used(static_cast<std::size_t>(pages), false);
        std::int64_t held = 0;
        for (std::int64_t s = 0; s < kSequences; ++s)
          for (const PageId p : w.table(s)) {
            REQUIRE_FALSE(used[static_cast<std::size_t>(p)]);
            used[static_cast<std::size_t>(p)] = true;
            ++held;
          }
        REQUIRE(held + w.pool().num_free() == pages);
      }
    }
  }
}

}  // namespace rlx
