// Plans conversions: target tensors, their types, and the header of the file.
#include "rlx/models/convert/model_convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "rlx/base/output_file.h"
#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/safetensors_folder.h"
#include "rlx/models/convert/convert_plan.h"
#include "rlx/models/convert/convert_settings.h"
#include "rlx/models/convert/convert_source.h"
#include "rlx/models/convert/gguf_vocabulary.h"
#include "rlx/models/convert/tokenizer_files.h"
#include "rlx/models/model_family.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

bool is_folder(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed);
}

// llama.cpp's number for "most tensors have this type", general.file_type.
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
              concat_text("tensors of type ", gguf_type_info(*type).name, " can be read, but not written"),
              concat_text("rlx writes ", names));
}

// Chooses the types of matrices.
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
    // Norms, biases (of experts too), and tensors that llama.cpp's kernels read as F32.
    if (t.dims.size() < 2 || t.name.ends_with(".bias") || t.name.ends_with(".ffn_gate_inp.weight") ||
        t.name == "position_embd.weight")
      return GgufType::F32;
    std::optional<GgufType> type = options_.type;
    if (t.name == head_)
      type = options_.head_type ? options_.head_type : type ? std::optional(head_type(*type, t.row_size())) : type;
    if (!type) return t.from == GgufType::F64 ? GgufType::F32 : t.from;
    GgufType made = *type;
    for (int turn = 0; turn < 2 && t.row_size() % gguf_type_info(made).elements != 0; ++turn)
      made = smaller_block(made);
    if (made != *type && options_.note)
      options_.note(concat_text(t.name, " has rows of ", t.row_size(), " elements, which is not a multiple of ",
                                gguf_type_info(*type).elements, ": ", gguf_type_info(made).name, " is used instead of ",
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

// Reports progress.
class Steps {
 public:
  Steps(std::span<const ConvertedTensor> tensors, const ConvertOptions& options) : options_(options) {
    for (const ConvertedTensor& t : tensors) total_ += t.source_bytes();
  }
  void add(std::size_t bytes) {
    done_ += bytes;
    if (options_.progress) options_.progress(std::min(done_, total_), total_);
  }

 private:
  const ConvertOptions& options_;
  std::size_t done_ = 0, total_ = 0;
};

// State shared by all files of a conversion.
struct Work {
  const WeightLoader& source;
  const ConvertOptions& options;
  ImportanceFile importance;
  int threads;
  Steps steps;
  GuardedReads reads{};  // of the mapped files of `source`
  Work(const WeightLoader& from, std::span<const ConvertedTensor> tensors, const ConvertOptions& o)
      : source(from),
        options(o),
        importance(o.importance),
        threads(o.threads > 0 ? o.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))),
        steps(tensors, o) {}
};

// Converts the tensors from `first` on.
void convert_all(Work& work, std::span<const ConvertedTensor> tensors, std::size_t first,
                 const std::function<void(std::span<const std::byte>)>& write) {
  for (std::size_t i = 0; i < first; ++i) work.steps.add(tensors[i].source_bytes());
  for (std::size_t i = first; i < tensors.size(); ++i) {
    const ConvertedTensor& t = tensors[i];
    const std::size_t made = gguf_size_bytes(t.to, t.dims), read = t.source_bytes();
    std::size_t written = 0, told = 0;
    const auto written_out = [&](std::span<const std::byte> bytes) {
      write(bytes);
      written += bytes.size();
      const auto so_far = static_cast<std::size_t>(static_cast<double>(read) * static_cast<double>(written) /
                                                   static_cast<double>(made));
      work.steps.add(so_far - told);
      told = so_far;
    };
    const EncodingError error = convert_tensor(work.source, t, work.importance, work.threads, written_out);
    work.steps.add(read - told);
    if (const std::string problem = encoding_problem(t.to, error); !problem.empty() && work.options.note)
      work.options.note(concat_text(t.name, ": ", problem));
  }
  if (!any_damaged_mapping()) return;
  for (const std::string& name : work.source.names())
    if (const auto view = work.source.find(name)) GuardedReads::check(view->data);
}

