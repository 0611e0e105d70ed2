// Plans of conversions: which tensors there are to be, in which types, and what the head of the file says.
#include "rlx/formats/model_convert.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "rlx/error.h"
#include "rlx/formats/convert_settings.h"
#include "rlx/formats/convert_source.h"
#include "rlx/formats/gguf_vocabulary.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/output_file.h"
#include "rlx/formats/safetensors_folder.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

bool is_folder(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed);
}

// llama.cpp's number for "most tensors are of this type", general.file_type.
std::int64_t file_type_of(GgufType type) {
  switch (type) {
    case GgufType::F32: return 0;
    case GgufType::F16: return 1;
    case GgufType::Q4_0: return 2;
    case GgufType::Q4_1: return 3;
    case GgufType::Q8_0: return 7;
    case GgufType::Q5_0: return 8;
    case GgufType::Q5_1: return 9;
    case GgufType::Q2_K: return 10;
    case GgufType::Q3_K: return 11;
    case GgufType::Q4_K: return 14;
    case GgufType::Q5_K: return 16;
    case GgufType::Q6_K: return 18;
    case GgufType::BF16: return 32;
    default: return -1;
  }
}

bool is_made(GgufType type) {
  const GgufTypeInfo& info = gguf_type_info(type);
  return info.dtype ? is_float(*info.dtype) && type != GgufType::F64 : makes_blocks(info.scheme);
}

void require_made(const std::optional<GgufType>& type) {
  if (!type || is_made(*type)) return;
  std::string names;
  for (const GgufTypeInfo& t : gguf_types())
    if (is_made(t.type)) names += concat_text(names.empty() ? "" : ", ", t.name);
  throw Error(ErrorCode::Unsupported,
              concat_text("tensors of type ", gguf_type_info(*type).name, " are read, not made"),
              concat_text("rlx makes ", names));
}

// Which types matrices get.
class TypeChoice {
 public:
  TypeChoice(const ConvertOptions& options, std::string head) : options_(options), head_(std::move(head)) {
    require_made(options.type);
    require_made(options.head_type);
  }
  GgufType operator()(const ConvertedTensor& t) const {
    const GgufTypeInfo& from = gguf_type_info(t.from);
    const bool number = !from.dtype || is_float(*from.dtype);
    if (!number) return t.from;
    if (t.dims.size() < 2) return GgufType::F32;  // norms and biases
    std::optional<GgufType> type = options_.type;
    if (t.name == head_)
      type = options_.head_type ? options_.head_type : type ? std::optional(head_type(*type, t.row_size())) : type;
    if (!type) return t.from == GgufType::F64 ? GgufType::F32 : t.from;
    GgufType made = *type;
    for (int turn = 0; turn < 2 && t.row_size() % gguf_type_info(made).elements != 0; ++turn)
      made = smaller_block(made);
    if (made != *type && options_.note)
      options_.note(concat_text(t.name, " has rows of ", t.row_size(), " elements, no multiple of ",
                                gguf_type_info(*type).elements, ": ", gguf_type_info(made).name, " instead of ",
                                gguf_type_info(*type).name));
    return made;
  }

 private:
  static GgufType head_type(GgufType type, std::int64_t row) {
    const GgufTypeInfo& info = gguf_type_info(type);
    if (info.dtype || info.bytes * 8 * 256 >= 210 * 8 * info.elements) return type;
    return row % 256 == 0 ? GgufType::Q6_K : GgufType::Q8_0;
  }
  static GgufType smaller_block(GgufType type) {
    switch (type) {
      case GgufType::Q2_K:
      case GgufType::Q3_K: return GgufType::Q4_0;
      case GgufType::Q4_K: return GgufType::Q5_0;
      case GgufType::Q5_K: return GgufType::Q5_1;
      case GgufType::Q6_K: return GgufType::Q8_0;
      default: return GgufType::F16;
    }
  }
  const ConvertOptions& options_;
  std::string head_;
};

std::int64_t heads_rows(const ConvertedTensor& t) { return t.dims.size() == 1 ? t.dims[0] : t.rows(); }

