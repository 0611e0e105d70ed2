// Loads, batches and runs a sentence encoder.
#include "rlx/models/sentence_encoder.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "rlx/base/callback_life.h"
#include "rlx/base/forks.h"
#include "rlx/base/sigbus_guard.h"
#include "rlx/base/utf8.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/safetensors.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/models/encoder/encoder_runner.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// Python's str.lower() for single characters. Invalid UTF-8 stays unchanged, so that the tokeniser reports it.
std::string lower_case(const std::string& text) {
  if (find_invalid_utf8(text)) return text;
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();)
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(decode_utf8(text, at)))));
  return out;
}

}  // namespace

namespace {

class Checkpoint : public WeightLoader {
 public:
  explicit Checkpoint(const std::string& path) : file_(SafetensorsFile::open(path)) {
    for (const std::string& stored : file_->names())
      if (is_float(file_->find(stored)->dtype))
        names_.push_back(stored.starts_with(kPrefix) ? stored.substr(kPrefix.size()) : stored);
  }
  std::vector<std::string> names() const override { return names_; }
  std::optional<TensorView> find(std::string_view name) const override { return file_->find(stored_name(name)); }
  std::optional<SourceIdentity> identity(std::string_view name) const override {
    return file_->identity(stored_name(name));
  }
  void drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const override {
    file_->drop_pages(stored_name(name), first, bytes);
  }

 private:
  static constexpr std::string_view kPrefix = "bert.";
  std::string stored_name(std::string_view name) const {
    return file_->find(name) ? std::string(name) : concat_text(kPrefix, name);
  }
  std::shared_ptr<const SafetensorsFile> file_;
  std::vector<std::string> names_;
};

}  // namespace

std::shared_ptr<const WeightLoader> open_checkpoint(const std::string& path) try {
  return std::make_shared<Checkpoint>(path);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("open_checkpoint");
}

namespace {

constexpr std::string_view kLayerPrefix = "encoder.layer.";

// Checks before the graph is built: a wrong count could be any number, and only the layers of the file can be loaded.
void check_layer_count(std::int64_t num_layers, const WeightLoader& weights, const std::string& path) {
  std::set<std::int64_t> layers;
  for (const std::string& name : weights.names()) {
    std::int64_t layer = 0;
    if (name.starts_with(kLayerPrefix) &&
        std::from_chars(name.data() + kLayerPrefix.size(), name.data() + name.size(), layer).ec == std::errc())
      layers.insert(layer);
  }
  if (num_layers > static_cast<std::int64_t>(layers.size()))
    throw Error(ErrorCode::BadFile,
                concat_text(path, ": the file holds ", layers.size(), " layers (", kLayerPrefix,
                            "N), but \"num_hidden_layers\" of config.json is ", num_layers),
                "the configuration and the weights belong to different models");
}

}  // namespace

void load_checkpoint(CompiledGraph& encoder, std::shared_ptr<const WeightLoader> weights, const std::string& path) try {
  if (!weights) throw Error(ErrorCode::InvalidArgument, "load_checkpoint: no weights were given (a null pointer)");
  try {
    encoder.load_params(weights, LoadMode::Subset);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::OutOfMemory) throw;  // the file may be good
    Diagnostic d = e.diagnostic();
    d.code = ErrorCode::BadFile;
    d.message = concat_text(path, ": ", d.message);
    throw Error(std::move(d));
  }
  // A tensor of a layer that no param uses means that the configuration is of another model, whose vectors would be
  // wrong. Heads on top of the encoder (a pooler, a classifier) are ignored on purpose.
  std::set<std::string_view> used;
  for (const IoInfo& param : encoder.params()) used.insert(param.name);
  for (const std::string& name : weights->names())
    if (name.starts_with(kLayerPrefix) && !used.contains(name))
      throw Error(ErrorCode::BadFile, concat_text(path, ": config.json does not account for the tensor '", name, "'"),
                  "\"num_hidden_layers\" is too small, or the configuration belongs to another model");
} catch (const std::bad_alloc&) {
  throw_out_of_memory("load_checkpoint");
}

EncoderGraphOptions encoder_graph_options(const SentenceModelConfig& config) {
  EncoderGraphOptions out;
  out.pooling = config.pooling, out.dense = config.dense, out.normalize = config.normalize;
  return out;
}

double cosine_similarity(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size())
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("cosine: the vectors have different lengths, ", a.size(), " and ", b.size()));
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return aa == 0 || bb == 0 ? 0 : dot / std::sqrt(aa * bb);
}