// The tensors of each file: as many as fit, and at least one.
std::vector<std::span<const ConvertedTensor>> file_parts(std::span<const ConvertedTensor> tensors,
                                                         const ConvertOptions& options) {
  std::vector<std::span<const ConvertedTensor>> out;
  std::size_t first = 0, bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t size = gguf_size_bytes(tensors[i].to, tensors[i].dims);
    if (options.split_max_bytes > 0 && i > first &&
        size > options.split_max_bytes - std::min(bytes, options.split_max_bytes)) {
      out.push_back(tensors.subspan(first, i - first));
      first = i, bytes = 0;
    }
    bytes += size;
  }
  out.push_back(tensors.subspan(first));
  constexpr std::size_t kMostParts = 65535;  // the format's limit
  if (out.size() > kMostParts)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("a split at ", options.split_max_bytes, " bytes would need ", out.size(),
                            " files; at most ", kMostParts, " are possible"),
                "increase the size of each file");
  return out;
}

// "00002-of-00005"
std::string part_number(std::size_t number, std::size_t count) {
  const auto padded = [](std::size_t v) {
    const std::string text = std::to_string(v);
    return std::string(5 - std::min<std::size_t>(5, text.size()), '0') + text;
  };
  return concat_text(padded(number), "-of-", padded(count));
}

// Calls f(part, commit) for each part to write it. With several parts, calls it again from the last to the first to
// rename them: all parts keep temporary names until all are complete.
template <class F>
void write_parts(std::size_t parts, F f) {
  if (parts == 1) return f(std::size_t{0}, true);
  for (std::size_t i = 0; i < parts; ++i) f(i, false);
  for (std::size_t i = parts; i-- > 0;) f(i, true);
}

// `head` sets the metadata of the first file; `again`: it was called before.
void write_gguf(const std::string& target, const std::string& key,
                const std::function<void(GgufWriter& out, bool again)>& head, const WeightLoader& source,
                std::span<const ConvertedTensor> tensors, const ConvertOptions& options) {
  Work work(source, tensors, options);
  const auto parts = file_parts(tensors, options);
  const std::string stem = target.ends_with(".gguf") ? target.substr(0, target.size() - 5) : target;
  bool again = false;
  std::size_t told = 0;
  write_parts(parts.size(), [&](std::size_t i, bool commit) {
    GgufWriter out(parts.size() == 1 ? target : concat_text(stem, "-", part_number(i + 1, parts.size()), ".gguf"),
                   {.resume_key = key});
    if (i == 0) head(out, std::exchange(again, true));
    if (parts.size() > 1) {
      out.set_int("split.no", GgufKind::U16, static_cast<std::int64_t>(i));
      out.set_int("split.count", GgufKind::U16, static_cast<std::int64_t>(parts.size()));
      out.set_int("split.tensors.count", GgufKind::I32, static_cast<std::int64_t>(tensors.size()));
    }
    for (const ConvertedTensor& t : parts[i]) out.add_tensor(t.name, t.to, t.dims);
    const std::size_t done = out.begin();
    if (done < parts[i].size() || parts.size() == 1 || !commit) {
      if (done > 0 && options.note)
        options.note(concat_text("resuming after ", told + done, " of ", tensors.size(), " tensors"));
      convert_all(work, parts[i], done, [&](std::span<const std::byte> bytes) { out.write(bytes); });
      told += parts[i].size();
    }
    if (commit) out.commit();
  });
  if (parts.size() > 1 && options.note)
    options.note(concat_text("written as ", parts.size(), " files, ", stem, "-", part_number(1, parts.size()),
                             ".gguf and so on: open any of them to read all"));
}

// -- folders --