void apply_change(ConvertedTensor& t, TensorChange change, const ModelSizes& sizes, bool to_gguf) {
  if (change == TensorChange::None) return;
  if (change == TensorChange::AddOne) {
    t.added = to_gguf ? 1.0F : -1.0F;
    return;
  }
  const std::int64_t heads = change == TensorChange::QueryPairs ? sizes.heads : sizes.kv_heads, rows = heads_rows(t);
  if (rows != heads * sizes.head_dim)
    throw Error(ErrorCode::BadFile, concat_text("tensor \"", t.source, "\" has ", rows, " rows, expected ", heads,
                                                " heads of ", sizes.head_dim));
  t.row_order = head_row_order(rows, sizes.head_dim, to_gguf);
}

std::size_t source_bytes(const ConvertedTensor& t) { return gguf_size_bytes(t.from, t.dims); }

// Tells how far it is.
class Steps {
 public:
  Steps(std::span<const ConvertedTensor> tensors, const ConvertOptions& options) : options_(options) {
    for (const ConvertedTensor& t : tensors) total_ += source_bytes(t);
  }
  void add(std::size_t bytes) {
    done_ += bytes;
    if (options_.progress) options_.progress(std::min(done_, total_), total_);
  }

 private:
  const ConvertOptions& options_;
  std::size_t done_ = 0, total_ = 0;
};

// Converts the tensors from `first` on.
void convert_all(const WeightLoader& source, std::span<const ConvertedTensor> tensors, std::size_t first,
                 const ConvertOptions& options, const std::function<void(std::span<const std::byte>)>& write) {
  const ImportanceFile importance(options.importance);
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  Steps steps(tensors, options);
  for (std::size_t i = 0; i < first; ++i) steps.add(source_bytes(tensors[i]));
  for (std::size_t i = first; i < tensors.size(); ++i) {
    const ConvertedTensor& t = tensors[i];
    const std::size_t made = gguf_size_bytes(t.to, t.dims), read = source_bytes(t);
    std::size_t written = 0, told = 0;
    convert_tensor(source, t, importance, threads, [&](std::span<const std::byte> bytes) {
      write(bytes);
      written += bytes.size();
      const auto so_far = static_cast<std::size_t>(static_cast<double>(read) * static_cast<double>(written) /
                                                   static_cast<double>(made));
      steps.add(so_far - told);
      told = so_far;
    });
    steps.add(read - told);
  }
}

void write_tensors(GgufWriter& out, const WeightLoader& source, std::span<const ConvertedTensor> tensors,
                   const ConvertOptions& options) {
  for (const ConvertedTensor& t : tensors) out.add_tensor(t.name, t.to, t.dims);
  const std::size_t done = out.begin();
  if (done > 0 && options.note) options.note(concat_text("going on after ", done, " of ", tensors.size(), " tensors"));
  convert_all(source, tensors, done, options, [&](std::span<const std::byte> bytes) { out.write(bytes); });
  out.commit();
}

// -- folders --

// A loader of a folder's weights with tensors of its own beside them.
class WithMadeTensors final : public WeightLoader {
 public:
  explicit WithMadeTensors(std::shared_ptr<const WeightLoader> files) : files_(std::move(files)) {}
  void add(std::string name, Tensor t) {
    const std::vector<std::int64_t> dims = t.dims();
    made_.insert_or_assign(std::move(name), Made{std::move(t), dims});
  }
  std::vector<std::string> names() const override { return files_->names(); }
  std::optional<TensorView> find(std::string_view name) const override {
    const auto own = made_.find(name);
    if (own == made_.end()) return files_->find(name);
    const Tensor& t = own->second.value;
    return TensorView{t.data(), t.dtype(), own->second.dims, t.size_bytes()};
  }
  std::optional<SourceIdentity> identity(std::string_view name) const override { return files_->identity(name); }
  void drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const override {
    if (made_.find(name) == made_.end()) files_->drop_pages(name, first, bytes);
  }

