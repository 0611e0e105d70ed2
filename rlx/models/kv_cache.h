// Which places of a pool of keys and values belong to which sequence. The keys and values themselves are states of the
// program; this is the book that says where they lie.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rlx/models/page_pool.h"

namespace rlx {

/// A pool of `pages` pages of `page` tokens for `sequences` sequences of up to `context` tokens. A sequence takes pages
/// as it grows and gives them back when it is cut. With a page of the whole context, each sequence lies in one piece.
class KvCache {
 public:
  /// InvalidArgument for sizes below 1, and for a context that all pages together cannot hold.
  KvCache(std::int64_t sequences, std::int64_t context, std::int64_t page, std::int64_t pages);

  std::int64_t sequences() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t context() const { return context_; }
  std::int64_t page() const { return page_; }
  std::int64_t pages() const { return pages_; }
  std::int64_t pages_per_sequence() const { return (context_ + page_ - 1) / page_; }
  std::int64_t free_pages() const { return pool_.num_free(); }
  /// Who holds which page: a sequence, and others who keep pages for those that begin alike.
  KvPagePool& pool() { return pool_; }
  /// Tokens of a sequence. InvalidArgument for a sequence that is not there; so do the others.
  std::int64_t length(std::int64_t sequence) const;
  /// Begins a sequence, which is empty, with whole pages whose keys and values are there; the caller holds them and
  /// hands them over. InvalidArgument for a sequence that has tokens, or more pages than the context.
  void adopt(std::int64_t sequence, std::span<const PageId> pages);
  /// Makes room for `count` more tokens. Errors, which leave it as it is: InvalidArgument for more than the context
  /// has left, or where a page that others hold too would be written; OutOfMemory when the pool has no free page.
  void append(std::int64_t sequence, std::int64_t count);
  /// Keeps the first `length` tokens. InvalidArgument for more than there are.
  void truncate(std::int64_t sequence, std::int64_t length);
  /// The row of the pool of a token. InvalidArgument beyond the sequence's length.
  std::int32_t slot(std::int64_t sequence, std::int64_t position) const;
  /// The pages of a sequence, in the order of its tokens.
  std::span<const PageId> table(std::int64_t sequence) const;

 private:
  std::size_t checked(std::int64_t sequence) const;
  std::int64_t context_, page_, pages_;
  std::vector<std::int64_t> lengths_;
  std::vector<KvBlockTable> tables_;
  KvPagePool pool_;
};

}  // namespace rlx
