// Loads a decoder, and runs tokens of one or many sequences through it.
#include "rlx/models/decoder_model.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "rlx/base/sigbus_guard.h"
#include "rlx/base/stop_request.h"
#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/packed_weight_files.h"
#include "rlx/formats/safetensors_folder.h"
#include "rlx/models/adapter/adapter_set.h"
#include "rlx/models/convert/convert_source.h"
#include "rlx/models/convert/gguf_architectures.h"
#include "rlx/models/decoder.h"
#include "rlx/models/decoder/decoder_fingerprint.h"
#include "rlx/models/decoder/gguf_decoder.h"
#include "rlx/models/memory_check.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::int64_t kDefaultContext = 4096;

DecoderGraphOptions graph_options(const DecoderConfig& c, const DecoderOptions& o) {
  const struct {
    const char* name;
    std::int64_t value, least;
  } sizes[] = {{"context", o.context, 0},
               {"sequences", o.sequences, 1},
               {"max_tokens", o.max_tokens, 1},
               {"page", o.page, 0},
               {"pages", o.pages, 0}};
  for (const auto& s : sizes)
    if (s.value < s.least || s.value > std::int64_t{1} << 24)
      throw Error(ErrorCode::InvalidArgument, concat_text(s.name, " must be in [", s.least, ", 2^24], got ", s.value));
  DecoderGraphOptions g;
  g.sequences = o.sequences;
  g.context = o.context ? o.context : std::min(c.max_positions, kDefaultContext);
  g.max_tokens = o.max_tokens;
  g.page = o.page ? std::min(o.page, g.context) : g.context;
  g.pages_per_sequence = (g.context + g.page - 1) / g.page;
  g.pages = o.pages ? o.pages : g.pages_per_sequence * g.sequences;
  g.cache_dtype = o.cache_dtype, g.cache_scheme = o.cache_scheme;
  g.round_q = o.matmul_precision == MatmulPrecision::Int8;
  // Sliding-window layers get their own pool if it needs fewer rows. For contiguous sequences its pages are small.
  if (const std::int64_t window = longest_window(c); window != 0 && !o.whole_windows) {
    const std::int64_t page = o.page ? g.page : kEnginePage;
    std::int64_t pages = KvWindows::pages_for(g.sequences, g.context, window, page, g.max_tokens);
    if (o.page) pages += g.sequences * ((window - 1 + page - 1) / page + 1);  // for cached prompt prefixes
    if (pages * page < g.pages * g.page) g.window_page = page, g.window_pages = pages;
  }
  return g;
}

std::optional<KvWindows> window_pages(const DecoderConfig& c, const DecoderGraphOptions& g) {
  if (g.window_page == 0) return std::nullopt;
  return KvWindows(g.sequences, g.context, longest_window(c), g.window_page, g.window_pages);
}

CompileOptions compile_options(const DecoderConfig& c, const DecoderOptions& o) {
  CompileOptions out;
  out.symbol_modes = {{"tokens", SymbolMode::runtime()}, {"rows", SymbolMode::runtime()}};
  // A failed run must keep the keys of all earlier tokens.
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    out.on_failure["cache.k." + std::to_string(i)] = OnFailure::Keep;
    if (!c.mla) out.on_failure["cache.v." + std::to_string(i)] = OnFailure::Keep;
  }
  if (o.matmul_precision != MatmulPrecision::Exact)
    out.precision = PrecisionPolicy::with_matmul_precision(o.matmul_precision);
  return out;
}

// The folder of one model, since another model with equal names and shapes would replace its packed layouts. A model
// that replaces another one at the same path finds the old packed layouts and overwrites them.
std::shared_ptr<PackedWeightFiles> packed_weight_files(const std::string& path, const DecoderOptions& o) {
  if (o.packed_weights.empty()) return nullptr;
  std::error_code failed;
  std::filesystem::path real = std::filesystem::canonical(path, failed);
  if (failed) real = path;
  const std::string text = real.string(), name = real.filename().string().substr(0, 100);
  return std::make_shared<PackedWeightFiles>(
      join_path(o.packed_weights,
                concat_text(name, "-", fingerprint_bytes(text.data(), text.size()).text().substr(0, 16))),
      PackedWeightFiles::Options{.verify = o.verify_packed_weights, .guard_mapping = true});
}

