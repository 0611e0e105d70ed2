// Language models in Python: one engine for all answers of a model, whichever thread asks for them.
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "python/bindings/runtime.h"
#include "python/bindings/text.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/language_model.h"

namespace rlx::python {
namespace {

// Turns of threads in the order they came: a thread that makes one step after the other lets others between.
class Turns {
 public:
  class Mine {
   public:
    explicit Mine(Turns& turns) : turns_(turns) {
      std::unique_lock<std::mutex> lock(turns_.mutex_);
      const std::uint64_t ticket = turns_.next_++;
      turns_.changed_.wait(lock, [&] { return turns_.serving_ == ticket; });
    }
    ~Mine() {
      const std::lock_guard<std::mutex> lock(turns_.mutex_);
      ++turns_.serving_;
      turns_.changed_.notify_all();
    }
    Mine(const Mine&) = delete;
    Mine& operator=(const Mine&) = delete;

   private:
    Turns& turns_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0, serving_ = 0;
};

// What came of a request and was not asked for yet. Under the turn of the model, but for `dropped`.
struct Pending {
  std::deque<GenerationEvent> events;
  bool finished = false;
  std::atomic<bool> dropped{false};  // nobody asks any more
};

struct PyLanguageModel {
  PyLanguageModel(LanguageModel m, std::string from, EngineOptions options)
      : path(std::move(from)),
        tokenizer(m.tokenizer),
        chat(std::move(m.chat)),
        end_tokens(std::move(m.end_tokens)),
        engine(std::move(m.decoder), m.tokenizer, options) {}

  std::string path;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat;
  std::vector<TokenId> end_tokens;
  Turns turns;
  Engine engine;
  std::map<RequestId, std::shared_ptr<Pending>> pending{};

  // -- in a turn --

  void step() {
    for (GenerationEvent& e : engine.step()) {
      const auto at = pending.find(e.request);
      if (at == pending.end()) continue;
      const std::shared_ptr<Pending> p = at->second;
      if (e.finish != FinishReason::None) {
        p->finished = true;
        pending.erase(at);
      }
      p->events.push_back(std::move(e));
    }
  }
  // Answers that nobody asks for give back what they hold; where no other is left, at once.
  void forget_dropped() {
    bool any = false, others = false;
    for (const auto& [id, p] : pending) {
      if (p->dropped)
        any = engine.cancel(id) || any;
      else
        others = true;
    }
    while (any && !others && !engine.idle()) step();
  }
  DecoderModel& idle_model() {
    forget_dropped();
    return engine.idle_model();
  }
};
using ModelPtr = std::shared_ptr<PyLanguageModel>;

// One answer: an iterator over its pieces.
class PyAnswer {
 public:
  PyAnswer(ModelPtr model, std::shared_ptr<Pending> pending, std::int64_t prompt_tokens)
      : model_(std::move(model)), pending_(std::move(pending)), prompt_tokens_(prompt_tokens) {}
  ~PyAnswer() { pending_->dropped = true; }
  PyAnswer(const PyAnswer&) = delete;
  PyAnswer& operator=(const PyAnswer&) = delete;

  // The next piece of text; none at the end. Called without the GIL.
  std::optional<std::string> next() {
    while (true) {
      {
        const Turns::Mine turn(model_->turns);
        model_->forget_dropped();
        if (pending_->events.empty() && !pending_->finished && !pending_->dropped) model_->step();
        while (!pending_->events.empty()) {
          const GenerationEvent e = std::move(pending_->events.front());
          pending_->events.pop_front();
          const std::lock_guard<std::mutex> lock(said_mutex_);
          if (e.token >= 0) tokens_.push_back(e.token);
          text_ += e.text;
          if (e.finish != FinishReason::None && finish_ == FinishReason::None) finish_ = e.finish;
          if (!e.text.empty()) return e.text;
        }
        if (pending_->finished || pending_->dropped) return std::nullopt;
      }
      check_signals();
    }
  }
  // Ends the answer where it is.
  void close() {
    pending_->dropped = true;
    const Turns::Mine turn(model_->turns);
    model_->forget_dropped();
    pending_->events.clear();
    const std::lock_guard<std::mutex> lock(said_mutex_);
    if (finish_ == FinishReason::None) finish_ = FinishReason::Cancelled;
  }

