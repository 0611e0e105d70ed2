// Whole graphs as programs of a plug-in.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "rlx/backends/tpu/program.h"
#include "rlx/device/backend.h"

namespace rlx::tpu {

/// A graph's program. One with symbols is compiled when their values are bound; what was compiled once is not again,
/// as long as it is among those that were used last.
class TpuExecutable final : public ExecutableGraph {
 public:
  /// Compiles a static graph for device `ordinal` of `client`, which may be null; where none is there it is text.
  TpuExecutable(LirModule lir, const std::shared_ptr<const Client>& client, int ordinal, CompileSettings settings);
  const LirModule& lir() const override { return lir_; }
  std::unique_ptr<BoundGraph> bind(OpenDevice& device, const LirModule& program,
                                   std::span<const BufferView> arenas) const override;
  std::string kernel_name(NodeId node) const override;
  std::string code() const override;

 private:
  struct Compiled {
    const Client* client;
    int ordinal;
    Fingerprint text;
    std::shared_ptr<const Program> program;
  };
  std::shared_ptr<const Program> program_of(const LirModule& lir, const std::shared_ptr<const Client>& client,
                                            int ordinal) const;
  LirModule lir_;
  CompileSettings settings_;
  std::string platform_;
  mutable std::mutex mutex_;
  mutable std::list<Compiled> compiled_;  // those used last come first
};

}  // namespace rlx::tpu
