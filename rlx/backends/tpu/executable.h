// Whole graphs, compiled as programs of a plug-in.
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

/// The program of a graph. A graph with symbols is compiled when their values are bound. The most recently used
/// compiled programs are kept.
class TpuExecutable final : public Executable {
 public:
  /// Compiles a static graph for device `ordinal` of `client`, which may be null. Without such a device only the text
  /// is made.
  TpuExecutable(LirModule lir, const std::shared_ptr<const Client>& client, int ordinal, CompileSettings settings);
  const LirModule& lir() const override { return lir_; }
  std::unique_ptr<Instance> bind(OpenDevice& device, const LirModule& program,
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
  mutable std::list<Compiled> compiled_;  // most recently used first
};

}  // namespace rlx::tpu