// Assumptions of llama.cpp about an architecture that neither the format nor rlx makes (its loaders, 2026). A file that
// breaks one is valid, but llama.cpp refuses it: "wrong shape" or "wrong number of tensors".
std::string refused_by_llama_cpp(const DecoderFamily& a, const ModelSizes& s, bool tied) {
  const auto only = [&](const std::string& what) {
    return concat_text("llama.cpp reads files of ", a.gguf, " only with ", what, "; rlx reads this one");
  };
  if (s.heads * s.head_dim != s.hidden && a.llama_cpp.heads_fill_width)
    return only(concat_text("heads whose sizes add up to the model width: this model has ", s.heads, " of ", s.head_dim,
                            " elements for a width of ", s.hidden));
  if (!tied && a.llama_cpp.embedding_is_head)
    return only("tied embeddings, but this model has a separate output matrix");
  if (tied && a.llama_cpp.head_is_own) return only("a separate output matrix, but this model has tied embeddings");
  return {};
}

bool is_number(const TensorRule& rule) {
  return rule.change == TensorChange::Number || rule.change == TensorChange::NumberScalar;
}

// The element of a one-element tensor.
float number_of(const WeightLoader& source, const std::string& name) {
  const TensorView view = *source.find(name);
  const Tensor t = Tensor::copy_of(view.data, Shape(Dims(view.dims.begin(), view.dims.end()), view.dtype));
  const double v = t.num_elements() == 1 ? t.cast(DType::F32).at(0) : std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(v))
    throw Error(ErrorCode::BadFile, concat_text("tensor \"", name, "\" is ", dims_text(view.dims), " and holds ", v,
                                                ", expected one finite number"));
  return static_cast<float>(v);
}

// A loader of a folder's weights plus tensors made in memory.
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
    std::vector<std::int64_t> dims;  // views point into it
  };
  std::map<std::string, Made, std::less<>> made_;
};

