// The page tables of sliding-window layers. These layers see only the last tokens of a sequence, so older pages are
// freed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rlx/models/decoder/page_pool.h"

namespace rlx {

/// `count` new tokens of a sequence after `done` tokens.
struct KvRun {
  std::int64_t sequence = 0, done = 0, count = 0;
};

/// The pool of sliding-window layers, and the pages that hold the last tokens of each sequence. A sequence keeps the
/// keys of a window and of the `page` tokens before it. So it can be truncated by that many tokens and continue at its
/// last whole page, whatever else is in the pool. Not for concurrent calls.
class KvWindows {
 public:
  /// `window`: tokens that a token attends to, including itself. InvalidArgument for sizes below 1 or above 2^30, and
  /// for too many rows to count.
  KvWindows(std::int64_t sequences, std::int64_t context, std::int64_t window, std::int64_t page, std::int64_t pages);

  /// Pages that all sequences together need when a run has `max_tokens` tokens. InvalidArgument as for the constructor.
  static std::int64_t pages_for(std::int64_t sequences, std::int64_t context, std::int64_t window, std::int64_t page,
                                std::int64_t max_tokens);

  std::int64_t window() const { return window_; }
  std::int64_t page() const { return page_; }
  std::int64_t pages() const { return pool_.num_pages(); }
  std::int64_t pages_per_sequence() const { return (context_ + page_ - 1) / page_; }
  KvPagePool& pool() { return pool_; }
  const KvPagePool& pool() const { return pool_; }

  /// The first page, counted from the sequence's beginning, that the token after `tokens` tokens needs.
  std::int64_t first_needed(std::int64_t tokens) const;
  /// The first page that a sequence still has; `table`: its pages from there on. InvalidArgument for an unknown
  /// sequence.
  std::int64_t first(std::int64_t sequence) const;
  std::span<const PageId> table(std::int64_t sequence) const;
  /// The pool row of a token. InvalidArgument for a token whose page was freed.
  std::int32_t slot(std::int64_t sequence, std::int64_t position) const;
  /// The smallest nonzero length that a sequence can be truncated to.
  std::int64_t shortest(std::int64_t sequence) const;

  /// Frees the pages that sequences need not keep, and returns how many are still missing for a run.
  std::int64_t make_room(std::span<const KvRun> run);
  /// Reserves the pages of a run. Errors reserve nothing: OutOfMemory when pages are missing, InvalidArgument where a
  /// shared page would be written.
  void reserve(std::span<const KvRun> run);
  /// Starts a sequence without pages at `tokens` tokens, whose keys are in `pages`, from page `first` on. The caller
  /// holds the pages and transfers them. InvalidArgument where they lack keys that the next token needs.
  void adopt(std::int64_t sequence, std::int64_t tokens, std::int64_t first, std::span<const PageId> pages);
  /// The same with free pages, for keys that are about to be written, at least those from token `from` on. OutOfMemory
  /// when there are too few.
  void begin(std::int64_t sequence, std::int64_t tokens, std::int64_t from = 0);
  /// Keeps the first `length` tokens. InvalidArgument for a length between 0 and `shortest`.
  void truncate(std::int64_t sequence, std::int64_t length);

 private:
  struct Sequence {
    std::int64_t computed = 0;  // tokens whose keys were written
    std::int64_t first = 0;     // page
    std::int64_t from = 0;      // the first token whose keys exist
    std::vector<PageId> pages{};
    std::int64_t end() const { return first + static_cast<std::int64_t>(pages.size()); }
  };
  std::size_t checked(std::int64_t sequence) const;
  std::int64_t pages_in(std::int64_t tokens) const { return (tokens + page_ - 1) / page_; }
  std::int64_t missing(std::span<const KvRun> run) const;
  void give_back(Sequence& s, std::int64_t tokens);

  std::int64_t context_, window_, page_;
  std::vector<Sequence> sequences_;
  KvPagePool pool_;
};

}  // namespace rlx
