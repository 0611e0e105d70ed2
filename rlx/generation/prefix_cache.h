// A prefix cache: prompts with a common prefix share KV pages. It is a tree of whole pages, keyed by their tokens.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "rlx/models/decoder/kv_cache.h"
#include "rlx/models/decoder_model.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// The cached part of a prompt.
struct PrefixMatch : KvPages {  // whole pages, held for the caller
  std::int64_t tokens = 0;      // tokens in the pages
  /// A page whose first `partial_tokens` tokens also match. The caller must copy it to a page of its own before writing
  /// after them. The page is held for the caller until the copy is made.
  PageId partial = -1;
  std::int64_t partial_tokens = 0;
};

/// KV pages of computed sequences, kept for sequences with the same prefix. The cache holds a reference to each of its
/// pages. Keys and values depend on all earlier tokens and on the weights; `space` separates sequences that must not
/// share (adapters). Where sliding-window layers have a pool of their own, a cached page may also have a window page. A
/// prefix matches only if its last pages, as many as a window covers, have window pages. Not for concurrent calls.
class PrefixCache {
 public:
  /// `pool` must outlive the cache.
  explicit PrefixCache(KvPagePool& pool);
  /// Caches the pages of `cache`, which must outlive this object, and those of its sliding-window layers. Nothing is
  /// cached where the window pages have another size, as for contiguous sequences.
  explicit PrefixCache(KvCache& cache);
  ~PrefixCache();
  PrefixCache(PrefixCache&&) noexcept;
  PrefixCache& operator=(PrefixCache&&) noexcept;

  /// The longest cached prefix of `tokens`. At least one token is left, because a run needs a token to compute the next
  /// logits.
  PrefixMatch match_prefix(std::span<const TokenId> tokens, std::uint64_t space = 0);
  /// Inserts the whole pages of a sequence. `pages` holds the keys and values of `tokens`, in order. Where an equal
  /// page is cached, that page stays. Errors: InvalidArgument for fewer pages than the tokens fill.
  void insert(std::span<const TokenId> tokens, const KvPages& pages, std::uint64_t space = 0);
  /// The same without window pages.
  void insert(std::span<const TokenId> tokens, std::span<const PageId> pages, std::uint64_t space = 0);
  /// Frees up to `count` leaf pages to which nothing else has a reference, least recently used first. Returns how many.
  std::int64_t evict(std::int64_t count);
  /// Frees up to `count` window pages to which nothing else has a reference, least recently used first. The pages of
  /// the other layers stay cached. Returns how many.
  std::int64_t evict_windows(std::int64_t count);

  /// Pages that the cache holds; `num_evictable`: those that `evict` could free.
  std::int64_t num_pages() const { return static_cast<std::int64_t>(by_use_.size()); }
  std::int64_t num_evictable() const;

 private:
  using Tokens = std::vector<TokenId>;
  // Lexicographic order, also for spans of tokens: keys with a common prefix are neighbours.
  struct ByTokens {
    using is_transparent = void;
    bool operator()(std::span<const TokenId> a, std::span<const TokenId> b) const;
  };
  struct Node {
    PageId page = -1, window_page = -1;
    std::uint64_t used = 0;         // time of last use; later than that of all descendants
    std::uint64_t window_used = 0;  // the same for `window_page`
    Node* parent = nullptr;
    std::map<Tokens, std::unique_ptr<Node>, ByTokens> children{};  // keyed by the tokens of their page
    const Tokens* tokens = nullptr;                                // its key among the parent's children
  };
  void touch(Node* node);
  void remove(Node& leaf);
  void forget();
  void keep_window(Node& node, PageId page);
  void touch_window(Node& node);
  void drop_window(Node& node);

  KvPagePool* pool_;
  KvWindows* windows_ = nullptr;
  bool keeps_ = true;
  std::map<std::uint64_t, Node> roots_;    // by space
  std::map<std::uint64_t, Node*> by_use_;  // all nodes but roots, least recently used first
  std::map<std::uint64_t, Node*> by_window_use_;
  std::uint64_t clock_ = 0;
};

/// Makes room for a run of `parts` in the window pages, where sliding-window layers have their own pool. First the
/// sequences free pages that they need not keep, then `prefixes` (may be null) frees pages that no sequence uses. If
/// pages are still missing, the run reports it.
void make_window_room(KvCache& cache, PrefixCache* prefixes, std::span<const SequenceTokens> parts);

}  // namespace rlx
