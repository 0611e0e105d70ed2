// The entries that wait, and what a child process makes of the calls of its parent.
#include "rlx/runtime/call_gate.h"

#include <mutex>

#include "rlx/base/forks.h"
#include "rlx/error.h"

namespace rlx {

CallGate::CallGate() : forks_(fork_count()) {}

void CallGate::wait(std::uint32_t seen) noexcept {
  if ((seen & kWaiters) == 0 &&
      !word_.compare_exchange_strong(seen, seen | kWaiters, std::memory_order_relaxed, std::memory_order_relaxed))
    return;
  word_.wait(seen | kWaiters, std::memory_order_relaxed);
}

CallGate::Entry CallGate::enter(Use use, const std::string& name, Inside inside) {
  const auto refuse = [&] {
    throw Error(
        ErrorCode::InvalidArgument,
        concat_text("graph '", name, "' is called from inside its own run, and this call would wait for the end ",
                    "of that run"),
        "use a clone() in the callback or custom kernel");
  };
  bool claimed = false;  // kChange is ours, and those inside leave
  for (;;) {
    if (forked()) after_fork();
    if (broken_.load(std::memory_order_relaxed)) throw_used_at_fork(concat_text("graph '", name, "'"));
    const bool own_lost = own_lost_.load(std::memory_order_relaxed);
    const int forks = forks_.load(std::memory_order_relaxed);
    std::uint32_t w = word_.load(std::memory_order_acquire);
    if (use == Use::Change) {
      if (inside != Inside::No) refuse();
      if (own_lost) throw_used_at_fork(concat_text("graph '", name, "'"));
      if (claimed && users(w) == 0) return {Place::Change, forks};
      if (!claimed && !changing(w)) {
        claimed = word_.compare_exchange_weak(w, w | kChange, std::memory_order_acquire, std::memory_order_relaxed);
        continue;
      }
    } else if (!changing(w) || (inside != Inside::No && users(w) != 0)) {  // a change that waits for us lets us pass
      if (use != Use::Nothing && (w & kOwn) == 0) {
        if (word_.compare_exchange_weak(w, w | kOwn, std::memory_order_acquire, std::memory_order_relaxed))
          return {Place::Own, forks};
        continue;
      }
      if (use == Use::Nothing || (use == Use::AnyInstance && !serial())) {
        if (!word_.compare_exchange_weak(w, w + kOther, std::memory_order_acquire, std::memory_order_relaxed)) continue;
        const Entry e{use == Use::Nothing ? Place::Nothing : Place::Spare, forks};
        if (use == Use::Nothing || !serial()) return e;
        leave_slowly(e);  // a change came in between
        continue;
      }
      if (own_lost) throw_used_at_fork(concat_text("graph '", name, "'"));
      if (inside == Inside::AtOwn) refuse();
    } else if (inside != Inside::No) {
      refuse();  // this thread is changing the object
    }
    wait(w);
  }
}

void CallGate::leave_slowly(Entry e) noexcept {
  if (e.forks != forks_.load(std::memory_order_acquire)) return;  // forgotten: the child of a fork, in a callback
  std::uint32_t before = word_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t gone = e.place == Place::Own ? kOwn : e.place == Place::Change ? kChange : kOther;
    const std::uint32_t after = (before - gone) & ~kWaiters;
    if (word_.compare_exchange_weak(before, after, std::memory_order_release, std::memory_order_relaxed)) break;
  }
  if ((before & kWaiters) != 0) word_.notify_all();
}

bool CallGate::close() noexcept {
  for (;;) {
    if (forked()) after_fork();
    if (own_lost_.load(std::memory_order_relaxed) || broken_.load(std::memory_order_relaxed)) return false;
    const std::uint32_t w = word_.load(std::memory_order_acquire);
    if ((w & ~kWaiters) == 0) return true;
    wait(w);
  }
}

void CallGate::after_fork() noexcept {
  static auto& mutex = *new ProcessMutex;
  const std::lock_guard lock(mutex);
  if (!forked()) return;
  const std::uint32_t w = word_.load(std::memory_order_relaxed);
  if (changing(w) && users(w) == 0) broken_.store(true, std::memory_order_relaxed);
  if ((w & kOwn) != 0) own_lost_.store(true, std::memory_order_relaxed);
  word_.store(w & kOwn, std::memory_order_relaxed);
  forks_.store(fork_count(), std::memory_order_release);
}

}  // namespace rlx