namespace {

// Heads whose models are trained for another task than vectors of texts.
struct OtherTask {
  std::string_view architecture, what, hint;
};
constexpr OtherTask kOtherTasks[] = {
    {"ForSequenceClassification", "a cross-encoder or a classifier",
     "a cross-encoder scores a query and a passage together: use Reranker or `rlx rerank`"},
    {"ForCausalLM", "a language model or a reranker",
     "`rlx generate` continues texts, and `rlx rerank` ranks passages by models that were trained for it"},
    {"ForTokenClassification", "a tagger of tokens", {}},
    {"ForQuestionAnswering", "a model that marks answers", {}},
    {"ForMultipleChoice", "a model that chooses answers", {}},
};

// Its vectors of texts would look like those of an embedding model. Where modules.json pools the tokens, the model is
// one, whatever class its weights were saved as.
void check_task(const std::string& folder) {
  if (has_file(join_path(folder, "modules.json"))) return;
  const JsonDocument config = read_model_config(folder);
  const std::optional<JsonValue> names = config.root_object().find("architectures");
  if (!names || names->is_null()) return;
  for (const JsonValue& name : names->elements("architectures"))
    for (const OtherTask& task : kOtherTasks) {
      const std::string_view architecture = name.as_string("architectures");
      if (architecture.ends_with(task.architecture))
        throw Error(ErrorCode::Unsupported,
                    concat_text("\"", folder, "\" is no embedding model: \"", architecture, "\" is ", task.what,
                                ", and there is no modules.json that pools its tokens"),
                    std::string(task.hint));
    }
}

// The files of a model folder that decide its vectors, besides the weights.
std::string setting_files(const std::string& folder) {
  std::vector<std::string> paths = {"config.json",    "config_sentence_transformers.json",
                                    "modules.json",   "sentence_bert_config.json",
                                    "tokenizer.json", "tokenizer_config.json",
                                    "vocab.txt"};
  std::error_code ignored;  // without the folder there are no files
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored)) paths.push_back(join_path(entry.path().filename().string(), "config.json"));
  std::sort(paths.begin(), paths.end());
  std::string out;
  for (const std::string& path : paths) {
    if (!is_file(join_path(folder, path))) continue;
    const std::string content = read_file(join_path(folder, path));
    out += concat_text(path, " ", fingerprint_bytes(content.data(), content.size()), "\n");
  }
  return out;
}

// Names, shapes, and the first and last bytes of weights.
std::string weight_samples(const WeightLoader& loader) {
  constexpr std::size_t kSampled = 512;
  std::string out;
  const GuardedReads reads;
  for (const std::string& name : loader.names()) {
    const std::optional<TensorView> view = loader.find(name);
    if (!view || view->size_bytes == 0) continue;
    const auto* bytes = static_cast<const std::byte*>(view->data);
    const std::size_t n = std::min(kSampled, view->size_bytes);
    out += concat_text(name, " ", dtype_name(view->dtype), " ", dims_text(view->dims), " ", fingerprint_bytes(bytes, n),
                       fingerprint_bytes(bytes + (view->size_bytes - n), n), "\n");
    reads.check(bytes);
  }
  return out;
}

}  // namespace

struct SentenceEncoder::Impl : CallbackLife {
  SentenceModelConfig config;
  SentenceEncoderOptions options;
  std::unique_ptr<Tokenizer> tokenizer;
  std::int64_t max_sequence = 0;
  std::int64_t num_special = 0;  // special tokens of every text
  std::int64_t width = 0;        // elements of a vector
  std::string source;            // the folder, as it was given
  std::string weights;           // path
  std::shared_ptr<const WeightLoader> loader;
  std::optional<EncoderRunner> runner;
  ObjectMutex fingerprint_turn{"an encoder"};
  std::string fingerprint;  // empty before it is asked for