 private:
  std::shared_ptr<const WeightLoader> files_;
  struct Made {
    Tensor value;
    std::vector<std::int64_t> dims;  // which views point to
  };
  std::map<std::string, Made, std::less<>> made_;
};

// The names of all tensors that the model has to have or may have, in the order of the file to be written.
struct ExpectedTensor {
  std::string hf, gguf;
  const TensorRule* rule;
};
std::vector<ExpectedTensor> expected_tensors(const GgufArchitecture& a, std::int64_t layers) {
  std::vector<ExpectedTensor> out;
  const auto filled = [](std::string_view pattern, std::int64_t layer) {
    std::string name(pattern);
    if (const std::size_t at = name.find("{}"); at != std::string::npos) name.replace(at, 2, std::to_string(layer));
    return name;
  };
  const auto add = [&](bool in_layers, std::int64_t layer) {
    for (const TensorRule& rule : a.tensors)
      if ((rule.hf.find("{}") != std::string_view::npos) == in_layers)
        out.push_back({filled(rule.hf, layer), filled(rule.gguf, layer), &rule});
  };
  add(false, 0);
  for (std::int64_t i = 0; i < layers; ++i) add(true, i);
  return out;
}

bool may_lack(const ExpectedTensor& t) { return t.hf == "lm_head.weight" || t.hf.ends_with(".bias"); }

