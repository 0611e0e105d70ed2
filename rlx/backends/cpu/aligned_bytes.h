// Owned 64-byte aligned memory for kernels.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "rlx/error.h"

namespace rlx::cpu {

inline constexpr std::size_t kAlignment = 64;

/// `n` rounded up to a multiple of the alignment.
inline std::size_t round_up(std::size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

/// 64-byte aligned bytes.
struct AlignedBytes {
  std::byte* data = nullptr;
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t n)
      : data(static_cast<std::byte*>(::operator new(round_up(n + 1), std::align_val_t{kAlignment}, std::nothrow))) {
    if (!data) throw Error(ErrorCode::OutOfMemory, concat_text("no memory for ", n, " bytes of kernel scratch"));
  }
  AlignedBytes(AlignedBytes&& other) noexcept : data(std::exchange(other.data, nullptr)) {}
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    std::swap(data, other.data);
    return *this;
  }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  ~AlignedBytes() { ::operator delete(data, std::align_val_t{kAlignment}); }
};

}  // namespace rlx::cpu