  Impl(const std::string& folder, SentenceEncoderOptions o)
      : config(read_sentence_config(folder)), options(o), tokenizer(load_tokenizer(folder)), source(folder) {
    check_task(folder);
    if (options.max_batch < 1)
      throw Error(ErrorCode::InvalidArgument, concat_text("max_batch must be at least 1, got ", options.max_batch));
    if (options.num_threads < 0)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("num_threads must not be negative, got ", options.num_threads));
    if (options.dimensions < 0 || options.dimensions > config.width())
      throw Error(ErrorCode::InvalidArgument, concat_text("dimensions must be in [1, ", config.width(),
                                                          "] or 0 for all, got ", options.dimensions));
    width = options.dimensions ? options.dimensions : config.width();
    check_vocabulary(config.encoder, *tokenizer, folder);
    num_special = static_cast<std::int64_t>(tokenizer->prefix_ids().size() + tokenizer->suffix_ids().size());
    const std::int64_t most = config.encoder.max_tokens;
    const std::int64_t own_limit = config.max_sequence > 0 ? std::min(config.max_sequence, most) : most;
    if (own_limit <= num_special)
      throw Error(ErrorCode::BadFile,
                  concat_text(folder, ": texts may have ", own_limit,
                              " tokens (\"max_position_embeddings\" of config.json, \"max_seq_length\" of "
                              "sentence_bert_config.json), expected more than the ",
                              num_special, " special ones"));
    max_sequence = options.max_sequence ? options.max_sequence : own_limit;
    if (max_sequence <= num_special || max_sequence > most)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("max_sequence must be in [", num_special + 1, ", ", most, "], got ", max_sequence));
    EncoderRunnerSettings settings{Session(options.device, options.device_options)};
    if (options.num_threads > 0) settings.session.with_threads(options.num_threads);
    settings.max_batch = options.max_batch, settings.max_tokens = max_sequence;
    settings.width = width, settings.pad = tokenizer->pad_id();
    const bool plain = config.encoder.family == "bert" && config.dense.empty() && width == config.bert.hidden_size;
    if (plain)
      use_bert(settings, folder);
    else
      use_program(settings, folder);
    runner.emplace(std::move(settings));
  }

  // A BERT such as MiniLM: its graph does not depend on the weights.
  void use_bert(EncoderRunnerSettings& settings, const std::string& folder) {
    BertGraphOptions graph_options;
    graph_options.pooling = config.pooling;
    graph_options.normalize = config.normalize;
    weights = weights_path(folder);
    const std::shared_ptr<const WeightLoader> checkpoint = open_checkpoint(weights);
    check_layer_count(config.bert.num_layers, *checkpoint, weights);
    settings.compile = [bert = config.bert, graph_options](const Session& session, CompileOptions o) {
      return session.compile_with(build_sentence_encoder(bert, graph_options), std::move(o));
    };
    loader = checkpoint;
    settings.load = [checkpoint, path = weights](CompiledGraph& to) { load_checkpoint(to, checkpoint, path); };
  }

  void use_program(EncoderRunnerSettings& settings, const std::string& folder) {
    EncoderGraphOptions graph_options = encoder_graph_options(config);
    graph_options.dimensions = options.dimensions;
    const ModelWeights opened = open_encoder_weights(folder, config.encoder, graph_options);
    weights = opened.source, loader = opened.loader;
    settings.compile = [encoder = config.encoder, graph_options, opened](const Session& session, CompileOptions o) {
      return session.compile_with(build_encoder(encoder, opened, graph_options), std::move(o));
    };
    settings.load = [opened](CompiledGraph& to) { to.load_params(opened.loader, LoadMode::Subset); };
  }

  std::vector<TokenId> encode(const std::string& text, const std::string& prompt, std::int64_t* num_tokens) const {
    const std::string whole = prompt + text;
    return tokenizer->encode_truncated(config.lowercase_text ? lower_case(whole) : whole, max_sequence, true,
                                       num_tokens);
  }

  const std::string* find_prompt(std::string_view name) const {
    for (const auto& prompt : config.prompts)
      if (prompt.first == name) return &prompt.second;
    return nullptr;
  }
};

SentenceEncoder::SentenceEncoder(const std::string& folder, SentenceEncoderOptions options) try
    : impl_(std::make_unique<Impl>(folder, options)) {
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder");
}
SentenceEncoder::~SentenceEncoder() { CallbackLife::retire(std::move(impl_)); }
SentenceEncoder::SentenceEncoder(SentenceEncoder&&) noexcept = default;
SentenceEncoder& SentenceEncoder::operator=(SentenceEncoder&& other) noexcept {
  if (this != &other) CallbackLife::retire(std::exchange(impl_, std::move(other.impl_)));
  return *this;
}

SentenceEncoder::Impl& SentenceEncoder::impl() const {
  if (!impl_)
    throw Error(ErrorCode::InvalidArgument, "a SentenceEncoder was used after it was moved from",
                "use the object that it was moved to");
  return *impl_;
}

