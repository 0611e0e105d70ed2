// Loading, batching and running a sentence encoder.
#include "rlx/models/sentence_encoder.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include "rlx/driver/thread_pool.h"
#include "rlx/formats/safetensors.h"
#include "rlx/ir/utf8.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/out_of_memory.h"

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

// Texts that run together: rows [first, first + count) in order of length, padded to `width` tokens.
struct Batch {
  std::size_t first = 0, count = 0, width = 0;
};

// Cuts rows whose lengths descend into batches of at most `max_rows`, so that the sum of (rows x longest) and of a
// price per batch is least: padding costs as much as text, and a short batch keeps the products from their full rate.
std::vector<Batch> cut_into_batches(std::span<const std::size_t> lengths, std::size_t max_rows) {
  constexpr std::size_t kBatchPrice = 8;  // in tokens
  const std::size_t n = lengths.size();
  std::vector<std::size_t> cost(n + 1, 0), count(n, 0);  // of the rows from i on; rows of the batch that starts at i
  for (std::size_t i = n; i-- > 0;) {
    cost[i] = std::numeric_limits<std::size_t>::max();
    for (std::size_t rows = 1; rows <= std::min(max_rows, n - i); ++rows) {
      const std::size_t c = rows * lengths[i] + kBatchPrice + cost[i + rows];
      if (c < cost[i]) cost[i] = c, count[i] = rows;
    }
  }
  std::vector<Batch> out;
  for (std::size_t i = 0; i < n; i += count[i]) out.push_back({i, count[i], lengths[i]});
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
  // A tensor of a layer that no param takes means that the configuration describes another model: its vectors would be
  // wrong. Heads on top of the encoder (a pooler, a classifier) are left out on purpose.
  std::set<std::string_view> used;
  for (const IoInfo& param : encoder.params()) used.insert(param.name);
  for (const std::string& name : weights->names())
    if (name.starts_with(kLayerPrefix) && !used.contains(name))
      throw Error(ErrorCode::BadFile,
                  concat_text(path, ": config.json describes a model without the tensor '", name, "'"),
                  "\"num_hidden_layers\" is too small, or the configuration belongs to another model");
} catch (const std::bad_alloc&) {
  throw_out_of_memory("load_checkpoint");
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
  int threads = 1;
  std::vector<CompiledGraph> runners;  // the encoder, then clones for batches that run beside each other

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
    Session session(options.device, options.device_options);
    if (options.num_threads > 0) session.with_threads(options.num_threads);
    weights = weights_path(folder);
    const std::shared_ptr<const WeightLoader> checkpoint = open_checkpoint(weights);
    check_layer_count(config.bert.num_layers, *checkpoint, weights);
    threads = session.target()->threads();
    // Texts come in every length: one program for all of them.
    CompileOptions compile;
    compile.symbol_modes = {{"batch", SymbolMode::runtime(options.max_batch)},
                            {"seq", SymbolMode::runtime(max_sequence)}};
    runners.push_back(session.compile_with(build_sentence_encoder(config.bert, graph_options), std::move(compile)));
    load_checkpoint(runners[0], checkpoint, weights);
  }

  std::vector<TokenId> encode(const std::string& text, std::int64_t* num_tokens) const {
    return tokenizer->encode_truncated(config.lowercase_text ? lower_case(text) : text, max_sequence, true, num_tokens);
  }

  // The vectors of a batch, to the rows of `out` that `order` names.
  void run(CompiledGraph& runner, const Batch& batch, std::span<const std::vector<TokenId>> rows,
           std::span<const std::size_t> order, std::span<float> out) const {
    const std::size_t width = batch.width, hidden = static_cast<std::size_t>(config.bert.hidden_size);
    std::vector<std::int32_t> ids(batch.count * width, tokenizer->pad_id());
    std::vector<float> mask(batch.count * width, 0.0f), vectors(batch.count * hidden);
    for (std::size_t r = 0; r < batch.count; ++r) {
      const std::vector<TokenId>& row = rows[order[batch.first + r]];
      std::copy(row.begin(), row.end(), ids.begin() + static_cast<std::ptrdiff_t>(r * width));
      std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(r * width), row.size(), 1.0f);
    }
    const std::int64_t in_dims[] = {static_cast<std::int64_t>(batch.count), static_cast<std::int64_t>(width)},
                       out_dims[] = {static_cast<std::int64_t>(batch.count), config.bert.hidden_size};
    const TensorView inputs[] = {{ids.data(), DType::I32, in_dims, ids.size() * sizeof ids[0]},
                                 {mask.data(), DType::F32, in_dims, mask.size() * sizeof mask[0]}};
    const MutableTensorView output{vectors.data(), DType::F32, out_dims, vectors.size() * sizeof vectors[0]};
    runner.run_into(inputs, {&output, 1});
    for (std::size_t r = 0; r < batch.count; ++r)
      std::copy_n(vectors.begin() + static_cast<std::ptrdiff_t>(r * hidden), hidden,
                  out.begin() + static_cast<std::ptrdiff_t>(order[batch.first + r] * hidden));
  }
};

