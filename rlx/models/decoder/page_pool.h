// Pages of a key/value cache: which are free, who holds them, and where the tokens of a sequence lie. The bytes
// themselves are states of a program (ops::PagedAttention reads pools [P, page, KV, D]); these are their books.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rlx/tensor/dtype.h"

namespace rlx {

using PageId = std::int32_t;

/// Where a page lies in one array of all pages, and how many of its tokens are written.
struct KvPageDescriptor {
  std::size_t offset = 0, bytes = 0;
  std::int32_t filled = 0;
};

/// A number of equal pages, counted by those who hold them: a page that several sequences share is free when the last
/// of them lets go. Not for concurrent calls.
class KvPagePool {
 public:
  /// Errors: InvalidArgument for negative counts, more than 2^31 - 1 pages, or pages of no tokens.
  KvPagePool(std::int64_t num_pages, std::size_t bytes_per_page, std::int64_t tokens_per_page);

  /// The free page of the lowest number, held once and with no tokens in it; nothing when all are held.
  std::optional<PageId> alloc();
  /// One more holds the page. Errors: InvalidArgument for a page that is free or that there is not.
  void retain(PageId page);
  /// One less does; true when it became free. Takes no memory. Errors: InvalidArgument for a page that is free already.
  bool release(PageId page);
  /// How many hold the page; 0 for a free one. Errors: InvalidArgument for a page that there is not.
  std::int32_t holders(PageId page) const;
  /// Says how many tokens of a held page are written. Errors: InvalidArgument for more than fit, or a free page.
  void set_filled(PageId page, std::int32_t tokens);
  KvPageDescriptor descriptor(PageId page) const;

  std::int64_t num_pages() const { return static_cast<std::int64_t>(pages_.size()); }
  std::int64_t num_free() const { return num_pages() - num_held_; }
  std::int64_t tokens_per_page() const { return tokens_per_page_; }
  std::size_t bytes_per_page() const { return bytes_per_page_; }
  /// Bytes of a page that holds keys and values of `tokens` tokens in all layers: tokens * layers * 2 * kv_heads *
  /// head_dim elements. Errors: InvalidArgument for negative numbers or more bytes than can be counted.
  static std::size_t page_bytes(std::int64_t tokens, std::int64_t layers, std::int64_t kv_heads, std::int64_t head_dim,
                                DType dtype);

 private:
  struct Page {
    std::int32_t holders = 0, filled = 0;
  };
  const Page& held(PageId page) const;
  std::vector<Page> pages_;
  std::vector<PageId> returned_;  // free pages below `fresh_`, a heap with the lowest in front; has room for all
  PageId fresh_ = 0;              // no page from here on was ever held
  std::int64_t num_held_ = 0;
  std::size_t bytes_per_page_ = 0;
  std::int64_t tokens_per_page_ = 1;
};

/// The pages of one sequence, in the order of its tokens: token t lies in page t / tokens_per_page at place
/// t % tokens_per_page.
class KvBlockTable {
 public:
  explicit KvBlockTable(std::int64_t tokens_per_page) : tokens_per_page_(tokens_per_page) {}

  std::span<const PageId> pages() const { return pages_; }
  std::int64_t capacity() const { return static_cast<std::int64_t>(pages_.size()) * tokens_per_page_; }
  /// Adds a page that the caller holds; it is the table's from now on.
  void append(PageId page) { pages_.push_back(page); }
  /// The same for several: all of them or, when there is no memory for that, none.
  void append(std::span<const PageId> pages) { pages_.insert(pages_.end(), pages.begin(), pages.end()); }
  /// Memory for `count` pages more: appending them cannot fail then.
  void expect(std::size_t count) { pages_.reserve(pages_.size() + count); }
  /// Adds free pages until `tokens` tokens fit; false, and nothing changed, when the pool has too few.
  bool reserve(KvPagePool& pool, std::int64_t tokens);
  /// The row of token t in a pool seen as [P * page, KV, D]: what a scatter of new rows wants. Errors: InvalidArgument
  /// for a token beyond the pages.
  std::int64_t slot(std::int64_t token) const;
  /// Puts `copy`, a page that the caller holds, in place of page `index` and lets go of that: before a write to a page
  /// that others share.
  void replace(KvPagePool& pool, std::size_t index, PageId copy);
  /// Lets go of all pages that the first `tokens` tokens do not need.
  void truncate(KvPagePool& pool, std::int64_t tokens);
  void release(KvPagePool& pool) { truncate(pool, 0); }

 private:
  std::vector<PageId> pages_;
  std::int64_t tokens_per_page_;
};

}  // namespace rlx
