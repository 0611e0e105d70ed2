// Allocations of this program counted and made to fail: every form of operator new is replaced in failing_new.cpp.
#pragma once

#include <new>

#include <doctest/doctest.h>

#include "rlx/error.h"

namespace rlx::test {

/// What fails: the n-th allocation alone, or it and all after it, as on a machine that stays full.
enum class Shortage { One, Lasting };

/// Whose allocations are counted: those of a device that a test makes, with a thread of its own, are not rlx's.
enum class Whose { All, ThisThread };

/// From now on counts allocations and fails the `nth` (from 1 on).
void arm(long nth, Shortage shortage, Whose whose = Whose::All);
/// Nothing fails any more; returns how many allocations failed.
long disarm();
/// Allocations since `arm`.
long counted();
/// Blocks that are allocated now.
long live_blocks();

/// While it lives, threads cannot be started.
struct NoNewThreads {
  NoNewThreads();
  ~NoNewThreads();
};
/// False where the thread library cannot be stood in for (sanitizers do so themselves).
bool can_refuse_threads();

/// What a call may throw when an allocation fails: Error{OutOfMemory} alone, or std::bad_alloc too.
enum class Promise { OutOfMemory, BadAlloc };

/// Makes `call` with its first, second, ... allocation failing until it needs no more than did not fail, so that it has
/// then succeeded; calls `afterwards` after each of the others, with memory available again. Returns the failures.
template <class Call, class Afterwards>
long fail_each(Shortage shortage, Promise promise, Call call, Afterwards afterwards, Whose whose = Whose::All) {
  long failures = 0;
  for (long n = 1;; ++n) {
    bool threw = false;
    arm(n, shortage, whose);
    try {
      call();
    } catch (const Error& e) {
      disarm();
      threw = true;
      if (e.code() != ErrorCode::OutOfMemory) FAIL("allocation " << n << " failed as: " << e.what());
    } catch (const std::bad_alloc&) {
      disarm();
      threw = true;
      if (promise == Promise::OutOfMemory) FAIL("allocation " << n << " failed as std::bad_alloc");
    }
    const bool ended = counted() < n;
    disarm();
    if (!threw && ended) return failures;  // no allocation was left to fail
    if (threw) ++failures;                 // otherwise the call could do without: a buffer that only made it faster
    afterwards();
  }
}

}  // namespace rlx::test
