// Counts forks with a handler in the child, and takes the locks of the process around each fork.
#include "rlx/base/forks.h"

#include <chrono>
#include <thread>
#ifndef _WIN32
#include <pthread.h>
#endif

#include "rlx/error.h"

namespace rlx {

/// All mutexes of the process, in a list of their own.
struct ProcessMutexes {
  std::mutex listed;
  ProcessMutex* first = nullptr;
  bool taken = false;  // by the fork under way

  static ProcessMutexes& all() {
    static auto& all = *new ProcessMutexes;  // never destroyed: a mutex may be a static of any file
    return all;
  }

  // Takes all of them, in any order: a thread that holds one may want another, so this one never waits while it holds
  // some.
  void take() {
    listed.lock();
    constexpr int kMostTries = 2000;  // a second or so: then the child takes its chance
    for (int tries = 0; tries < kMostTries && !taken; ++tries) {
      ProcessMutex* m = first;
      while (m && m->mutex_.try_lock()) m = m->next_;
      taken = m == nullptr;
      if (taken) return;
      for (ProcessMutex* held = first; held != m; held = held->next_) held->mutex_.unlock();
      if (tries < 100)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  }
  void release() {
    if (taken)
      for (ProcessMutex* m = first; m; m = m->next_) m->mutex_.unlock();
    taken = false;
    listed.unlock();
  }
};

namespace {
void watch_forks() noexcept {
#ifndef _WIN32
  static const int watching =
      ::pthread_atfork([] { ProcessMutexes::all().take(); }, [] { ProcessMutexes::all().release(); },
                       [] {
                         detail::forks.fetch_add(1, std::memory_order_relaxed);
                         ProcessMutexes::all().release();
                       });
  (void)watching;
#endif
}
}  // namespace

int fork_count() noexcept {
  watch_forks();
  return forks_so_far();
}

void throw_used_at_fork(std::string_view what) {
  throw Error(ErrorCode::InvalidArgument,
              concat_text(what, " was in use by another thread when this process was forked"),
              "make another one in this process, or fork when no other thread is inside a call of it");
}

void ObjectMutex::wait_and_lock() {
  const std::uint32_t mine = held();
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  for (;;) {
    if (seen == 0) {
      // Other threads may wait too, and only one of them is here.
      if (!word_.compare_exchange_weak(seen, mine | kWaiters, std::memory_order_acquire, std::memory_order_relaxed))
        continue;
      holder_.store(this_thread(), std::memory_order_relaxed);
      return;
    }
    if (holder_.load(std::memory_order_relaxed) == this_thread())
      throw Error(
          ErrorCode::InvalidArgument,
          concat_text(what_, " is called from inside its own call, and this call would wait for the end of that ",
                      "call"),
          "call it after the callback, or use another object in it");
    if ((seen & ~kWaiters) != mine) throw_used_at_fork(what_);
    if ((seen & kWaiters) == 0 &&
        !word_.compare_exchange_weak(seen, seen | kWaiters, std::memory_order_relaxed, std::memory_order_relaxed))
      continue;
    word_.wait(seen | kWaiters, std::memory_order_relaxed);
    seen = word_.load(std::memory_order_relaxed);
  }
}

ProcessMutex::ProcessMutex() {
  watch_forks();
  ProcessMutexes& all = ProcessMutexes::all();
  const std::lock_guard lock(all.listed);
  next_ = all.first;
  if (next_) next_->before_ = this;
  all.first = this;
}
ProcessMutex::~ProcessMutex() {
  ProcessMutexes& all = ProcessMutexes::all();
  const std::lock_guard lock(all.listed);
  (before_ ? before_->next_ : all.first) = next_;
  if (next_) next_->before_ = before_;
}

}  // namespace rlx
