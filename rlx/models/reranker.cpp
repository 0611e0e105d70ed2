// Loads and runs a cross-encoder.
#include "rlx/models/reranker.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rlx/base/callback_life.h"
#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/models/config.h"
#include "rlx/models/encoder.h"
#include "rlx/models/encoder/encoder_runner.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// The activation in config.json, in the two formats that sentence-transformers writes.
ScoreActivation stored_activation(const JsonDocument& document, std::int64_t labels) {
  const JsonValue root = document.root_object();
  std::optional<JsonValue> name = root.find("sbert_ce_default_activation_function");
  if (const std::optional<JsonValue> part = root.find("sentence_transformers"); part && part->is_object())
    if (const std::optional<JsonValue> newer = part->find("activation_fn")) name = newer;
  if (!name || name->is_null()) return labels == 1 ? ScoreActivation::Sigmoid : ScoreActivation::Identity;
  const std::string_view text = name->as_string("activation_fn");
  if (text.ends_with(".Sigmoid")) return ScoreActivation::Sigmoid;
  if (text.ends_with(".Identity")) return ScoreActivation::Identity;
  throw Error(ErrorCode::Unsupported,
              concat_text(document.source(), ": the activation of scores \"", text, "\" is not supported"),
              "supported are Sigmoid and Identity; RerankerOptions::activation overrides the file");
}

// The prompt of Qwen3's rerankers, as published by their authors (arXiv:2506.05176 and the model pages): a system
// message, a user message with instruction, query and passage, and an answer that begins after an empty thought.
constexpr std::string_view kQuestionBegin =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. "
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
constexpr std::string_view kQuestionEnd = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr std::string_view kUsualInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";
constexpr std::int64_t kQuestionTokens = 8192;  // the models' maximum length

std::string question_head(const std::string& instruction, const std::string& query) {
  return concat_text("<Instruct>: ", instruction, "\n<Query>: ", query, "\n<Document>:");
}

std::string first_architecture(const JsonDocument& config) {
  const std::optional<JsonValue> list = config.root_object().find("architectures");
  if (!list || list->is_null()) return {};
  const std::vector<JsonValue> names = list->elements("architectures");
  return names.empty() ? std::string() : std::string(names[0].as_string("architectures"));
}

// Whether sentence-transformers pools the model's tokens. Such a model makes vectors, whatever else config.json says.
bool makes_vectors(const std::string& folder) {
  const std::string path = join_path(folder, "modules.json");
  if (!has_file(path)) return false;
  const JsonDocument modules = JsonDocument::read(path);
  for (const JsonValue& module : modules.root().elements("modules"))
    if (module.get_string("type").ends_with("Pooling")) return true;
  return false;
}

TokenId token_called(const Tokenizer& tokenizer, std::string_view name, const std::string& folder) {
  const std::optional<TokenId> id = tokenizer.token_to_id(name);
  if (!id)
    throw Error(ErrorCode::BadFile, concat_text(folder, ": the tokeniser has no token \"", name, "\""),
                "the prompt of Qwen3 rerankers needs this token");
  return *id;
}

// The limit in the tokeniser's files, if it is real: many have 10^30.
std::int64_t tokenizer_limit(const std::string& folder, std::int64_t most) {
  const std::string path = join_path(folder, "tokenizer_config.json");
  if (!has_file(path)) return most;
  const JsonDocument document = JsonDocument::read(path);
  const std::optional<JsonValue> value = document.root_object().find("model_max_length");
  if (!value || value->is_null()) return most;
  const double limit = value->as_number("model_max_length");
  return limit >= 1 && limit < static_cast<double>(most) ? static_cast<std::int64_t>(limit) : most;
}

}  // namespace

struct Reranker::Impl : CallbackLife {
  RerankerOptions options;
  EncoderConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
  ScoreActivation activation = ScoreActivation::Identity;
  std::int64_t max_sequence = 0;
  bool types = false;
  std::string weights;                   // path
  std::optional<std::string> asked_for;  // set where pairs become questions
  std::vector<TokenId> question_begin, question_end;
  std::optional<EncoderRunner> runner;