// PEFT's names of the matrices of a model's file. A checkpoint of the base model without its head has names without the
// prefix.
AdapterSet::Naming adapter_names(const DecoderConfig& c, const ModelWeights& weights) {
  const bool cut = !c.names.prefix.empty() && !weights.loader->find(c.names.embedding + ".weight");
  return [prefix = cut ? c.names.prefix : std::string(), head = c.names.head, in_out = c.weights_in_out](
             std::string_view stored, std::int64_t) {
    AdapterSet::Module m{stored == head ? head : concat_text(prefix, stored)};
    // Only matmul weights are stored transposed, not embeddings and the head.
    m.turned = in_out && (stored.find(".attn.") != stored.npos || stored.find(".mlp.") != stored.npos);
    return std::optional(std::move(m));
  };
}
AdapterSet::Naming adapter_names(const DecoderConfig& c, const GgufFile& file) {
  const DecoderFamily* a = find_family_of_gguf(c.family, false, c.moe.has_value());
  if (!a)
    throw Error(ErrorCode::Unsupported,
                concat_text(file.source(), ": adapters of a ", c.family, " in GGUF are not supported"),
                "load the model from its Hugging Face folder");
  return [a, dim = c.head_dim](std::string_view stored, std::int64_t rows) -> std::optional<AdapterSet::Module> {
    const auto found = translate_tensor(*a, concat_text(stored, ".weight"));
    if (!found) return std::nullopt;
    AdapterSet::Module m{found->hf.substr(0, found->hf.size() - std::string_view(".weight").size())};
    const TensorChange change = found->rule->change;
    if (change == TensorChange::QueryPairs || change == TensorChange::KeyPairs)
      m.row_order = head_row_order(rows, dim, true);
    if (change == TensorChange::HeadsToParts) m.row_order = part_row_order(rows, dim, true);
    m.turned = change == TensorChange::Transposed;
    m.added = change == TensorChange::AddOne ? 1.0F : 0.0F;
    return m;
  };
}

// The model's matrices as F32, for adapters that rescale rows (DoRA). A tied head is the embedding.
std::function<Tensor(const std::string&)> adapter_weights(const DecoderConfig& c, const ModelWeights& weights,
                                                          std::shared_ptr<const GgufFile> file) {
  return [weights, file, head = c.names.head + ".weight",
          embedding = c.names.embedding + ".weight"](const std::string& stored) {
    const std::string& name = stored == head && !weights.loader->find(stored) ? embedding : stored;
    const std::optional<TensorView> view = weights.loader->find(name);
    if (!view) return Tensor::zeros(Shape({0}, DType::F32));  // Flow reports the missing tensor
    if (file) return file->decoded(name);
    return Tensor::copy_of(view->data, Shape(Dims(view->dims.begin(), view->dims.end()), view->dtype)).cast(DType::F32);
  };
}

}  // namespace

struct DecoderModel::Impl {
  DecoderConfig config;
  DecoderGraphOptions graph;
  KvCache cache;
  CompiledGraph program;
  DecoderOptions options;
  std::shared_ptr<const WeightLoader> loader;
  mutable std::optional<Fingerprint> weights{};  // computed on first use
  std::vector<std::string> adapter_names{};
  std::vector<const void*> mapped{};  // addresses of the mapped weights
  std::shared_ptr<const PackedWeightFiles> packed_weights{};

  // Inputs of the current run, in the order of the graph.
  std::vector<std::int32_t> tokens{}, positions{}, slots{}, tables{}, kv_len{}, q_start{}, rows{}, window_slots{},
      window_tables{}, adapters{};

  std::atomic<std::thread::id> user{};  // the thread of the current call
  // Marks a call that uses the cache.
  struct Busy {
    explicit Busy(Impl& m) : model(m) {
      std::thread::id nobody{};
      if (!model.user.compare_exchange_strong(nobody, std::this_thread::get_id()))
        throw Error(ErrorCode::InvalidArgument, "two threads call one DecoderModel at the same time",
                    "let one thread call it, or hold a lock around each call");
    }
    ~Busy() { model.user = std::thread::id(); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    Impl& model;
  };

  std::vector<std::string> weight_names() const {
    std::vector<std::string> names;
    for (const IoInfo& param : program.params())
      if (loader->find(param.name)) names.push_back(param.name);  // adapter params are not in the checkpoint
    return names;
  }

