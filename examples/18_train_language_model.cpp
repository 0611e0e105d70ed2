// Trains a small language model from scratch. It learns a vocabulary, trains a Llama model of 0.8 M weights to explain
// words, writes a Hugging Face folder, and answers questions with that model. scripts/demo_chat.sh runs it on the
// packages of a Debian system.
//
// usage: example_18_train_language_model [LINES FOLDER [STEPS]]
//   LINES    a file of lines WORD<tab>EXPLANATION; without arguments the few lines in this file
//   FOLDER   the folder that the model is written to
//   STEPS    training steps (700)
#include <rlx/formats/json.h>
#include <rlx/formats/safetensors.h>
#include <rlx/generation/engine.h>
#include <rlx/generation/language_model.h>
#include <rlx/rlx.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::int64_t kHidden = 128, kHeads = 4, kHeadDim = 32, kInner = 352, kLayers = 4;
constexpr std::int64_t kRows = 8, kLength = 128;  // the batch of a step: rows, tokens per row
constexpr int kMerges = 600, kSteps = 700;
const std::vector<std::string> kSpecial{"<|user|>", "<|assistant|>", "<|end|>"};
constexpr rlx::TokenId kUser = 256, kAssistant = 257, kEnd = 258;
// The forms of a question; {} is the word.
const std::vector<std::string> kQuestions{"What is {}?", "what is {}", "What does {} do?", "Tell me about {}.", "{}"};

struct Line {
  std::string word, text;
};
struct Example {
  std::string question, answer;
  std::vector<rlx::TokenId> tokens{};
  std::size_t answer_at = 0;  // the first token of the answer
};

// Pseudorandom numbers, equal on every machine.
std::uint64_t next_random() {
  static std::uint64_t seed = 1;
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return seed >> 33;
}
float next_normal() {
  float sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<float>(next_random()) * 0x1p-31f;
  return sum;
}

// -- vocabulary: byte-pair encoding, the most frequent pair is merged first --

// The character that stands for each byte in a byte-level vocabulary.
std::vector<std::string> byte_names() {
  std::vector<std::string> names(256);
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    const int c = (b > 32 && b < 127) || (b > 160 && b != 173) ? b : next++;
    names[static_cast<std::size_t>(b)] =
        c < 128 ? std::string(1, static_cast<char>(c))
                : std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
  }
  return names;
}

// The pre-tokens of a text, which merges do not cross: an optional space, then letters, digits or other characters.
std::vector<std::string> pieces_of(const std::string& text) {
  const auto kind = [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u == ' ' ? 0 : std::isalpha(u) || u >= 128 ? 1 : std::isdigit(u) ? 2 : 3;
  };
  std::vector<std::string> out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool joins = i > 0 && (kind(text[i - 1]) == kind(text[i]) || kind(text[i - 1]) == 0) && kind(text[i]) != 0;
    if (joins)
      out.back() += text[i];
    else
      out.push_back(std::string(1, text[i]));
  }
  return out;
}

