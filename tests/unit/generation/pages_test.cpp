// KV pages, the prefix cache and batches, against simple models of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "rlx/generation/engine/batch.h"
#include "rlx/generation/prefix_cache.h"
#include "rlx/models/decoder/page_pool.h"

namespace rlx {

TEST_CASE("pages: the lowest free number first, free when the last holder lets go") {
  KvPagePool pool(3, 64, 4);
  CHECK(pool.alloc() == 0);
  CHECK(pool.alloc() == 1);
  pool.set_filled(1, 3);
  CHECK(pool.descriptor(1).offset == 64);
  CHECK(pool.descriptor(1).filled == 3);
  pool.retain(0);
  CHECK_FALSE(pool.release(0));
  CHECK(pool.release(0));
  CHECK(pool.num_free() == 2);
  CHECK(pool.alloc() == 0);
  CHECK(pool.alloc() == 2);
  CHECK(pool.alloc() == std::nullopt);
  CHECK(pool.release(1));
  CHECK(pool.alloc() == 1);
  CHECK(pool.descriptor(1).filled == 0);
  CHECK(KvPagePool::page_bytes(16, 28, 8, 128, DType::F16) == 16U * 28 * 2 * 8 * 128 * 2);
}

TEST_CASE("pages: a sequence grows by pages, all of them or none") {
  KvPagePool pool(5, 1, 4);
  KvBlockTable a(4), b(4);
  CHECK(a.reserve(pool, 9));
  CHECK(a.pages().size() == 3);
  CHECK(a.reserve(pool, 12));
  CHECK(pool.num_free() == 2);
  CHECK_FALSE(b.reserve(pool, 9));
  CHECK(b.pages().empty());
  CHECK(b.reserve(pool, 5));
  CHECK(b.slot(4) == 4 * 4);
  CHECK(a.slot(6) == 1 * 4 + 2);
  a.truncate(pool, 4);
  CHECK(a.pages().size() == 1);
  CHECK(pool.num_free() == 2);
  pool.retain(a.pages()[0]);
  a.replace(pool, 0, *pool.alloc());
  CHECK(pool.ref_count(0) == 1);
  a.release(pool), b.release(pool);
  CHECK(pool.num_free() == 4);
}

TEST_CASE("prefixes: whole pages are shared, a page in part is copied, one token is always left") {
  KvPagePool pool(10, 1, 2);
  PrefixCache cache(pool);
  KvBlockTable first(2);
  REQUIRE(first.reserve(pool, 5));
  const std::vector<TokenId> said{1, 2, 3, 4, 5};
  cache.insert(said, first.pages());
  CHECK(cache.num_pages() == 2);
  first.release(pool);
  CHECK(pool.num_free() == 8);

  PrefixMatch m = cache.match_prefix(said);
  CHECK(m.pages == std::vector<PageId>{0, 1});
  CHECK(m.tokens == 4);
  CHECK(m.partial == -1);
  for (const PageId p : m.pages) pool.release(p);
  m = cache.match_prefix(std::vector<TokenId>{1, 2, 3, 4});  // the last token is always computed again
  CHECK(m.tokens == 2);
  CHECK(m.partial == 1);
  CHECK(m.partial_tokens == 1);
  pool.release(0), pool.release(1);
  CHECK(cache.match_prefix(std::vector<TokenId>{2, 2, 3}).tokens == 0);
  CHECK(cache.match_prefix(said, 7).tokens == 0);  // another adapter
  CHECK(cache.match_prefix({}).tokens == 0);
  CHECK(cache.evict(1) == 1);
  CHECK(cache.match_prefix(said).tokens == 2);
  CHECK(cache.num_evictable() == 0);  // held by that match
  CHECK(cache.evict(9) == 0);
  pool.release(0);
  CHECK(cache.evict(9) == 1);
  CHECK(pool.num_free() == 10);
}

TEST_CASE("prefixes: random sequences beside the set of all beginnings") {
  std::mt19937 rng(3);
  constexpr std::int64_t kPage = 3;
  KvPagePool pool(60, 1, kPage);
  PrefixCache cache(pool);
  // The content of each page: the tokens that it was computed from, all up to its end.
  std::map<PageId, std::vector<TokenId>> content;
  std::vector<std::pair<std::vector<TokenId>, KvBlockTable>> running;
  for (int step = 0; step < 5000; ++step) {
    if (running.size() < 5 && rng() % 2) {
      std::vector<TokenId> tokens(1 + rng() % 20);
      for (TokenId& t : tokens) t = static_cast<TokenId>(rng() % 2);
      const PrefixMatch m = cache.match_prefix(tokens);
      REQUIRE(m.tokens == static_cast<std::int64_t>(m.pages.size()) * kPage);
      REQUIRE(m.tokens + m.partial_tokens < static_cast<std::int64_t>(tokens.size()));
      for (std::size_t i = 0; i < m.pages.size(); ++i)
        REQUIRE(content[m.pages[i]] ==
                std::vector<TokenId>(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>((i + 1) * kPage)));
      if (m.partial >= 0) {
        const auto& there = content[m.partial];
        REQUIRE(std::equal(tokens.begin(), tokens.begin() + m.tokens + m.partial_tokens, there.begin()));
        pool.release(m.partial);
      }
      KvBlockTable table(kPage);
      for (const PageId p : m.pages) table.append(p);
      const auto size = static_cast<std::int64_t>(tokens.size());
      if (!table.reserve(pool, size)) {
        cache.evict(10);
        if (!table.reserve(pool, size)) {
          table.release(pool);
          continue;
        }
      }
      for (std::size_t i = m.pages.size(); i < table.pages().size(); ++i)
        content[table.pages()[i]] = std::vector<TokenId>(
            tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(std::min(tokens.size(), (i + 1) * kPage)));
      running.emplace_back(tokens, std::move(table));
    } else if (!running.empty()) {
      auto& [tokens, table] = running[rng() % running.size()];
      cache.insert(tokens, table.pages());
      table.release(pool);
      std::swap(running.back().first, tokens), std::swap(running.back().second, table);
      running.pop_back();
    }
    if (rng() % 50 == 0) {
      const std::int64_t could = cache.num_evictable(), before = pool.num_free();
      REQUIRE(cache.evict(1000) == could);
      REQUIRE(pool.num_free() == before + could);
    }
  }
  for (auto& [tokens, table] : running) table.release(pool);
  CHECK(cache.num_evictable() == cache.num_pages());
  CHECK(pool.num_free() + cache.num_pages() == pool.num_pages());
}

TEST_CASE("prefixes: a chain of 200,000 pages is found, evicted and destroyed") {
  KvPagePool pool(200'000, 1, 1);
  PrefixCache cache(pool);
  KvBlockTable table(1);
  REQUIRE(table.reserve(pool, 200'000));
  const std::vector<TokenId> tokens(200'000, 5);
  cache.insert(tokens, table.pages());
  table.release(pool);
  CHECK(cache.num_evictable() == 200'000);
  CHECK(cache.evict(1000) == 1000);
  PrefixCache other(std::move(cache));
  CHECK(other.num_pages() == 199'000);
}

TEST_CASE("batches: decoding first, prompts in chunks, whole when their last token is there") {
  const BatchConstructor batches(8, 4);
  std::deque<BatchRequest> decode{{1, 1, 30}, {2, 3, 10}}, prefill{{3, 10, 0}, {4, 2, 5}};
  CHECK(batches.build(decode, prefill) ==
        std::vector<BatchEntry>{{1, 1, 30, false, true}, {2, 3, 10, false, true}, {3, 4, 0, true, false}});
  CHECK(decode.empty());
  CHECK(batches.build(decode, prefill) == std::vector<BatchEntry>{{3, 6, 4, true, true}, {4, 2, 5, true, true}});
  CHECK(batches.build(decode, prefill).empty());
  decode = {{1, 5, 0}, {2, 4, 0}, {3, 1, 0}};
  CHECK(batches.build(decode, prefill).size() == 1);  // the order is kept
  for (std::int64_t i = 0; i < 9; ++i) prefill.push_back({i, 1, 0});
  decode.clear();
  CHECK(batches.build(decode, prefill).size() == 4);
  CHECK(prefill.size() == 5);
}

}  // namespace rlx