void folder_to_gguf(const std::string& folder, const std::string& target, const ConvertOptions& options) {
  const JsonDocument document = JsonDocument::read(join_path(folder, "config.json"));
  const JsonValue config = document.root_object();
  const std::string_view model_type = config.get_string("model_type");
  const GgufArchitecture* a = find_architecture_of_model_type(model_type);
  if (!a) {
    std::vector<std::string> known;
    for (const GgufArchitecture& k : gguf_architecture_table()) known.emplace_back(k.model_type);
    throw Error(ErrorCode::Unsupported,
                concat_text(document.source(), ": models of type \"", model_type, "\" are not converted"),
                concat_text("known are ", quoted_names(known, known.size())));
  }
  const ModelSizes sizes = read_sizes_of_config(config);
  const auto files = SafetensorsFolder::open(folder);
  WithMadeTensors source(files);
  const bool tied = config.get_bool("tie_word_embeddings", !files->find("lm_head.weight"));
  const auto fail = [&](const std::string& what, std::string hint = {}) {
    throw Error(ErrorCode::BadFile, concat_text(files->source(), ": ", what), std::move(hint));
  };

  std::vector<ConvertedTensor> tensors;
  std::set<std::string, std::less<>> used;
  const auto add = [&](std::string hf, std::string gguf, TensorChange change) {
    const TensorView view = *source.find(hf);
    ConvertedTensor t;
    t.source = std::move(hf), t.name = std::move(gguf);
    t.from = gguf_type_of_view(view, t.source);
    t.dims.assign(view.dims.begin(), view.dims.end());
    apply_change(t, change, sizes, true);
    tensors.push_back(std::move(t));
  };
  for (const ExpectedTensor& t : expected_tensors(*a, sizes.layers)) {
    used.insert(t.hf);
    if (t.hf == "lm_head.weight" && tied) {
      if (files->find(t.hf) && options.note)
        options.note("lm_head.weight is left out: the settings tie it to the embedding");
      continue;
    }
    if (!files->find(t.hf)) {
      if (may_lack(t) && !(t.hf == "lm_head.weight" && !tied)) continue;
      fail(concat_text("the tensor \"", t.hf, "\" is missing"), did_you_mean(t.hf, files->names()));
    }
    add(t.hf, t.gguf, t.rule->change);
  }
  for (const std::string& name : files->names())
    if (used.find(name) == used.end() && !name.ends_with(".rotary_emb.inv_freq"))
      throw Error(ErrorCode::Unsupported,
                  concat_text(files->source(), ": the tensor \"", name, "\" has no place in a model of type \"",
                              model_type, "\" with ", sizes.layers, " layers"));
  const ConvertedTensor& table = tensors.front();
  if (table.dims != std::vector<std::int64_t>{sizes.vocab, sizes.hidden})
    fail(concat_text("the tensor \"", table.source, "\" is ", dims_text(table.dims), ", expected [", sizes.vocab, ", ",
                     sizes.hidden, "]"));
  if (const auto factors = rope_factors(config, sizes)) {
    source.add("rope_freqs.weight", Tensor::of<float>({static_cast<std::int64_t>(factors->size())}, *factors));
    add("rope_freqs.weight", "rope_freqs.weight", TensorChange::None);
  }
  const TypeChoice choose(options, tied ? "token_embd.weight" : "output.weight");
  for (ConvertedTensor& t : tensors) t.to = choose(t);

  const std::string pre_files = [&] {  // what else decides the bytes
    std::string text(model_type);
    for (const char* name :
         {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"}) {
      const std::string path = join_path(folder, name);
      if (!has_file(path)) continue;
      const FileStatus s = MappedFile::open(path).status();
      text += concat_text(" ", name, " ", s.inode, " ", s.size, " ", s.mtime_ns);
    }
    return text;
  }();
  GgufWriter out(target, {.resume_key = conversion_key(source, tensors, options, pre_files)});
  out.set_string("general.architecture", a->gguf);
  out.set_string("general.type", "model");
  const std::string name = std::filesystem::path(folder).lexically_normal().filename().string();
  if (!name.empty() && name != ".") out.set_string("general.name", name);
  const GgufType main = options.type ? *options.type : table.to;
  if (const std::int64_t number = file_type_of(main); number >= 0)
    out.set_int("general.file_type", GgufKind::U32, number);
  out.set_int("general.quantization_version", GgufKind::U32, 2);
  write_settings(out, *a, config, sizes);
  if (!write_vocabulary(out, folder, sizes.vocab, options.pre_tokenizer, options.note) && options.note)
    options.note(concat_text(folder, " has no tokenizer.json: the file will hold no vocabulary"));
  write_tensors(out, source, tensors, options);
}

// -- GGUF files --

void gguf_to_gguf(const std::string& path, const std::string& target, const ConvertOptions& options) {
  const auto file = GgufFile::open(path);
  std::vector<ConvertedTensor> tensors;
  for (const GgufTensor& t : file->tensors()) {
    ConvertedTensor c;
    c.source = c.name = t.name, c.from = t.type;
    c.dims.assign(t.dims.begin(), t.dims.end());
    tensors.push_back(std::move(c));
  }
  const TypeChoice choose(options, file->find_tensor("output.weight") ? "output.weight" : "token_embd.weight");
  for (ConvertedTensor& t : tensors) t.to = choose(t);
  const FileStatus s = MappedFile::open(path).status();
  GgufWriter out(target, {.resume_key = conversion_key(*file, tensors, options,
                                                       concat_text(s.inode, " ", s.size, " ", s.mtime_ns))});
  for (const GgufValue& v : file->metadata()) {
    const std::string_view key = v.key();
    if (key == "general.alignment" || key.substr(0, 6) == "split." || (options.type && key == "general.file_type") ||
        key == "general.quantization_version")
      continue;
    out.copy(v);
  }
  if (options.type && file_type_of(*options.type) >= 0)
    out.set_int("general.file_type", GgufKind::U32, file_type_of(*options.type));
  out.set_int("general.quantization_version", GgufKind::U32, 2);
  write_tensors(out, *file, tensors, options);
}

std::string_view safetensors_name(GgufType type) {
  return type == GgufType::F32 ? "F32" : type == GgufType::F16 ? "F16" : "BF16";
}

}  // namespace

void convert_to_gguf(const std::string& source, const std::string& target, const ConvertOptions& options) try {
  if (is_folder(source))
    folder_to_gguf(source, target, options);
  else
    gguf_to_gguf(source, target, options);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("convert_to_gguf");
}

