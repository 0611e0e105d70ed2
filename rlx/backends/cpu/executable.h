// The CPU executable: an LIR with the rows that run it, bound to memory as a fixed schedule of kernel calls.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "rlx/backends/cpu/rows.h"

namespace rlx::cpu {

/// Immutable; shared by every bound program of it.
class Executable final : public ExecutableGraph {
 public:
  /// Throws Unsupported naming the first scheduled node that neither a row nor a reference rule runs.
  Executable(LirModule lir, const KernelTable& kernels, const BackendOptions& options);

  const LirModule& lir() const override { return lir_; }
  void pack(NodeId node, std::size_t source, const void* data, std::byte* packed) const override;
  void unpack(NodeId node, std::size_t source, const std::byte* packed, void* data) const override;
  std::unique_ptr<BoundGraph> bind(OpenDevice& device, const LirModule& program,
                                   std::span<const BufferView> arenas) const override;
  std::string kernel_name(NodeId node) const override;

  const KernelTable& kernels() const { return kernels_; }
  int threads() const { return threads_; }
  /// Threads as plans see them.
  int planned_threads() const { return finest_grain_ ? kFinestCut : threads_; }
  bool finest_grain() const { return finest_grain_; }
  ChunkAudit* audit() const { return audit_.get(); }
  /// The row of schedule step `step`.
  const Row& row(std::size_t step) const { return *rows_[step]; }

 private:
  /// Where source `source` of a panel relayout lies: columns [begin, end) of B[K, N]; strides of its own elements.
  struct PackedRange {
    std::int64_t begin = 0, end = 0, k_stride = 0, n_stride = 0;
  };
  PackedRange packed_range(NodeId node, std::size_t source) const;
  LirModule lir_;
  const KernelTable& kernels_;
  int threads_;
  bool finest_grain_;
  std::shared_ptr<ChunkAudit> audit_;
  std::vector<const Row*> rows_;                                          // by schedule step
  std::vector<const Row*> row_of_;                                        // by node; null: none runs it
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>> columns_;  // of a panel relayout: where sources begin
};

}  // namespace rlx::cpu