  // The weights are in mapped files, which other processes may truncate.
  void check_lost() const {
    if (!any_damaged_mapping()) return;
    std::ranges::for_each(mapped, GuardedReads::check);
    if (packed_weights) std::ranges::for_each(packed_weights->mapped(), GuardedReads::check);
  }
  void check_unchanged() const {
    for (const void* data : mapped)
      if (const auto file = changed_file_at(data))
        throw Error(ErrorCode::BadFile, concat_text("\"", *file, "\" was written to while the model was loaded"),
                    "load it again when the file is complete");
  }

  // Calls f(inputs) for the prepared run.
  template <class F>
  auto with_inputs(F f) const {
    std::int64_t dims[10][2] = {};
    TensorView inputs[10];
    std::size_t count = 0;
    const auto add = [&](const std::vector<std::int32_t>& values, std::size_t rank = 1) {
      std::int64_t* d = dims[count];
      d[0] = static_cast<std::int64_t>(values.size());
      if (rank == 2) d[0] = graph.sequences, d[1] = static_cast<std::int64_t>(values.size()) / graph.sequences;
      inputs[count++] = {values.data(), DType::I32, {d, rank}, values.size() * sizeof(std::int32_t)};
    };
    add(tokens), add(positions), add(slots), add(tables, 2), add(kv_len), add(q_start), add(rows);
    if (cache.windows()) add(window_slots), add(window_tables, 2);
    if (!adapter_names.empty()) add(adapters);
    return f(std::span<const TensorView>(inputs, count));
  }

  // Runs some tokens of some sequences. The cache must have room for them. Writes the logits of `rows` to `out`.
  void run(float* out) {
    const std::int64_t out_dims[] = {static_cast<std::int64_t>(rows.size()), config.vocab_size};
    const MutableTensorView output{out, DType::F32, out_dims,
                                   static_cast<std::size_t>(out_dims[0] * out_dims[1]) * sizeof(float)};
    with_inputs([&](std::span<const TensorView> inputs) { program.run_into(inputs, {&output, 1}); });
    check_lost();
  }

  std::vector<NodeTime> profile(std::span<const TokenId> ids) {
    const SequenceTokens part{0, ids};
    check({&part, 1});
    const auto count = static_cast<std::int64_t>(ids.size());
    if (count > graph.max_tokens)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("profile: ", count, " tokens exceed the ", graph.max_tokens, " tokens of a run"));
    const std::int64_t before = cache.length(0);
    cache.append(0, count);
    try {
      std::vector<std::span<const TokenId>> now(static_cast<std::size_t>(cache.sequences()));
      std::vector<std::int64_t> done(now.size(), 0);
      for (std::size_t s = 0; s < now.size(); ++s)
        done[s] = s == 0 ? before : cache.length(static_cast<std::int64_t>(s));
      now[0] = ids;
      fill_tables();
      if (KvWindows* w = cache.windows()) {
        const KvRun run{0, before, count};
        w->reserve({&run, 1});
      }
      fill(now, std::vector<std::int64_t>(now.size(), -1), done);
      rows.assign(1, static_cast<std::int32_t>(count) - 1);
      auto times = with_inputs([&](std::span<const TensorView> inputs) { return median_profile(program, inputs, 5); });
      cache.truncate(0, before);
      return times;
    } catch (...) {
      cache.truncate(0, before);
      throw;
    }
  }

