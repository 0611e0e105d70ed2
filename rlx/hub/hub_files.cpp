// Lists of files from a hub, which is not trusted, and the choice among them.
#include "rlx/hub/hub_files.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>
#include <set>

#include "rlx/base/printable.h"
#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/json.h"

namespace rlx {
namespace {

constexpr std::size_t kMostListed = 100000;
constexpr std::string_view kWhole = "model.safetensors", kIndexFile = "model.safetensors.index.json",
                           kAdapter = "adapter_model.safetensors";

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool in_root(std::string_view path) { return path.find('/') == path.npos; }

// A GGUF file "m-Q4_K_M-00002-of-00003.gguf" is part 2 of "m-Q4_K_M".
struct GgufName {
  std::string stem;  // with its folder, without the part and the ending
  int part = 1, parts = 1;
};
std::optional<GgufName> gguf_name(std::string_view path) {
  if (!lower(path).ends_with(".gguf")) return std::nullopt;
  path.remove_suffix(5);
  constexpr std::size_t kTail = 15;  // -00002-of-00003
  const auto number = [&](std::size_t from_end) {
    int v = 0;
    for (const char c : path.substr(path.size() - from_end, 5)) {
      if (c < '0' || c > '9') return -1;
      v = v * 10 + (c - '0');
    }
    return v;
  };
  GgufName name{std::string(path)};
  if (path.size() > kTail && path.substr(path.size() - 9, 4) == "-of-" && path[path.size() - kTail] == '-') {
    const int part = number(kTail - 1), parts = number(5);
    if (part > 0 && parts >= part) return GgufName{std::string(path.substr(0, path.size() - kTail)), part, parts};
  }
  return name;
}

// Files that hold no language model though they are GGUF: encoders of images, importance matrices.
bool is_extra_gguf(std::string_view stem) {
  const std::string name = lower(stem.substr(stem.rfind('/') + 1));
  return name.find("mmproj") != name.npos || name.find("imatrix") != name.npos;
}

struct GgufModel {
  std::vector<std::string> parts;  // in order
  std::uint64_t size = 0;
  int wanted = 1;
};
std::map<std::string, GgufModel> gguf_models(const std::vector<HubFile>& files) {
  std::map<std::string, GgufModel> models;
  for (const HubFile& f : files)
    if (const auto name = gguf_name(f.path); name && !is_extra_gguf(name->stem)) {
      GgufModel& m = models[name->stem];
      m.parts.push_back(f.path);
      m.size += f.size;
      m.wanted = name->parts;
    }
  for (auto& [stem, m] : models) std::sort(m.parts.begin(), m.parts.end());
  return models;
}

// Whether "Q4_K_M" is the type in "dir/name-Q4_K_M", or the folder in "Q4_K_M/name".
bool has_type(const std::string& stem, const std::string& type) {
  const std::string all = lower(stem), wanted = lower(type);
  if (all.ends_with(wanted) && all.size() > wanted.size()) {
    const char before = all[all.size() - wanted.size() - 1];
    if (before == '-' || before == '.' || before == '_' || before == '/') return true;
  }
  const std::size_t slash = all.rfind('/');
  return slash != all.npos && (all.substr(0, slash) == wanted || all.substr(0, slash).ends_with("/" + wanted));
}

HubChoice choice_of(const HubName& name, const std::string& stem, const GgufModel& model) {
  if (static_cast<int>(model.parts.size()) != model.wanted)
    throw Error(ErrorCode::NotFound, concat_text("\"", name.repo, "\" has ", model.parts.size(), " of the ",
                                                 model.wanted, " parts of \"", stem, "\""));
  HubChoice c;
  c.weights = model.parts;
  c.result = model.parts.front();
  return c;
}

// The GGUF files of a repository as a user names them, with their sizes.
std::string list_of(const std::map<std::string, GgufModel>& models) {
  std::string out;
  std::size_t shown = 0;
  for (const auto& [stem, m] : models) {
    if (++shown > 40) return out + concat_text("\n    and ", models.size() - 40, " more");
    out += concat_text("\n    ", printable(m.parts.front(), 100), "  ", size_text(m.size));
  }
  return out;
}

// Whether rlx reads this file of a model's folder, apart from its weights.
bool is_read(std::string_view path) {
  if (in_root(path)) {
    if (path == kIndexFile || path.ends_with(".index.json")) return false;
    for (const char* ending : {".json", ".jinja", ".txt"})
      if (path.ends_with(ending)) return true;
    return path.starts_with("LICENSE");
  }
  // Modules of sentence encoders: 1_Pooling/config.json, 2_Dense/model.safetensors.
  const std::size_t slash = path.find('/');
  const std::string_view folder = path.substr(0, slash), file = path.substr(slash + 1);
  return std::isdigit(static_cast<unsigned char>(folder[0])) != 0 && folder.find('_') != folder.npos &&
         (file == "config.json" || file == kWhole);
}

HubChoice choose_named(const HubName& name, const std::vector<HubFile>& files) {
  const auto models = gguf_models(files);
  for (const HubFile& f : files) {
    if (f.path != name.file) continue;
    if (const auto part = gguf_name(f.path); part && part->parts > 1)
      return choice_of(name, part->stem, models.at(part->stem));
    HubChoice c;
    c.weights.push_back(f.path);
    c.result = f.path;
    return c;
  }
  std::vector<std::string> fitting;
  for (const auto& [stem, m] : models)
    if (has_type(stem, name.file)) fitting.push_back(stem);
  if (fitting.size() == 1) return choice_of(name, fitting[0], models.at(fitting[0]));
  if (fitting.empty()) {
    std::vector<std::string> known;
    for (const HubFile& f : files) known.push_back(f.path);
    throw Error(
        ErrorCode::NotFound, concat_text("\"", name.repo, "\" has no file and no GGUF type \"", name.file, "\""),
        models.empty() ? did_you_mean(name.file, known, concat_text("`rlx pull ", name.repo, "` takes all it needs"))
                       : concat_text("it has", list_of(models)));
  }
  std::map<std::string, GgufModel> some;
  for (const std::string& stem : fitting) some.emplace(stem, models.at(stem));
  throw Error(ErrorCode::InvalidArgument,
              concat_text("several files of \"", name.repo, "\" have the type \"", name.file, "\""),
              concat_text("give one of them:", list_of(some)));
}

}  // namespace

const HubFile* HubListing::find(std::string_view path) const {
  for (const HubFile& f : files)
    if (f.path == path) return &f;
  return nullptr;
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > 1024 || find_invalid_utf8(path)) return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    at = end + 1;
  }
  return true;
}

