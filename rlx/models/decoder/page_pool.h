// Page allocation of a KV cache: free pages, reference counts, and the block table of a sequence. The bytes are states
// of a program (ops::PagedAttention reads pools [P, page, KV, D]).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rlx/tensor/dtype.h"

namespace rlx {

using PageId = std::int32_t;

/// The position of a page in the array of all pages, and its number of written tokens.
struct KvPageDescriptor {
  std::size_t offset = 0, bytes = 0;
  std::int32_t filled = 0;
};

/// A fixed number of equal pages with reference counts. A page that several sequences share is free when the last
/// sequence releases it. Not for concurrent calls.
class KvPagePool {
 public:
  /// Errors: InvalidArgument for negative counts, more than 2^31 - 1 pages, or empty pages.
  KvPagePool(std::int64_t num_pages, std::size_t bytes_per_page, std::int64_t tokens_per_page);

  /// Allocates the lowest free page, with one reference and no tokens; nothing when no page is free.
  std::optional<PageId> alloc();
  /// Adds a reference. Errors: InvalidArgument for a free or unknown page.
  void retain(PageId page);
  /// Removes a reference; true when the page became free. Allocates nothing. Errors: InvalidArgument for a free page.
  bool release(PageId page);
  /// Reference count of the page; 0 for a free one. Errors: InvalidArgument for an unknown page.
  std::int32_t ref_count(PageId page) const;
  [[deprecated("now ref_count")]] std::int32_t holders(PageId page) const { return ref_count(page); }
  /// Sets the number of written tokens of an allocated page. Errors: InvalidArgument for more than fit, or a free page.
  void set_filled(PageId page, std::int32_t tokens);
  KvPageDescriptor descriptor(PageId page) const;

  std::int64_t num_pages() const { return static_cast<std::int64_t>(pages_.size()); }
  std::int64_t num_free() const { return num_pages() - num_held_; }
  std::int64_t tokens_per_page() const { return tokens_per_page_; }
  std::size_t bytes_per_page() const { return bytes_per_page_; }
  /// Bytes of a page with the keys and values of `tokens` tokens in all layers: tokens * layers * 2 * kv_heads *
  /// head_dim elements. Errors: InvalidArgument for negative numbers or overflow.
  static std::size_t page_bytes(std::int64_t tokens, std::int64_t layers, std::int64_t kv_heads, std::int64_t head_dim,
                                DType dtype);

 private:
  struct Page {
    std::int32_t ref_count = 0, filled = 0;
  };
  const Page& held(PageId page) const;
  std::vector<Page> pages_;
  std::vector<PageId> returned_;  // free pages below `fresh_`, a min-heap; has room for all
  PageId fresh_ = 0;              // pages from here on were never allocated
  std::int64_t num_held_ = 0;
  std::size_t bytes_per_page_ = 0;
  std::int64_t tokens_per_page_ = 1;
};

/// The pages of one sequence, in token order: token t is in page t / tokens_per_page at offset t % tokens_per_page.
class KvBlockTable {
 public:
  explicit KvBlockTable(std::int64_t tokens_per_page) : tokens_per_page_(tokens_per_page) {}

  std::span<const PageId> pages() const { return pages_; }
  std::int64_t capacity() const { return static_cast<std::int64_t>(pages_.size()) * tokens_per_page_; }
  /// Adds a page that the caller holds. The table owns that hold from now on.
  void append(PageId page) { pages_.push_back(page); }
  /// The same for several pages: all of them, or none when memory is missing.
  void append(std::span<const PageId> pages) { pages_.insert(pages_.end(), pages.begin(), pages.end()); }
  /// Reserves memory for `count` more pages: appending them cannot fail then.
  void expect(std::size_t count) { pages_.reserve(pages_.size() + count); }
  /// Allocates pages until `tokens` tokens fit; false, with nothing changed, when the pool has too few.
  bool reserve(KvPagePool& pool, std::int64_t tokens);
  /// The row of token t in a pool seen as [P * page, KV, D], for a scatter of new rows. Errors: InvalidArgument for a
  /// token beyond the pages.
  std::int64_t slot(std::int64_t token) const;
  /// Replaces page `index` by `copy`, a page that the caller holds, and releases the old page: copy-on-write of a
  /// shared page.
  void replace(KvPagePool& pool, std::size_t index, PageId copy);
  /// Releases all pages that the first `tokens` tokens do not need.
  void truncate(KvPagePool& pool, std::int64_t tokens);
  void release(KvPagePool& pool) { truncate(pool, 0); }

 private:
  std::vector<PageId> pages_;
  std::int64_t tokens_per_page_;
};

}  // namespace rlx
