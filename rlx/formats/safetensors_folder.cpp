// Opening the weights of a model folder, whole or in shards.
#include "rlx/formats/safetensors_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::string_view kSingle = "model.safetensors", kIndex = "model.safetensors.index.json";
constexpr std::size_t kMostFiles = 4096;  // each is an open mapping

[[noreturn]] void no_weights(const std::string& folder) {
  std::error_code ignored;
  const auto status = std::filesystem::status(folder, ignored);
  if (!std::filesystem::exists(status))
    throw Error(ErrorCode::NotFound, concat_text("\"", folder, "\" does not exist"), "give the folder of a model");
  if (!std::filesystem::is_directory(status))
    throw Error(ErrorCode::NotFound, concat_text("\"", folder, "\" is not a folder"), "give the folder of a model");
  std::string hint = "put the model's safetensors files there";
  if (is_file(join_path(folder, "pytorch_model.bin")) || is_file(join_path(folder, "pytorch_model.bin.index.json")))
    hint =
        "pytorch_model.bin is not read; convert it with Python: "
        "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER, safe_serialization=True)";
  throw Error(ErrorCode::NotFound, concat_text("\"", folder, "\" holds no ", kSingle, " and no ", kIndex), hint);
}

// A file name without a folder: an index from elsewhere must not make us open files outside the folder.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos && name.find('\\') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

std::shared_ptr<SafetensorsFolder> SafetensorsFolder::open(const std::string& folder) try {
  std::shared_ptr<SafetensorsFolder> out(new SafetensorsFolder);
  const std::string single = join_path(folder, kSingle);
  if (has_file(single)) {
    out->source_ = single;
    out->files_.push_back(SafetensorsFile::open(single));
    out->index_tensors();
    return out;
  }
  if (!has_file(join_path(folder, kIndex))) no_weights(folder);
  out->open_index(folder);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SafetensorsFolder::open");
}

void SafetensorsFolder::index_tensors() {
  for (std::size_t f = 0; f < files_.size(); ++f)
    for (std::string& name : files_[f]->names()) {
      const auto [at, fresh] = file_of_.emplace(std::move(name), f);
      if (!fresh)
        throw Error(ErrorCode::BadFile, concat_text(source_, ": the tensor \"", at->first, "\" is in two files, ",
                                                    files_[at->second]->source(), " and ", files_[f]->source()));
    }
}

void SafetensorsFolder::open_index(const std::string& folder) {
  source_ = join_path(folder, kIndex);
  const auto fail = [&](const std::string& message, const std::string& hint = {}) {
    throw Error(ErrorCode::BadFile, concat_text(source_, ": ", message), hint);
  };
  const JsonDocument document = JsonDocument::read(source_);
  std::map<std::string, std::size_t> files;       // name -> index, sorted
  std::map<std::string, std::string> file_named;  // tensor -> file, according to the index
  for (const auto& [tensor, value] : document.root_object().at("weight_map").members("weight_map")) {
    const std::string file(value.as_string(tensor));
    if (!is_plain_name(file))
      fail(concat_text("the index lists the tensor \"", tensor, "\" in \"", file, "\""),
           "an index must name files of its own folder, without a path");
    files.emplace(file, 0);
    if (files.size() > kMostFiles) fail(concat_text("the index names more than ", kMostFiles, " files"));
    if (!file_named.emplace(std::string(tensor), file).second)
      fail(concat_text("the tensor \"", tensor, "\" is listed twice"));
  }
  if (files.empty()) fail("\"weight_map\" lists no tensors");
  for (auto& [name, place] : files) {
    const std::string path = join_path(folder, name);
    if (!has_file(path))
      throw Error(ErrorCode::NotFound, concat_text(source_, " names the file \"", name, "\", which does not exist"),
                  "the download is not complete: fetch the missing file");
    place = files_.size();
    files_.push_back(SafetensorsFile::open(path));
  }
  index_tensors();
  // An index that disagrees with the files may belong to another model.
  for (const auto& [tensor, file] : file_named) {
    const auto at = file_of_.find(tensor);
    if (at == file_of_.end() || at->second != files.at(file))
      fail(concat_text("the index lists the tensor \"", tensor, "\" in \"", file, "\", but that file does not have it"),
           "the index and the files belong to different models, or to different downloads");
  }
  for (const auto& [tensor, f] : file_of_)
    if (!file_named.contains(tensor))
      fail(concat_text("\"weight_map\" does not list the tensor \"", tensor, "\" of ", files_[f]->source()),
           "the index and the files belong to different models, or to different downloads");
}

const SafetensorsFile* SafetensorsFolder::file_of(std::string_view name) const {
  if (files_.size() == 1) return files_.front().get();
  const auto at = file_of_.find(std::string(name));
  return at == file_of_.end() ? nullptr : files_[at->second].get();
}

std::vector<std::string> SafetensorsFolder::names() const try {
  std::vector<std::string> out;
  out.reserve(file_of_.size());
  for (const auto& file : files_)
    for (std::string& name : file->names()) out.push_back(std::move(name));
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SafetensorsFolder::names");
}

std::optional<TensorView> SafetensorsFolder::find(std::string_view name) const {
  const SafetensorsFile* file = file_of(name);
  return file ? file->find(name) : std::nullopt;
}

std::optional<SourceIdentity> SafetensorsFolder::identity(std::string_view name) const {
  const SafetensorsFile* file = file_of(name);
  return file ? file->identity(name) : std::nullopt;
}

void SafetensorsFolder::drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const {
  if (const SafetensorsFile* file = file_of(name)) file->drop_pages(name, first, bytes);
}

}  // namespace rlx
