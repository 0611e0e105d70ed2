// The pages of layers with a window: these see the last tokens of a sequence alone, so what lies behind is given back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rlx/models/decoder/page_pool.h"

namespace rlx {

/// `count` new tokens of a sequence that has `done` before them.
struct KvRun {
  std::int64_t sequence = 0, done = 0, count = 0;
};

/// A pool of its own for the layers with a window, and which of its pages hold the last tokens of each sequence. A
/// sequence keeps the keys of a window and of `page` tokens before it: it can be cut by as many tokens, and go on at
/// its last whole page, whatever else the pool has to hold. Not for concurrent calls.
class KvWindows {
 public:
  /// `window`: tokens that a token sees, itself among them. InvalidArgument for sizes below 1 or above 2^30, and for
  /// more rows than can be counted.
  KvWindows(std::int64_t sequences, std::int64_t context, std::int64_t window, std::int64_t page, std::int64_t pages);

  /// Pages that all sequences need together when a run has `max_tokens` tokens. InvalidArgument as the constructor.
  static std::int64_t pages_for(std::int64_t sequences, std::int64_t context, std::int64_t window, std::int64_t page,
                                std::int64_t max_tokens);

  std::int64_t window() const { return window_; }
  std::int64_t page() const { return page_; }
  std::int64_t pages() const { return pool_.num_pages(); }
  std::int64_t pages_per_sequence() const { return (context_ + page_ - 1) / page_; }
  KvPagePool& pool() { return pool_; }
  const KvPagePool& pool() const { return pool_; }

  /// The first page, counted from the sequence's beginning, that the token behind `tokens` tokens needs.
  std::int64_t first_needed(std::int64_t tokens) const;
  /// The first page that a sequence has, and those from there on. InvalidArgument for a sequence that is not there.
  std::int64_t first(std::int64_t sequence) const;
  std::span<const PageId> table(std::int64_t sequence) const;
  /// The row of the pool of a token. InvalidArgument for one whose page the sequence does not have.
  std::int32_t slot(std::int64_t sequence, std::int64_t position) const;
  /// The fewest tokens, none aside, that a sequence can be cut to.
  std::int64_t shortest(std::int64_t sequence) const;

  /// How many pages are missing for a run, when sequences have given back what they need not keep.
  std::int64_t make_room(std::span<const KvRun> run);
  /// Makes room for a run. Errors, which take no page: OutOfMemory when pages are missing, InvalidArgument where a page
  /// that others hold too would be written.
  void reserve(std::span<const KvRun> run);
  /// Begins a sequence that has no pages with `tokens` tokens, whose keys are in `pages`, from page `first` on; the
  /// caller holds them and hands them over. InvalidArgument where these do not hold what the next token needs.
  void adopt(std::int64_t sequence, std::int64_t tokens, std::int64_t first, std::span<const PageId> pages);
  /// The same with free pages, for keys that are about to be written, those from token `from` on at least. OutOfMemory
  /// when there are too few.
  void begin(std::int64_t sequence, std::int64_t tokens, std::int64_t from = 0);
  /// Keeps the first `length` tokens. InvalidArgument for fewer than `shortest`, but 0.
  void truncate(std::int64_t sequence, std::int64_t length);

 private:
  struct Sequence {
    std::int64_t computed = 0;  // tokens whose keys were written
    std::int64_t first = 0;     // page
    std::int64_t from = 0;      // token whose keys are the first ones
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
