// Handing out the pages of a pool.
#include "rlx/models/kv_cache.h"

#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

KvCache::KvCache(std::int64_t sequences, std::int64_t context, std::int64_t page, std::int64_t pages) try
    : context_(context), page_(page), pages_(pages) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  for (const std::int64_t size : {sequences, context, page, pages})
    if (size < 1 || size > kMost)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("a cache of ", sequences, " sequences of ", context, " tokens in ", pages, " pages of ",
                              page, ": each must be in [1, 2^30]"));
  if (pages < pages_per_sequence())
    throw Error(ErrorCode::InvalidArgument,
                concat_text(pages, " pages of ", page, " tokens cannot hold one sequence of ", context),
                "more pages, or a smaller context");
  if (pages > (std::int64_t{1} << 31) / page - 1)
    throw Error(ErrorCode::InvalidArgument, concat_text(pages, " pages of ", page, " tokens are too many to count"));
  lengths_.assign(static_cast<std::size_t>(sequences), 0);
  tables_.assign(lengths_.size(), std::vector<std::int32_t>(static_cast<std::size_t>(pages_per_sequence()), 0));
  free_.reserve(static_cast<std::size_t>(pages));
  for (std::int64_t p = pages; p-- > 0;) free_.push_back(static_cast<std::int32_t>(p));
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
                "load the model with a larger context, or cut the sequence (truncate, reset)");
  const std::int64_t held = (length + page_ - 1) / page_, needed = (length + count + page_ - 1) / page_;
  if (needed - held > free_pages())
    throw Error(ErrorCode::OutOfMemory,
                concat_text("the cache is full: sequence ", sequence, " needs ", needed - held, " more of its ", pages_,
                            " pages, ", free_pages(), " are free"),
                "end other sequences, or load the model with more pages");
  for (std::int64_t p = held; p < needed; ++p) {
    tables_[s][static_cast<std::size_t>(p)] = free_.back();
    free_.pop_back();
  }
  lengths_[s] = length + count;
}

void KvCache::truncate(std::int64_t sequence, std::int64_t length) {
  const std::size_t s = checked(sequence);
  if (length < 0 || length > lengths_[s])
    throw Error(ErrorCode::InvalidArgument,
                concat_text("sequence ", sequence, " has ", lengths_[s], " tokens and cannot be cut to ", length));
  const std::int64_t held = (lengths_[s] + page_ - 1) / page_, needed = (length + page_ - 1) / page_;
  for (std::int64_t p = held; p-- > needed;) {
    free_.push_back(tables_[s][static_cast<std::size_t>(p)]);
    tables_[s][static_cast<std::size_t>(p)] = 0;
  }
  lengths_[s] = length;
}

std::int32_t KvCache::slot(std::int64_t sequence, std::int64_t position) const {
  const std::size_t s = checked(sequence);
  if (position < 0 || position >= lengths_[s])
    throw Error(ErrorCode::InvalidArgument,
                concat_text("sequence ", sequence, " has ", lengths_[s], " tokens, none at ", position));
  return static_cast<std::int32_t>(tables_[s][static_cast<std::size_t>(position / page_)] * page_ + position % page_);
}

std::span<const std::int32_t> KvCache::table(std::int64_t sequence) const { return tables_[checked(sequence)]; }

}  // namespace rlx
