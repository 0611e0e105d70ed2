// StableHLO text compiled by a plug-in.
#pragma once

#include <memory>
#include <string>

#include "rlx/backends/tpu/device.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx::tpu {

/// Compile settings that are not in the text.
struct CompileSettings {
  std::string cache;  // the folder of compiled programs; empty = none
  std::string dump;   // where texts are written: a file, or a folder when it ends with /; empty = nowhere
};
/// From the option `cache`, else RLX_TPU_CACHE; and from RLX_TPU_HLO_DUMP.
CompileSettings compile_settings(const DeviceOptions& options);
/// Options that disable unsafe optimizations of XLA, as the end of its CompileOptionsProto. By default XLA drops a
/// narrowing followed by a widening. On its CPU, maximum loses a NaN on the right, and a reduction of products with a
/// broadcast number reads uninitialized memory (XLA of 2026, JAX 0.10 likewise).
std::string strict_options(bool cpu);

/// A compiled program on one device of a client.
class Program {
 public:
  /// Compiles `text`, or loads it from the cache. Unsupported, with the line, for a text that the plug-in rejects.
  /// `graph` is the name of the source graph.
  Program(std::shared_ptr<const Client> client, int ordinal, std::string_view text, const std::string& graph,
          const CompileSettings& settings);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  abi::LoadedExecutable* handle() const { return handle_; }
  const std::string& graph() const { return graph_; }
  /// The bytes that a run needs besides its arguments, if the plug-in reports them.
  std::size_t run_bytes() const;

 private:
  bool load(const std::string& bytes, const std::string& who);
  void compile(std::string_view text, std::string_view options, const std::string& who);
  void keep(const std::string& folder, const Fingerprint& key, const std::string& who) const;
  std::shared_ptr<const Client> client_;
  std::string graph_;
  abi::LoadedExecutable* handle_ = nullptr;
};

}  // namespace rlx::tpu
