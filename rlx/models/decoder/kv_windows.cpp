// Allocates window pages at the end of a sequence and frees them before its window.
#include "rlx/models/decoder/kv_windows.h"

#include <algorithm>

#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

[[noreturn]] void refuse_window(std::string message, std::string hint = {}) {
  throw Error(ErrorCode::InvalidArgument, std::move(message), std::move(hint));
}

}  // namespace

KvWindows::KvWindows(std::int64_t sequences, std::int64_t context, std::int64_t window, std::int64_t page,
                     std::int64_t pages) try
    : context_(context), window_(window), page_(page), pool_(0, 0, 1) {
  (void)pages_for(sequences, context, window, page, 1);  // throws for sizes out of range
  if (pages < 1 || pages > (std::int64_t{1} << 31) / page - 1)
    refuse_window(
        concat_text(pages, " pages of ", page, " tokens for layers with sliding windows are not a valid cache"));
  sequences_.resize(static_cast<std::size_t>(sequences));
  pool_ = KvPagePool(pages, 0, page);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("KvWindows");
}

std::int64_t KvWindows::pages_for(std::int64_t sequences, std::int64_t context, std::int64_t window, std::int64_t page,
                                  std::int64_t max_tokens) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  for (const std::int64_t size : {sequences, context, window, page, max_tokens})
    if (size < 1 || size > kMost)
      refuse_window(concat_text("windows of ", window, " tokens for ", sequences, " sequences of ", context,
                                " tokens, ", max_tokens, " a run, in pages of ", page, ": each must be in [1, 2^30]"));
  const auto pages = [&](std::int64_t tokens) { return (tokens + page - 1) / page; };
  // The kept tokens begin anywhere in a page and end anywhere in another page, and so do the new tokens of each
  // sequence.
  const std::int64_t kept = pages(window - 1) + 2;
  const std::int64_t all = sequences * kept + pages(max_tokens) + std::min(sequences, max_tokens) - 1;
  return std::min(all, sequences * pages(context));
}

std::size_t KvWindows::checked(std::int64_t sequence) const {
  const auto count = static_cast<std::int64_t>(sequences_.size());
  if (sequence < 0 || sequence >= count)
    refuse_window(concat_text("there is no sequence ", sequence, ": the cache has ", count, ", counted from 0"));
  return static_cast<std::size_t>(sequence);
}

std::int64_t KvWindows::first_needed(std::int64_t tokens) const {
  return std::max<std::int64_t>(0, tokens - window_ + 1) / page_;
}
std::int64_t KvWindows::first(std::int64_t sequence) const { return sequences_[checked(sequence)].first; }
std::span<const PageId> KvWindows::table(std::int64_t sequence) const { return sequences_[checked(sequence)].pages; }

std::int32_t KvWindows::slot(std::int64_t sequence, std::int64_t position) const {
  const Sequence& s = sequences_[checked(sequence)];
  if (position < s.first * page_ || position >= s.end() * page_)
    refuse_window(concat_text("layers with sliding windows keep the tokens [", s.first * page_, ", ", s.end() * page_,
                              ") of sequence ", sequence, ", not token ", position));
  return static_cast<std::int32_t>(s.pages[static_cast<std::size_t>(position / page_ - s.first)] * page_ +
                                   position % page_);
}

std::int64_t KvWindows::shortest(std::int64_t sequence) const {
  const Sequence& s = sequences_[checked(sequence)];
  return s.from == 0 ? 0 : s.from + window_ - 1;
}

// Frees the pages that a sequence of `tokens` tokens need not keep.
void KvWindows::give_back(Sequence& s, std::int64_t tokens) {
  const std::int64_t first = std::min(first_needed(std::max<std::int64_t>(0, tokens - page_)), s.end());
  if (first <= s.first) return;
  const auto count = static_cast<std::ptrdiff_t>(first - s.first);
  for (auto it = s.pages.begin(); it != s.pages.begin() + count; ++it) pool_.release(*it);
  s.pages.erase(s.pages.begin(), s.pages.begin() + count);
  s.first = first;
  s.from = std::max(s.from, first * page_);
}

std::int64_t KvWindows::missing(std::span<const KvRun> run) const {
  std::int64_t wanted = 0;
  for (const KvRun& r : run)
    wanted += std::max<std::int64_t>(0, pages_in(r.done + r.count) - sequences_[checked(r.sequence)].end());
  return std::max<std::int64_t>(0, wanted - pool_.num_free());
}

std::int64_t KvWindows::make_room(std::span<const KvRun> run) {
  if (missing(run) == 0) return 0;
  std::vector<std::int64_t> stands;
  for (const Sequence& s : sequences_) stands.push_back(s.computed);
  for (const KvRun& r : run) {
    std::int64_t& at = stands[checked(r.sequence)];
    at = std::min(at, r.done);
  }
  for (std::size_t s = 0; s < sequences_.size(); ++s) give_back(sequences_[s], stands[s]);
  return missing(run);
}