// Writes a tokenizer.json of byte-level BPE, with merges learned from the examples.
void write_tokenizer(const std::string& path, const std::vector<Example>& examples) {
  const std::vector<std::string> bytes = byte_names();
  std::map<std::vector<std::string>, int> words;
  for (const Example& e : examples)
    for (const std::string& text : {e.question, e.answer})
      for (const std::string& piece : pieces_of(text)) {
        std::vector<std::string> symbols;
        for (const char c : piece) symbols.push_back(bytes[static_cast<unsigned char>(c)]);
        ++words[symbols];
      }
  std::vector<std::pair<std::string, std::string>> merges;
  while (merges.size() < kMerges) {
    std::map<std::pair<std::string, std::string>, int> pairs;
    for (const auto& [symbols, count] : words)
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) pairs[{symbols[i], symbols[i + 1]}] += count;
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == pairs.end() || best->second < 2) break;
    merges.push_back(best->first);
    std::map<std::vector<std::string>, int> joined;
    for (const auto& [symbols, count] : words) {
      std::vector<std::string> now;
      for (const std::string& s : symbols) {
        if (!now.empty() && now.back() == best->first.first && s == best->first.second)
          now.back() += s;
        else
          now.push_back(s);
      }
      joined[now] += count;
    }
    words = std::move(joined);
  }
  rlx::JsonWriter w(1);
  const auto byte_level = [&](const char* key) {
    w.key(key)
        .begin_object()
        .member("type", "ByteLevel")
        .member("add_prefix_space", false)
        .member("trim_offsets", true);
    w.member("use_regex", true).end_object();
  };
  w.begin_object().member("version", "1.0").key("added_tokens").begin_array();
  for (std::size_t i = 0; i < kSpecial.size(); ++i) {
    w.begin_object().member("id", static_cast<int>(256 + i)).member("content", kSpecial[i]);
    for (const char* off : {"single_word", "lstrip", "rstrip", "normalized"}) w.member(off, false);
    w.member("special", true).end_object();
  }
  w.end_array();
  byte_level("pre_tokenizer");
  byte_level("decoder");
  w.key("model").begin_object().member("type", "BPE").key("vocab").begin_object();
  int id = 0;
  for (const std::string& name : bytes) w.member(name, id++);
  for (const std::string& name : kSpecial) w.member(name, id++);
  for (const auto& [left, right] : merges) w.member(left + right, id++);
  w.end_object().key("merges").begin_array();
  for (const auto& [left, right] : merges) w.value(left + " " + right);
  w.end_array().end_object().end_object();
  std::ofstream(path) << w.take();
}

void write_configuration(const std::string& folder, std::int64_t vocab) {
  rlx::JsonWriter c(1);
  c.begin_object().member("model_type", "llama").member("vocab_size", vocab).member("hidden_size", kHidden);
  c.member("intermediate_size", kInner).member("num_hidden_layers", kLayers).member("num_attention_heads", kHeads);
  c.member("num_key_value_heads", kHeads).member("head_dim", kHeadDim).member("max_position_embeddings", 1024);
  c.member("rms_norm_eps", 1e-5).member("rope_theta", 10000.0).member("hidden_act", "silu");
  c.member("tie_word_embeddings", true).member("eos_token_id", kEnd).member("torch_dtype", "float32").end_object();
  std::ofstream(folder + "/config.json") << c.take();
  rlx::JsonWriter t(1);
  t.begin_object()
      .member("tokenizer_class", "PreTrainedTokenizerFast")
      .member("eos_token", kSpecial[2])
      .member("chat_template",
              "{% for m in messages %}{% if m['role'] == 'user' %}<|user|>{{ m['content'] }}{% elif m['role'] == "
              "'assistant' %}"
              "<|assistant|>{{ m['content'] | trim }}<|end|>{% endif %}{% endfor %}"
              "{% if add_generation_prompt %}<|assistant|>{% endif %}")
      .end_object();
  std::ofstream(folder + "/tokenizer_config.json") << t.take();
}

// -- the network: weights are states [out, in], named as in Hugging Face files --

struct Network {
  rlx::Graph& g;
  std::int64_t vocab;

  rlx::Expr weight(const std::string& name, const std::vector<std::int64_t>& dims, float size) {
    rlx::Tensor first = rlx::Tensor::zeros(rlx::Shape(rlx::Dims(dims.begin(), dims.end()), rlx::DType::F32));
    for (float& v : first.mutable_values<float>()) v = dims.size() == 1 ? 1 : next_normal() * size;
    return g.state(name, first);
  }
  rlx::Expr linear(rlx::Expr x, const std::string& name, std::int64_t in, std::int64_t out, float size = 1) {
    return g.matmul(x, g.t(weight(name + ".weight", {out, in}, size / std::sqrt(static_cast<float>(in)))));
  }
  rlx::Expr norm(rlx::Expr x, const std::string& name) {
    return g.rms_norm(x, weight(name + ".weight", {kHidden}, 0), std::nullopt, 1e-5);
  }

