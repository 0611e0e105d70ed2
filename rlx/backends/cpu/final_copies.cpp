// Copies that run after all tasks.
#include "rlx/backends/cpu/final_copies.h"

#include <cstring>

#include "rlx/backends/cpu/instance.h"

namespace rlx::cpu {

/// A copy of a value to an output or to a state.
struct FinalCopy {
  StridedCopy copy;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t bytes = 0;  // when dense: one memcpy of this size
  void run(const KernelTable& k) const {
    if (bytes > 0) {
      if (y != x) std::memmove(y, x, bytes);
    } else {
      for (std::int64_t c = 0; c < copy.chunks; ++c) k.strided_copy(copy, x, y, c);
    }
  }
};

void FinalCopies::make(CpuInstance& of) {
  std::vector<const FinalCopy*> from_buffers, to_states;
  for (const LirOutputCopy& c : of.lir().plan.output_copies) {
    LowerContext lower = of.lowering(c.value.node);
    FinalCopy& copy = add(lower, lower.value(c.value));
    of.patch({&copy.y, Place::Output, c.output, 0});
  }
  for (const LirStateCopy& c : of.lir().plan.state_copies) {
    LowerContext lower = of.lowering(c.value.node);
    View from = lower.value(c.value);
    if (from.where->place == Place::State) {
      if (from.where->index == c.state && from.dense() && from.where->offset == 0) continue;
      FinalCopy& stage = add(lower, from);
      stage.y = lower.workspace(size_bytes(from.dtype, from.elements()));
      FinalCopy& copy = lower.keep<FinalCopy>();
      copy.x = stage.y;
      of.patch({&copy.y, Place::State, c.state, 0});
      copy.bytes = size_bytes(from.dtype, from.elements());
      from_buffers.push_back(&copy);
    } else {
      of.patch({&add(lower, from).y, Place::State, c.state, 0});
      to_states.push_back(copies_.back());
      copies_.pop_back();
    }
  }
  for (const auto& list : {to_states, from_buffers}) copies_.insert(copies_.end(), list.begin(), list.end());
}

FinalCopy& FinalCopies::add(LowerContext& lower, const View& from) {
  auto& copy = lower.keep<FinalCopy>();
  lower.point(copy.x, from);
  if (from.dense()) {
    copy.bytes = size_bytes(from.dtype, from.elements());
  } else {
    check(from.rank() <= kCopyMaxRank && size_bytes(from.dtype) > 0,
          "a strided output has a rank or dtype that cannot be copied");
    StridedCopy& s = copy.copy;
    s.rank = from.rank();
    s.element_bytes = static_cast<int>(size_bytes(from.dtype));
    const auto dense = row_major_strides(from.dims);
    for (std::size_t i = 0; i < from.dims.size(); ++i) {
      s.dims[i] = from.dims[i];
      s.x_strides[i] = from.strides[i];
      s.y_strides[i] = dense[i];
    }
    copy_prepare(s);
  }
  copies_.push_back(&copy);
  return copy;
}

void FinalCopies::run(const KernelTable& kernels) const {
  for (const FinalCopy* c : copies_) c->run(kernels);
}

}  // namespace rlx::cpu
