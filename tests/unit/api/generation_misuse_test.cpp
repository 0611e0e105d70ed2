// Misuse of token sampling.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rlx/generation/engine/batch.h"
#include "rlx/generation/grammar.h"
#include "rlx/generation/json_schema.h"
#include "rlx/generation/prefix_cache.h"
#include "rlx/generation/sampling.h"
#include "rlx/generation/stop_strings.h"
#include "rlx/models/decoder/page_pool.h"
#include "tests/support/error_text.h"

namespace rlx {

using test::contains;
using test::error_text;

TEST_CASE("misuse: sampling") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> logits{1, 9, 3, 2};
  const auto with = [](auto change) {
    SamplingOptions o;
    change(o);
    return o;
  };
  CHECK(contains(error_text([&] { (void)log_probability(logits, 4); }), "token"));
  CHECK(contains(error_text([&] { (void)log_probability({}, 0); }), "token"));
  CHECK(likeliest_tokens({}, 3).empty());
  const std::vector<TokenLogprob> broken = likeliest_tokens(std::vector<float>{NAN, 1, NAN, 2}, 4);
  REQUIRE(broken.size() == 4);
  CHECK(broken[0].id == 3);
  CHECK(broken[1].id == 1);
  CHECK(std::isnan(broken[0].logprob));
  CHECK(likeliest_tokens(logits, ~std::size_t{0}).size() == 4);
  CHECK(contains(error_text([] { (void)sampling_step_name(static_cast<SamplingStep>(99)); }), "SamplingStep"));
  CHECK(contains(error_text([] { (void)parse_sampling_order("top_k;tempreature"); }), "temperature"));
  CHECK(contains(error_text([] { Sampler().rewind(1); }), "cannot be rewound by 1"));
  CHECK(contains(error_text([] { Sampler().return_to({2, 0}); }), "cannot go back to a mark at 2"));
  CHECK(contains(error_text([] { StopStrings s({"a", ""}); }), "empty"));
  CHECK(contains(error_text([&] { (void)Sampler().chances(std::vector<float>{NAN}); }), "NaN"));
  const auto draw = [&](std::vector<float> x, std::vector<std::uint32_t> m = {}) {
    return error_text([&] { (void)Sampler().draw(x, m); });
  };
  CHECK(contains(draw({1, NAN}), "token 1 is NaN"));
  CHECK(contains(draw({-kInf, -kInf}), "no token can be sampled"));
  CHECK(contains(draw({}), "no token can be sampled"));
  CHECK(contains(draw({1, 2}, {0}), "no token can be sampled"));
  CHECK(contains(draw({1, 2}, {1, 1}), "does not fit"));
  const auto refused = [&](auto change) { return error_text([&] { Sampler s(with(change)); }); };
  CHECK(contains(refused([](SamplingOptions& o) { o.temperature = -1; }), "temperature is -1"));
  CHECK(contains(refused([](SamplingOptions& o) { o.temperature = NAN; }), "temperature"));
  CHECK(contains(refused([](SamplingOptions& o) { o.top_p = 0; }), "top_p"));
  CHECK(contains(refused([](SamplingOptions& o) { o.min_p = 2; }), "min_p"));
  CHECK(contains(refused([](SamplingOptions& o) { o.mirostat = 3; }), "mirostat"));
  CHECK(contains(refused([](SamplingOptions& o) { o.order = {static_cast<SamplingStep>(77)}; }),
                 "77 is not a value of SamplingStep"));
  CHECK(contains(refused([](SamplingOptions& o) { o.dry_allowed_length = 0; }), "dry_allowed_length"));
  CHECK(contains(refused([](SamplingOptions& o) { o.repetition_penalty = 0; }), "repetition_penalty"));
  CHECK(contains(refused([](SamplingOptions& o) { o.logit_bias = {{-1, 0}}; }), "token -1"));
  CHECK(contains(error_text([&] {
                   (void)Sampler(with([](SamplingOptions& o) { o.logit_bias = {{7, 1}}; })).draw(logits);
                 }),
                 "token 7 of 4"));
}