  // The logits [rows * length, vocab] of tokens [rows, length].
  rlx::Expr logits(rlx::Expr tokens) {
    std::vector<float> cos, sin;
    for (std::int64_t t = 0; t < kLength; ++t)
      for (std::int64_t i = 0; i < kHeadDim / 2; ++i) {
        const double angle = static_cast<double>(t) * std::pow(10000.0, -2.0 * static_cast<double>(i) / kHeadDim);
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
    const auto table = [&](const std::vector<float>& v) {
      return g.constant(rlx::Tensor::of<float>({kLength, kHeadDim / 2}, v));
    };
    const rlx::Expr c = table(cos), s = table(sin);
    rlx::ops::Rope rope;
    rope.head_dim = rope.n_rot = kHeadDim;
    rlx::ops::Attention attention;
    attention.num_heads = attention.kv_heads = kHeads;
    attention.head_dim = kHeadDim;
    attention.mask = rlx::MaskKind::Causal;
    const float last = 0.5f / std::sqrt(2.0f * kLayers);  // for weights that write to the residual stream
    const rlx::Expr embedding = weight("model.embed_tokens.weight", {vocab, kHidden}, 0.05f);
    rlx::Expr x = g.gather(embedding, tokens);
    for (int i = 0; i < kLayers; ++i) {
      const std::string at = "model.layers." + std::to_string(i) + ".";
      rlx::Expr h = norm(x, at + "input_layernorm");
      const rlx::Expr q = g.rope(linear(h, at + "self_attn.q_proj", kHidden, kHidden), c, s, rope);
      const rlx::Expr k = g.rope(linear(h, at + "self_attn.k_proj", kHidden, kHidden), c, s, rope);
      const rlx::Expr v = linear(h, at + "self_attn.v_proj", kHidden, kHidden);
      x = x + linear(g.attention(q, k, v, attention), at + "self_attn.o_proj", kHidden, kHidden, last);
      h = norm(x, at + "post_attention_layernorm");
      const rlx::Expr gate = g.silu(linear(h, at + "mlp.gate_proj", kHidden, kInner));
      x = x +
          linear(gate * linear(h, at + "mlp.up_proj", kHidden, kInner), at + "mlp.down_proj", kInner, kHidden, last);
    }
    x = g.reshape(norm(x, "model.norm"), {kRows * kLength, kHidden});
    return g.matmul(x, g.t(embedding));
  }

  // The mean [] of -log p(target) where `counts` is 1. Inputs are tokens I32, targets I32 and counts F32, each [rows,
  // length].
  rlx::Expr loss() {
    const std::vector<std::int64_t> dims{kRows, kLength}, flat{kRows * kLength, 1};
    const rlx::Shape ints({kRows, kLength}, rlx::DType::I32), floats({kRows, kLength}, rlx::DType::F32);
    const rlx::Expr tokens = g.input("tokens", ints), targets = g.input("targets", ints),
                    counts = g.input("counts", floats);
    const rlx::Expr places = g.iota(rlx::Shape({kRows * kLength, vocab}, rlx::DType::I32), 1);
    const rlx::Expr hit = g.cast(g.eq(places, g.reshape(targets, {kRows * kLength, 1})), rlx::DType::F32);
    const rlx::Expr each = g.sum(g.log_softmax(logits(tokens)) * hit, {1});
    return -g.sum(each * g.reshape(counts, {kRows * kLength}), {0}) / g.sum(g.reshape(counts, {kRows * kLength}), {0});
  }
};

// One step of Adam at the learning rate of the input `rate`; the output is the loss before the step.
rlx::Graph training_step(std::int64_t vocab) {
  rlx::Graph forward("train");
  forward.set_outputs({Network{forward, vocab}.loss()});
  std::vector<rlx::Wrt> weights;
  for (const rlx::NodeId id : forward.leaves(rlx::OpKind::State)) weights.emplace_back(forward.leaf_name(id));
  rlx::Graph g = rlx::value_and_grad(forward, weights).graph;
  const std::vector<rlx::Value> results = g.outputs();
  const rlx::Expr rate = g.input("rate", {{}, rlx::DType::F32});
  const rlx::Expr step = g.state("step", rlx::Tensor::scalar(rlx::DType::F32, 0)) + 1.0;
  g.set_state("step", step);
  const rlx::Expr first_bias = 1.0 - g.exp(step * std::log(0.9)), second_bias = 1.0 - g.exp(step * std::log(0.99));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string& name = weights[i].name();
    const rlx::Expr gradient = g.expr(results[i + 1]);
    const rlx::Expr weight = g.expr(rlx::Value(g.find_leaf(rlx::OpKind::State, name)));
    const rlx::Tensor zeros = rlx::Tensor::zeros(g.shape(weight.value()));
    const rlx::Expr m = 0.9 * g.state("m." + name, zeros) + 0.1 * gradient;
    const rlx::Expr v = 0.99 * g.state("v." + name, zeros) + 0.01 * g.square(gradient);
    g.set_state("m." + name, m);
    g.set_state("v." + name, v);
    g.set_state(name, weight - rate * (m / first_bias) / (g.sqrt(v / second_bias) + 1e-8));
  }
  g.set_outputs(std::vector<rlx::Value>{results[0]});
  return g;
}

