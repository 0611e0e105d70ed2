// Writing GGUF files: metadata and records first, then the bytes of tensors as they are made.
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

/// A GGUF file of version 3 being written: first metadata and records of tensors, then `begin`, the bytes of each
/// tensor in that order, `commit`. Until then the file's name holds what it held before.
class GgufWriter {
 public:
  struct Options {
    std::size_t alignment = 32;  // a power of two
    /// Not empty: what is written is kept when the work ends early, as PATH.KEY.partial, and goes on with the next
    /// writer of this key. It stands for all that decides the bytes: sources, types, versions.
    std::string resume_key = {};
  };
  /// Errors: InvalidArgument for an alignment that is no power of two.
  explicit GgufWriter(std::string path, Options options);
  explicit GgufWriter(std::string path) : GgufWriter(std::move(path), Options{}) {}
  ~GgufWriter();
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  /// Metadata, in the order given. Errors: InvalidArgument for an empty key, one given twice, a value that its kind
  /// does not hold, and after `begin`.
  void set_bool(std::string_view key, bool v);
  void set_int(std::string_view key, GgufKind kind, std::int64_t v);
  void set_number(std::string_view key, GgufKind kind, double v);  // F32 or F64
  void set_string(std::string_view key, std::string_view v);
  void set_strings(std::string_view key, std::span<const std::string> v);
  void set_ints(std::string_view key, GgufKind kind, std::span<const std::int64_t> v);
  void set_floats(std::string_view key, std::span<const float> v);
  /// The same value under the same key, of another file.
  void copy(const GgufValue& v);
  /// Whether `key` has been set.
  bool has(std::string_view key) const;

  /// Announces a tensor of `dims` (row-major) elements. Errors: InvalidArgument for an empty name, one given twice, a
  /// negative dimension, rows that are no multiple of the type's block, and after `begin`.
  void add_tensor(std::string_view name, GgufType type, std::span<const std::int64_t> dims);

  /// Writes the head. Returns how many tensors an earlier try has left whole; they are not to be written again.
  /// Errors: NotFound, BadFile with the system's reason.
  std::size_t begin();
  /// More bytes of the current tensor; whole ones end it. Errors: InvalidArgument for bytes beyond the last tensor's
  /// end, BadFile (a full disk for example).
  void write(std::span<const std::byte> bytes);
  /// Puts the file in its place. Errors: InvalidArgument when bytes are missing, BadFile.
  void commit();
  /// Bytes of all tensors announced so far.
  std::size_t data_size_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Bytes that a tensor of `dims` elements takes in `type`. Errors: InvalidArgument as GgufWriter::add_tensor.
std::size_t gguf_size_bytes(GgufType type, std::span<const std::int64_t> dims);

}  // namespace rlx