std::string size_text(std::uint64_t bytes) {
  const char* unit = "kB";
  double v = static_cast<double>(bytes) / 1e3;
  for (const char* next : {"MB", "GB", "TB"}) {
    if (v < 999.95) break;
    v /= 1e3;
    unit = next;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", v, unit);
  return text;
}

HubListing parse_listing(std::string_view json, const std::string& source) {
  const JsonDocument document = JsonDocument::parse(json, source);
  const JsonValue root = document.root_object();
  const auto bad = [&](std::string why) { return Error(ErrorCode::BadFile, concat_text(source, ": ", why)); };
  HubListing out;
  out.commit = root.get_string("sha");
  if (!is_hex(out.commit, 40)) throw bad("\"sha\" is not a commit of 40 hexadecimal digits");
  const std::vector<JsonValue> listed = root.at("siblings").elements("siblings");
  if (listed.size() > kMostListed) throw bad(concat_text("it lists ", listed.size(), " files"));
  for (const JsonValue& entry : listed) {
    HubFile f;
    f.path = entry.get_string("rfilename");
    if (!is_safe_path(f.path))
      throw bad(concat_text("the file name \"", printable(f.path, 100), "\" could lead out of the model's folder"));
    const auto lfs = entry.find("lfs");
    const bool large = lfs && lfs->is_object();
    const JsonValue about = large ? *lfs : entry;
    const std::int64_t size = about.get_int("size", -1);
    f.checksum = about.get_string(large ? "sha256" : "blobId", "");
    if (size < 0 || !is_hex(f.checksum, large ? 64 : 40))
      throw Error(ErrorCode::BadFile, concat_text(source, ": no size or no checksum of \"", f.path, "\""),
                  "HF_ENDPOINT must name a server that lists them, as huggingface.co does");
    f.size = static_cast<std::uint64_t>(size);
    out.files.push_back(std::move(f));
  }
  return out;
}

std::vector<std::string> shards_of(std::string_view json, const std::string& source) {
  const JsonDocument document = JsonDocument::parse(json, source);
  std::set<std::string, std::less<>> shards;
  for (const auto& [tensor, file] : document.root_object().at("weight_map").members("weight_map")) {
    const std::string_view shard = file.as_string(tensor);
    if (!is_safe_path(shard) || !in_root(shard))
      throw Error(ErrorCode::BadFile, concat_text(source, ": \"", printable(shard, 100), "\" is not a file beside it"));
    shards.emplace(shard);
  }
  return {shards.begin(), shards.end()};
}

HubChoice choose_files(const HubName& name, const std::vector<HubFile>& files) {
  if (!name.file.empty()) return choose_named(name, files);
  const auto has = [&](std::string_view path) {
    return std::any_of(files.begin(), files.end(), [&](const HubFile& f) { return f.path == path; });
  };
  HubChoice c;
  if (has(kWhole))
    c.weights.emplace_back(kWhole);
  else if (has(kIndexFile))
    c.index = kIndexFile;
  if (has(kAdapter)) c.weights.emplace_back(kAdapter);
  if (!c.weights.empty() || !c.index.empty()) {
    for (const HubFile& f : files)
      if (is_read(f.path)) c.files.push_back(f.path);
    return c;
  }
  const auto models = gguf_models(files);
  if (models.size() == 1) return choice_of(name, models.begin()->first, models.begin()->second);
  if (models.size() > 1)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("\"", name.repo, "\" has ", models.size(), " GGUF files: name one, or its type"),
                concat_text("as ", name.repo, ":Q4_K_M, one of", list_of(models)));
  std::string other;
  for (const HubFile& f : files)
    if (f.path.ends_with(".bin") || f.path.ends_with(".pt") || f.path.ends_with(".pth") || f.path.ends_with(".onnx"))
      other = f.path;
  throw Error(ErrorCode::Unsupported,
              concat_text("\"", name.repo, "\" has no weights that rlx reads: neither safetensors nor GGUF",
                          other.empty() ? "" : concat_text("; it has ", printable(other, 80))),
              "look for a repository of the model with model.safetensors or a GGUF file, or convert it with "
              "transformers: save_pretrained(FOLDER)");
}

}  // namespace rlx
