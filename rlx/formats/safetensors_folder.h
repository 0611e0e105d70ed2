// The weights of a Hugging Face model folder: one safetensors file, or several files named by an index.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rlx/formats/safetensors.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// `model.safetensors` of a folder, or the files named by its `model.safetensors.index.json`, as one loader. Every file
/// is mapped; nothing is copied or converted.
class SafetensorsFolder final : public WeightLoader {
 public:
  /// Opens the weights of `folder`. A single file wins over an index, as in Python's transformers. Errors: NotFound for
  /// a folder with neither, with advice for the formats found instead, and for a missing file of the index; BadFile for
  /// an index that is malformed, names files outside the folder, or disagrees with the files about their tensors; those
  /// of SafetensorsFile::open.
  static std::shared_ptr<SafetensorsFolder> open(const std::string& folder);

  /// In the order of the files, then of each file's header.
  std::vector<std::string> names() const override;
  std::optional<TensorView> find(std::string_view name) const override;
  std::optional<SourceIdentity> identity(std::string_view name) const override;
  void drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const override;

  /// The files, in the order of their names.
  const std::vector<std::shared_ptr<SafetensorsFile>>& files() const { return files_; }
  /// The name of the weights in errors: the path of the one file, or of the index.
  const std::string& source() const { return source_; }

 private:
  SafetensorsFolder() = default;
  void open_index(const std::string& folder);
  void index_tensors();
  const SafetensorsFile* file_of(std::string_view name) const;

  std::string source_;
  std::vector<std::shared_ptr<SafetensorsFile>> files_;
  std::unordered_map<std::string, std::size_t> file_of_;  // tensor -> place in files_
};

}  // namespace rlx