  Impl(const std::string& folder, RerankerOptions o) : options(o) {
    if (options.max_batch < 1)
      throw Error(ErrorCode::InvalidArgument, concat_text("max_batch must be at least 1, got ", options.max_batch));
    if (options.num_threads < 0)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("num_threads must not be negative, got ", options.num_threads));
    const JsonDocument document = read_model_config(folder);
    config = parse_encoder_config(document);
    if (!config.classifier)
      throw Error(ErrorCode::Unsupported,
                  concat_text(document.source(), ": rlx supports no classifier of a ", config.family));
    tokenizer = load_tokenizer(folder);
    check_vocabulary(config, *tokenizer, folder);
    choose_question(folder, document);
    activation = options.activation ? *options.activation : stored_activation(document, config.classifier->labels);
    const auto special = asked_for ? static_cast<std::int64_t>(question_begin.size() + question_end.size())
                                   : tokenizer->join_pair({}, {}).num_tokens;
    const std::int64_t most = asked_for ? std::min(kQuestionTokens, config.max_tokens) : config.max_tokens;
    const std::int64_t own = tokenizer_limit(folder, most);
    max_sequence = options.max_sequence ? options.max_sequence : own;
    if (own <= special)
      throw Error(ErrorCode::BadFile, concat_text(folder, ": pairs may have ", own, " tokens, expected more than the ",
                                                  special, " special ones"));
    if (max_sequence <= special || max_sequence > config.max_tokens)
      throw Error(ErrorCode::InvalidArgument, concat_text("max_sequence must be in [", special + 1, ", ",
                                                          config.max_tokens, "], got ", max_sequence));
    types = config.type_vocab_size > 1;
    check_types();
    EncoderGraphOptions graph_options;
    graph_options.output = EncoderOutput::Scores, graph_options.types = types;
    const ModelWeights opened = open_encoder_weights(folder, config, graph_options);
    weights = opened.source;
    EncoderRunnerSettings settings{Session(options.device, options.device_options)};
    if (options.num_threads > 0) settings.session.with_threads(options.num_threads);
    settings.max_batch = options.max_batch, settings.max_tokens = max_sequence;
    settings.width = config.classifier->labels, settings.pad = tokenizer->pad_id();
    settings.compile = [c = config, opened, graph_options](const Session& session, CompileOptions compile) {
      return session.compile_with(build_encoder(c, opened, graph_options), std::move(compile));
    };
    settings.load = [opened](CompiledGraph& program) { program.load_params(opened.loader, LoadMode::Subset); };
    runner.emplace(std::move(settings));
  }

  // Chooses the text around pairs, and the scores of answers.
  void choose_question(const std::string& folder, const JsonDocument& document) {
    const std::string architecture = first_architecture(document);
    const bool answers = architecture.ends_with("ForCausalLM"), asks = config.family == "qwen3";
    if (answers && !asks)
      throw Error(ErrorCode::Unsupported,
                  concat_text(document.source(), ": a ", architecture, " is not a reranker that rlx supports"),
                  "supported are *ForSequenceClassification, and Qwen3ForCausalLM, which answers yes or no");
    if (!answers && !architecture.empty() && !architecture.ends_with("ForSequenceClassification"))
      throw Error(ErrorCode::Unsupported,
                  concat_text(document.source(), ": a ", architecture, " has no classifier, so it is not a reranker"),
                  "a reranker is a *ForSequenceClassification, or a Qwen3ForCausalLM that answers yes or no; "
                  "SentenceEncoder and `rlx search` compare the vectors of an encoder");
    if (answers && makes_vectors(folder))
      throw Error(ErrorCode::Unsupported,
                  concat_text(folder, ": modules.json pools the tokens of this ", architecture,
                              ", so this is an embedding model and not a reranker"),
                  "use SentenceEncoder or `rlx search` to compare its vectors");
    if (options.instruction && !asks)
      throw Error(ErrorCode::InvalidArgument, concat_text("a ", config.family, " takes no instruction"),
                  "only Qwen3 rerankers take an instruction");
    if (!answers && !options.instruction) return;
    asked_for = options.instruction ? *options.instruction : std::string(kUsualInstruction);
    for (const std::string_view turn : {"<|im_start|>", "<|im_end|>"}) token_called(*tokenizer, turn, folder);
    question_begin = tokenizer->encode(kQuestionBegin, false);
    question_end = tokenizer->encode(kQuestionEnd, false);
    (void)encode(*asked_for, "the instruction");  // throws for invalid UTF-8
    if (!answers) return;
    config.classifier = ClassifierSpec{.labels = 1, .pooling = Pooling::LastToken, .out = config.names.token_head};
    config.classifier->answers =
        AnswerTokens{token_called(*tokenizer, "no", folder), token_called(*tokenizer, "yes", folder)};
  }

  void check_types() const {
    if (!types) return;
    for (const PairPiece& piece : tokenizer->pair_pieces())
      if (piece.type >= config.type_vocab_size)
        throw Error(ErrorCode::BadFile,
                    concat_text("the tokeniser uses the token type ", piece.type,
                                ", but \"type_vocab_size\" of config.json is ", config.type_vocab_size),
                    "the tokeniser belongs to another model");
  }

  std::vector<TokenId> encode(const std::string& text, const std::string& name) const {
    try {
      return tokenizer->encode(text, false);
    } catch (const Error& e) {
      Diagnostic d = e.diagnostic();
      d.message = concat_text(name, ": ", d.message);
      throw Error(std::move(d));
    }
  }

  // The tokens of the query that all passages share.
  std::vector<TokenId> encode_query(const std::string& query) const {
    std::vector<TokenId> tokens = encode(query, "the query");
    if (tokens.empty())
      throw Error(ErrorCode::InvalidArgument, "the query is empty: it has no tokens", "give at least one word or sign");
    if (!asked_for) return tokens;
    const std::size_t head = encode(question_head(*asked_for, query), "the question").size();
    if (static_cast<std::int64_t>(head) >= room())
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("the instruction and the query have ", head, " tokens, but only ", room(),
                              " fit, including the passage"),
                  max_sequence < config.max_tokens ? "shorten them, or give a larger max_sequence" : "shorten them");
    return tokens;
  }

  // Room for tokens between the beginning and the end of a question.
  std::int64_t room() const {
    return max_sequence - static_cast<std::int64_t>(question_begin.size() + question_end.size());
  }

  EncodedPair pair(const std::string& query, std::span<const TokenId> asked, const std::string& passage,
                   const std::string& name) const {
    if (!asked_for) return tokenizer->join_pair(asked, encode(passage, name), max_sequence);
    std::vector<TokenId> middle;
    EncodedPair out;
    try {
      middle = tokenizer->encode_truncated(concat_text(question_head(*asked_for, query), " ", passage), room(), true,
                                           &out.num_tokens);
    } catch (const Error&) {
      (void)encode(passage, name);  // throws with the position in the passage
      throw;
    }
    out.num_tokens += max_sequence - room();
    out.ids = question_begin;
    out.ids.insert(out.ids.end(), middle.begin(), middle.end());
    out.ids.insert(out.ids.end(), question_end.begin(), question_end.end());
    return out;
  }
};

