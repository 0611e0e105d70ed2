// Every form of operator new of this program, counted, and failing on request.
#include "tests/allocation/failing_new.h"
#include "tests/support/build_kind.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>
#endif

// g++ takes our own operator new, once inlined, for malloc when the thread sanitizer is on.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {

std::atomic<bool> armed{false}, lasting{false}, no_threads{false};
std::atomic<long> seen{0}, failed{0}, live{0}, fail_at{0};
std::atomic<bool> of_one{false};
thread_local bool is_the_one = false;

bool fails() {
  if (!armed.load() || (of_one && !is_the_one)) return false;
  const long n = seen.fetch_add(1) + 1;
  if (lasting ? n < fail_at : n != fail_at) return false;
  failed.fetch_add(1);
  return true;
}

void* allocate(std::size_t size, std::size_t align) noexcept {
  if (fails()) return nullptr;
  void* p = align <= alignof(std::max_align_t) ? std::malloc(size == 0 ? 1 : size)
                                               : std::aligned_alloc(align, (size + align) / align * align);
  if (p != nullptr) live.fetch_add(1);
  return p;
}
void* allocate_or_throw(std::size_t size, std::size_t align = 1) {
  if (void* p = allocate(size, align)) return p;
  throw std::bad_alloc();
}
void release(void* p) noexcept {
  if (p == nullptr) return;
  live.fetch_sub(1);
  std::free(p);
}

}  // namespace

namespace rlx::test {
void arm(long nth, Shortage shortage, Whose whose) {
  is_the_one = true;
  of_one = whose == Whose::ThisThread;
  seen = 0;
  failed = 0;
  fail_at = nth;
  lasting = shortage == Shortage::Lasting;
  armed = true;
}
long disarm() {
  armed = false;
  is_the_one = false;
  return failed;
}
long counted() { return seen; }
long live_blocks() { return live; }
NoNewThreads::NoNewThreads() { no_threads = true; }
NoNewThreads::~NoNewThreads() { no_threads = false; }
}  // namespace rlx::test

// The address sanitizer leaves these to a program that has its own; it still watches the malloc below them.
void* operator new(std::size_t n) { return allocate_or_throw(n); }
void* operator new[](std::size_t n) { return allocate_or_throw(n); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }

#if defined(__linux__) && defined(__x86_64__) && !defined(RLX_ADDRESS_SANITIZER) && !defined(RLX_THREAD_SANITIZER)
// std::thread starts its threads through this symbol; ours stands before the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*start)(void*), void* arg) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (no_threads || real == nullptr) return EAGAIN;
  return real(thread, attr, start, arg);
}
bool rlx::test::can_refuse_threads() { return true; }
#else
bool rlx::test::can_refuse_threads() { return false; }
#endif