bool SentenceEncoder::has_tokens(const std::string& text) const {
  std::int64_t num_tokens = 0;
  impl().encode(text, {}, &num_tokens);
  return num_tokens > impl().num_special;
}
std::int64_t SentenceEncoder::max_text_tokens(const std::string& prompt) const try {
  const Impl& self = impl();
  std::int64_t used = self.num_special;
  if (!prompt.empty()) self.encode(prompt, {}, &used);
  if (used >= self.max_sequence)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the prompt has ", used, " tokens of ", self.max_sequence, ", and leaves none for a text"));
  return self.max_sequence - used;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder::max_text_tokens");
}
const std::string& SentenceEncoder::fingerprint() const try {
  Impl& self = impl();
  const std::lock_guard lock(self.fingerprint_turn);
  if (self.fingerprint.empty()) {
    const std::string all =
        concat_text(setting_files(self.source), weight_samples(*self.loader), "dimensions ", self.width, "\n");
    self.fingerprint = fingerprint_bytes(all.data(), all.size()).text();
  }
  return self.fingerprint;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder::fingerprint");
}
const std::string& SentenceEncoder::folder() const { return impl().source; }
std::int64_t SentenceEncoder::hidden_size() const { return impl().width; }
std::size_t SentenceEncoder::weight_bytes() const { return impl().runner->weight_bytes(); }
std::int64_t SentenceEncoder::max_sequence() const { return impl().max_sequence; }
const SentenceModelConfig& SentenceEncoder::config() const { return impl().config; }
const Tokenizer& SentenceEncoder::tokenizer() const { return *impl().tokenizer; }

Tensor SentenceEncoder::embed(std::span<const std::string> texts, std::vector<TruncationNotice>* notices,
                              const std::function<void(std::size_t)>& progress,
                              const std::function<std::string(std::size_t)>& text_name,
                              const std::optional<std::string>& prompt) try {
  Impl& self = impl();
  const CallbackLife::Call life(self);
  auto name_of = [&](std::size_t i) { return text_name ? text_name(i) : concat_text("text ", i + 1); };
  const auto hidden = static_cast<std::size_t>(self.width);
  std::vector<std::vector<TokenId>> rows(texts.size());
  const std::string before = prompt ? *prompt : this->prompt();
  std::vector<std::size_t> order;  // texts with tokens
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::int64_t num_tokens = 0;
    try {
      rows[i] = self.encode(texts[i], before, &num_tokens);
    } catch (const Error& e) {
      Diagnostic d = e.diagnostic();
      d.message = concat_text(name_of(i), ": ", d.message);
      throw Error(std::move(d));
    }
    // A prompt alone is not a text.
    if (num_tokens > self.num_special && (before.empty() || has_tokens(texts[i])))
      order.push_back(i);
    else if (!self.options.zero_empty)
      throw Error(ErrorCode::InvalidArgument, concat_text(name_of(i), " is empty: it has no tokens"),
                  "leave the text out; a text needs at least one word or sign");
    if (notices && num_tokens > self.max_sequence) notices->push_back({i, num_tokens, self.max_sequence});
  }
  Tensor out = Tensor::zeros(Shape({texts.size(), hidden}, DType::F32));
  const std::span<float> to = out.mutable_values<float>();
  const std::size_t empty = texts.size() - order.size();
  self.runner->run(rows, {}, std::move(order), to, [&](std::size_t done) {
    if (progress) progress(empty + done);
  });
  for (std::size_t i = 0; i < to.size(); ++i)
    if (!std::isfinite(to[i]))
      throw Error(
          ErrorCode::BadFile,
          concat_text(name_of(i / hidden), ": element ", i % hidden, " of its vector is ", static_cast<double>(to[i])),
          concat_text("the weights in '", self.weights, "' are damaged, or overflow on this text"));
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder::embed");
}

std::string SentenceEncoder::prompt(std::string_view name) const try {
  if (name.empty()) name = impl().config.default_prompt;
  if (name.empty()) return {};
  if (const std::string* text = impl().find_prompt(name)) return *text;
  std::vector<std::string> known;
  for (const auto& prompt : impl().config.prompts) known.push_back(prompt.first);
  throw Error(ErrorCode::InvalidArgument, concat_text("the model has no prompt called \"", name, "\""),
              known.empty() ? "the model has no prompts" : concat_text("it has ", quoted_names(known, known.size())));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder::prompt");
}

std::string SentenceEncoder::query_prompt() const try {
  const std::string* text = impl().find_prompt("query");
  return text ? *text : prompt();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder::query_prompt");
}

std::string SentenceEncoder::passage_prompt() const try {
  for (const std::string_view name : {"document", "passage", "corpus"})
    if (const std::string* text = impl().find_prompt(name)) return *text;
  return prompt();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder::passage_prompt");
}

Tensor SentenceEncoder::embed(const std::string& text) try {
  return embed(std::span(&text, 1)).reshaped({hidden_size()});
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder::embed");
}

}  // namespace rlx
