// Allocation of a pool's pages to sequences.
#include "rlx/models/decoder/kv_cache.h"

#include <utility>

#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

KvCache::KvCache(std::int64_t sequences, std::int64_t context, std::int64_t page, std::int64_t pages,
                 std::optional<KvWindows> windows) try
    : context_(context), page_(page), pages_(pages), pool_(0, 0, 1), windows_(std::move(windows)) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  for (const std::int64_t size : {sequences, context, page, pages})
    if (size < 1 || size > kMost)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("a cache of ", sequences, " sequences of ", context, " tokens in ", pages, " pages of ",
                              page, ": each must be in [1, 2^30]"));
  if (pages < pages_per_sequence())
    throw Error(ErrorCode::InvalidArgument,
                concat_text(pages, " pages of ", page, " tokens cannot hold one sequence of ", context),
                "use more pages, or a smaller context");
  if (pages > (std::int64_t{1} << 31) / page - 1)
    throw Error(ErrorCode::InvalidArgument, concat_text(pages, " pages of ", page, " tokens exceed 2^31 tokens"));
  lengths_.assign(static_cast<std::size_t>(sequences), 0);
  tables_.assign(lengths_.size(), KvBlockTable(page));
  pool_ = KvPagePool(pages, 0, page);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("KvCache");
}

std::size_t KvCache::checked(std::int64_t sequence) const {
  if (sequence < 0 || sequence >= sequences())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("there is no sequence ", sequence, ": the cache has ", sequences(), ", counted from 0"));
  return static_cast<std::size_t>(sequence);
}

std::int64_t KvCache::length(std::int64_t sequence) const { return lengths_[checked(sequence)]; }

void KvCache::append(std::int64_t sequence, std::int64_t count) {
  const std::size_t s = checked(sequence);
  const std::int64_t length = lengths_[s];
  if (count < 0) throw Error(ErrorCode::InvalidArgument, concat_text("cannot append ", count, " tokens"));
  if (count > context_ - length)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the context is full: sequence ", sequence, " has ", length, " of ", context_,
                            " tokens and cannot take ", count, " more"),
                "load the model with a larger context, or shorten the sequence (truncate, reset)");
  const std::int64_t held = static_cast<std::int64_t>(tables_[s].pages().size()),
                     needed = (length + count + page_ - 1) / page_;
  if (count > 0 && length % page_ != 0 && pool_.ref_count(tables_[s].pages().back()) > 1)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the last page of sequence ", sequence,
                            " is shared, so no tokens can be appended after its ", length, " tokens"),
                concat_text("truncate shared sequences to whole pages of ", page_, " tokens"));
  if (!tables_[s].reserve(pool_, length + count))
    throw Error(ErrorCode::OutOfMemory,
                concat_text("the cache is full: sequence ", sequence, " needs ", needed - held, " more of its ", pages_,
                            " pages, ", free_pages(), " are free"),
                "end other sequences, or load the model with more pages");
  lengths_[s] = length + count;
}

void KvCache::adopt(std::int64_t sequence, const KvPages& held) {
  const std::span<const PageId> pages = held.pages;
  const std::size_t s = checked(sequence);
  const auto count = static_cast<std::int64_t>(pages.size());
  if (lengths_[s] != 0)
    throw Error(ErrorCode::InvalidArgument, concat_text("sequence ", sequence, " has ", lengths_[s],
                                                        " tokens, so it cannot start from shared pages"));
  if (count > context_ / page_)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(count, " pages of ", page_, " tokens do not fit in a context of ", context_, " tokens"));
  for (const PageId page : pages) pool_.retain(page), pool_.release(page);  // throws for a free page
  tables_[s].expect(pages.size());
  if (windows_) windows_->adopt(sequence, count * page_, held.window_first, held.window_pages);
  tables_[s].append(pages);
  lengths_[s] = count * page_;
}

void KvCache::truncate(std::int64_t sequence, std::int64_t length) {
  const std::size_t s = checked(sequence);
  if (length < 0 || length > lengths_[s])
    throw Error(ErrorCode::InvalidArgument, concat_text("sequence ", sequence, " has ", lengths_[s],
                                                        " tokens and cannot be truncated to ", length));
  if (windows_) windows_->truncate(sequence, length);
  tables_[s].truncate(pool_, length);
  lengths_[s] = length;
}

std::int32_t KvCache::slot(std::int64_t sequence, std::int64_t position) const {
  const std::size_t s = checked(sequence);
  if (position < 0 || position >= lengths_[s])
    throw Error(ErrorCode::InvalidArgument, concat_text("sequence ", sequence, " has ", lengths_[s],
                                                        " tokens, but no token at position ", position));
  return static_cast<std::int32_t>(tables_[s].slot(position));
}

std::span<const PageId> KvCache::table(std::int64_t sequence) const { return tables_[checked(sequence)].pages(); }

std::int64_t KvCache::shortest(std::int64_t sequence) const {
  (void)checked(sequence);
  return windows_ ? windows_->shortest(sequence) : 0;
}

KvPages KvCache::held(std::int64_t sequence) const {
  const auto pages = table(sequence);
  KvPages out{{pages.begin(), pages.end()}};
  if (windows_) {
    const auto last = windows_->table(sequence);
    out.window_pages.assign(last.begin(), last.end());
    out.window_first = windows_->first(sequence);
  }
  return out;
}

}  // namespace rlx
