// A pool of memory blocks for shared objects, so that runs allocate nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "rlx/error.h"

namespace rlx {

/// Recycles blocks of one size. Its functions may be called from any thread.
class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    for (void* b : free_) ::operator delete(b);
  }
  void* take(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    check(bytes_ == 0 || bytes_ == bytes, "a block pool was asked for blocks of two sizes");
    bytes_ = bytes;
    if (free_.empty()) grow();
    void* const b = free_.back();
    free_.pop_back();
    return b;
  }
  void give(void* block) noexcept {
    std::lock_guard lock(mutex_);
    free_.push_back(block);  // cannot allocate: the list has room for all blocks made
  }

 private:
  // Doubles the number of blocks. The number in use at once depends on the speed of other threads, so a run should not
  // have to grow the pool.
  void grow() {
    const std::size_t more = std::max<std::size_t>(8, made_);
    free_.reserve(made_ + more);
    try {
      for (std::size_t i = 0; i < more; ++i, ++made_) free_.push_back(::operator new(bytes_));
    } catch (const std::bad_alloc&) {
      if (free_.empty()) throw;
    }
  }
  std::mutex mutex_;  // guards the members below
  std::vector<void*> free_;
  std::size_t bytes_ = 0, made_ = 0;
};

namespace detail {

template <class T>
struct PoolAllocator {
  using value_type = T;
  std::shared_ptr<BlockPool> pool;
  explicit PoolAllocator(std::shared_ptr<BlockPool> p) : pool(std::move(p)) {}
  template <class U>
  PoolAllocator(const PoolAllocator<U>& other) : pool(other.pool) {}  // NOLINT(implicit)
  T* allocate(std::size_t n) { return static_cast<T*>(pool->take(n * sizeof(T))); }
  void deallocate(T* p, std::size_t) noexcept { pool->give(p); }
  template <class U>
  bool operator==(const PoolAllocator<U>& other) const {
    return pool == other.pool;
  }
};

}  // namespace detail

/// std::make_shared in a block of the pool. The pool lives as long as the last of its objects, and serves one type.
template <class T, class... Args>
std::shared_ptr<T> make_pooled(const std::shared_ptr<BlockPool>& pool, Args&&... args) {
  return std::allocate_shared<T>(detail::PoolAllocator<T>(pool), std::forward<Args>(args)...);
}

}  // namespace rlx