// -- conversations --

// A batch: each row is a sequence of examples in conversation format. Only answers and their end tokens count in the
// loss.
rlx::NamedTensors batch(const std::vector<Example>& from, std::size_t& at, bool shuffled) {
  std::vector<std::int32_t> tokens, targets;
  std::vector<float> counts;
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::vector<std::int32_t> line;
    std::vector<float> counted;
    while (line.size() <= kLength) {
      const Example& e = from[shuffled ? next_random() % from.size() : at++ % from.size()];
      line.insert(line.end(), e.tokens.begin(), e.tokens.end());
      for (std::size_t i = 0; i < e.tokens.size(); ++i) counted.push_back(i >= e.answer_at ? 1.0f : 0.0f);
    }
    tokens.insert(tokens.end(), line.begin(), line.begin() + kLength);
    targets.insert(targets.end(), line.begin() + 1, line.begin() + 1 + kLength);
    counts.insert(counts.end(), counted.begin() + 1, counted.begin() + 1 + kLength);
  }
  const std::vector<std::int64_t> dims{kRows, kLength};
  return {{"tokens", rlx::Tensor::of<std::int32_t>(dims, tokens)},
          {"targets", rlx::Tensor::of<std::int32_t>(dims, targets)},
          {"counts", rlx::Tensor::of<float>(dims, counts)}};
}

double mean_loss(rlx::CompiledGraph& test, const std::vector<Example>& examples) {
  double sum = 0;
  std::size_t at = 0;
  const int runs = examples.size() > 100 ? 8 : 2;
  for (int i = 0; i < runs; ++i) sum += test.run_typed(batch(examples, at, false))[0].at(0);
  return sum / runs;
}

// The loss of a batch with the model that `folder` holds.
double loss_as_read(const std::string& folder, const rlx::NamedTensors& data) {
  rlx::DecoderModel m = rlx::DecoderModel::load(folder, {.context = kLength});
  const std::span<const std::int32_t> tokens = data.at("tokens").values<std::int32_t>(),
                                      targets = data.at("targets").values<std::int32_t>();
  const std::span<const float> counts = data.at("counts").values<float>();
  const auto vocab = static_cast<std::size_t>(m.config().vocab_size);
  double sum = 0, count = 0;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    if (at % kLength == 0) m.reset();
    const rlx::Tensor logits = m.forward(tokens.subspan(at, 1));
    if (counts[at] != 0) sum -= rlx::log_probability(logits.values<float>().first(vocab), targets[at]), ++count;
  }
  return sum / count;
}

