// Prompts that begin alike share the pages of what they have in common: a tree of whole pages by the tokens in them.
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

/// What of a prompt is there already.
struct PrefixMatch : KvPages {  // whole pages; the caller holds them
  std::int64_t tokens = 0;      // in them
  /// A page of which the first `partial_tokens` tokens follow too: they are to be copied to a page of one's own before
  /// anything is written behind them. The caller holds it, until the copy is made.
  PageId partial = -1;
  std::int64_t partial_tokens = 0;
};

/// Pages of sequences that were computed, for those that begin alike. A page counts the cache among its holders. Keys
/// and values depend on all tokens before them and on the weights: `space` tells sequences apart that must not share
/// (adapters). Where layers with a window have pages of their own, a page of the text may have one of these too; a
/// text can go on behind pages whose last ones, as many as a window needs, have them. Not for concurrent calls.
class PrefixCache {
 public:
  /// `pool` must outlive the cache.
  explicit PrefixCache(KvPagePool& pool);
  /// The pages of a cache, which must outlive this, and those of its layers with a window. Where these are of another
  /// size, as beside sequences in one piece, nothing is kept.
  explicit PrefixCache(KvCache& cache);
  ~PrefixCache();
  PrefixCache(PrefixCache&&) noexcept;
  PrefixCache& operator=(PrefixCache&&) noexcept;

  /// The longest beginning of `tokens` that is there. At least one token is always left, so that a run has something to
  /// compute the next token's logits from.
  PrefixMatch match_prefix(std::span<const TokenId> tokens, std::uint64_t space = 0);
  /// Takes in the whole pages of a sequence: `pages` holds the keys and values of `tokens`, in order. Where an equal
  /// page is there, that one stays. Errors: InvalidArgument for fewer pages than the tokens fill.
  void insert(std::span<const TokenId> tokens, const KvPages& pages, std::uint64_t space = 0);
  /// The same without pages of windows.
  void insert(std::span<const TokenId> tokens, std::span<const PageId> pages, std::uint64_t space = 0);
  /// Lets go of up to `count` pages that nobody else holds and nothing follows, those first that were longest unused;
  /// returns how many.
  std::int64_t evict(std::int64_t count);
  /// The same of pages of layers with a window; those of the text stay.
  std::int64_t evict_windows(std::int64_t count);

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
    PageId page = -1, window_page = -1;
    std::uint64_t used = 0;         // when; later than all that follow it
    std::uint64_t window_used = 0;  // likewise, of `window_page`
    Node* parent = nullptr;
    std::map<Tokens, std::unique_ptr<Node>, ByTokens> children{};  // by the tokens of their page
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
  std::map<std::uint64_t, Node*> by_use_;  // all nodes but roots, longest unused first, so none before what follows it
  std::map<std::uint64_t, Node*> by_window_use_;
  std::uint64_t clock_ = 0;
};

/// Makes room for a run of `parts` in the pages of layers with a window, where these have their own: sequences give
/// back what they need not keep, then `prefixes`, which may be null, what nobody else holds. What is missing all the
/// same the run says.
void make_window_room(KvCache& cache, PrefixCache* prefixes, std::span<const SequenceTokens> parts);

}  // namespace rlx
