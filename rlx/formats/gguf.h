// GGUF files: typed metadata and named tensors, quantized ones too. Files are mapped and read without copying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/gguf_types.h"
#include "rlx/formats/gguf_value.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// A tensor of a GGUF file. It holds views into the file and is valid as long as the file lives.
struct GgufTensor {
  std::string_view name;
  GgufType type = GgufType::F32;
  std::span<const std::int64_t> dims;         // dims of the elements, row-major: the innermost dimension is last
  std::span<const std::int64_t> stored_dims;  // dims of the bytes: [.., row bytes] for blocks, else `dims`
  std::span<const std::byte> bytes;
  const GgufTypeInfo& info() const { return gguf_type_info(type); }
};

/// A GGUF file of version 2 or 3, or all parts of a split file ("NAME-00001-of-00003.gguf"). `open` checks the whole
/// header; each error names the file, the entry and the position. As a WeightLoader, the file returns tensors of plain
/// types in their dtypes and block-quantized tensors as U8 [.., row bytes].
class GgufFile final : public WeightLoader {
 public:
  /// Maps and checks `path`; one part of a split file opens all other parts too. Errors: NotFound, also for a missing
  /// part; BadFile; Unsupported for version 1, big-endian files, and types rlx does not know.
  static std::shared_ptr<GgufFile> open(const std::string& path);
  /// Checks a file that is already in memory and is not part of a split file. `bytes` must outlive the result. `source`
  /// names the file in errors.
  static std::shared_ptr<GgufFile> from_bytes(std::span<const std::byte> bytes, std::string source);

  std::vector<std::string> names() const override;
  std::optional<TensorView> find(std::string_view name) const override;
  std::optional<SourceIdentity> identity(std::string_view name) const override;
  void drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const override;

  /// All tensors, in the order of the file and its parts.
  std::span<const GgufTensor> tensors() const { return tensors_; }
  /// The tensor called `name`, or null.
  const GgufTensor* find_tensor(std::string_view name) const;
  /// As find_tensor, but an unknown name is an error that names the closest one.
  const GgufTensor& at(std::string_view name) const;
  /// The tensor called `name` as a Tensor (of `stored_dims`) that shares the mapping and keeps `file` alive. Errors:
  /// those of `at`.
  static Tensor tensor(const std::shared_ptr<const GgufFile>& file, std::string_view name);
  /// The tensor called `name` decoded to F32 [dims..]. Errors: those of `at`; Unsupported for integers and F64.
  Tensor decoded(std::string_view name) const;

  /// All metadata, in the order of the file (of the first part of a split file).
  std::span<const GgufValue> metadata() const { return values_; }
  /// The value of `key`, or null.
  const GgufValue* find_value(std::string_view key) const;
  /// As find_value, but an unknown key is an error that names the closest one.
  const GgufValue& value(std::string_view key) const;
  /// `general.architecture`: "llama", "qwen3", ... Errors: BadFile when it is missing or not a string.
  std::string_view architecture() const;

  bool get_bool(std::string_view key) const { return value(key).as_bool(); }
  std::int64_t get_int(std::string_view key) const { return value(key).as_int(); }
  double get_number(std::string_view key) const { return value(key).as_number(); }
  std::string_view get_string(std::string_view key) const { return value(key).as_string(); }
  /// As above, with a fallback for a missing key. A value of the wrong kind is still an error.
  bool get_bool(std::string_view key, bool fallback) const;
  std::int64_t get_int(std::string_view key, std::int64_t fallback) const;
  double get_number(std::string_view key, double fallback) const;
  std::string_view get_string(std::string_view key, std::string_view fallback) const;

  /// Version of the format: 2 or 3.
  int version() const { return parts_.front().version; }
  /// Alignment of tensor offsets in bytes (in the first part).
  std::size_t alignment() const { return parts_.front().alignment; }
  /// Number of files.
  std::size_t num_parts() const { return parts_.size(); }
  /// Total bytes of all tensors.
  std::size_t data_size_bytes() const;
  /// The path that the file was opened with, or the name of the bytes.
  const std::string& source() const { return source_; }

 private:
  friend class GgufReader;
  struct Part {
    MappedFile file;
    std::string source;
    std::span<const std::byte> bytes;
    int version = 0;
    std::size_t alignment = 32, records = 0, data = 0;  // offsets of the tensor records and of the tensor data
    std::vector<GgufValue> values;
  };
  struct Place {
    std::uint32_t part = 0;
    std::size_t offset = 0, size = 0;      // in the bytes of the part
    std::vector<std::int64_t> dims;        // dims of the elements
    std::vector<std::int64_t> byte_dims;   // stored dims of a block-quantized tensor
    std::unique_ptr<std::byte[]> aligned;  // a copy, only where the file's bytes are not aligned for the dtype
  };
  GgufFile() = default;
  void open_parts(const std::string& path);
  void finish();
  void check_header() const;
  [[noreturn]] void fail(const Part& part, const std::string& message, std::string hint = {}) const;

  std::string source_;
  std::deque<Part> parts_;  // values point into the parts
  std::vector<GgufTensor> tensors_;
  std::vector<Place> places_;           // positions of tensors_
  std::vector<std::uint32_t> by_name_;  // indices of tensors_, sorted by name
  std::vector<GgufValue> values_;
  std::vector<std::uint32_t> by_key_;
};

}  // namespace rlx
