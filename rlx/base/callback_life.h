// Objects whose calls run callbacks of the user, which may destroy or replace the object. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace rlx {

/// A base of the implementation of such an object. The implementation lives until its last call has ended.
class CallbackLife {
 public:
  /// A call that runs callbacks. Created before everything else in it, so that it ends last.
  template <class Impl>
  class Call {
   public:
    explicit Call(Impl& impl) noexcept : impl_(impl) { impl_.calls_.fetch_add(1, std::memory_order_relaxed); }
    ~Call() {
      if (impl_.calls_.fetch_sub(1, std::memory_order_acq_rel) == kRetired + 1) delete &impl_;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Impl& impl_;
  };
  /// Destroys `impl` (or nothing), now or when its last call ends.
  template <class Impl>
  static void retire(std::unique_ptr<Impl> impl) noexcept {
    if (impl && impl->calls_.fetch_or(kRetired, std::memory_order_acq_rel) != 0) (void)impl.release();
  }

 private:
  static constexpr std::uint32_t kRetired = std::uint32_t{1} << 31;
  std::atomic<std::uint32_t> calls_{0};
};

}  // namespace rlx