TEST_CASE("misuse: pages and batches") {
  CHECK(contains(error_text([] { KvPagePool p(-1, 1, 1); }), "-1 pages"));
  CHECK(contains(error_text([] { KvPagePool p(1, 1, 0); }), "0 tokens"));
  CHECK(contains(error_text([] { KvPagePool p(1 << 30, std::size_t{1} << 60, 1); }), "overflow 64 bits"));
  KvPagePool pool(2, 8, 4);
  CHECK(contains(error_text([&] { (void)pool.release(0); }), "page 0 is free"));
  CHECK(contains(error_text([&] { pool.retain(1); }), "page 1 is free"));
  CHECK(contains(error_text([&] { (void)pool.release(2); }), "page 2"));
  CHECK(contains(error_text([&] { (void)pool.ref_count(-1); }), "page -1"));
  CHECK(contains(error_text([&] { (void)pool.descriptor(9); }), "page 9"));
  const PageId page = *pool.alloc();
  CHECK(contains(error_text([&] { pool.set_filled(page, 5); }), "5 tokens"));
  CHECK(pool.release(page));
  CHECK(contains(error_text([&] { (void)pool.release(page); }), "page 0 is free"));
  CHECK(contains(error_text([] { (void)KvPagePool::page_bytes(-1, 1, 1, 1, DType::F32); }), "-1 tokens"));
  CHECK(contains(error_text([] { (void)KvPagePool::page_bytes(1LL << 40, 1 << 20, 1 << 20, 1, DType::F32); }),
                 "overflow 64 bits"));
  KvBlockTable table(4);
  CHECK(contains(error_text([&] { (void)table.slot(0); }), "token 0"));
  CHECK(contains(error_text([&] { table.replace(pool, 0, 0); }), "page of a sequence"));
  CHECK_FALSE(table.reserve(pool, 100));
  PrefixCache cache(pool);
  CHECK(contains(error_text([&] { cache.insert(std::vector<TokenId>(9), std::vector<PageId>{0}); }), "do not hold 9"));
  CHECK(contains(error_text([&] { cache.insert(std::vector<TokenId>(4), std::vector<PageId>{1}); }), "page 1 is free"));
  CHECK(cache.evict(-3) == 0);
  CHECK(cache.evict_windows(3) == 0);
  KvCache no_windows(1, 8, 4, 2);
  make_window_room(no_windows, nullptr, {});
  make_window_room(no_windows, &cache, {});
  CHECK(contains(error_text([] { BatchConstructor b(0, 1); }), "must allow at least 1 token"));
  std::deque<BatchRequest> none, bad{{7, 0, 0}}, large{{8, 5, 0}};
  CHECK(contains(error_text([&] { (void)BatchConstructor(4, 4).build(none, bad); }), "request 7"));
  CHECK(contains(error_text([&] { (void)BatchConstructor(4, 4).build(large, none); }), "request 8"));
}

TEST_CASE("misuse: grammars") {
  CHECK(contains(error_text([] { (void)TokenTrie(TokenBytes{}); }), "has no tokens"));
  CHECK(contains(error_text([] {
                   (void)TokenTrie(TokenBytes{{"a"}, {1}});
                 }),
                 "special token 1 is not in the vocabulary of 1"));
  CHECK(contains(error_text([] { (void)TokenTrie(TokenBytes{{"a"}, {}, {-1}}); }), "end token -1"));
  CHECK(contains(error_text([] { (void)TokenTrie(TokenBytes{{std::string(70000, 'a')}}); }), "70000 bytes"));
  TokenTrie trie(TokenBytes{{"a", "b", ""}, {}, {2}});
  CHECK(contains(error_text([&] { (void)trie.bytes(3); }), "token"));
  CHECK(contains(error_text([&] { (void)trie.is_end(-1); }), "token"));

  CHECK(contains(error_text([] { (void)Grammar::from_gbnf("root ::= (", "g"); }), "g:1:10"));
  CHECK(contains(error_text([] { (void)json_schema_grammar("{"); }), "not valid JSON"));
  CHECK(contains(error_text([] { (void)json_schema_grammar(R"({"contains":{}})"); }), "schema#/contains"));
  // A Whitespace value that is no enumerator is refused.
  CHECK_FALSE(json_grammar({static_cast<JsonWhitespace>(99)}).matches("[ ]"));
  Grammar grammar = Grammar::from_gbnf("root ::= \"ab\"");
  CHECK_FALSE(grammar.matches("\xFF"));
  GrammarMasks masks(grammar, trie);
  GrammarMatcher matcher(masks);
  CHECK(contains(error_text([&] { (void)matcher.accept(3); }), "token"));
  CHECK(contains(error_text([&] { (void)matcher.accept(-1); }), "token"));
  CHECK_FALSE(matcher.accept(2));
  CHECK_FALSE(matcher.accept_bytes("b"));
  CHECK(contains(error_text([&] { matcher.rewind(1); }), "cannot rewind 1 tokens of a sequence of 0"));

  // A moved-from object says so.
  const Grammar other_grammar = std::move(grammar);
  const TokenTrie other_trie = std::move(trie);
  const GrammarMatcher other_matcher = std::move(matcher);
  const GrammarMasks other_masks = std::move(masks);
  const auto moved = [](const auto& call) { return contains(error_text(call), "moved from"); };
  CHECK(moved([&] { (void)grammar.matches(""); }));
  CHECK(moved([&] { (void)grammar.num_states(); }));
  CHECK(moved([&] { (void)grammar.num_rules(); }));
  CHECK(moved([&] { (void)trie.size(); }));
  CHECK(moved([&] { (void)trie.end_tokens(); }));
  CHECK(moved([&] { GrammarMasks m(grammar, other_trie); }));
  CHECK(moved([&] { GrammarMasks m(other_grammar, trie); }));
  CHECK(moved([&] { masks.prepare(); }));
  CHECK(moved([&] { (void)masks.bytes(); }));
  CHECK(moved([&] { (void)masks.tokens(); }));
  CHECK(moved([&] { GrammarMatcher m(masks); }));
  CHECK(moved([&] { (void)matcher.accept(0); }));
  CHECK(moved([&] { (void)matcher.accept_bytes("a"); }));
  CHECK(moved([&] { (void)matcher.mask(); }));
  CHECK(moved([&] { (void)matcher.can_end(); }));
  CHECK(moved([&] { (void)matcher.forced_bytes(); }));
}

}  // namespace rlx
