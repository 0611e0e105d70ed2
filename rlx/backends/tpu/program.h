// StableHLO text compiled by a plug-in.
#pragma once

#include <memory>
#include <string>

#include "rlx/backends/tpu/device.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx::tpu {

/// What of a compile the text does not say.
struct CompileSettings {
  std::string cache;  // the folder of compiled programs; empty: none
  std::string dump;   // where texts are written: a file, or a folder when it ends with /; empty: nowhere
};
/// By the option `cache`, else RLX_TPU_CACHE; and RLX_TPU_HLO_DUMP.
CompileSettings compile_settings(const DeviceOptions& options);
/// What takes XLA's liberties back, as the end of its CompileOptionsProto: by default narrowing and widening again is
/// left out, and on its CPU the maximum loses a NaN on the right and products with a repeated number read memory that
/// nobody wrote where a reduction reads them (XLA of 2026, JAX 0.10 likewise).
std::string strict_options(bool cpu);

/// Code on one device of a client.
class Program {
 public:
  /// Compiles `text`, or loads it from the cache. Unsupported for a text that the plug-in does not take, with the line;
  /// `graph` is the name of what it was made of.
  Program(std::shared_ptr<const Client> client, int ordinal, std::string_view text, const std::string& graph,
          const CompileSettings& settings);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  abi::LoadedExecutable* handle() const { return handle_; }
  const std::string& graph() const { return graph_; }
  /// Bytes that a run takes beside its arguments, as far as the plug-in tells.
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