Reranker::Reranker(const std::string& folder, RerankerOptions options) try
    : impl_(std::make_unique<Impl>(folder, options)) {
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Reranker");
}
Reranker::~Reranker() { CallbackLife::retire(std::move(impl_)); }
Reranker::Reranker(Reranker&&) noexcept = default;
Reranker& Reranker::operator=(Reranker&& other) noexcept {
  if (this != &other) CallbackLife::retire(std::exchange(impl_, std::move(other.impl_)));
  return *this;
}

Reranker::Impl& Reranker::impl() const {
  if (!impl_)
    throw Error(ErrorCode::InvalidArgument, "a Reranker was used after it was moved from",
                "use the object that it was moved to");
  return *impl_;
}

std::int64_t Reranker::labels() const { return impl().config.classifier->labels; }
std::int64_t Reranker::max_sequence() const { return impl().max_sequence; }
std::size_t Reranker::weight_bytes() const { return impl().runner->weight_bytes(); }
const EncoderConfig& Reranker::config() const { return impl().config; }
const Tokenizer& Reranker::tokenizer() const { return *impl().tokenizer; }

Tensor Reranker::score(const std::string& query, std::span<const std::string> passages,
                       std::vector<TruncationNotice>* notices, const std::function<void(std::size_t)>& progress,
                       const std::function<std::string(std::size_t)>& passage_name) try {
  Impl& self = impl();
  const CallbackLife::Call life(self);
  const auto name_of = [&](std::size_t i) { return passage_name ? passage_name(i) : concat_text("passage ", i + 1); };
  const std::vector<TokenId> asked = self.encode_query(query);
  std::vector<std::vector<TokenId>> rows(passages.size());
  std::vector<std::vector<std::int32_t>> types(self.types ? passages.size() : 0);
  std::vector<std::size_t> order(passages.size());
  for (std::size_t i = 0; i < passages.size(); ++i) {
    EncodedPair pair = self.pair(query, asked, passages[i], name_of(i));
    rows[i] = std::move(pair.ids);
    if (self.types) types[i] = std::move(pair.types);
    order[i] = i;
    if (notices && pair.num_tokens > self.max_sequence) notices->push_back({i, pair.num_tokens, self.max_sequence});
  }
  const auto width = static_cast<std::size_t>(labels());
  Tensor out = Tensor::zeros(Shape({passages.size(), width}, DType::F32));
  const std::span<float> to = out.mutable_values<float>();
  self.runner->run(rows, types, std::move(order), to, progress);
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!std::isfinite(to[i]))
      throw Error(ErrorCode::BadFile, concat_text(name_of(i / width), ": its score is ", static_cast<double>(to[i])),
                  concat_text("the weights in '", self.weights, "' are damaged, or overflow on this text"));
    if (self.activation == ScoreActivation::Sigmoid) to[i] = 1 / (1 + std::exp(-to[i]));
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Reranker::score");
}

std::vector<Match> Reranker::rank(const std::string& query, std::span<const std::string> passages,
                                  std::size_t count) try {
  if (labels() != 1)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the model returns ", labels(), " scores for a pair, but ranking needs one"),
                "Reranker::score returns all of them");
  const Tensor scores = score(query, passages);
  std::vector<Match> all;
  for (std::size_t i = 0; i < passages.size(); ++i) all.push_back({i, scores.at(static_cast<std::int64_t>(i))});
  keep_best(all, count);
  return all;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Reranker::rank");
}

}  // namespace rlx
