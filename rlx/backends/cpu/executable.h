// The CPU executable: an LIR with its kernel entries. Binding makes a fixed schedule of kernel calls of it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/backends/cpu/quant/interleaved_layout.h"

namespace rlx::cpu {

/// Immutable; shared by all programs bound from it.
class CpuExecutable final : public Executable {
 public:
  /// Throws Unsupported that names the first scheduled node which neither a kernel entry nor a reference rule runs.
  CpuExecutable(LirModule lir, const KernelTable& kernels, const BackendOptions& options);

  const LirModule& lir() const override { return lir_; }
  void encode(NodeId node, std::size_t source, const ColumnRange& columns, DType dtype, const std::byte* values,
              std::byte* layout) const override;
  void decode(NodeId node, std::size_t source, const std::byte* layout, DType dtype, std::byte* values) const override;
  std::unique_ptr<Instance> bind(OpenDevice& device, const LirModule& program,
                                 std::span<const BufferView> arenas) const override;
  std::string kernel_name(NodeId node) const override;

  const KernelTable& kernels() const { return kernels_; }
  int threads() const { return threads_; }
  /// The number of threads that plans assume.
  int planned_threads() const { return finest_grain_ ? kFinestTiling : threads_; }
  bool finest_grain() const { return finest_grain_; }
  ChunkAudit* audit() const { return audit_.get(); }
  /// Whether the step lies in a compiled range.
  bool compiled(std::size_t step) const {
    const auto holds = [&](const StepRange& r) { return r.holds(step); };
    return lir_.ranges.empty() || std::any_of(lir_.ranges.begin(), lir_.ranges.end(), holds);
  }
  /// The kernel entry of schedule step `step`; undefined for a step that is not compiled.
  const KernelEntry& row(std::size_t step) const { return *rows_[step]; }

 private:
  PanelSource panel_source(NodeId node, std::size_t source, const ColumnRange& columns) const;
  /// Byte offset in the packed layout of the matrix that the source belongs to.
  std::size_t matrix_offset(NodeId node, std::size_t source) const;
  LirModule lir_;
  const KernelTable& kernels_;
  int threads_;
  bool finest_grain_;
  std::shared_ptr<ChunkAudit> audit_;
  std::vector<const KernelEntry*> rows_;                                 // by schedule step
  std::vector<const KernelEntry*> row_of_;                               // by node; null: no entry takes it
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>> begins_;  // by relayout: first column of each source
};

}  // namespace rlx::cpu
