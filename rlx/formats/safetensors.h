// safetensors files: named tensors in a mapped file that is read without copying, and the writer.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/formats/mapped_file.h"
#include "rlx/formats/named_tensor.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// A safetensors file: u64 length of the header, JSON header, then the tensor data without gaps or overlaps. `open`
/// checks the whole header; each error names the file, the tensor and the position.
class SafetensorsFile final : public WeightLoader {
 public:
  /// Maps and checks `path`. Errors: NotFound, BadFile, Unsupported for a dtype without an rlx name.
  static std::shared_ptr<SafetensorsFile> open(const std::string& path);
  /// Checks a file that is already in memory. `bytes` must outlive the result. `source` names the file in errors.
  static std::shared_ptr<SafetensorsFile> from_bytes(std::span<const std::byte> bytes, std::string source);

  std::vector<std::string> names() const override;
  std::optional<TensorView> find(std::string_view name) const override;
  /// As find, but an unknown name is an error that names the closest one.
  TensorView at(std::string_view name) const;
  std::optional<SourceIdentity> identity(std::string_view name) const override;
  void drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const override;

  /// The tensor called `name` as a Tensor that shares the mapping and keeps `file` alive. Errors: those of `at`.
  static Tensor tensor(const std::shared_ptr<const SafetensorsFile>& file, std::string_view name);

  /// The file's `__metadata__`, in file order.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  /// Total bytes of all tensors.
  std::size_t data_size_bytes() const { return data_.size(); }
  const std::string& source() const { return source_; }

 private:
  struct Entry {
    std::string name;
    DType dtype = DType::F32;
    std::vector<std::int64_t> dims;
    std::size_t begin = 0, end = 0;        // in data_
    std::unique_ptr<std::byte[]> aligned;  // a copy, only where the file's bytes are not aligned for the dtype
  };
  SafetensorsFile() = default;
  void parse();
  void parse_entry(std::string_view name, const class JsonValue& value);
  void check_layout() const;
  void check_values(Entry& entry);
  const Entry* entry(std::string_view name) const;
  [[noreturn]] void fail(const std::string& message, std::string hint = {}) const;

  MappedFile file_;
  std::string source_;
  std::span<const std::byte> bytes_;
  std::span<const std::byte> data_;     // after the header
  std::vector<Entry> entries_;          // in the order of the header
  std::vector<std::uint32_t> by_name_;  // indices of entries_, sorted by name
  std::vector<std::pair<std::string, std::string>> metadata_;
};

/// Writes tensors as a safetensors file with data aligned to the element size. Tensors of larger element size come
/// first, otherwise the order of `tensors` is kept. Errors: InvalidArgument for a repeated name and for texts that are
/// not valid UTF-8, Unsupported for dtypes the format lacks, BadFile.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace rlx