void KvWindows::reserve(std::span<const KvRun> run) {
  for (const KvRun& r : run) {
    const Sequence& s = sequences_[checked(r.sequence)];
    if (r.count < 1 || r.done < 0 || r.count > context_ - r.done || r.done != s.computed)
      refuse_window(concat_text("sequence ", r.sequence, " has ", s.computed, " of ", context_,
                                " tokens, so it cannot take ", r.count, " tokens at position ", r.done));
    if (r.done % page_ != 0 && pool_.ref_count(s.pages.back()) > 1)
      refuse_window(concat_text("the last page of sequence ", r.sequence,
                                " is shared, so no tokens can be appended after its ", r.done, " tokens"),
                    concat_text("truncate shared sequences to whole pages of ", page_, " tokens"));
  }
  const std::int64_t lacking = make_room(run);
  if (lacking != 0)
    throw Error(ErrorCode::OutOfMemory,
                concat_text("the KV cache of layers with sliding windows is full: a run needs ", lacking,
                            " more of its ", pages(), " pages"),
                "release pages of other texts, or run fewer tokens at a time");
  for (const KvRun& r : run)
    sequences_[checked(r.sequence)].pages.reserve(
        static_cast<std::size_t>(pages_in(r.done + r.count) - sequences_[checked(r.sequence)].first));
  for (const KvRun& r : run) {
    Sequence& s = sequences_[checked(r.sequence)];
    while (s.end() < pages_in(r.done + r.count)) s.pages.push_back(*pool_.alloc());
    s.computed = r.done + r.count;
  }
}

void KvWindows::adopt(std::int64_t sequence, std::int64_t tokens, std::int64_t first, std::span<const PageId> pages) {
  Sequence& s = sequences_[checked(sequence)];
  const auto count = static_cast<std::int64_t>(pages.size());
  if (!s.pages.empty() || s.computed != 0)
    refuse_window(
        concat_text("sequence ", sequence, " has ", s.computed, " tokens, so it cannot start from shared pages"));
  if (tokens < 0 || tokens > context_ || first < 0 || first > first_needed(tokens) || first + count != pages_in(tokens))
    refuse_window(concat_text(count, " pages of ", page_, " tokens from page ", first, " on cannot continue ", tokens,
                              " tokens with a window of ", window_));
  for (const PageId page : pages) pool_.retain(page), pool_.release(page);  // throws for a free page
  s.pages.assign(pages.begin(), pages.end());
  s.first = first, s.from = first * page_, s.computed = tokens;
}

void KvWindows::begin(std::int64_t sequence, std::int64_t tokens, std::int64_t from) {
  (void)checked(sequence);
  if (tokens < 0 || tokens > context_ || from < 0 || from > std::max<std::int64_t>(0, tokens - window_ + 1))
    refuse_window(concat_text("a sequence of up to ", context_, " tokens with a window of ", window_,
                              " cannot start with ", tokens, " whose keys begin at token ", from, " on"));
  const std::int64_t first = first_needed(std::max<std::int64_t>(0, tokens - page_)), count = pages_in(tokens) - first;
  if (count > pool_.num_free())
    for (Sequence& s : sequences_) give_back(s, s.computed);
  if (count > pool_.num_free())
    throw Error(ErrorCode::OutOfMemory,
                concat_text("the KV cache of layers with sliding windows is full: ", count, " of its ", this->pages(),
                            " pages are needed, ", pool_.num_free(), " are free"),
                "end other sequences");
  std::vector<PageId> taken;
  taken.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) taken.push_back(*pool_.alloc());
  try {
    adopt(sequence, tokens, first, taken);
    Sequence& s = sequences_[checked(sequence)];
    s.from = std::max(s.from, from);
  } catch (...) {
    for (const PageId page : taken) pool_.release(page);
    throw;
  }
}

void KvWindows::truncate(std::int64_t sequence, std::int64_t length) {
  Sequence& s = sequences_[checked(sequence)];
  if (length >= s.computed) return;
  if (length < 0 || (length != 0 && length < shortest(sequence)))
    refuse_window(
        concat_text("sequence ", sequence, " has ", s.computed,
                    " tokens, of which layers with sliding windows keep only the last: it cannot be truncated to ",
                    length, ", only to 0 or to at least ", shortest(sequence)),
        "keep all keys of such layers (DecoderOptions::whole_windows), or run the text again");
  for (const std::int64_t kept = std::max(s.first, pages_in(length)); s.end() > kept; s.pages.pop_back())
    pool_.release(s.pages.back());
  if (length == 0) {
    for (const PageId page : s.pages) pool_.release(page);
    s = Sequence{};
  }
  s.computed = length;
}

}  // namespace rlx
