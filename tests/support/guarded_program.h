// A compiled program in guarded memory: every value that it reads or writes lies between bytes chosen by the test.
// These bytes must not change and must not affect results.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/evaluate.h"

namespace rlx::test {

/// The instruction sets that the cpu backend supports on this machine.
std::vector<std::string> isas();

/// The fill of the guards, of memory that a run has not written yet, and of fresh heap blocks where the allocator
/// allows it.
enum class Around : std::uint8_t {
  Nan,        // every float dtype reads NaN, integers -1
  Subnormal,  // every float dtype reads subnormal numbers, integers small ones; buffers start off the usual alignment
};

/// `n` bytes between guards.
class GuardedBytes {
 public:
  GuardedBytes() = default;
  GuardedBytes(std::size_t n, Around around, std::size_t misaligned = 0);
  std::byte* data() { return storage_.data() + start_; }
  std::size_t size() const { return size_; }
  /// Fills the bytes themselves with the guard pattern.
  void spoil();
  /// True when the guards are unchanged.
  bool intact() const;

 private:
  std::vector<std::byte> storage_;
  std::size_t start_ = 0, size_ = 0;
  Around around_ = Around::Nan;
};

/// The LIR of `g`, a static graph, for `target`: without passes when the target claims every node, else through the
/// pipeline.
LirModule lir_for(const Graph& g, const std::shared_ptr<const Target>& target);

/// One binding of an executable. Inputs, params and states are passed by name; states keep their values between runs.
class GuardedProgram {
 public:
  GuardedProgram(const Executable& exe, const NamedTensors& params, Around around);
  /// Runs on stale memory. Throws an Internal error that names the buffer when a guard was overwritten.
  std::vector<Tensor> run(const NamedTensors& inputs, bool timed = false);
  /// Resets every state to its initial value.
  void reset();
  NamedTensors states();

 private:
  const Executable& exe_;
  Around around_;
  GuardedBytes arena_;
  std::vector<GuardedBytes> prepared_, states_;
  std::vector<BufferView> weight_views_;
  std::vector<RunSlot> state_slots_;
  std::shared_ptr<OpenDevice> device_;
  std::shared_ptr<Stream> stream_;
  std::unique_ptr<Instance> bound_;
};

}  // namespace rlx::test