  void check(std::span<const SequenceTokens> parts) const {
    std::vector<bool> named(static_cast<std::size_t>(cache.sequences()), false);
    if (parts.empty()) throw Error(ErrorCode::InvalidArgument, "forward: no tokens were given");
    for (const SequenceTokens& part : parts) {
      (void)cache.length(part.sequence);  // throws for an unknown sequence
      if (named[static_cast<std::size_t>(part.sequence)])
        throw Error(ErrorCode::InvalidArgument, concat_text("forward: sequence ", part.sequence, " is given twice"));
      named[static_cast<std::size_t>(part.sequence)] = true;
      if (part.tokens.empty())
        throw Error(ErrorCode::InvalidArgument, concat_text("forward: sequence ", part.sequence, " has no tokens"));
      if (part.logits < -1 || part.logits > static_cast<std::int64_t>(part.tokens.size()))
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("forward: sequence ", part.sequence, " has ", part.tokens.size(),
                                " tokens, but logits of ", part.logits, " were asked for"),
                    "-1: as LogitRows says");
      if (part.adapter < -1 || part.adapter >= static_cast<std::int64_t>(adapter_names.size()))
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("forward: there is no adapter ", part.adapter, ": the model has ", adapter_names.size(),
                                ", counted from 0"),
                    "-1: none");
      for (std::size_t i = 0; i < part.tokens.size(); ++i)
        if (part.tokens[i] < 0 || part.tokens[i] >= config.vocab_size)
          throw Error(ErrorCode::InvalidArgument,
                      concat_text("forward: token ", i, " of sequence ", part.sequence, " is ", part.tokens[i],
                                  ", but the model has ids 0 to ", config.vocab_size - 1),
                      "the tokeniser belongs to another model");
    }
  }

  Tensor forward(std::span<const SequenceTokens> parts, LogitRows which) {
    check(parts);
    std::vector<std::int64_t> before;
    for (std::int64_t s = 0; s < cache.sequences(); ++s) before.push_back(cache.length(s));
    try {
      for (const SequenceTokens& part : parts)
        cache.append(part.sequence, static_cast<std::int64_t>(part.tokens.size()));
      return run_chunks(parts, which, before);
    } catch (...) {
      for (std::int64_t s = 0; s < cache.sequences(); ++s)
        if (const std::int64_t length = before[static_cast<std::size_t>(s)]; cache.length(s) > length)
          cache.truncate(s, length < cache.shortest(s) ? 0 : length);
      throw;
    }
  }

  // Splits parts into runs of up to max_tokens tokens. A run may end one part and begin the next ones.
  Tensor run_chunks(std::span<const SequenceTokens> parts, LogitRows which, std::span<const std::int64_t> before) {
    std::int64_t wanted = 0;
    std::vector<std::size_t> unread(static_cast<std::size_t>(cache.sequences()));  // tokens of each part without logits
    std::vector<std::int64_t> changed(unread.size(), -1);                          // adapter of each part
    for (const SequenceTokens& part : parts) {
      const auto size = static_cast<std::int64_t>(part.tokens.size());
      const std::int64_t count = part.logits >= 0 ? part.logits : which == LogitRows::All ? size : 1;
      unread[static_cast<std::size_t>(part.sequence)] = static_cast<std::size_t>(size - count);
      changed[static_cast<std::size_t>(part.sequence)] = part.adapter;
      wanted += count;
    }
    Tensor out = Tensor::uninitialized(Shape({wanted, config.vocab_size}, DType::F32));
    float* to = out.mutable_values<float>().data();
    std::vector<float> nobodys;  // logits of the one row that a run needs when no token wants logits
    const std::int64_t sequences = cache.sequences();
    std::size_t part = 0, at = 0;  // position of the next token
    fill_tables();
    // Sequences without tokens in a run have no queries, whatever their length.
    std::vector<std::int64_t> done(before.begin(), before.end());
    while (part < parts.size()) {
      // The tokens of each sequence in this run. The graph orders tokens by sequence, not by part.
      std::vector<std::span<const TokenId>> now(static_cast<std::size_t>(sequences));
      std::vector<std::size_t> order;              // sequences, in the order of parts
      std::vector<std::size_t> first(now.size());  // position of each sequence's tokens in its part
      std::int64_t room = graph.max_tokens;
      while (room > 0 && part < parts.size()) {
        const auto& p = parts[part];
        const std::size_t count = std::min(p.tokens.size() - at, static_cast<std::size_t>(room));
        const auto s = static_cast<std::size_t>(p.sequence);
        now[s] = p.tokens.subspan(at, count);
        first[s] = at;
        order.push_back(s);
        room -= static_cast<std::int64_t>(count);
        at += count;
        if (at == p.tokens.size()) ++part, at = 0;
      }
      if (KvWindows* w = cache.windows()) {
        std::vector<KvRun> run;
        for (const std::size_t s : order)
          run.push_back({static_cast<std::int64_t>(s), done[s], static_cast<std::int64_t>(now[s].size())});
        w->reserve(run);
      }
      fill(now, changed, done);
      rows.clear();
      for (const std::size_t s : order)
        for (std::size_t i = 0; i < now[s].size(); ++i)
          if (first[s] + i >= unread[s]) rows.push_back(q_start[s] + static_cast<std::int32_t>(i));
      const bool none = rows.empty();
      if (none) {
        rows.push_back(0);
        nobodys.resize(static_cast<std::size_t>(config.vocab_size));
      }
      run(none ? nobodys.data() : to);
      if (!none) to += static_cast<std::ptrdiff_t>(rows.size()) * config.vocab_size;
    }
    return out;
  }

  void fill_tables() {
    tables.assign(static_cast<std::size_t>(cache.sequences() * graph.pages_per_sequence), 0);
    for (std::int64_t s = 0; s < cache.sequences(); ++s) {
      const auto table = cache.table(s);
      std::copy(table.begin(), table.end(), tables.begin() + s * graph.pages_per_sequence);
    }
  }

  // Entries of pages that a sequence does not have are never read, but must be valid pages.
  void fill_window_tables(const KvWindows& w) {
    const std::int64_t width = w.pages_per_sequence();
    window_tables.assign(static_cast<std::size_t>(cache.sequences() * width), 0);
    for (std::int64_t s = 0; s < cache.sequences(); ++s) {
      const auto table = w.table(s);
      std::copy(table.begin(), table.end(), window_tables.begin() + s * width + w.first(s));
    }
  }

  // Fills the inputs of a run over `now`, whose sequences have `done` tokens so far, and adds the new tokens to `done`.
  void fill(std::span<const std::span<const TokenId>> now, std::span<const std::int64_t> changed,
            std::vector<std::int64_t>& done) {
    tokens.clear(), positions.clear(), slots.clear(), kv_len.clear(), adapters.clear(), window_slots.clear();
    const KvWindows* w = cache.windows();
    if (w) fill_window_tables(*w);
    q_start.assign(1, 0);
    for (std::size_t s = 0; s < now.size(); ++s) {
      for (std::size_t i = 0; i < now[s].size(); ++i) {
        const std::int64_t position = done[s] + static_cast<std::int64_t>(i);
        tokens.push_back(now[s][i]);
        positions.push_back(static_cast<std::int32_t>(position));
        slots.push_back(cache.slot(static_cast<std::int64_t>(s), position));
        if (w) window_slots.push_back(w->slot(static_cast<std::int64_t>(s), position));
        adapters.push_back(static_cast<std::int32_t>(changed[s]));
      }
      done[s] += static_cast<std::int64_t>(now[s].size());
      kv_len.push_back(static_cast<std::int32_t>(done[s]));
      q_start.push_back(static_cast<std::int32_t>(tokens.size()));
    }
  }
};