void convert_to_folder(const std::string& source, const std::string& folder, const ConvertOptions& options) try {
  const auto file = GgufFile::open(source);
  const GgufArchitecture* a =
      find_architecture_of_gguf(file->architecture(), file->find_value("llama.attention.sliding_window") != nullptr);
  if (!a)
    throw Error(ErrorCode::Unsupported, concat_text(source, ": models of architecture \"", file->architecture(),
                                                    "\" are not converted to folders"));
  if (options.type && *options.type != GgufType::F32 && *options.type != GgufType::F16 &&
      *options.type != GgufType::BF16)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("a folder's weights are F32, F16 or BF16, not ", gguf_type_info(*options.type).name));
  const ModelSizes sizes = read_sizes_of_gguf(*file, *a);
  std::vector<ConvertedTensor> tensors;
  std::set<std::string, std::less<>> used;
  for (const ExpectedTensor& e : expected_tensors(*a, sizes.layers)) {
    used.insert(e.gguf);
    const GgufTensor* t = file->find_tensor(e.gguf);
    if (!t) {
      if (may_lack(e)) continue;
      throw Error(ErrorCode::BadFile, concat_text(source, ": the tensor \"", e.gguf, "\" is missing"),
                  did_you_mean(e.gguf, file->names()));
    }
    ConvertedTensor c;
    c.source = e.gguf, c.name = e.hf, c.from = t->type;
    c.dims.assign(t->dims.begin(), t->dims.end());
    const bool kept = t->type == GgufType::F32 || t->type == GgufType::F16 || t->type == GgufType::BF16;
    c.to = options.type ? *options.type : kept ? t->type : GgufType::F16;
    apply_change(c, e.rule->change, sizes, false);
    tensors.push_back(std::move(c));
  }
  for (const GgufTensor& t : file->tensors())
    if (used.find(t.name) == used.end() && t.name != "rope_freqs.weight")
      throw Error(ErrorCode::Unsupported,
                  concat_text(source, ": the tensor \"", t.name, "\" has no place in a model of type \"", a->model_type,
                              "\" with ", sizes.layers, " layers"));
  const GgufType main = tensors.front().to;
  const std::string config = config_of_gguf(*file, *a, sizes,
                                            main == GgufType::F32   ? "float32"
                                            : main == GgufType::F16 ? "float16"
                                                                    : "bfloat16");

  JsonWriter header;
  header.begin_object().key("__metadata__").begin_object().member("format", "pt").end_object();
  std::vector<OutputFile::Extent> extents;
  std::size_t at = 0;
  // Wider elements first, so that all data are aligned.
  std::stable_sort(tensors.begin(), tensors.end(), [](const ConvertedTensor& x, const ConvertedTensor& y) {
    return gguf_type_info(x.to).bytes > gguf_type_info(y.to).bytes;
  });
  for (const ConvertedTensor& t : tensors) {
    const std::size_t size = gguf_size_bytes(t.to, t.dims);
    header.key(t.name).begin_object().member("dtype", safetensors_name(t.to)).key("shape").begin_array();
    for (const std::int64_t d : t.dims) header.value(d);
    header.end_array()
        .key("data_offsets")
        .begin_array()
        .value(std::uint64_t{at})
        .value(std::uint64_t{at + size})
        .end_array()
        .end_object();
    extents.push_back({at, size});
    at += size;
  }
  header.end_object();
  std::string head = header.take();
  head.append((8 - head.size() % 8) % 8, ' ');
  const std::uint64_t length = head.size();
  head.insert(0, std::string(reinterpret_cast<const char*>(&length), sizeof length));

  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) fail_file(folder, "make the folder", failed.value());
  OutputFile out(join_path(folder, "model.safetensors"), conversion_key(*file, tensors, options, file->architecture()));
  const std::size_t done = out.keep_whole(head, extents);
  if (done == 0) out.write(head);
  if (done > 0 && options.note) options.note(concat_text("going on after ", done, " of ", tensors.size(), " tensors"));
  convert_all(*file, tensors, done, options, [&](std::span<const std::byte> bytes) {
    out.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
  write_file(join_path(folder, "config.json"), config);
  out.commit();
  if (options.note) options.note("tokenizer.json is not written: copy it from the original model's folder");
} catch (const std::bad_alloc&) {
  throw_out_of_memory("convert_to_folder");
}

}  // namespace rlx
