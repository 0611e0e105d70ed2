// Copies in both directions share one loop over runs of bytes.
#include "rlx/exec/planned_value.h"

#include <cstring>
#include <vector>

namespace rlx {
namespace {

// Calls move(planned offset, dense offset, bytes) for each run of bytes that is contiguous in both layouts.
template <class F>
void for_each_run(const Shape& shape, const LirValue& where, F move) {
  if (shape.size_bytes() == 0) return;
  if (where.strides.empty()) return move(std::size_t{0}, std::size_t{0}, shape.size_bytes());
  const std::vector<std::int64_t> dims = shape.static_dims();
  const std::int64_t n = shape.num_elements();
  const std::size_t bytes = size_bytes(shape.dtype());
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t at = 0, rest = i;
    for (std::size_t a = dims.size(); a-- > 0;) {
      at += rest % dims[a] * where.strides[a];
      rest /= dims[a];
    }
    move(static_cast<std::size_t>(at) * bytes, static_cast<std::size_t>(i) * bytes, bytes);
  }
}

}  // namespace

void gather_value(const Shape& shape, const LirValue& where, const std::byte* planned, std::byte* dense) {
  for_each_run(shape, where,
               [&](std::size_t from, std::size_t to, std::size_t n) { std::memcpy(dense + to, planned + from, n); });
}

void spread_value(const Shape& shape, const LirValue& where, const std::byte* dense, std::byte* planned) {
  for_each_run(shape, where,
               [&](std::size_t to, std::size_t from, std::size_t n) { std::memcpy(planned + to, dense + from, n); });
}

}  // namespace rlx
