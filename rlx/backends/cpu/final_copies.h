// Copies that run after all tasks of a program: values to outputs and to states.
#pragma once

#include <vector>

#include "rlx/backends/cpu/lowered_program.h"

namespace rlx::cpu {

struct FinalCopy;

/// Outputs are copied first, because they may read the old value of a state; then states are written. A new state value
/// that lies in another state goes through a buffer, which is filled before any state is written. So states can be
/// swapped, and a state can take the old value of another.
class FinalCopies {
 public:
  /// Makes the copies of `p`. Their pointers are relocated for each run.
  void make(LoweredProgram& p);
  void run(const KernelTable& kernels) const;

 private:
  FinalCopy& add(LowerContext& lower, const View& from);
  std::vector<const FinalCopy*> copies_;  // owned by the program
};

}  // namespace rlx::cpu
