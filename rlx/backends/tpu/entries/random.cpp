// Random bits: Threefry-2x32 in integer ops, so that they are the same on every device.
#include "rlx/ir/ops/random.h"
#include "rlx/backends/tpu/entries.h"
#include "rlx/backends/tpu/expression.h"
#include "rlx/ir/math/threefry.h"

namespace rlx::tpu {
namespace {

Term shifted_left(const Term& x, int by) { return x.apply("shift_left", x.like(by)); }
Term shifted_right(const Term& x, int by) { return x.apply("shift_right_logical", x.like(by)); }

void emit_rng_bits(EmitContext& c) {
  Writer& w = c.w;
  const Extents dims = c.dims();
  const Hlo& key = c.in(0);
  const int lead = key.rank() - 1;
  std::vector<std::int64_t> lead_axes;
  for (std::int64_t i = 0; i < lead; ++i) lead_axes.push_back(i);
  const Extents lead_dims(key.dims.begin(), key.dims.end() - 1);
  const auto word = [&](std::int64_t k) {
    std::vector<std::int64_t> starts(key.dims.size(), 0), limits = key.dims, strides(key.dims.size(), 1);
    starts.back() = k, limits.back() = k + 1;
    return Term(w, w.broadcast(w.reshape(w.slice(key, starts, limits, strides), lead_dims), dims, lead_axes));
  };
  // The row-major index of each element within its key's block, and the start of the block.
  std::int64_t count = 1;
  for (std::size_t i = static_cast<std::size_t>(lead); i < dims.size(); ++i) count *= dims[i];
  const Extents own(dims.begin() + lead, dims.end());
  std::vector<std::int64_t> own_axes;
  for (std::int64_t i = lead; i < static_cast<std::int64_t>(dims.size()); ++i) own_axes.push_back(i);
  Term at(w, w.broadcast(w.reshape(w.iota(DType::U64, {count}, 0), own), dims, own_axes));
  if (c.num_inputs() > 1) {
    const Hlo& first = c.in(1);
    at = at + Term(w, w.broadcast(first, dims, first.rank() == 0 ? std::vector<std::int64_t>() : lead_axes));
  }
  const Term k0 = word(0), k1 = word(1);
  const Term parity(w, w.broadcast(w.scalar_bits(DType::U32, kThreefryParity), dims, {}));
  const Term keys[] = {k0, k1, k0 ^ k1 ^ parity};
  Term x0 = shifted_right(at, 32).to(DType::U32) + keys[0], x1 = at.to(DType::U32) + keys[1];
  for (std::size_t group = 0; group < 5; ++group) {
    for (const int r : kThreefryRotations[group % 2]) {
      x0 = x0 + x1;
      x1 = (shifted_left(x1, r) | shifted_right(x1, 32 - r)) ^ x0;
    }
    x0 = x0 + keys[(group + 1) % 3];
    x1 = x1 + keys[(group + 2) % 3] + static_cast<double>(group + 1);
  }
  if (c.dtype() == DType::U64) return c.set((shifted_left(x0.to(DType::U64), 32) | x1.to(DType::U64)).value());
  c.set((x0 ^ x1).to(c.dtype()).value());
}

}  // namespace

std::span<const KernelEntry> random_entries() {
  static constexpr KernelEntry kRows[] = {{OpKind::RngBits, never_refuses, emit_rng_bits}};
  return kRows;
}

}  // namespace rlx::tpu