DecoderModel::DecoderModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DecoderModel::~DecoderModel() = default;
DecoderModel::DecoderModel(DecoderModel&&) noexcept = default;
DecoderModel& DecoderModel::operator=(DecoderModel&&) noexcept = default;

DecoderOptions DecoderOptions::with_new_names() const {
  DecoderOptions o = *this;
  o.matmul_precision = products.value().value_or(matmul_precision);
  o.packed_weights = forms.value().value_or(packed_weights);
  o.verify_packed_weights = verify_forms.value().value_or(verify_packed_weights);
  o.products = {};
  o.forms = {};
  o.verify_forms = {};
  return o;
}

DecoderModel::Impl& DecoderModel::impl() const {
  if (!impl_)
    throw Error(ErrorCode::InvalidArgument, "a DecoderModel was used after it was moved from",
                "use the object that it was moved to");
  return *impl_;
}

DecoderModel DecoderModel::load(const std::string& path, const DecoderOptions& given, const Session& session) try {
  const DecoderOptions options = given.with_new_names();
  DecoderConfig config;
  ModelWeights weights;
  std::optional<AdapterSet> adapters;
  const auto adapt = [&](const auto& names, const std::shared_ptr<const GgufFile>& file) {
    if (options.adapters.empty()) return;
    adapters.emplace(options.adapters,
                     AdapterSet::Model{names(), adapter_weights(config, weights, file), config.weights_in_out});
  };
  if (is_file(path)) {
    const std::shared_ptr<GgufFile> file = GgufFile::open(path);
    config = read_decoder_config(*file);
    weights = gguf_weights(file);
    adapt([&] { return adapter_names(config, *file); }, file);
  } else {
    config = read_decoder_config(path);
    const std::shared_ptr<SafetensorsFolder> folder = SafetensorsFolder::open(path);
    weights = {folder, folder->source()};
    adapt([&] { return adapter_names(config, weights); }, nullptr);
  }
  std::vector<const void*> mapped;
  for (const std::string& name : weights.loader->names()) {
    const auto view = weights.loader->find(name);
    if (!view || view->size_bytes == 0) continue;
    guard_mapping(view->data);
    mapped.push_back(view->data);
  }
  StopRequest::check();
  const DecoderGraphOptions graph = graph_options(config, options);
  std::optional<std::size_t> available;
  if (options.check_memory)
    available = options.memory_limit ? options.memory_limit : available_memory(*session.open_device());
  if (available)
    require_memory(path, least_memory(config, weights, graph, options.matmul_precision), *available, config, graph);
  KvCache cache(graph.sequences, graph.context, graph.page, graph.pages, window_pages(config, graph));
  CompileOptions compiled = compile_options(config, options);
  const std::shared_ptr<PackedWeightFiles> packed_weights = packed_weight_files(path, options);
  compiled.packed_weight_cache = packed_weights;
  CompiledGraph program =
      session.compile_with(build_decoder(config, weights, graph, adapters ? &*adapters : nullptr), compiled);
  if (available)
    require_memory(path, program_memory(program.compile_result().lir, config, graph), *available, config, graph);
  StopRequest::check();
  if (adapters)
    for (const NamedTensor& w : adapters->weights()) program.set_param(w.name, w.tensor);
  program.load_params(weights.loader, LoadMode::Subset);
  // Prepacks the weights and binds the decode step now, so that the first answer does not wait for it.
  std::vector<std::vector<std::int64_t>> step{
      {1}, {1}, {1}, {graph.sequences, graph.pages_per_sequence}, {graph.sequences}, {graph.sequences + 1}, {1}};
  if (const KvWindows* w = cache.windows()) step.insert(step.end(), {{1}, {graph.sequences, w->pages_per_sequence()}});
  if (adapters) step.push_back({1});
  program.prepare_shape(step);
  program.finalize();
  auto impl = std::unique_ptr<Impl>(
      new Impl{std::move(config), graph, std::move(cache), std::move(program), options, std::move(weights.loader)});
  if (adapters) impl->adapter_names = adapters->names();
  impl->mapped = std::move(mapped);
  impl->packed_weights = packed_weights;
  impl->check_lost();
  impl->check_unchanged();
  return DecoderModel(std::move(impl));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("DecoderModel::load");
}

