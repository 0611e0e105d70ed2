// The prefix cache: a radix tree of pages.
#include "rlx/generation/prefix_cache.h"

#include <algorithm>
#include <set>

#include "rlx/error.h"

namespace rlx {

bool PrefixCache::ByTokens::operator()(std::span<const TokenId> a, std::span<const TokenId> b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

PrefixCache::PrefixCache(KvPagePool& pool) : pool_(&pool) {}
PrefixCache::PrefixCache(KvCache& cache)
    : pool_(&cache.pool()),
      windows_(cache.windows()),
      keeps_(windows_ == nullptr || windows_->page() == cache.page()) {}
PrefixCache::~PrefixCache() { forget(); }
PrefixCache::PrefixCache(PrefixCache&& other) noexcept
    : pool_(other.pool_),
      windows_(other.windows_),
      keeps_(other.keeps_),
      roots_(std::move(other.roots_)),
      by_use_(std::move(other.by_use_)),
      by_window_use_(std::move(other.by_window_use_)),
      clock_(other.clock_) {
  other.roots_.clear();
  other.by_use_.clear();
  other.by_window_use_.clear();
}
PrefixCache& PrefixCache::operator=(PrefixCache&& other) noexcept {
  if (this == &other) return *this;
  forget();
  pool_ = other.pool_;
  windows_ = other.windows_;
  keeps_ = other.keeps_;
  roots_ = std::move(other.roots_);
  by_use_ = std::move(other.by_use_);
  by_window_use_ = std::move(other.by_window_use_);
  clock_ = other.clock_;
  other.roots_.clear();
  other.by_use_.clear();
  other.by_window_use_.clear();
  return *this;
}

// Frees leaf by leaf, so that long chains are not destroyed by recursion.
void PrefixCache::forget() {
  while (!by_use_.empty()) remove(*by_use_.begin()->second);
  roots_.clear();
}
void PrefixCache::remove(Node& leaf) {
  drop_window(leaf);
  pool_->release(leaf.page);
  by_use_.erase(leaf.used);
  leaf.parent->children.erase(leaf.parent->children.find(*leaf.tokens));
}

void PrefixCache::keep_window(Node& node, PageId page) {
  windows_->pool().retain(page);
  node.window_page = page;
  node.window_used = ++clock_;
  by_window_use_.emplace(node.window_used, &node);
}
void PrefixCache::touch_window(Node& node) {
  auto entry = by_window_use_.extract(node.window_used);
  entry.key() = node.window_used = ++clock_;
  by_window_use_.insert(std::move(entry));
}
void PrefixCache::drop_window(Node& node) {
  if (node.window_page < 0) return;
  windows_->pool().release(node.window_page);
  by_window_use_.erase(node.window_used);
  node.window_page = -1;
}

// Marks the node and its ancestors as used, each later than its descendants.
void PrefixCache::touch(Node* node) {
  for (; node->parent; node = node->parent) {
    auto entry = by_use_.extract(node->used);
    entry.key() = node->used = ++clock_;
    by_use_.insert(std::move(entry));
  }
}

PrefixMatch PrefixCache::match_prefix(std::span<const TokenId> tokens, std::uint64_t space) {
  PrefixMatch match;
  const auto root = roots_.find(space);
  if (root == roots_.end() || tokens.empty()) return match;
  const auto size = static_cast<std::size_t>(pool_->tokens_per_page());
  std::span<const TokenId> rest = tokens.first(tokens.size() - 1);  // one token is left for the run
  Node* at = &root->second;
  std::vector<Node*> path;
  while (rest.size() >= size) {
    const auto next = at->children.find(rest.first(size));
    if (next == at->children.end()) break;
    at = next->second.get();
    path.push_back(at);
    rest = rest.subspan(size);
  }
  // Shortens the path to the longest prefix whose last pages still hold the sliding window of the next token.
  const std::size_t found = path.size();
  if (windows_) {
    std::size_t there = 0;  // consecutive pages with window pages up to here
    std::size_t most = 0, first_needed = 0;
    for (std::size_t n = 1; n <= found; ++n) {
      there = path[n - 1]->window_page >= 0 ? there + 1 : 0;
      const auto first = static_cast<std::size_t>(windows_->first_needed(static_cast<std::int64_t>(n * size)));
      if (n - first <= there) most = n, first_needed = first;
    }
    path.resize(most);
    match.window_first = static_cast<std::int64_t>(first_needed);
    for (std::size_t i = first_needed; i < most; ++i) {
      match.window_pages.push_back(path[i]->window_page);
      windows_->pool().retain(match.window_pages.back());
      touch_window(*path[i]);
    }
    at = path.empty() ? &root->second : path.back();
  }
  for (const Node* node : path) match.pages.push_back(node->page);
  // The child with the longest common prefix is a neighbour of `rest` in key order.
  Node* partial = nullptr;
  const auto consider = [&](const auto& child) {
    const Tokens& other = child.first;
    const auto [mine, theirs] = std::mismatch(rest.begin(), rest.end(), other.begin(), other.end());
    const std::int64_t same = mine - rest.begin();
    if (same <= match.partial_tokens) return;
    match.partial_tokens = same;
    partial = child.second.get();
  };
  const auto after = at->children.lower_bound(rest);
  if (after != at->children.end() && !windows_) consider(*after);
  if (after != at->children.begin() && !windows_) consider(*std::prev(after));
  match.tokens = static_cast<std::int64_t>(match.pages.size() * size);
  for (const PageId page : match.pages) pool_->retain(page);
  if (partial) {
    match.partial = partial->page;
    pool_->retain(match.partial);
  }
  touch(partial ? partial : at);
  return match;
}

void PrefixCache::insert(std::span<const TokenId> tokens, const KvPages& held, std::uint64_t space) {
  if (!keeps_) return;
  const std::vector<PageId>& pages = held.pages;
  const auto size = static_cast<std::size_t>(pool_->tokens_per_page());
  const std::size_t whole = tokens.size() / size;
  if (pages.size() < whole)
    throw Error(Diagnostic{
        ErrorCode::InvalidArgument,
        concat_text(pages.size(), " pages of ", size, " tokens do not hold ", tokens.size(), " tokens"),
        "key/value pages", "insert the pages of a sequence with the tokens whose keys and values they hold"});
  Node* at = &roots_[space];
  for (std::size_t i = 0; i < whole; ++i) {
    const std::span<const TokenId> of_page = tokens.subspan(i * size, size);
    auto next = at->children.find(of_page);
    if (next == at->children.end()) {
      pool_->retain(pages[i]);
      const std::uint64_t used = ++clock_;
      try {
        auto node = std::make_unique<Node>();
        node->page = pages[i];
        node->parent = at;
        node->used = used;
        by_use_.emplace(used, node.get());
        next = at->children.emplace(Tokens(of_page.begin(), of_page.end()), std::move(node)).first;
      } catch (...) {  // the pages before it stay
        by_use_.erase(used);
        pool_->release(pages[i]);
        throw;
      }
      next->second->tokens = &next->first;
    }
    at = next->second.get();
    if (!windows_) continue;
    const auto first = static_cast<std::size_t>(held.window_first);
    if (i >= first && i - first < held.window_pages.size() && at->window_page < 0)
      keep_window(*at, held.window_pages[i - first]);
  }
  touch(at);
}

void PrefixCache::insert(std::span<const TokenId> tokens, std::span<const PageId> pages, std::uint64_t space) {
  insert(tokens, KvPages{{pages.begin(), pages.end()}}, space);
}

std::int64_t PrefixCache::evict_windows(std::int64_t count) {
  std::int64_t done = 0;
  for (auto it = by_window_use_.begin(); it != by_window_use_.end() && done < count;) {
    Node& node = *it->second;
    ++it;
    if (windows_->pool().ref_count(node.window_page) != 1) continue;
    drop_window(node);
    ++done;
  }
  return done;
}

std::int64_t PrefixCache::evict(std::int64_t count) {
  std::int64_t done = 0;
  for (auto it = by_use_.begin(); it != by_use_.end() && done < count;) {
    Node& node = *it->second;
    ++it;  // descendants come before ancestors, so one pass suffices
    if (!node.children.empty() || pool_->ref_count(node.page) != 1) continue;
    remove(node);
    ++done;
  }
  return done;
}

void make_window_room(KvCache& cache, PrefixCache* prefixes, std::span<const SequenceTokens> parts) {
  KvWindows* windows = cache.windows();
  if (!windows || !prefixes) return;
  std::vector<KvRun> run;
  for (const SequenceTokens& part : parts)
    run.push_back({part.sequence, cache.length(part.sequence), static_cast<std::int64_t>(part.tokens.size())});
  if (const std::int64_t missing = windows->make_room(run); missing != 0) (void)prefixes->evict_windows(missing);
}

std::int64_t PrefixCache::num_evictable() const {
  std::set<const Node*> kept;  // pages with other references, and all their ancestors
  std::int64_t count = 0;
  for (const auto& [used, node] : by_use_) {
    if (kept.count(node) == 0 && pool_->ref_count(node->page) == 1)
      ++count;
    else
      kept.insert(node->parent);
  }
  return count;
}

}  // namespace rlx
