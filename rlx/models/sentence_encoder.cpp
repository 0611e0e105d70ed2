// Loading, batching and running a sentence encoder.
#include "rlx/models/sentence_encoder.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "rlx/formats/safetensors.h"
#include "rlx/runtime/session.h"
#include "rlx/text/utf8.h"

namespace rlx {
namespace {

// Python's str.lower() for single characters; text that is not valid UTF-8 stays, so that the tokeniser reports it.
std::string lower_case(const std::string& text) {
  if (find_invalid_utf8(text)) return text;
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();)
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(decode_utf8(text, at)))));
  return out;
}

// Sequence lengths are rounded up so that few shapes are compiled: by 8 to 64, by 16 to 128, then by 32.
std::int64_t bucket(std::int64_t length, std::int64_t limit) {
  const std::int64_t step = length <= 64 ? 8 : length <= 128 ? 16 : 32;
  return std::min((length + step - 1) / step * step, limit);
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
  void drop_pages(std::string_view name) const override { file_->drop_pages(stored_name(name)); }

 private:
  static constexpr std::string_view kPrefix = "bert.";
  std::string stored_name(std::string_view name) const {
    return file_->find(name) ? std::string(name) : concat_text(kPrefix, name);
  }
  std::shared_ptr<const SafetensorsFile> file_;
  std::vector<std::string> names_;
};

}  // namespace

std::shared_ptr<const WeightLoader> open_checkpoint(const std::string& path) {
  return std::make_shared<Checkpoint>(path);
}

namespace {

constexpr std::string_view kLayerPrefix = "encoder.layer.";

// Before the graph is built: only as many layers as the file has can be loaded, and a wrong count could be any number.
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

void load_checkpoint(CompiledGraph& encoder, std::shared_ptr<const WeightLoader> weights, const std::string& path) {
  try {
    encoder.load_params(weights, LoadMode::Subset);
  } catch (const Error& e) {
    Diagnostic d = e.diagnostic();
    d.code = ErrorCode::BadFile;
    d.message = concat_text(path, ": ", d.message);
    throw Error(std::move(d));
  }
  // A tensor of a layer that no param takes means that the configuration describes another model: its vectors would be
  // wrong. Heads on top of the encoder (a pooler, a classifier) are left out on purpose.
  std::set<std::string_view> used;
  for (const IoInfo& param : encoder.params()) used.insert(param.name);
  for (const std::string& name : weights->names())
    if (name.starts_with(kLayerPrefix) && !used.contains(name))
      throw Error(ErrorCode::BadFile,
                  concat_text(path, ": config.json describes a model without the tensor '", name, "'"),
                  "\"num_hidden_layers\" is too small, or the configuration belongs to another model");
}

double cosine_similarity(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size())
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("cosine of vectors of ", a.size(), " and ", b.size(), " elements"));
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return aa == 0 || bb == 0 ? 0 : dot / std::sqrt(aa * bb);
}

struct SentenceEncoder::Impl {
  SentenceModelConfig config;
  SentenceEncoderOptions options;
  std::unique_ptr<Tokenizer> tokenizer;
  std::int64_t max_sequence = 0;
  std::int64_t num_special = 0;  // tokens that every text has
  std::string weights;           // path
  std::optional<CompiledGraph> encoder;

  Impl(const std::string& folder, SentenceEncoderOptions o)
      : config(read_sentence_config(folder)), options(o), tokenizer(load_tokenizer(folder)) {
    if (options.max_batch < 1)
      throw Error(ErrorCode::InvalidArgument, concat_text("max_batch must be at least 1, got ", options.max_batch));
    if (options.num_threads < 0)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("num_threads must not be negative, got ", options.num_threads));
    check_vocabulary(config.bert, *tokenizer, folder);
    num_special = static_cast<std::int64_t>(tokenizer->prefix_ids().size() + tokenizer->suffix_ids().size());
    const std::int64_t own_limit =
        config.max_sequence > 0 ? std::min(config.max_sequence, config.bert.max_positions) : config.bert.max_positions;
    if (own_limit <= num_special)
      throw Error(ErrorCode::BadFile,
                  concat_text(folder, ": texts may have ", own_limit,
                              " tokens (\"max_position_embeddings\" of config.json, \"max_seq_length\" of "
                              "sentence_bert_config.json), expected more than the ",
                              num_special, " special ones"));
    max_sequence = options.max_sequence ? options.max_sequence : own_limit;
    if (max_sequence <= num_special || max_sequence > config.bert.max_positions)
      throw Error(ErrorCode::InvalidArgument, concat_text("max_sequence must be in [", num_special + 1, ", ",
                                                          config.bert.max_positions, "], got ", max_sequence));
    BertGraphOptions graph_options;
    graph_options.pooling = config.pooling;
    graph_options.normalize = config.normalize;
    Session session;
    if (options.num_threads > 0) session.with_threads(options.num_threads);
    weights = weights_path(folder);
    const std::shared_ptr<const WeightLoader> checkpoint = open_checkpoint(weights);
    check_layer_count(config.bert.num_layers, *checkpoint, weights);
    encoder = session.compile(build_sentence_encoder(config.bert, graph_options));
    load_checkpoint(*encoder, checkpoint, weights);
  }

  // ids, mask [B, S] -> [B, H].
  Tensor run(const Tensor& ids, const Tensor& mask) { return encoder->run_typed({{"ids", ids}, {"mask", mask}})[0]; }
};