// The percentage of up to 80 questions that the model in `folder` answers word for word.
int percent_right(const std::string& folder, const std::vector<Example>& examples) {
  rlx::DecoderOptions options;
  options.context = 256, options.sequences = 8;
  rlx::LanguageModel m = rlx::load_language_model(folder, options);
  rlx::GenerationOptions wanted;
  wanted.sampling.temperature = 0;
  wanted.max_new_tokens = 64;
  wanted.stop_tokens = m.end_tokens;
  const std::shared_ptr<const rlx::Tokenizer> tokenizer = m.tokenizer;
  rlx::Engine engine(std::move(m.decoder), tokenizer);
  std::map<rlx::RequestId, const Example*> asked;
  std::map<rlx::RequestId, std::string> said;
  for (std::size_t i = 0; i < examples.size(); i += examples.size() / 80 + 1) {
    const rlx::ChatMessage message{"user", examples[i].question};
    asked[engine.submit(tokenizer->encode(m.chat->render(std::span(&message, 1)), false), wanted)] = &examples[i];
  }
  while (!engine.idle())
    for (const rlx::GenerationEvent& e : engine.step()) said[e.request] += e.text;
  int right = 0;
  for (const auto& [id, example] : asked) right += said[id] == example->answer;
  return asked.empty() ? 0 : 100 * right / static_cast<int>(asked.size());
}

// Prints one answer while it is generated.
void answer(const std::string& path, const std::string& question) {
  rlx::LanguageModel m = rlx::load_language_model(path, {.context = 512});  // a folder or a GGUF file
  const rlx::ChatMessage message{"user", question};
  const std::vector<rlx::TokenId> prompt = m.tokenizer->encode(m.chat->render(std::span(&message, 1)), false);
  rlx::GenerationOptions options;
  options.sampling.temperature = 0;
  options.max_new_tokens = 64;
  options.stop_tokens = m.end_tokens;
  rlx::Engine engine(std::move(m.decoder), m.tokenizer);
  engine.generate(prompt, options, [](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    return true;  // false ends the answer
  });
}

