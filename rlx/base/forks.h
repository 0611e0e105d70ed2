// Forks: their detection, and locks that a child process can live with. A fork copies the memory of all threads but
// only the thread that forked, and no device that a library had opened.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace rlx {

/// The number of forks between the first process that called this function and this process. An object that stores the
/// count at its creation can detect that it is in a child process, where its threads do not exist.
int fork_count() noexcept;
namespace detail {
inline std::atomic<int> forks{0};
}  // namespace detail
/// The same for an object that has called fork_count() before: one load.
inline int forks_so_far() noexcept { return detail::forks.load(std::memory_order_relaxed); }

inline constexpr std::string_view kForkedAway =
    "was opened before this process was forked and works only in the parent process";
inline constexpr std::string_view kForkHint =
    "open devices after the fork, or start new processes (in Python: multiprocessing.get_context(\"spawn\"))";

/// Throws InvalidArgument: another thread was inside a call of `what` when this process was forked.
[[noreturn]] void throw_used_at_fork(std::string_view what);

/// A mutex for the state of one object, which may be held for long. In the child of a fork, an object that another
/// thread of the parent was using is in an unknown state: there lock() throws an Error that names it, and does not wait
/// for a thread that does not exist. It also throws in the thread that has the lock, which would wait for itself: a
/// callback of a call that calls the object again.
class ObjectMutex {
 public:
  /// `what` names the object in the error; it must outlive the mutex.
  explicit ObjectMutex(std::string_view what) : what_(what) { (void)fork_count(); }
  ObjectMutex(const ObjectMutex&) = delete;
  ObjectMutex& operator=(const ObjectMutex&) = delete;
  void lock() {
    if (!try_lock()) wait_and_lock();
  }
  bool try_lock() {
    std::uint32_t free = 0;
    if (!word_.compare_exchange_strong(free, held(), std::memory_order_acquire, std::memory_order_relaxed))
      return false;
    holder_.store(this_thread(), std::memory_order_relaxed);
    return true;
  }
  void unlock() {
    holder_.store(nullptr, std::memory_order_relaxed);
    if ((word_.exchange(0, std::memory_order_release) & kWaiters) != 0) word_.notify_all();
  }

  /// During its life this thread counts as the one that has the lock: around a callback that a worker of the holder
  /// calls. One at a time.
  class AsHolder {
   public:
    explicit AsHolder(ObjectMutex& mutex) noexcept
        : mutex_(mutex), before_(mutex.holder_.exchange(this_thread(), std::memory_order_relaxed)) {}
    ~AsHolder() { mutex_.holder_.store(before_, std::memory_order_relaxed); }
    AsHolder(const AsHolder&) = delete;
    AsHolder& operator=(const AsHolder&) = delete;

   private:
    ObjectMutex& mutex_;
    const void* before_;
  };

 private:
  static constexpr std::uint32_t kWaiters = 1;
  static std::uint32_t held() { return (static_cast<std::uint32_t>(forks_so_far()) + 1) << 1; }
  void wait_and_lock();
  static const void* this_thread() {
    static thread_local const char here = 0;
    return &here;
  }
  std::atomic<std::uint32_t> word_{0};  // 0: free; else the fork count of the holder, and whether threads wait
  std::atomic<const void*> holder_{nullptr};
  std::string_view what_;
};

/// A mutex for the state of the process that is held only for moments: registries, caches, lists of spare memory.
/// fork() takes all of them first, so the child finds each of them free and its state whole. Never held while foreign
/// code runs.
class ProcessMutex {
 public:
  ProcessMutex();
  ~ProcessMutex();
  ProcessMutex(const ProcessMutex&) = delete;
  ProcessMutex& operator=(const ProcessMutex&) = delete;
  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct ProcessMutexes;
  std::mutex mutex_;
  ProcessMutex *next_ = nullptr, *before_ = nullptr;
};

}  // namespace rlx
