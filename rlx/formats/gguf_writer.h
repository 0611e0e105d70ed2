// Writes GGUF files: metadata and tensor records first, then the bytes of the tensors as they are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/gguf.h"

namespace rlx {

/// A GGUF file of version 3 under construction. The order of calls is: metadata and tensor records, `begin`, the bytes
/// of each tensor in that order, `commit`. Until `commit` the old file of that name stays unchanged.
class GgufWriter {
 public:
  struct Options {
    std::size_t alignment = 32;  // a power of two
    /// Unless empty, an unfinished file is kept as PATH.KEY.partial, and the next writer with this key resumes it. The
    /// key must cover everything that decides the bytes: sources, types, versions.
    std::string resume_key = {};
  };
  /// Errors: InvalidArgument for an alignment that is not a power of two.
  explicit GgufWriter(std::string path, Options options);
  explicit GgufWriter(std::string path) : GgufWriter(std::move(path), Options{}) {}
  ~GgufWriter();
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  /// Metadata, in the order of the calls. Errors: InvalidArgument for an empty key, a repeated key, a value that its
  /// kind cannot hold, the key "general.alignment" (see Options), and any call after `begin`.
  void set_bool(std::string_view key, bool v);
  void set_int(std::string_view key, GgufKind kind, std::int64_t v);
  void set_number(std::string_view key, GgufKind kind, double v);  // F32 or F64
  void set_string(std::string_view key, std::string_view v);
  void set_strings(std::string_view key, std::span<const std::string> v);
  void set_ints(std::string_view key, GgufKind kind, std::span<const std::int64_t> v);
  void set_floats(std::string_view key, std::span<const float> v);
  /// Copies a value of another file under the same key.
  void copy(const GgufValue& v);
  /// Whether `key` has been set.
  bool has(std::string_view key) const;

  /// Declares a tensor of `dims` (row-major) elements. Errors: InvalidArgument for an empty name, a repeated name, a
  /// negative dimension, rows that are not a multiple of the type's block, and any call after `begin`.
  void add_tensor(std::string_view name, GgufType type, std::span<const std::int64_t> dims);

  /// Writes the header. Returns how many whole tensors an earlier attempt left; these must not be written again.
  /// Errors: NotFound, BadFile with the system's reason.
  std::size_t begin();
  /// Appends bytes of the current tensor; a complete tensor ends by itself. Errors: InvalidArgument for bytes after the
  /// end of the last tensor, BadFile (for example a full disk).
  void write(std::span<const std::byte> bytes);
  /// Renames the file to its final name. Errors: InvalidArgument when bytes are missing, BadFile.
  void commit();
  /// Total bytes of all tensors declared so far.
  std::size_t data_size_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Bytes of a tensor of `dims` elements in `type`. Errors: InvalidArgument as for GgufWriter::add_tensor.
std::size_t gguf_size_bytes(GgufType type, std::span<const std::int64_t> dims);

}  // namespace rlx
