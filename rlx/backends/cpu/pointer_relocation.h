// Relocation of the pointers of a bound program for the memory of each run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// The pointers of a program into callers' buffers, weights and states.
class PointerRelocation {
 public:
  PointerRelocation() = default;
  /// The patched fields must not move afterwards.
  explicit PointerRelocation(std::vector<Patch> patches);
  /// Rewrites pointers into buffers that differ from those of the last run.
  void follow(const RunArguments& a);

 private:
  /// All patches of one buffer.
  struct Relocated {
    Place place;
    std::uint32_t index;
    std::size_t begin, end;
    const std::byte* last;
  };

  void follow(Relocated& f, std::span<const RunSlot> slots);
  void point(Relocated& f, const std::byte* base);
  std::vector<Patch> patches_;
  std::vector<Relocated> callers_, binding_generation_;
  static constexpr std::uint64_t kNoGeneration = ~std::uint64_t{0};
  std::uint64_t seen_generation_ = kNoGeneration;
};

}  // namespace rlx::cpu