Tensor DecoderModel::forward(std::span<const TokenId> tokens, LogitRows rows) {
  const SequenceTokens part{0, tokens};
  return forward(std::span(&part, 1), rows);
}

Tensor DecoderModel::forward(std::span<const SequenceTokens> parts, LogitRows rows) try {
  const Impl::Busy busy(impl());
  return impl().forward(parts, rows);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("DecoderModel::forward");
}

std::vector<NodeTime> DecoderModel::profile(std::span<const TokenId> tokens) try {
  const Impl::Busy busy(impl());
  return impl().profile(tokens);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("DecoderModel::profile");
}

std::int64_t DecoderModel::length(std::int64_t sequence) const { return impl().cache.length(sequence); }
void DecoderModel::truncate(std::int64_t length, std::int64_t sequence) {
  const Impl::Busy busy(impl());
  impl().cache.truncate(sequence, length);
}
void DecoderModel::reset() {
  const Impl::Busy busy(impl());
  for (std::int64_t s = 0; s < impl().cache.sequences(); ++s) impl().cache.truncate(s, 0);
}
const DecoderConfig& DecoderModel::config() const { return impl().config; }
const std::vector<std::string>& DecoderModel::adapters() const { return impl().adapter_names; }
std::int64_t DecoderModel::context() const { return impl().graph.context; }
std::int64_t DecoderModel::max_tokens() const { return impl().graph.max_tokens; }
KvCache& DecoderModel::cache() { return impl().cache; }
const KvCache& DecoderModel::cache() const { return impl().cache; }
std::size_t DecoderModel::cache_bytes() const { return decoder_cache_bytes(impl().config, impl().graph); }
const DecoderOptions& DecoderModel::options() const { return impl().options; }
Fingerprint DecoderModel::config_fingerprint() const {
  return rlx::config_fingerprint(impl().config, impl().graph.context);
}
Fingerprint DecoderModel::weights_fingerprint() const {
  const Impl& m = impl();
  if (!m.weights) {
    const Fingerprint found = rlx::weights_fingerprint(*m.loader, m.weight_names());
    m.check_lost();
    m.weights = found;
  }
  return *m.weights;
}
Fingerprint DecoderModel::sources_fingerprint() const {
  return rlx::sources_fingerprint(*impl().loader, impl().weight_names());
}
std::shared_ptr<const PackedWeightFiles> DecoderModel::packed_weights() const { return impl().packed_weights; }
void DecoderModel::write_cache(std::string_view state, const Tensor& value, Rows rows) {
  const Impl::Busy busy(impl());
  impl().program.write_state(state, value, rows);
}
const CompiledGraph& DecoderModel::program() const { return impl().program; }

}  // namespace rlx
