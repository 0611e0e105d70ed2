// memfd pages mapped twice.
#include "tests/adversarial/adversarial_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "rlx/error.h"

namespace rlx::test {
namespace {

// Maps `pages` bytes of `fd` between two inaccessible pages. Returns the address of the first guard.
std::byte* map_between_guards(int fd, std::size_t pages, std::size_t page, int protection) {
  void* all = ::mmap(nullptr, pages + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(all != MAP_FAILED, "no address space for a buffer of the adversarial test device");
  auto* first = static_cast<std::byte*>(all);
  check(::mmap(first + page, pages, protection, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED,
        "the pages of a buffer of the adversarial test device cannot be mapped");
  return first;
}

}  // namespace

AdversarialBytes::AdversarialBytes(std::size_t bytes, bool for_host, std::size_t alignment,
                                   std::shared_ptr<std::atomic<std::size_t>> in_use)
    : bytes_(bytes), for_host_(for_host), in_use_(std::move(in_use)) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
  const std::size_t padded = (bytes + alignment - 1) / alignment * alignment;
  pages_ = std::max<std::size_t>(1, (padded + page - 1) / page) * page;
  start_ = pages_ - padded;  // the bytes end at the guard page
  const int fd = ::memfd_create("rlx-adversarial", MFD_CLOEXEC);
  check(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(pages_)) == 0,
        "no memory for a buffer of the adversarial test device");
  host_map_ = map_between_guards(fd, pages_, page, for_host ? PROT_READ | PROT_WRITE : PROT_NONE);
  worker_map_ = map_between_guards(fd, pages_, page, PROT_READ | PROT_WRITE);
  ::close(fd);
  host_ = host_map_ + page;
  worker_ = worker_map_ + page;
  std::memset(worker_, 0xff, pages_);
  *in_use_ += bytes_;
}

AdversarialBytes::~AdversarialBytes() {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
  ::munmap(host_map_, pages_ + 2 * page);
  ::munmap(worker_map_, pages_ + 2 * page);
  *in_use_ -= bytes_;
}

void AdversarialBytes::protect(bool open) {
  check(::mprotect(host_, pages_, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0, "mprotect of a read-back buffer");
}

void AdversarialBytes::begin_work() {
  if (!for_host_) return;
  std::lock_guard lock(mutex_);
  if (users_++ == 0) protect(false);
}

void AdversarialBytes::end_work() {
  if (!for_host_) return;
  std::lock_guard lock(mutex_);
  if (--users_ == 0) protect(true);
}

}  // namespace rlx::test
