// Prompts that begin alike share the pages of what they have in common: a tree of whole pages by the tokens in them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "rlx/models/page_pool.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// What of a prompt is there already.
struct PrefixMatch {
  std::vector<PageId> pages;  // whole pages, in order; the caller holds them
  std::int64_t tokens = 0;    // in them
  /// A page of which the first `partial_tokens` tokens follow too: they are to be copied to a page of one's own before
  /// anything is written behind them. The caller holds it, until the copy is made.
  PageId partial = -1;
  std::int64_t partial_tokens = 0;
};

/// Pages of sequences that were computed, for those that begin alike. A page counts the cache among its holders. Keys
/// and values depend on all tokens before them and on the weights: `space` tells sequences apart that must not share
/// (adapters). Not for concurrent calls.
class PrefixCache {
 public:
  /// `pool` must outlive the cache.
  explicit PrefixCache(KvPagePool& pool);
  ~PrefixCache();
  PrefixCache(PrefixCache&&) noexcept;
  PrefixCache& operator=(PrefixCache&&) noexcept;

  /// The longest beginning of `tokens` that is there. At least one token is always left, so that a run has something to
  /// compute the next token's logits from.
  PrefixMatch match_prefix(std::span<const TokenId> tokens, std::uint64_t space = 0);
  /// Takes in the whole pages of a sequence: `pages` holds the keys and values of `tokens`, in order. Where an equal
  /// page is there, that one stays. Errors: InvalidArgument for fewer pages than the tokens fill.
  void insert(std::span<const TokenId> tokens, std::span<const PageId> pages, std::uint64_t space = 0);
  /// Lets go of up to `count` pages that nobody else holds and nothing follows, those first that were longest unused;
  /// returns how many.
  std::int64_t evict(std::int64_t count);

  /// Pages that the cache holds, and how many of them `evict` could free.
  std::int64_t num_pages() const { return static_cast<std::int64_t>(by_use_.size()); }
  std::int64_t num_evictable() const;

 private:
  using Tokens = std::vector<TokenId>;
  // In the order of dictionaries, also beside tokens that are no vector: those that begin alike are neighbours.
  struct ByTokens {
    using is_transparent = void;
    bool operator()(std::span<const TokenId> a, std::span<const TokenId> b) const;
  };
  struct Node {
    PageId page = -1;
    std::uint64_t used = 0;  // when; later than all that follow it
    Node* parent = nullptr;
    std::map<Tokens, std::unique_ptr<Node>, ByTokens> children{};  // by the tokens of their page
    const Tokens* tokens = nullptr;                                // its key among the parent's children
  };
  void touch(Node* node);
  void remove(Node& leaf);
  void forget();

  KvPagePool* pool_;
  std::map<std::uint64_t, Node> roots_;    // by space
  std::map<std::uint64_t, Node*> by_use_;  // all nodes but roots, longest unused first, so none before what follows it
  std::uint64_t clock_ = 0;
};

}  // namespace rlx