SentenceEncoder::SentenceEncoder(const std::string& folder, SentenceEncoderOptions options)
    : impl_(std::make_unique<Impl>(folder, options)) {}
SentenceEncoder::~SentenceEncoder() = default;
SentenceEncoder::SentenceEncoder(SentenceEncoder&&) noexcept = default;
SentenceEncoder& SentenceEncoder::operator=(SentenceEncoder&&) noexcept = default;

std::int64_t SentenceEncoder::hidden_size() const { return impl_->config.bert.hidden_size; }
std::int64_t SentenceEncoder::max_sequence() const { return impl_->max_sequence; }
const SentenceModelConfig& SentenceEncoder::config() const { return impl_->config; }
const Tokenizer& SentenceEncoder::tokenizer() const { return *impl_->tokenizer; }

Tensor SentenceEncoder::embed(std::span<const std::string> texts, std::vector<TruncationNotice>* notices,
                              const std::function<void(std::size_t)>& progress,
                              const std::function<std::string(std::size_t)>& text_name) {
  auto name_of = [&](std::size_t i) { return text_name ? text_name(i) : concat_text("text ", i + 1); };
  const Tokenizer& tokenizer = *impl_->tokenizer;
  const auto hidden = static_cast<std::size_t>(hidden_size());
  std::vector<std::vector<TokenId>> rows(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::int64_t num_tokens = 0;
    try {
      rows[i] = tokenizer.encode_truncated(impl_->config.lowercase_text ? lower_case(texts[i]) : texts[i],
                                           impl_->max_sequence, true, &num_tokens);
    } catch (const Error& e) {
      Diagnostic d = e.diagnostic();
      d.message = concat_text(name_of(i), ": ", d.message);
      throw Error(std::move(d));
    }
    if (num_tokens <= impl_->num_special)
      throw Error(ErrorCode::InvalidArgument, concat_text(name_of(i), " is empty: it has no tokens"),
                  "leave it out; a text needs at least one word or sign");
    if (notices && num_tokens > impl_->max_sequence) notices->push_back({i, num_tokens, impl_->max_sequence});
  }
  // Longest first: a batch pads to its first text, and the buffers of the largest shape serve all later ones.
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows[a].size() > rows[b].size(); });

  Tensor out = Tensor::zeros(Shape({texts.size(), hidden}, DType::F32));
  std::span<float> to = out.mutable_values<float>();
  for (std::size_t first = 0; first < order.size();) {
    const std::int64_t length = bucket(static_cast<std::int64_t>(rows[order[first]].size()), impl_->max_sequence);
    // A text much shorter than the first starts the next batch: padding costs as much as text.
    std::size_t count = 1;
    while (first + count < order.size() && count < static_cast<std::size_t>(impl_->options.max_batch) &&
           4 * bucket(static_cast<std::int64_t>(rows[order[first + count]].size()), impl_->max_sequence) >= 3 * length)
      ++count;
    const auto width = static_cast<std::size_t>(length);
    Tensor ids = Tensor::full(Shape({count, width}, DType::I32), tokenizer.pad_id()),
           mask = Tensor::zeros(Shape({count, width}, DType::F32));
    std::span<std::int32_t> id = ids.mutable_values<std::int32_t>();
    std::span<float> m = mask.mutable_values<float>();
    for (std::size_t r = 0; r < count; ++r) {
      const auto& row = rows[order[first + r]];
      std::copy(row.begin(), row.end(), id.begin() + static_cast<std::ptrdiff_t>(r * width));
      std::fill_n(m.begin() + static_cast<std::ptrdiff_t>(r * width), row.size(), 1.0f);
    }
    const Tensor vectors = impl_->run(ids, mask);
    const std::span<const float> from = vectors.values<float>();
    for (std::size_t r = 0; r < count; ++r) {
      const std::span<const float> vector = from.subspan(r * hidden, hidden);
      const auto bad = std::find_if(vector.begin(), vector.end(), [](float v) { return !std::isfinite(v); });
      if (bad != vector.end())
        throw Error(ErrorCode::BadFile,
                    concat_text(name_of(order[first + r]), ": element ", bad - vector.begin(), " of its vector is ",
                                static_cast<double>(*bad)),
                    concat_text("the weights in '", impl_->weights, "' are damaged, or overflow on this text"));
      std::copy(vector.begin(), vector.end(), to.begin() + static_cast<std::ptrdiff_t>(order[first + r] * hidden));
    }
    first += count;
    if (progress) progress(first);
  }
  return out;
}

Tensor SentenceEncoder::embed(const std::string& text) { return embed(std::span(&text, 1)).reshaped({hidden_size()}); }

}  // namespace rlx
