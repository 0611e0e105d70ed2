// Page allocation and reference counts.
#include "rlx/models/decoder/page_pool.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "rlx/error.h"

namespace rlx {
namespace {

[[noreturn]] void refuse_pages(std::string message, std::string hint = {}) {
  throw Error(Diagnostic{ErrorCode::InvalidArgument, std::move(message), "key/value pages", std::move(hint)});
}

}  // namespace

KvPagePool::KvPagePool(std::int64_t num_pages, std::size_t bytes_per_page, std::int64_t tokens_per_page)
    : bytes_per_page_(bytes_per_page), tokens_per_page_(tokens_per_page) {
  if (num_pages < 0 || num_pages > std::numeric_limits<PageId>::max())
    refuse_pages(concat_text("a pool cannot have ", num_pages, " pages"));
  if (tokens_per_page < 1 || tokens_per_page > std::numeric_limits<std::int32_t>::max())
    refuse_pages(concat_text("a page cannot hold ", tokens_per_page, " tokens"));
  if (bytes_per_page != 0 &&
      static_cast<std::size_t>(num_pages) > std::numeric_limits<std::size_t>::max() / bytes_per_page)
    refuse_pages(concat_text(num_pages, " pages of ", bytes_per_page, " bytes overflow 64 bits"));
  pages_.resize(static_cast<std::size_t>(num_pages));
  returned_.reserve(pages_.size());
}

std::optional<PageId> KvPagePool::alloc() {
  PageId page = fresh_;
  if (!returned_.empty()) {
    std::pop_heap(returned_.begin(), returned_.end(), std::greater<>());
    page = returned_.back();
    returned_.pop_back();
  } else if (static_cast<std::size_t>(fresh_) == pages_.size()) {
    return std::nullopt;
  } else {
    ++fresh_;
  }
  pages_[static_cast<std::size_t>(page)] = {1, 0};
  ++num_held_;
  return page;
}

const KvPagePool::Page& KvPagePool::held(PageId page) const {
  const Page& p = pages_[detail::checked_index("page", page, pages_.size())];
  if (p.ref_count == 0) refuse_pages(concat_text("page ", page, " is free: it has no owner"));
  return p;
}
void KvPagePool::retain(PageId page) {
  if (held(page).ref_count == std::numeric_limits<std::int32_t>::max())
    refuse_pages(concat_text("page ", page, " has too many owners"));
  ++pages_[static_cast<std::size_t>(page)].ref_count;
}
bool KvPagePool::release(PageId page) {
  (void)held(page);
  if (--pages_[static_cast<std::size_t>(page)].ref_count != 0) return false;
  returned_.push_back(page);
  std::push_heap(returned_.begin(), returned_.end(), std::greater<>());
  --num_held_;
  return true;
}
std::int32_t KvPagePool::ref_count(PageId page) const {
  return pages_[detail::checked_index("page", page, pages_.size())].ref_count;
}
void KvPagePool::set_filled(PageId page, std::int32_t tokens) {
  (void)held(page);
  if (tokens < 0 || tokens > tokens_per_page_)
    refuse_pages(concat_text("a page of ", tokens_per_page_, " tokens cannot hold ", tokens, " tokens"));
  pages_[static_cast<std::size_t>(page)].filled = tokens;
}
KvPageDescriptor KvPagePool::descriptor(PageId page) const {
  const Page& p = pages_[detail::checked_index("page", page, pages_.size())];
  return {static_cast<std::size_t>(page) * bytes_per_page_, bytes_per_page_, p.filled};
}

std::size_t KvPagePool::page_bytes(std::int64_t tokens, std::int64_t layers, std::int64_t kv_heads,
                                   std::int64_t head_dim, DType dtype) {
  std::size_t bytes = 2 * size_bytes(dtype);
  for (const std::int64_t n : {tokens, layers, kv_heads, head_dim}) {
    if (n < 0)
      refuse_pages(concat_text("the sizes of a page must not be negative, got ", tokens, " tokens, ", layers,
                               " layers and ", kv_heads, " heads of ", head_dim));
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(n), &bytes))
      refuse_pages("the bytes of a page overflow 64 bits");
  }
  return bytes;
}

bool KvBlockTable::reserve(KvPagePool& pool, std::int64_t tokens) {
  const std::int64_t wanted = (tokens + tokens_per_page_ - 1) / tokens_per_page_,
                     missing = wanted - static_cast<std::int64_t>(pages_.size());
  if (missing <= 0) return true;
  if (missing > pool.num_free()) return false;
  pages_.reserve(static_cast<std::size_t>(wanted));
  for (std::int64_t i = 0; i < missing; ++i) pages_.push_back(*pool.alloc());
  return true;
}
std::int64_t KvBlockTable::slot(std::int64_t token) const {
  if (token < 0 || token >= capacity())
    refuse_pages(
        concat_text("token ", token, " is not in the pages of the sequence, which hold ", capacity(), " tokens"),
        "reserve pages first");
  return pages_[static_cast<std::size_t>(token / tokens_per_page_)] * tokens_per_page_ + token % tokens_per_page_;
}
void KvBlockTable::replace(KvPagePool& pool, std::size_t index, PageId copy) {
  PageId& at = pages_[detail::checked_index("page of a sequence", static_cast<std::int64_t>(index), pages_.size())];
  pool.release(at);
  at = copy;
}
void KvBlockTable::truncate(KvPagePool& pool, std::int64_t tokens) {
  const auto kept =
      static_cast<std::size_t>((std::max<std::int64_t>(tokens, 0) + tokens_per_page_ - 1) / tokens_per_page_);
  for (; pages_.size() > kept; pages_.pop_back()) pool.release(pages_.back());
}

}  // namespace rlx
