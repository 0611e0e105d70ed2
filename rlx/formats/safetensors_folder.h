// The weights of a Hugging Face model folder: one safetensors file, or several that an index names.
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

/// `model.safetensors` of a folder, or the files that its `model.safetensors.index.json` names, as one loader. Every
/// file is mapped, nothing is copied or widened.
class SafetensorsFolder final : public WeightLoader {
 public:
  /// Opens the weights of `folder`; a single file wins over an index, as in Python's transformers. Errors: NotFound
  /// for a folder with neither, saying what to do about the formats found instead, and for a file that the index names
  /// but that is not there; BadFile for an index that is malformed, names files elsewhere, or disagrees with the files
  /// about what each holds; those of SafetensorsFile::open.
  static std::shared_ptr<SafetensorsFolder> open(const std::string& folder);

  /// In the order of the files, and of each file.
  std::vector<std::string> names() const override;
  std::optional<TensorView> find(std::string_view name) const override;
  std::optional<SourceIdentity> identity(std::string_view name) const override;
  void drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const override;

  /// The files, in the order of their names.
  const std::vector<std::shared_ptr<SafetensorsFile>>& files() const { return files_; }
  /// What errors call the weights: the path of the one file, or of the index.
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
