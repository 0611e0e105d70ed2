// The page tables of a KV cache: which slots of the pool belong to which sequence. The keys and values themselves are
// states of the program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rlx/models/decoder/kv_windows.h"
#include "rlx/models/decoder/page_pool.h"

namespace rlx {

/// The pages that hold the keys and values of a text's beginning.
struct KvPages {
  std::vector<PageId> pages{};         // in token order
  std::vector<PageId> window_pages{};  // sliding-window layers with their own pool: the last pages
  std::int64_t window_first = 0;       // page number in token order of the first of `window_pages`
};

/// A pool of `pages` pages of `page` tokens for `sequences` sequences of up to `context` tokens. A sequence takes pages
/// as it grows and frees them when it is truncated. With a page of the whole context, each sequence is contiguous.
/// Sliding-window layers may have their own pool, whose pages are reserved for each run.
class KvCache {
 public:
  /// InvalidArgument for sizes below 1, and for a context that all pages together cannot hold.
  KvCache(std::int64_t sequences, std::int64_t context, std::int64_t page, std::int64_t pages,
          std::optional<KvWindows> windows = {});

  std::int64_t sequences() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t context() const { return context_; }
  std::int64_t page() const { return page_; }
  std::int64_t pages() const { return pages_; }
  std::int64_t pages_per_sequence() const { return (context_ + page_ - 1) / page_; }
  std::int64_t free_pages() const { return pool_.num_free(); }
  /// The pages with their reference counts. Sequences hold references, and so do prefix caches, which keep pages for
  /// later sequences.
  KvPagePool& pool() { return pool_; }
  /// The page tables of sliding-window layers; null where they share the pool.
  KvWindows* windows() { return windows_ ? &*windows_ : nullptr; }
  const KvWindows* windows() const { return windows_ ? &*windows_ : nullptr; }
  /// Tokens of a sequence. InvalidArgument for an unknown sequence, here and below.
  std::int64_t length(std::int64_t sequence) const;
  /// Starts an empty sequence with whole pages whose keys and values exist. The caller holds the pages and transfers
  /// them. InvalidArgument for a sequence that has tokens, for more pages than the context, and where the pages lack
  /// the windows of the next token.
  void adopt(std::int64_t sequence, const KvPages& pages);
  /// Makes room for `count` more tokens. Errors leave the sequence unchanged: InvalidArgument for more than the context
  /// has left, or where a shared page would be written; OutOfMemory when the pool has no free page.
  void append(std::int64_t sequence, std::int64_t count);
  /// Keeps the first `length` tokens. InvalidArgument for more than there are, and for 0 < length < shortest(sequence).
  void truncate(std::int64_t sequence, std::int64_t length);
  /// The smallest length other than 0 that truncate accepts, where sliding-window layers have freed pages of the
  /// sequence; 0 where truncate accepts every length.
  std::int64_t shortest(std::int64_t sequence) const;
  /// The pool row of a token. InvalidArgument beyond the sequence's length.
  std::int32_t slot(std::int64_t sequence, std::int64_t position) const;
  /// The pages of a sequence, in token order.
  std::span<const PageId> table(std::int64_t sequence) const;
  /// The same, with the pages of sliding-window layers.
  KvPages held(std::int64_t sequence) const;

 private:
  std::size_t checked(std::int64_t sequence) const;
  std::int64_t context_, page_, pages_;
  std::vector<std::int64_t> lengths_;
  std::vector<KvBlockTable> tables_;
  KvPagePool pool_;
  std::optional<KvWindows> windows_;
};

}  // namespace rlx