void folder_to_gguf(const std::string& folder, const std::string& target, const ConvertOptions& options) {
  const JsonDocument document = JsonDocument::read(join_path(folder, "config.json"));
  const JsonValue config = document.root_object();
  const std::string_view model_type = config.get_string("model_type");
  const DecoderFamily* a = find_family_of_model_type(model_type);
  if (!a) {
    std::vector<std::string> known;
    for (const ModelFamily* k : model_families())
      if (k->decoder) known.emplace_back(k->decoder->model_type);
    std::sort(known.begin(), known.end());
    throw Error(ErrorCode::Unsupported,
                concat_text(document.source(), ": models of type \"", model_type, "\" cannot be converted"),
                concat_text("supported are ", quoted_names(known, known.size())));
  }
  if (const auto q = config.find("quantization_config"); q && q->is_object())
    throw Error(ErrorCode::Unsupported,
                concat_text(document.source(), ": weights quantized as \"", q->get_string("quant_method", "unknown"),
                            "\" cannot be converted"),
                "use the model in BF16, F16 or F32; --type quantizes it");
  const ModelSizes sizes = read_sizes_of_config(*a, config);
  GgufWriter settings(target);  // writes no file: finds settings that cannot be stored before weights are read
  write_settings(settings, *a, config, sizes);
  const auto files = SafetensorsFolder::open(folder);
  WithMadeTensors source(files);
  const auto fail = [&](const std::string& what, std::string hint = {}) {
    throw Error(ErrorCode::BadFile, concat_text(files->source(), ": ", what), std::move(hint));
  };
  const std::vector<ExpectedTensor> expected = expected_tensors(*a, sizes);
  // A checkpoint of the base model without its head may have names without the prefix.
  const bool cut = !a->prefix.empty() && !files->find(expected.front().hf);
  const auto stored_name = [&](std::string hf) {
    if (cut && hf.starts_with(a->prefix)) hf.erase(0, a->prefix.size());
    return hf;
  };
  const auto head =
      std::find_if(expected.begin(), expected.end(), [](const ExpectedTensor& t) { return t.is_output(); });
  const bool has_head = head != expected.end() && files->find(head->hf).has_value();
  const bool tied = config.get_bool("tie_word_embeddings", a->tied || !has_head);

  std::vector<ConvertedTensor> tensors;
  std::map<std::string, std::vector<float>> numbers;  // by metadata key: one number for each layer
  std::set<std::string, std::less<>> used;
  const TensorPlans plans(source, sizes, true);
  const auto is_there = [&](const std::string& name) {
    used.insert(name);
    return files->find(name).has_value();
  };
  for (const ExpectedTensor& t : expected) {
    const std::string hf = stored_name(t.hf);
    if (t.is_output() && tied) {
      if (is_there(hf) && options.note)
        options.note(concat_text(hf, " is skipped: the configuration ties it to the embedding"));
      continue;
    }
    std::vector<std::string> sources;
    if (t.rule->change == TensorChange::Experts)
      for (std::int64_t e = 0; e < sizes.experts; ++e) sources.push_back(numbered_name(hf, "{e}", e));
    else
      sources = {hf};
    bool whole = true;
    for (const std::string& name : sources) {
      if (is_there(name)) continue;
      whole = false;
      if (t.rule->need == TensorNeed::Optional && !t.is_output()) continue;
      fail(concat_text("the tensor \"", name, "\" is missing"), did_you_mean(name, files->names()));
    }
    if (is_number(*t.rule))
      numbers[t.gguf].push_back(number_of(*files, hf));
    else if (whole)
      tensors.push_back(plans.plan(sources, t.gguf, t.rule->change));
  }
  for (const std::string& name : files->names()) {
    const bool ignored = name.ends_with(".rotary_emb.inv_freq") ||
                         std::any_of(std::begin(a->ignored), std::end(a->ignored),
                                     [&](std::string_view end) { return !end.empty() && name.ends_with(end); });
    if (used.find(name) == used.end() && !ignored)
      throw Error(ErrorCode::Unsupported,
                  concat_text(files->source(), ": the tensor \"", name, "\" does not belong to a model of type \"",
                              model_type, "\" with ", sizes.layers, " layers"));
  }
  const ConvertedTensor& table = tensors.front();
  if (table.dims != std::vector<std::int64_t>{sizes.vocab, sizes.hidden})
    fail(concat_text("the tensor \"", table.sources[0], "\" is ", dims_text(table.dims), ", expected [", sizes.vocab,
                     ", ", sizes.hidden, "]"));
  const GgufType table_type = table.from;
  for (const auto& [name, factors] : rope_factors(*a, config, sizes)) {
    source.add(name, Tensor::of<float>({static_cast<std::int64_t>(factors.size())}, factors));
    tensors.push_back(plans.plan({name}, name, TensorChange::None));
  }
  if (const std::string limit = refused_by_llama_cpp(*a, sizes, tied); !limit.empty() && options.note)
    options.note(limit);
  const TypeChoice choose(options, tied ? "token_embd.weight" : "output.weight");
  for (ConvertedTensor& t : tensors) t.to = choose(t);

  const std::string pre_files = [&] {  // further inputs that decide the bytes
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
  const auto head_of = [&](GgufWriter& out, bool again) {
    out.set_string("general.architecture", a->gguf);
    out.set_string("general.type", "model");
    const std::string name = std::filesystem::path(folder).lexically_normal().filename().string();
    if (!name.empty() && name != ".") out.set_string("general.name", name);
    const GgufType main = options.type ? *options.type : table_type;
    if (const std::int64_t number = file_type_of(main); number >= 0)
      out.set_int("general.file_type", GgufKind::U32, number);
    out.set_int("general.quantization_version", GgufKind::U32, 2);
    write_settings(out, *a, config, sizes);
    for (const auto& [key, values] : numbers) out.set_floats(key, values);
    const auto note = again ? std::function<void(const std::string&)>() : options.note;
    if (!write_vocabulary(out, folder, sizes.vocab, options.pre_tokenizer, note) && note)
      note(concat_text(folder, " has no tokenizer.json: the file will have no vocabulary"));
  };
  write_gguf(target, conversion_key(source, tensors, options, pre_files), head_of, source, tensors, options);
}

// -- GGUF files --

void gguf_to_gguf(const std::string& path, const std::string& target, const ConvertOptions& options) {
  const auto file = GgufFile::open(path);
  std::vector<ConvertedTensor> tensors;
  for (const GgufTensor& t : file->tensors()) {
    ConvertedTensor c;
    c.sources = {std::string(t.name)}, c.name = t.name, c.from = t.type;
    c.dims.assign(t.dims.begin(), t.dims.end());
    tensors.push_back(std::move(c));
  }
  const TypeChoice choose(options, file->find_tensor("output.weight") ? "output.weight" : "token_embd.weight");
  for (ConvertedTensor& t : tensors) t.to = choose(t);
  const FileStatus s = MappedFile::open(path).status();
  const auto head_of = [&](GgufWriter& out, bool) {
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
  };
  write_gguf(target, conversion_key(*file, tensors, options, concat_text(s.inode, " ", s.size, " ", s.mtime_ns)),
             head_of, *file, tensors, options);
}

// -- safetensors --

std::string_view safetensors_name(GgufType type) {
  return type == GgufType::F32 ? "F32" : type == GgufType::F16 ? "F16" : "BF16";
}

// The header of a file, and the offsets of its tensors.
std::string safetensors_head(std::span<const ConvertedTensor> tensors, std::vector<OutputFile::Extent>& extents) {
  JsonWriter header;
  header.begin_object().key("__metadata__").begin_object().member("format", "pt").end_object();
  std::size_t at = 0;
  for (const ConvertedTensor& t : tensors) {
    const std::size_t size = gguf_size_bytes(t.to, t.dims);
    header.key(t.name).begin_object().member("dtype", safetensors_name(t.to)).key("shape").begin_array();
    for (const std::int64_t d : t.dims) header.value(d);
    header.end_array().key("data_offsets").begin_array();
    header.value(std::uint64_t{at}).value(std::uint64_t{at + size}).end_array().end_object();
    extents.push_back({at, size});
    at += size;
  }
  header.end_object();
  std::string head = header.take();
  head.append((8 - head.size() % 8) % 8, ' ');
  const std::uint64_t length = head.size();
  return head.insert(0, std::string(reinterpret_cast<const char*>(&length), sizeof length));
}

// Writes model.safetensors, or shards and their index.
void write_safetensors_files(const std::string& folder, const std::string& key, const WeightLoader& source,
                             std::span<const ConvertedTensor> tensors, const ConvertOptions& options) {
  Work work(source, tensors, options);
  const auto parts = file_parts(tensors, options);
  const std::string whole = join_path(folder, "model.safetensors");
  if (parts.size() > 1 && has_file(whole))
    throw Error(ErrorCode::InvalidArgument,
                concat_text("\"", folder, "\" has a model.safetensors, which would be loaded instead of the ",
                            parts.size(), " new files"),
                "remove the file, or use another folder");
  JsonWriter index(2);
  index.begin_object().key("weight_map").begin_object();
  std::size_t told = 0;
  write_parts(parts.size(), [&](std::size_t i, bool commit) {
    // Larger elements first, so that all data are aligned.
    std::vector<ConvertedTensor> part(parts[i].begin(), parts[i].end());
    std::stable_sort(part.begin(), part.end(), [](const ConvertedTensor& x, const ConvertedTensor& y) {
      return gguf_type_info(x.to).bytes > gguf_type_info(y.to).bytes;
    });
    const std::string name = concat_text("model-", part_number(i + 1, parts.size()), ".safetensors");
    std::vector<OutputFile::Extent> extents;
    const std::string head = safetensors_head(part, extents);
    OutputFile out(parts.size() == 1 ? whole : join_path(folder, name), key);
    const std::size_t done = out.keep_whole(head, extents);
    if (done < part.size() || !commit) {
      if (done == 0) out.write(head);
      if (done > 0 && options.note)
        options.note(concat_text("resuming after ", told + done, " of ", tensors.size(), " tensors"));
      convert_all(work, part, done, [&](std::span<const std::byte> bytes) {
        out.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      });
      told += part.size();
    }
    if (!commit) return;
    for (const ConvertedTensor& t : part) index.member(t.name, name);
    out.commit();
  });
  index.end_object().end_object();
  if (parts.size() > 1) write_file(join_path(folder, "model.safetensors.index.json"), index.take() + "\n");
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
  const auto setting = [&](std::string_view name) { return concat_text(file->architecture(), ".", name); };
  const DecoderFamily* a =
      find_family_of_gguf(file->architecture(), file->find_value(setting("attention.sliding_window")) != nullptr,
                          file->get_int(setting("expert_count"), 0) > 0);
  if (!a)
    throw Error(ErrorCode::Unsupported, concat_text(source, ": models of architecture \"", file->architecture(),
                                                    "\" cannot be converted to folders"));
  if (options.type && *options.type != GgufType::F32 && *options.type != GgufType::F16 &&
      *options.type != GgufType::BF16)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("weights in a folder must be F32, F16 or BF16, got ", gguf_type_info(*options.type).name));
  const ModelSizes sizes = read_sizes_of_gguf(*file, *a);
  std::vector<ConvertedTensor> tensors;
  std::set<std::string, std::less<>> used;
  const TensorPlans plans(*file, sizes, false);
  const auto add = [&](ConvertedTensor t) {
    const bool kept = t.from == GgufType::F32 || t.from == GgufType::F16 || t.from == GgufType::BF16;
    t.to = options.type ? *options.type : kept ? t.from : GgufType::F16;
    tensors.push_back(std::move(t));
  };
  const std::vector<ExpectedTensor> expected = expected_tensors(*a, sizes);
  std::map<std::string, std::vector<float>> numbers;
  for (auto e = expected.begin(); e != expected.end(); ++e) {
    // Tensors that are merged into one are adjacent.
    const auto end = std::find_if(e, expected.end(), [&](const ExpectedTensor& other) { return other.hf != e->hf; });
    std::vector<std::string> sources;
    if (is_number(*e->rule)) {
      std::vector<float>& values = numbers[e->gguf];  // remaining values, in reverse order of layers
      if (values.empty()) {
        values = file->value(e->gguf).floats();
        if (values.size() != static_cast<std::size_t>(sizes.layers))
          throw Error(ErrorCode::BadFile, concat_text(source, ": \"", e->gguf, "\" has ", values.size(),
                                                      " entries for ", sizes.layers, " layers"));
        std::reverse(values.begin(), values.end());
      }
      ConvertedTensor t;
      t.name = e->hf, t.from = GgufType::F32, t.number = values.back();
      if (e->rule->change == TensorChange::Number) t.dims = {1};
      values.pop_back();
      add(std::move(t));
      continue;
    }
    for (auto part = e; part != end; ++part) {
      used.insert(part->gguf);
      if (file->find_tensor(part->gguf)) {
        sources.push_back(part->gguf);
      } else if (part->rule->need != TensorNeed::Optional) {
        throw Error(ErrorCode::BadFile, concat_text(source, ": the tensor \"", part->gguf, "\" is missing"),
                    did_you_mean(part->gguf, file->names()));
      }
    }
    if (sources.empty()) continue;
    if (e->rule->change == TensorChange::Experts)
      for (std::int64_t i = 0; i < sizes.experts; ++i)
        add(plans.plan_expert(e->gguf, numbered_name(e->hf, "{e}", i), i));
    else
      add(plans.plan(sources, e->hf, e->rule->change));
    e = end - 1;
  }
  for (const GgufTensor& t : file->tensors())
    if (used.find(t.name) == used.end() && t.name != "rope_freqs.weight" && !t.name.starts_with("rope_factors_"))
      throw Error(ErrorCode::Unsupported,
                  concat_text(source, ": the tensor \"", t.name, "\" does not belong to a model of type \"",
                              a->model_type, "\" with ", sizes.layers, " layers"));
  const GgufType main = tensors.front().to;
  const std::string config = config_of_gguf(*file, *a, sizes,
                                            main == GgufType::F32   ? "float32"
                                            : main == GgufType::F16 ? "float16"
                                                                    : "bfloat16");

  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) fail_file(folder, "create the folder", failed.value());
  const std::string key = conversion_key(*file, tensors, options, file->architecture());
  write_safetensors_files(folder, key, *file, tensors, options);
  write_file(join_path(folder, "config.json"), config);
  write_tokenizer_files(*file, folder, options.note);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("convert_to_folder");
}

}  // namespace rlx
