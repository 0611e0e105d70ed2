// Which places of a pool of keys and values belong to which sequence. The keys and values themselves are states of the
// program; this is the book that says where they lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rlx/models/decoder/kv_windows.h"
#include "rlx/models/decoder/page_pool.h"

namespace rlx {

/// Where the keys and values of the beginning of a text lie.
struct KvPages {
  std::vector<PageId> pages{};         // in the order of its tokens
  std::vector<PageId> window_pages{};  // of layers with a window, where these have a pool of their own: the last ones,
  std::int64_t window_first = 0;       // from this one on
};

/// A pool of `pages` pages of `page` tokens for `sequences` sequences of up to `context` tokens. A sequence takes pages
/// as it grows and gives them back when it is cut. With a page of the whole context, each sequence lies in one piece.
/// Layers with a window may have a pool of their own, whose pages are taken run by run.
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
  /// Who holds which page: a sequence, and others who keep pages for those that begin alike.
  KvPagePool& pool() { return pool_; }
  /// The pages of layers with a window; null where these have none of their own.
  KvWindows* windows() { return windows_ ? &*windows_ : nullptr; }
  const KvWindows* windows() const { return windows_ ? &*windows_ : nullptr; }
  /// Tokens of a sequence. InvalidArgument for a sequence that is not there; so do the others.
  std::int64_t length(std::int64_t sequence) const;
  /// Begins a sequence, which is empty, with whole pages whose keys and values are there; the caller holds them and
  /// hands them over. InvalidArgument for a sequence that has tokens, or more pages than the context, and where
  /// the next token's windows are not in them.
  void adopt(std::int64_t sequence, const KvPages& pages);
  /// Makes room for `count` more tokens. Errors, which leave it as it is: InvalidArgument for more than the context
  /// has left, or where a page that others hold too would be written; OutOfMemory when the pool has no free page.
  void append(std::int64_t sequence, std::int64_t count);
  /// Keeps the first `length` tokens. InvalidArgument for more than there are, and for fewer than `shortest`, but 0.
  void truncate(std::int64_t sequence, std::int64_t length);
  /// The fewest tokens, none aside, that a sequence can be cut to: 0 unless layers with a window gave back its pages.
  std::int64_t shortest(std::int64_t sequence) const;
  /// The row of the pool of a token. InvalidArgument beyond the sequence's length.
  std::int32_t slot(std::int64_t sequence, std::int64_t position) const;
  /// The pages of a sequence, in the order of its tokens.
  std::span<const PageId> table(std::int64_t sequence) const;
  /// The same with those of layers with a window.
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