  std::string text() const {
    const std::lock_guard<std::mutex> lock(said_mutex_);
    return text_;
  }
  std::vector<TokenId> tokens() const {
    const std::lock_guard<std::mutex> lock(said_mutex_);
    return tokens_;
  }
  FinishReason finish() const {
    const std::lock_guard<std::mutex> lock(said_mutex_);
    return finish_;
  }
  std::int64_t prompt_tokens() const { return prompt_tokens_; }

  // Ctrl-C between two steps ends the answer; no turn is held while Python's handler runs. Called without the GIL.
  void check_signals() {
    bool raised = false;
    {
      const nb::gil_scoped_acquire gil;
      raised = PyErr_CheckSignals() != 0;
      if (!raised) return;
    }
    close();
    const nb::gil_scoped_acquire gil;
    throw nb::python_error();
  }

 private:
  ModelPtr model_;
  std::shared_ptr<Pending> pending_;
  std::int64_t prompt_tokens_;
  mutable std::mutex said_mutex_;
  std::string text_;
  std::vector<TokenId> tokens_;
  FinishReason finish_ = FinishReason::None;
};

// -- options of an answer, by their names --

struct AnswerOption {
  const char* takes;
  std::function<void(GenerationOptions&, nb::handle)> set;
};
template <class T>
AnswerOption sampling_number(T SamplingOptions::*field) {
  return {std::is_integral_v<T> ? "an integer" : "a number", [field](GenerationOptions& o, nb::handle v) {
            if (PyUnicode_Check(v.ptr())) throw nb::cast_error();
            o.sampling.*field = nb::cast<T>(v);
          }};
}

std::vector<std::string> stops_from(nb::handle v) {
  if (PyUnicode_Check(v.ptr()) || PyBytes_Check(v.ptr())) return {text_from(v, "stop")};
  std::vector<std::string> out;
  for (nb::handle s : nb::cast<nb::sequence>(v)) out.push_back(text_from(s, "stop"));
  return out;
}
std::vector<SamplingStep> order_from(nb::handle v) {
  if (PyUnicode_Check(v.ptr())) return parse_sampling_order(text_from(v, "order"));
  std::string joined;
  for (nb::handle s : nb::cast<nb::sequence>(v))
    joined += concat_text(joined.empty() ? "" : ";", text_from(s, "order"));
  return parse_sampling_order(joined);
}

const std::map<std::string, AnswerOption, std::less<>>& answer_options() {
  using S = SamplingOptions;
  static const std::map<std::string, AnswerOption, std::less<>> options = {
      {"temperature", sampling_number(&S::temperature)},
      {"dynamic_range", sampling_number(&S::dynamic_range)},
      {"dynamic_exponent", sampling_number(&S::dynamic_exponent)},
      {"top_k", sampling_number(&S::top_k)},
      {"top_p", sampling_number(&S::top_p)},
      {"min_p", sampling_number(&S::min_p)},
      {"typical_p", sampling_number(&S::typical_p)},
      {"top_n_sigma", sampling_number(&S::top_n_sigma)},
      {"xtc_probability", sampling_number(&S::xtc_probability)},
      {"xtc_threshold", sampling_number(&S::xtc_threshold)},
      {"penalty_window", sampling_number(&S::penalty_window)},
      {"repetition_penalty", sampling_number(&S::repetition_penalty)},
      {"frequency_penalty", sampling_number(&S::frequency_penalty)},
      {"presence_penalty", sampling_number(&S::presence_penalty)},
      {"dry_multiplier", sampling_number(&S::dry_multiplier)},
      {"dry_base", sampling_number(&S::dry_base)},
      {"dry_allowed_length", sampling_number(&S::dry_allowed_length)},
      {"dry_window", sampling_number(&S::dry_window)},
      {"dry_breakers",
       {"tokens",
        [](GenerationOptions& o, nb::handle v) { o.sampling.dry_breakers = tokens_from(v, "dry_breakers"); }}},
      {"mirostat", sampling_number(&S::mirostat)},
      {"mirostat_tau", sampling_number(&S::mirostat_tau)},
      {"mirostat_eta", sampling_number(&S::mirostat_eta)},
      {"logit_bias",
       {"{token: number}",
        [](GenerationOptions& o, nb::handle v) {
          o.sampling.logit_bias.clear();
          for (const auto [token, bias] : nb::cast<nb::dict>(v))
            o.sampling.logit_bias.emplace_back(token_from(token, "logit_bias"), nb::cast<float>(bias));
        }}},
      {"order",
       {"names of steps, in a list or joined by ';'",
        [](GenerationOptions& o, nb::handle v) { o.sampling.order = order_from(v); }}},
      {"seed", sampling_number(&S::seed)},
      {"max_new_tokens",
       {"an integer", [](GenerationOptions& o, nb::handle v) { o.max_new_tokens = nb::cast<std::int64_t>(v); }}},
      {"stop", {"a text or a list of texts", [](GenerationOptions& o, nb::handle v) { o.stop = stops_from(v); }}},
      {"stop_tokens",
       {"tokens", [](GenerationOptions& o, nb::handle v) { o.stop_tokens = tokens_from(v, "stop_tokens"); }}},
  };
  return options;
}

void set_options(GenerationOptions& out, nb::dict given) {
  for (const auto [key, value] : given) {
    const auto name = text_from(key, "the name of an option");
    const auto& known = answer_options();
    const auto it = known.find(name);
    if (it == known.end()) {
      std::vector<std::string> names;
      for (const auto& [n, option] : known) names.push_back(n);
      PyErr_SetString(PyExc_TypeError, concat_text("there is no option '", name, "' of an answer; ",
                                                   did_you_mean(name, names, quoted_names(names, 40)))
                                           .c_str());
      throw nb::python_error();
    }
    try {
      it->second.set(out, value);
    } catch (const nb::cast_error&) {
      raise(ErrorCode::DTypeMismatch, concat_text(name, " takes ", it->second.takes, ", got ", described(value)));
    }
  }
}

GenerationOptions generation_options(const PyLanguageModel& m, nb::dict given) {
  GenerationOptions out;
  out.stop_tokens = m.end_tokens;
  set_options(out, given);
  return out;
}

const ChatTemplate& template_of(const PyLanguageModel& m) {
  if (m.chat) return *m.chat;
  raise(ErrorCode::Unsupported, concat_text(m.path, " has no chat template"),
        "give generate() a text or tokens: they are continued as they are");
}

bool is_conversation(nb::handle prompt) {
  if (!nb::isinstance<nb::list>(prompt) && !nb::isinstance<nb::tuple>(prompt)) return false;
  return nb::len(prompt) != 0 && nb::isinstance<nb::dict>(nb::object(nb::borrow<nb::sequence>(prompt)[0]));
}

std::vector<TokenId> encoded(const PyLanguageModel& m, const std::string& text, bool special_tokens) {
  const nb::gil_scoped_release free;
  return m.tokenizer->encode(text, special_tokens);
}

// A text is continued as it is, messages go through the template, tokens are taken as they are.
std::vector<TokenId> prompt_from(const PyLanguageModel& m, nb::handle prompt, nb::dict options, bool conversation) {
  if (conversation || is_conversation(prompt)) return encoded(m, render_chat(template_of(m), prompt, options), false);
  if (PyUnicode_Check(prompt.ptr()) || PyBytes_Check(prompt.ptr()))
    return encoded(m, text_from(prompt, "the prompt"), true);
  return tokens_from(prompt, "the prompt");
}

std::unique_ptr<PyAnswer> answer(const ModelPtr& m, nb::handle prompt, nb::kwargs given, bool conversation) {
  nb::dict options;  // one of our own, which words are taken out of
  options.update(given);
  const std::vector<TokenId> tokens = prompt_from(*m, prompt, options, conversation);
  const GenerationOptions wanted = generation_options(*m, options);
  const nb::gil_scoped_release free;
  const Turns::Mine turn(m->turns);
  m->forget_dropped();
  auto pending = std::make_shared<Pending>();
  m->pending.emplace(m->engine.submit(tokens, wanted), pending);
  return std::make_unique<PyAnswer>(m, std::move(pending), static_cast<std::int64_t>(tokens.size()));
}

// The rest of an answer.
void finish(PyAnswer& a) {
  const nb::gil_scoped_release free;
  while (a.next()) a.check_signals();
}

nb::list generate_batch(const ModelPtr& m, nb::handle prompts, nb::kwargs given) {
  if (!PySequence_Check(prompts.ptr()) || PyUnicode_Check(prompts.ptr()) || PyBytes_Check(prompts.ptr()))
    raise(ErrorCode::DTypeMismatch,
          concat_text("generate_batch: prompts must be a list of prompts, got ", described(prompts)));
  nb::list out;
  for (nb::handle prompt : nb::borrow<nb::sequence>(prompts))
    out.append(nb::cast(answer(m, prompt, given, false).release(), nb::rv_policy::take_ownership));
  for (nb::handle a : out) finish(nb::cast<PyAnswer&>(a));
  return out;
}

nb::object finish_reason(const PyAnswer& a) {
  const FinishReason reason = a.finish();
  return reason == FinishReason::None ? nb::none() : text_object(finish_reason_name(reason));
}

// -- samplers, for loops of one's own --

SamplingOptions sampling_options(nb::dict given) {
  for (const char* other : {"max_new_tokens", "stop", "stop_tokens"}) {
    if (!given.contains(other)) continue;
    PyErr_SetString(PyExc_TypeError, concat_text("Sampler: ", other, " is an option of answers, not of draws").c_str());
    throw nb::python_error();
  }
  GenerationOptions out;
  set_options(out, given);
  return out.sampling;
}

// Logits F32 of one token, [V] or [1, V].
Tensor one_row(nb::handle h) {
  Tensor t = on_host(tensor_from(h, "logits"));
  const bool row = t.rank() == 1 || (t.rank() == 2 && t.dim(0) == 1);
  if (!row || !is_float(t.dtype()) || is_storage_only(t.dtype()))
    raise(ErrorCode::ShapeMismatch, concat_text("logits of one token are floats [V] or [1, V], got ", t.shape().text()),
          "take a row: logits[-1]");
  return t.cast(DType::F32);
}

nb::tuple chances(Sampler& s, nb::handle logits) {
  const Tensor row = one_row(logits);
  const std::vector<TokenChance> left = s.chances(row.values<float>());
  std::vector<TokenId> ids;
  std::vector<float> probabilities;
  for (const TokenChance& c : left) ids.push_back(c.id), probabilities.push_back(c.probability);
  const auto n = static_cast<std::int64_t>(left.size());
  return nb::make_tuple(ids_object(ids), nb::module_::import_("numpy").attr("array")(
                                             array_object(Tensor::of<float>({n}, probabilities))));
}

// -- the description of a model --

nb::object optional_number(const std::optional<double>& v) { return v ? nb::object(nb::float_(*v)) : nb::none(); }

nb::dict rope_dict(const RopeSpec& r) {
  nb::dict d;
  d["theta"] = r.theta;
  d["rotated"] = r.rotated;
  d["scaling"] = text_object(rope_scaling_name(r.scaling));
  d["factor"] = r.factor;
  d["original_context"] = r.original_context;
  return d;
}
nb::dict moe_dict(const MoeSpec& s) {
  nb::dict d;
  d["experts"] = s.experts;
  d["used"] = s.used;
  d["ff_size"] = s.ff_size;
  d["shared_ff_size"] = s.shared_ff_size;
  return d;
}
nb::dict config_dict(const DecoderConfig& c) {
  nb::dict d;
  d["family"] = text_object(c.family);
  d["vocab_size"] = c.vocab_size;
  d["hidden_size"] = c.hidden_size;
  d["ff_size"] = c.ff_size;
  d["num_layers"] = c.layers.size();
  d["num_heads"] = c.num_heads;
  d["kv_heads"] = c.kv_heads;
  d["head_dim"] = c.head_dim;
  d["max_positions"] = c.max_positions;
  d["norm"] = c.norm == NormKind::Rms ? "rms" : "layer";
  d["norm_eps"] = c.norm_eps;
  d["parallel"] = c.parallel;
  d["gated"] = c.gated;
  d["tied"] = c.tied;
  d["attention_softcap"] = optional_number(c.attention_softcap);
  d["logit_softcap"] = optional_number(c.logit_softcap);
  nb::list ropes, layers;
  for (const RopeSpec& r : c.ropes) ropes.append(rope_dict(r));
  for (const DecoderLayer& l : c.layers) {
    nb::dict layer;
    layer["window"] = l.window;
    layer["rope"] = l.rope < 0 ? nb::none() : nb::object(nb::int_(l.rope));
    layer["experts"] = l.moe;
    layers.append(layer);
  }
  d["ropes"] = ropes;
  d["layers"] = layers;
  d["moe"] = c.moe ? nb::object(moe_dict(*c.moe)) : nb::none();
  return d;
}

nb::dict statistics_dict(const EngineStatistics& s) {
  nb::dict d;
  d["runs"] = s.runs;
  d["prompt_tokens"] = s.prompt_tokens;
  d["reused_tokens"] = s.reused_tokens;
  d["generated_tokens"] = s.generated_tokens;
  d["preemptions"] = s.preemptions;
  return d;
}

template <class F>
auto in_turn(PyLanguageModel& m, F&& f) {
  const nb::gil_scoped_release free;
  const Turns::Mine turn(m.turns);
  return f();
}

LogitRows rows_from(const std::string& rows) {
  if (rows == "all") return LogitRows::All;
  if (rows == "last") return LogitRows::Last;
  raise(ErrorCode::InvalidArgument, concat_text("rows '", rows, "' is none of all and last"));
}

nb::object logits(PyLanguageModel& m, nb::handle tokens, const std::string& rows, std::int64_t sequence) {
  const std::vector<TokenId> ids = tokens_from(tokens, "logits");
  const LogitRows wanted = rows_from(rows);
  const SequenceTokens part{sequence, ids};
  return array_object(in_turn(m, [&] { return m.idle_model().forward(std::span(&part, 1), wanted); }));
}

// `given` has every keyword of rlx.models.load.
ModelPtr load(const std::filesystem::path& path, nb::dict given) {
  const std::string from = existing(path);
  const auto integer = [&](const char* name) {
    return cast_as<std::int64_t>(given[name], concat_text("load: ", name));
  };
  const auto text = [&](const char* name) { return text_from(given[name], concat_text("load: ", name)); };
  DecoderOptions o;
  o.context = integer("context");
  o.sequences = integer("sequences");
  o.max_tokens = integer("max_tokens");
  o.page = integer("page");
  o.pages = integer("pages");
  set_cache_type(o, text("cache"));
  o.products = products_named(text("products"), from);
  EngineOptions engine;
  engine.prefix_cache = cast_as<bool>(given["prefix_cache"], "load: prefix_cache");
  const Session session = session_for(text("device"), cast_as<int>(given["threads"], "load: threads"), "", "", "",
                                      nullptr, device_options_from(given["device_options"]));
  const nb::gil_scoped_release free;
  return std::make_shared<PyLanguageModel>(load_language_model(from, o, session), from, engine);
}

}  // namespace

void bind_language_models(nb::module_& m) {
  nb::class_<Sampler>(
      m, "Sampler",
      "Draws tokens of logits, as answers are drawn: options are those of LanguageModel.generate that say "
      "how. It knows the tokens so far, which penalties and keys follow. Not for several threads at once.")
      .def(
          "__init__", [](Sampler* self, nb::kwargs options) { new (self) Sampler(sampling_options(options)); },
          nb::arg("options"), nb::sig("def __init__(self, **options: object) -> None"))
      .def(
          "draw", [](Sampler& s, nb::handle logits) { return s.draw(one_row(logits).values<float>()); },
          nb::arg("logits").none(),
          "The token that follows, of logits [V] or [1, V]; accept() takes it into the sequence.")
      .def("chances", &chances, nb::arg("logits").none(),
           "What the cuts leave: (ids, probabilities), NumPy arrays, the likeliest first.")
      .def(
          "accept",
          [](Sampler& s, nb::handle tokens) {
            if (PyIndex_Check(tokens.ptr()) && !PySequence_Check(tokens.ptr()))
              s.accept(token_from(tokens, "accept"));
            else
              s.accept(tokens_from(tokens, "accept"));
          },
          nb::arg("tokens").none(), "Takes a token, or those of a prompt, into the sequence.")
      .def(
          "rewind",
          [](Sampler& s, std::int64_t count) {
            if (count < 0) raise(ErrorCode::InvalidArgument, concat_text("rewind: count is ", count));
            s.rewind(static_cast<std::size_t>(count));
          },
          nb::arg("count"), "Forgets the last tokens of the sequence.")
      .def_prop_ro(
          "sequence", [](const Sampler& s) { return ids_object(s.sequence()); },
          "The tokens so far, a NumPy array [T] int32.");
  nb::class_<PyAnswer>(m, "Answer",
                       "An answer as it comes: an iterator over pieces of text. All answers of a model that are not at "
                       "their end run together, whichever is asked. One that nobody holds, or that is closed, ends.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__",
           [](PyAnswer& a) {
             std::optional<std::string> piece;
             {
               const nb::gil_scoped_release free;
               piece = a.next();
             }
             if (!piece) throw nb::stop_iteration();
             return text_object(*piece);
           })
      .def(
          "finish",
          [](nb::handle self) {
            finish(nb::cast<PyAnswer&>(self));
            return nb::borrow(self);
          },
          "Runs to the end; gives the answer itself.")
      .def(
          "close",
          [](PyAnswer& a) {
            const nb::gil_scoped_release free;
            a.close();
          },
          "Ends the answer where it is.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](PyAnswer& a, nb::args) {
            const nb::gil_scoped_release free;
            a.close();
          },
          nb::arg("args"))
      .def_prop_ro(
          "text", [](const PyAnswer& a) { return text_object(a.text()); }, "The pieces so far, as one text.")
      .def_prop_ro(
          "tokens", [](const PyAnswer& a) { return ids_object(a.tokens()); },
          "The tokens so far, a NumPy array [T] int32; the one that ended the answer is among them.")
      .def_prop_ro("finish_reason", &finish_reason,
                   "None while it goes on; \"stop_token\", \"stop_string\", \"max_tokens\", \"context_full\" or "
                   "\"cancelled\".")
      .def_prop_ro("prompt_tokens", &PyAnswer::prompt_tokens, "How many tokens the prompt has.")
      .def("__repr__", [](const PyAnswer& a) {
        const FinishReason reason = a.finish();
        return concat_text("<rlx answer of ", a.tokens().size(), " tokens, ",
                           reason == FinishReason::None ? "going on" : finish_reason_name(reason), ">");
      });

