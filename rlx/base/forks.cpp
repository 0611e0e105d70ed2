// Counts forks with a handler in the child.
#include "rlx/base/forks.h"

#include <atomic>
#ifndef _WIN32
#include <pthread.h>
#endif

namespace rlx {
namespace {
std::atomic<int> forks{0};
}  // namespace

int fork_count() noexcept {
#ifndef _WIN32
  static const int watching = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)watching;
#endif
  return forks.load(std::memory_order_relaxed);
}

}  // namespace rlx