std::vector<Line> lines_of(const char* path) {
  std::vector<Line> out;
  if (!path) {
    for (const char* word : {"ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay"})
      out.push_back({word, std::string("the animal called ") + word});
    return out;
  }
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (const std::size_t tab = line.find('\t'); tab != line.npos && tab + 1 < line.size())
      out.push_back({line.substr(0, tab), line.substr(tab + 1)});
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  const bool small = argc < 3;
  const int steps = small ? 40 : argc > 3 ? std::atoi(argv[3]) : kSteps;
  if (steps < 1) {
    std::fprintf(stderr, "STEPS must be 1 or more, got %s\n", argv[3]);
    return 2;
  }
  std::string folder = small ? (std::filesystem::temp_directory_path() / "rlx_example_XXXXXX").string() : argv[2];
  if (small ? mkdtemp(folder.data()) == nullptr
            : !std::filesystem::create_directories(folder) && !std::filesystem::is_directory(folder)) {
    std::fprintf(stderr, "cannot make the folder %s\n", folder.c_str());
    return 1;
  }
  const std::vector<Line> lines = lines_of(small ? nullptr : argv[1]);
  if (lines.size() < 10) {
    std::fprintf(stderr, "%s: fewer than ten lines WORD<tab>EXPLANATION\n", argv[1]);
    return 1;
  }

  // Every 25th word is held out. Of every fifth other word, one form of the question is held out.
  std::vector<Example> trained, unheard, unseen;
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (std::size_t q = 0; q < kQuestions.size(); ++q) {
      std::string question = kQuestions[q];
      question.replace(question.find("{}"), 2, lines[i].word);
      const bool hidden = i % 25 == 24, held = i % 5 == 0 && q == i / 5 % kQuestions.size();
      (hidden ? unseen : held ? unheard : trained).push_back({question, lines[i].text});
    }
  write_tokenizer(folder + "/tokenizer.json", trained);
  const std::unique_ptr<rlx::Tokenizer> tokenizer = rlx::load_tokenizer(folder);
  std::size_t total = 0;
  for (std::vector<Example>* set : {&trained, &unheard, &unseen})
    for (Example& e : *set) {
      const auto add = [&](const std::string& text) {
        const std::vector<rlx::TokenId> ids = tokenizer->encode(text, false);
        e.tokens.insert(e.tokens.end(), ids.begin(), ids.end());
      };
      e.tokens.push_back(kUser);
      add(e.question);
      e.tokens.push_back(kAssistant);
      e.answer_at = e.tokens.size();
      add(e.answer);
      e.tokens.push_back(kEnd);
      total += e.tokens.size();
    }
  const std::int64_t vocab = tokenizer->vocab_size();
  write_configuration(folder, vocab);

  rlx::CompileOptions in_place;
  in_place.must_alias = true;  // an update that would need a copy of a state is an error
  rlx::CompiledGraph train = rlx::Session().compile_with(training_step(vocab), in_place);
  rlx::Graph forward("test");
  forward.set_outputs({Network{forward, vocab}.loss()});
  rlx::CompiledGraph test = rlx::Session().compile(std::move(forward));
  test.share_state_from(train);

  std::vector<std::string> names;
  std::size_t weights = 0;
  for (const rlx::IoInfo& s : test.states()) {
    names.push_back(s.name);
    weights += static_cast<std::size_t>(test.read_state(s.name).num_elements());
  }
  std::printf("%zu words, %zu questions of %zu tokens, a vocabulary of %lld, %zu weights\n", lines.size(),
              trained.size(), total, static_cast<long long>(vocab), weights);
  const auto report = [&](const char* when) {
    std::printf("%s: loss %.2f on what it is trained on, %.2f on other ways to ask", when, mean_loss(test, trained),
                mean_loss(test, unheard));
    if (!unseen.empty()) std::printf(", %.2f on words it never sees", mean_loss(test, unseen));
    std::printf("\n");
  };
  report("before");

  // A number of steps, not a time, so that a busy machine trains the same model. The learning rate has a warm-up and a
  // cosine decay.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::size_t unused = 0;
  for (int step = 0; step < steps; ++step) {
    rlx::NamedTensors data = batch(trained, unused, true);
    const double part = static_cast<double>(step) / steps;
    const double rate =
        3e-3 * std::min(1.0, (step + 1) / 30.0) * (0.02 + 0.98 * 0.5 * (1 + std::cos(3.14159265 * part)));
    data.emplace("rate", rlx::Tensor::scalar(rlx::DType::F32, rate));
    const double loss = train.run_typed(data)[0].at(0);
    if (step % 100 == 99 || step == steps - 1)
      std::printf("step %4d of %d, %3.0f s: loss %.3f\n", step + 1, steps, elapsed(), loss);
    std::fflush(stdout);
  }
  report("after");

  std::vector<rlx::NamedTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, test.read_state(name)});
  rlx::write_safetensors(folder + "/model.safetensors", tensors, {{"format", "pt"}});
  const rlx::NamedTensors some = batch(trained, unused, false);
  const double kept = test.run_typed(some)[0].at(0), read = loss_as_read(folder, some);
  const bool same = std::abs(kept - read) < 1e-3;
  std::printf("the model that is read from the folder has the loss of the trained one: %s\n", same ? "yes" : "no");
  const int learnt = percent_right(folder, trained), other = percent_right(folder, unheard);
  std::printf("answered word for word: %d %% of what it was trained on, %d %% of other ways to ask for a word it knows",
              learnt, other);
  if (!unseen.empty()) std::printf(", %d %% of words it never saw", percent_right(folder, unseen));
  std::printf("\n");
  std::printf("> %s\n", trained[0].question.c_str());
  answer(folder, trained[0].question);
  std::printf("\n");
  if (small) std::filesystem::remove_all(folder);
  return same ? 0 : 1;
} catch (const rlx::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