  nb::class_<PyLanguageModel>(
      m, "LanguageModel",
      "A language model, made by rlx.models.load. Any number of threads may use one: their answers run together.")
      .def(
          "generate",
          [](const ModelPtr& self, nb::handle prompt, nb::kwargs options) {
            return answer(self, prompt, options, false);
          },
          nb::arg("prompt").none(), nb::arg("options"),
          nb::sig("def generate(self, prompt: object, **options: object) -> Answer"),
          "The answer to a prompt: a text or tokens are continued as they are; messages, a list of dicts with role and "
          "content, go through the model's chat template. Options: max_new_tokens (0: until the context is full), stop "
          "(texts), stop_tokens (in place of end_tokens), seed, temperature (0: the likeliest token), top_k, top_p, "
          "min_p, typical_p, top_n_sigma, repetition_penalty and all others of docs/generation.md; of messages also "
          "tools, documents, variables and template.")
      .def(
          "chat",
          [](const ModelPtr& self, nb::handle messages, nb::kwargs options) {
            return answer(self, messages, options, true);
          },
          nb::arg("messages").none(), nb::arg("options"),
          nb::sig("def chat(self, messages: object, **options: object) -> Answer"),
          "The answer to messages, or to one text of the user, through the model's chat template; options as generate.")
      .def("generate_batch", &generate_batch, nb::arg("prompts").none(), nb::arg("options"),
           nb::sig("def generate_batch(self, prompts: object, **options: object) -> list[Answer]"),
           "The finished answers to a list of prompts, as many at once as the model was loaded with sequences; prompts "
           "and options as generate. Each answer is what it would be alone.")
      .def("logits", &logits, nb::arg("tokens").none(), nb::kw_only(), nb::arg("rows") = "all", nb::arg("sequence") = 0,
           "Appends tokens to a sequence and runs them: float32 logits [T, vocab_size], or [1, vocab_size] with "
           "rows=\"last\". Keys and values stay, so the next call goes on from there. Not while answers are under way; "
           "reset() before the next one.")
      .def(
          "length",
          [](PyLanguageModel& self, std::int64_t sequence) {
            return in_turn(self, [&] { return self.engine.model().length(sequence); });
          },
          nb::arg("sequence") = 0, "Tokens of a sequence that logits() has run.")
      .def(
          "truncate",
          [](PyLanguageModel& self, std::int64_t length, std::int64_t sequence) {
            in_turn(self, [&] { self.idle_model().truncate(length, sequence); });
          },
          nb::arg("length"), nb::kw_only(), nb::arg("sequence") = 0,
          "Forgets the tokens of a sequence from this length on.")
      .def(
          "reset", [](PyLanguageModel& self) { in_turn(self, [&] { self.idle_model().reset(); }); },
          "Forgets what logits() has run, and the beginnings of prompts that are kept.")
      .def_prop_ro(
          "tokenizer", [](const PyLanguageModel& self) { return PyTokenizer{self.tokenizer}; }, "Its tokeniser.")
      .def_prop_ro(
          "chat_template",
          [](const PyLanguageModel& self) -> nb::object {
            return self.chat ? nb::cast(PyChatTemplate{*self.chat}) : nb::none();
          },
          "Its chat template; None where the files hold none.")
      .def_prop_ro(
          "end_tokens", [](const PyLanguageModel& self) { return ids_object(self.end_tokens); },
          "The tokens that end an answer.")
      .def_prop_ro(
          "config", [](const PyLanguageModel& self) { return config_dict(self.engine.model().config()); },
          "What the model is made of, a dict: family, sizes, one dict for each layer.")
      .def_prop_ro(
          "context", [](const PyLanguageModel& self) { return self.engine.model().context(); },
          "How many tokens a sequence may have.")
      .def_prop_ro(
          "sequences", [](const PyLanguageModel& self) { return self.engine.model().cache().sequences(); },
          "How many answers run at once.")
      .def_prop_ro(
          "cache_bytes", [](const PyLanguageModel& self) { return self.engine.model().cache_bytes(); },
          "The bytes of keys and values.")
      .def_prop_ro(
          "statistics",
          [](PyLanguageModel& self) {
            return statistics_dict(in_turn(self, [&] { return self.engine.statistics(); }));
          },
          "What was done so far, a dict: runs, prompt_tokens, reused_tokens, generated_tokens, preemptions.")
      .def("__repr__", [](const PyLanguageModel& self) {
        const DecoderConfig& c = self.engine.model().config();
        return concat_text("<rlx language model ", c.family, ", ", c.layers.size(), " layers of ", c.hidden_size,
                           ", context ", self.engine.model().context(), ">");
      });
  m.def("load_language_model", &load, nb::arg("path"), nb::arg("options"));
  m.def("answer_options", [] {
    std::vector<std::string> names;
    for (const auto& [name, option] : answer_options()) names.push_back(name);
    return names;
  });
}

}  // namespace rlx::python