SentenceEncoder::SentenceEncoder(const std::string& folder, SentenceEncoderOptions options) try
    : impl_(std::make_unique<Impl>(folder, options)) {
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder");
}
SentenceEncoder::~SentenceEncoder() = default;
SentenceEncoder::SentenceEncoder(SentenceEncoder&&) noexcept = default;
SentenceEncoder& SentenceEncoder::operator=(SentenceEncoder&&) noexcept = default;

SentenceEncoder::Impl& SentenceEncoder::impl() const {
  if (!impl_)
    throw Error(ErrorCode::InvalidArgument, "a SentenceEncoder was used after it was moved from",
                "use the object that it was moved to");
  return *impl_;
}

bool SentenceEncoder::has_tokens(const std::string& text) const {
  std::int64_t num_tokens = 0;
  impl().encode(text, &num_tokens);
  return num_tokens > impl().num_special;
}
std::int64_t SentenceEncoder::hidden_size() const { return impl().config.bert.hidden_size; }
std::size_t SentenceEncoder::weight_bytes() const { return impl().runners.front().prepared_bytes(); }
std::int64_t SentenceEncoder::max_sequence() const { return impl().max_sequence; }
const SentenceModelConfig& SentenceEncoder::config() const { return impl().config; }
const Tokenizer& SentenceEncoder::tokenizer() const { return *impl().tokenizer; }

Tensor SentenceEncoder::embed(std::span<const std::string> texts, std::vector<TruncationNotice>* notices,
                              const std::function<void(std::size_t)>& progress,
                              const std::function<std::string(std::size_t)>& text_name) try {
  auto name_of = [&](std::size_t i) { return text_name ? text_name(i) : concat_text("text ", i + 1); };
  const auto hidden = static_cast<std::size_t>(hidden_size());
  std::vector<std::vector<TokenId>> rows(texts.size());
  std::vector<std::size_t> order;  // texts with tokens, longest first
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::int64_t num_tokens = 0;
    try {
      rows[i] = impl().encode(texts[i], &num_tokens);
    } catch (const Error& e) {
      Diagnostic d = e.diagnostic();
      d.message = concat_text(name_of(i), ": ", d.message);
      throw Error(std::move(d));
    }
    if (num_tokens > impl().num_special)
      order.push_back(i);
    else if (!impl().options.zero_empty)
      throw Error(ErrorCode::InvalidArgument, concat_text(name_of(i), " is empty: it has no tokens"),
                  "leave it out; a text needs at least one word or sign");
    if (notices && num_tokens > impl().max_sequence) notices->push_back({i, num_tokens, impl().max_sequence});
  }
  // Longest first: neighbours pad little, the buffers of the largest batch serve all later ones, and short ones come
  // last, when threads run out of work.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows[a].size() > rows[b].size(); });
  std::vector<std::size_t> lengths;
  for (std::size_t i : order) lengths.push_back(rows[i].size());
  const std::vector<Batch> batches = cut_into_batches(lengths, static_cast<std::size_t>(impl().options.max_batch));

  Tensor out = Tensor::zeros(Shape({texts.size(), hidden}, DType::F32));
  const std::span<float> to = out.mutable_values<float>();
  std::size_t done = texts.size() - order.size();
  std::mutex mutex;
  auto run = [&](CompiledGraph& runner, const Batch& batch) {
    impl().run(runner, batch, rows, order, to);
    std::lock_guard lock(mutex);
    done += batch.count;
    if (progress) progress(done);
  };
  // Whole batches beside each other scale better than the steps of one, as long as every thread has several.
  const auto threads = static_cast<std::size_t>(impl().threads);
  if (threads > 1 && batches.size() >= 4 * threads) {
    while (impl().runners.size() < threads) impl().runners.push_back(impl().runners[0].clone());
    ThreadPool::process().parallel_for(
        static_cast<std::int64_t>(batches.size()),
        [&](std::int64_t i) {
          run(impl().runners[static_cast<std::size_t>(worker_index())], batches[static_cast<std::size_t>(i)]);
        },
        impl().threads);
  } else {
    for (const Batch& batch : batches) run(impl().runners[0], batch);
  }
  for (std::size_t i = 0; i < to.size(); ++i)
    if (!std::isfinite(to[i]))
      throw Error(
          ErrorCode::BadFile,
          concat_text(name_of(i / hidden), ": element ", i % hidden, " of its vector is ", static_cast<double>(to[i])),
          concat_text("the weights in '", impl().weights, "' are damaged, or overflow on this text"));
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder::embed");
}

Tensor SentenceEncoder::embed(const std::string& text) try {
  return embed(std::span(&text, 1)).reshaped({hidden_size()});
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SentenceEncoder::embed");
}

}  // namespace rlx
