// Writes the bodies of a small loop as straight-line code.
#pragma once

#include <memory>
#include <vector>

#include "rlx/backends/cpu/aligned_bytes.h"
#include "rlx/backends/cpu/control/loop_code.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/pointer_relocation.h"

namespace rlx::cpu {

/// Null when the bodies of the branch or loop are small: few nodes, static extents, and no value or product worth a
/// second thread. Otherwise why not.
const char* bodies_not_small(const Graph& g, NodeId id);

/// The code of a loop. Its pointers into operands, results and rows are set when a run begins.
class LoopCode {
 public:
  explicit LoopCode(const KernelTable& kernels) : kernels_(kernels) {}
  LoopCode(const LoopCode&) = delete;
  LoopCode& operator=(const LoopCode&) = delete;

  /// Adds the instructions of body `body` of the node that `c` lowers. Returns false when an output of the body is a
  /// strided view, which has no instruction.
  bool add_body(LowerContext& c, std::size_t body);
  /// Adds an instruction; returns its index in the code.
  std::size_t add(const LoopInstr& instr);
  /// Call it once, after the last instruction.
  void finish();

  LoopInstr& at(std::size_t i) { return code_[i]; }
  std::span<const LoopInstr> code() const { return code_; }
  /// Points body number `n`, in the order of add_body, to its operands and results.
  void point(std::size_t n, std::span<const RunSlot> inputs, std::span<const RunSlot> outputs);
  /// True when an instruction calls a kernel, so that an iteration is not a matter of nanoseconds.
  bool calls_kernels() const { return calls_kernels_; }

 private:
  struct Body {
    const LirModule* lir = nullptr;
    std::vector<BufferView> arenas;
    TaskList list;
    AlignedBytes scratch, common;
    PointerRelocation pointers;
  };
  /// An instruction whose operands have the places of values.
  struct Draft {
    LoopInstr instr;
    Body* body = nullptr;
    std::vector<std::pair<int, View>> places{};  // a, b, c, d: 0 to 3
  };
  class Writer;
  const KernelTable& kernels_;
  std::vector<std::unique_ptr<Body>> bodies_;
  std::vector<Draft> drafts_;
  std::vector<LoopInstr> code_;
  bool calls_kernels_ = false;
};

}  // namespace rlx::cpu
