// What a program copies after its steps: values to outputs and to states.
#pragma once

#include <vector>

#include "rlx/backends/cpu/lowered_program.h"

namespace rlx::cpu {

struct FinalCopy;

/// Output copies first (they may read a state's old value), then the states. A state whose new value lies in another
/// state goes through a buffer that is filled before any state is written, so that states can change places and one can
/// take another's old value.
class FinalCopies {
 public:
  /// Makes those of `p`, whose pointers follow the buffers of each run.
  void make(LoweredProgram& p);
  void run(const KernelTable& kernels) const;

 private:
  FinalCopy& add(LowerContext& lower, const View& from);
  std::vector<const FinalCopy*> copies_;  // kept by the program
};

}  // namespace rlx::cpu
