// Copies that run after all tasks of an instance: values to outputs and to states.
#pragma once

#include <vector>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

struct FinalCopy;
class CpuInstance;

/// Outputs are copied first, because they may read the old value of a state; then states are written. A new state value
/// that lies in another state goes through a buffer, which is filled before any state is written. So states can be
/// swapped, and a state can take the old value of another.
class FinalCopies {
 public:
  /// Makes the copies of `of`. Their pointers are relocated for each run.
  void make(CpuInstance& of);
  void run(const KernelTable& kernels) const;

 private:
  FinalCopy& add(LowerContext& lower, const View& from);
  std::vector<const FinalCopy*> copies_;  // owned by the instance
};

}  // namespace rlx::cpu
