// Who is inside a CompiledGraph. Runs of a program that keeps nothing between runs proceed at once, the first on the
// memory of the object and others on spare instances. Calls that change the object wait until it is empty. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "rlx/base/forks.h"

namespace rlx {

/// One word for all threads. A call that finds nobody inside pays one atomic operation to enter and one to leave.
/// Nothing here is a mutex, so the child of a fork can tell what threads of its parent have left behind.
class CallGate {
 public:
  /// What a call uses.
  enum class Use : std::uint8_t {
    AnyInstance,  // a run whose results go to the caller
    Own,          // the instance of the object: its states, its results, its last shape
    Nothing,      // what only changes when nobody is inside
    Change,       // the object, alone
  };
  /// What it got.
  enum class Place : std::uint8_t { Own, Spare, Nothing, Change };
  struct Entry {
    Place place;
    int forks;  // fork_count() when it entered
  };

  CallGate();
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

  /// Where this thread, or the thread whose run it works for, is already: a callback may call the program that runs it.
  enum class Inside : std::uint8_t { No, Elsewhere, AtOwn };

  /// Enters if the object is empty.
  bool try_enter(Use use, Entry& e) {
    if (use > Use::Own || forks_.load(std::memory_order_relaxed) != forks_so_far()) return false;
    std::uint32_t empty = 0;
    e = {Place::Own, forks_so_far()};
    return word_.compare_exchange_strong(empty, kOwn, std::memory_order_acquire, std::memory_order_relaxed);
  }
  /// Waits until the call may proceed. `name` is the graph in errors. Throws when the wait would never end.
  Entry enter(Use use, const std::string& name, Inside inside);
  void leave(Entry e) noexcept {
    std::uint32_t alone = kOwn;
    if (e.place == Place::Own &&
        word_.compare_exchange_strong(alone, 0, std::memory_order_release, std::memory_order_relaxed))
      return;
    leave_slowly(e);
  }

  /// True: runs take turns, because the program keeps values from run to run. Set by a Change.
  void set_serial(bool serial) { serial_.store(serial, std::memory_order_relaxed); }
  bool serial() const { return serial_.load(std::memory_order_relaxed); }

  /// For the destructor: waits until nobody is inside. Returns false in the child of a fork when a thread of the parent
  /// was inside: the memory that it used must be left alone.
  bool close() noexcept;
  /// Whether nobody is inside. False in the child of a fork for an object of the parent.
  bool empty() const noexcept {
    return !forked() && !own_lost_.load(std::memory_order_relaxed) && !broken_.load(std::memory_order_relaxed) &&
           (word_.load(std::memory_order_acquire) & ~kWaiters) == 0;
  }

 private:
  static constexpr std::uint32_t kOwn = 1, kChange = 2, kWaiters = 4, kOther = 8;  // kOther: calls at other places
  static bool changing(std::uint32_t w) { return (w & kChange) != 0; }
  static std::uint32_t users(std::uint32_t w) { return w & ~(kChange | kWaiters); }

  void leave_slowly(Entry e) noexcept;
  void wait(std::uint32_t seen) noexcept;
  /// In the child of a fork: forgets the calls of threads that do not exist here.
  void after_fork() noexcept;
  bool forked() const noexcept { return forks_.load(std::memory_order_acquire) != forks_so_far(); }

  std::atomic<std::uint32_t> word_{0};
  std::atomic<bool> serial_{false};
  std::atomic<bool> own_lost_{false};  // a thread of the parent was using the instance at the fork; kOwn stays set
  std::atomic<bool> broken_{false};    // it was changing the object
  std::atomic<int> forks_;
};

}  // namespace rlx
