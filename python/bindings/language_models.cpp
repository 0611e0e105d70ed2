// Language models in Python: one engine for all answers of a model, whichever thread asks for them.
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "python/bindings/answer_options.h"
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
  PyLanguageModel(LanguageModel m, std::string from, std::string usual, EngineOptions options,
                  std::optional<DraftModel> draft)
      : path(std::move(from)),
        usual_adapter(std::move(usual)),
        tokenizer(m.tokenizer),
        chat(std::move(m.chat)),
        end_tokens(std::move(m.end_tokens)),
        engine(std::move(m.decoder), m.tokenizer, options, std::move(draft)) {}

  std::string path;
  std::string usual_adapter;  // of answers that name none
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
  PyAnswer(ModelPtr model, std::shared_ptr<Pending> pending, std::vector<TokenId> prompt, BegunAnswer begun)
      : model_(std::move(model)), pending_(std::move(pending)), prompt_(std::move(prompt)), begun_(begun) {}
  ~PyAnswer() { pending_->dropped = true; }
  PyAnswer(const PyAnswer&) = delete;
  PyAnswer& operator=(const PyAnswer&) = delete;

  // The next piece of text; none at the end. What made the answer fail is thrown behind its last piece, once. Called
  // without the GIL.
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
          if (e.token >= 0) begun_ = e.begun;
          if (e.logprobs) logprobs_.push_back(*e.logprobs);
          text_ += e.text;
          if (e.finish != FinishReason::None && finish_ == FinishReason::None) finish_ = e.finish;
          if (e.problem) problem_ = e.problem, untold_ = true;
          if (!e.text.empty()) return e.text;
        }
        const std::lock_guard<std::mutex> lock(said_mutex_);
        if (std::exchange(untold_, false)) throw Error(*problem_);
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
  std::optional<Diagnostic> problem() const {
    const std::lock_guard<std::mutex> lock(said_mutex_);
    return problem_;
  }
  const std::vector<TokenId>& prompt() const { return prompt_; }
  std::vector<TokenLogprobs> logprobs() const {
    const std::lock_guard<std::mutex> lock(said_mutex_);
    return logprobs_;
  }
  // What was said, with where the answer stands.
  Conversation conversation() const {
    Conversation out{sequence()};
    const std::lock_guard<std::mutex> lock(said_mutex_);
    out.answer = begun_;
    return out;
  }
  const ModelPtr& model() const { return model_; }
  // What a prompt that goes on begins with.
  std::vector<TokenId> sequence() const {
    const std::lock_guard<std::mutex> lock(said_mutex_);
    std::vector<TokenId> out = prompt_;
    out.insert(out.end(), tokens_.begin(), tokens_.end() - (finish_ == FinishReason::StopToken ? 1 : 0));
    return out;
  }

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
  std::vector<TokenId> prompt_;
  mutable std::mutex said_mutex_;
  std::string text_;
  std::vector<TokenId> tokens_;
  std::vector<TokenLogprobs> logprobs_;
  BegunAnswer begun_;
  FinishReason finish_ = FinishReason::None;
  std::optional<Diagnostic> problem_;
  bool untold_ = false;
};

GenerationOptions generation_options(const PyLanguageModel& m, nb::dict given) {
  GenerationOptions out;
  out.stop_tokens = m.end_tokens;
  out.adapter = m.usual_adapter;
  set_answer_options(out, given);
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

std::unique_ptr<PyAnswer> submit(const ModelPtr& m, std::vector<TokenId> tokens, const GenerationOptions& wanted) {
  const nb::gil_scoped_release free;
  const Turns::Mine turn(m->turns);
  m->forget_dropped();
  auto pending = std::make_shared<Pending>();
  m->pending.emplace(m->engine.submit(tokens, wanted), pending);
  return std::make_unique<PyAnswer>(m, std::move(pending), std::move(tokens), wanted.begun);
}

std::unique_ptr<PyAnswer> answer(const ModelPtr& m, nb::handle prompt, nb::kwargs given, bool conversation) {
  nb::dict options;  // one of our own, which words are taken out of
  options.update(given);
  std::vector<TokenId> tokens = prompt_from(*m, prompt, options, conversation);
  return submit(m, std::move(tokens), generation_options(*m, options));
}

// The rest of an answer.
void finish(PyAnswer& a) {
  const nb::gil_scoped_release free;
  while (a.next()) a.check_signals();
}
// One that fails does not keep the others from their ends: it says so itself.
void finish_or_fail(PyAnswer& a) {
  try {
    finish(a);
  } catch (const Error&) {
    if (!a.problem()) throw;
  }
}

nb::list generate_batch(const ModelPtr& m, nb::handle prompts, nb::kwargs given) {
  if (!PySequence_Check(prompts.ptr()) || PyUnicode_Check(prompts.ptr()) || PyBytes_Check(prompts.ptr()))
    raise(ErrorCode::DTypeMismatch,
          concat_text("generate_batch: prompts must be a list of prompts, got ", described(prompts)));
  share_grammar(given);
  nb::list out;
  for (nb::handle prompt : nb::borrow<nb::sequence>(prompts))
    out.append(nb::cast(answer(m, prompt, given, false).release(), nb::rv_policy::take_ownership));
  for (nb::handle a : out) finish_or_fail(nb::cast<PyAnswer&>(a));
  return out;
}

nb::object finish_reason(const PyAnswer& a) {
  const FinishReason reason = a.finish();
  return reason == FinishReason::None ? nb::none() : text_object(finish_reason_name(reason));
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
  d["drafted_tokens"] = s.drafted_tokens;
  d["accepted_tokens"] = s.accepted_tokens;
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

std::int64_t adapter_named(const PyLanguageModel& m, const std::string& name) {
  if (name.empty()) return -1;
  const std::vector<std::string>& known = m.engine.model().adapters();
  const auto at = std::find(known.begin(), known.end(), name);
  if (at != known.end()) return at - known.begin();
  raise(ErrorCode::InvalidArgument, concat_text("no adapter called '", name, "' is loaded"),
        known.empty() ? "load(adapters=) loads some with the model"
                      : did_you_mean(name, known, concat_text("known are ", quoted_names(known))));
}

nb::object logits(PyLanguageModel& m, nb::handle tokens, const std::string& rows, std::int64_t sequence,
                  nb::handle adapter) {
  const std::vector<TokenId> ids = tokens_from(tokens, "logits");
  const LogitRows wanted = rows_from(rows);
  const std::int64_t which = adapter_named(m, adapter.is_none() ? "" : text_from(adapter, "logits: adapter"));
  const SequenceTokens part{sequence, ids, -1, which};
  return array_object(in_turn(m, [&] { return m.idle_model().forward(std::span(&part, 1), wanted); }));
}

// -- conversations in files --

std::vector<ChatMessage> messages_from(nb::handle given) {
  std::vector<ChatMessage> out;
  if (given.is_none()) return out;
  if (!nb::isinstance<nb::list>(given) && !nb::isinstance<nb::tuple>(given))
    raise(ErrorCode::DTypeMismatch,
          concat_text("save_state: messages must be a list of dicts, got ", described(given)));
  for (nb::handle message : nb::borrow<nb::sequence>(given)) {
    const auto d = cast_as<nb::dict>(message, concat_text("save_state: message ", out.size() + 1));
    if (d.size() != 2 || !d.contains("role") || !d.contains("content"))
      raise(ErrorCode::Unsupported,
            concat_text("save_state: message ", out.size() + 1, " must have a role and a content alone, got ",
                        described(d)),
            "files of conversations hold nothing else of a message");
    out.push_back({text_from(d["role"], "save_state: role"), text_from(d["content"], "save_state: content")});
  }
  return out;
}

std::int64_t save_state(PyLanguageModel& m, const std::filesystem::path& path, nb::handle said, nb::handle messages) {
  Conversation c = nb::isinstance<PyAnswer>(said) ? nb::cast<const PyAnswer&>(said).conversation()
                                                  : Conversation{tokens_from(said, "save_state")};
  c.messages = messages_from(messages);
  if (c.tokens.empty())
    raise(ErrorCode::InvalidArgument, concat_text("nothing was said yet that '", path.string(), "' could hold"));
  return in_turn(m, [&] {
    m.forget_dropped();
    return m.engine.save(path.string(), c);
  });
}

Conversation loaded_state(PyLanguageModel& m, const std::filesystem::path& path) {
  const std::string from = existing(path);
  return in_turn(m, [&] {
    m.forget_dropped();
    return m.engine.load(from);
  });
}

nb::tuple load_state(PyLanguageModel& m, const std::filesystem::path& path) {
  const Conversation c = loaded_state(m, path);
  nb::list messages;
  for (const ChatMessage& said : c.messages) {
    nb::dict d;
    d["role"] = text_object(said.role);
    d["content"] = text_object(said.content);
    messages.append(d);
  }
  return nb::make_tuple(ids_object(c.tokens), messages);
}

// The rest of an answer: of one that is at its end, or of a file.
std::unique_ptr<PyAnswer> resume(const ModelPtr& m, nb::handle said, nb::kwargs given) {
  nb::dict options;
  options.update(given);
  GenerationOptions wanted = generation_options(*m, options);
  Conversation c;
  if (nb::isinstance<PyAnswer>(said)) {
    const PyAnswer& a = nb::cast<const PyAnswer&>(said);
    if (a.model() != m)
      raise(ErrorCode::InvalidArgument, "resume: the answer is of another model", "ask that model, or save the state");
    if (a.finish() == FinishReason::None)
      raise(ErrorCode::InvalidArgument, "resume: the answer is going on", "finish() or close() it first");
    c = a.conversation();
  } else if (PyUnicode_Check(said.ptr()) || nb::hasattr(said, "__fspath__")) {
    c = loaded_state(*m, nb::cast<std::filesystem::path>(said));
  } else {
    raise(ErrorCode::DTypeMismatch,
          concat_text("resume takes an Answer or the path of a state, got ", described(said)));
  }
  wanted.begun = c.answer;
  return submit(m, std::move(c.tokens), wanted);
}

// -- what is said of tokens --

nb::object logprobs_object(const PyAnswer& a) {
  std::vector<double> values;
  for (const TokenLogprobs& l : a.logprobs()) values.push_back(l.drawn);
  const auto n = static_cast<std::int64_t>(values.size());
  return nb::module_::import_("numpy").attr("array")(array_object(Tensor::of<double>({n}, values)));
}
nb::list top_logprobs(const PyAnswer& a) {
  nb::list out;
  for (const TokenLogprobs& l : a.logprobs()) {
    nb::list row;
    for (const TokenLogprob& t : l.likeliest) row.append(nb::make_tuple(t.id, t.logprob));
    out.append(row);
  }
  return out;
}

// -- loading --

constexpr const char* kUsualAdapter = "adapter";

bool is_path(nb::handle h) {
  return PyUnicode_Check(h.ptr()) || PyBytes_Check(h.ptr()) || nb::hasattr(h, "__fspath__");
}
AdapterPart adapter_part(nb::handle h, double scale = 1) {
  if (!is_path(h))
    raise(ErrorCode::DTypeMismatch, concat_text("load: an adapter is a folder or (folder, scale), got ", described(h)));
  return {existing(nb::cast<std::filesystem::path>(h)), scale};
}
// A folder, (folder, scale), or a list of these.
AdapterOptions adapter_of(std::string name, nb::handle h) {
  AdapterOptions out{std::move(name)};
  const auto scaled = [](nb::handle pair) {
    return nb::isinstance<nb::tuple>(pair) && nb::len(pair) == 2 && PyNumber_Check(nb::object(pair[1]).ptr());
  };
  const auto add = [&](nb::handle part) {
    out.parts.push_back(
        scaled(part)
            ? adapter_part(nb::object(part[0]), cast_as<double>(nb::object(part[1]), "load: the scale of an adapter"))
            : adapter_part(part));
  };
  if (!is_path(h) && !scaled(h) && PySequence_Check(h.ptr()))
    for (nb::handle part : nb::borrow<nb::sequence>(h)) add(part);
  else
    add(h);
  return out;
}
// By their names, which answers ask for; or one without a name, for all of them.
std::vector<AdapterOptions> adapters_from(nb::handle h) {
  if (h.is_none()) return {};
  if (!nb::isinstance<nb::dict>(h)) return {adapter_of(kUsualAdapter, h)};
  std::vector<AdapterOptions> out;
  for (const auto [name, parts] : nb::cast<nb::dict>(h))
    out.push_back(adapter_of(text_from(name, "load: the name of an adapter"), parts));
  return out;
}

// `given` has every keyword of rlx.models.load.
ModelPtr load(const std::filesystem::path& path, nb::dict given) {
  const std::string from = existing(path);
  const auto integer = [&](const char* name) {
    return cast_as<std::int64_t>(given[name], concat_text("load: ", name));
  };
  const auto text = [&](const char* name) { return text_from(given[name], concat_text("load: ", name)); };
  const auto flag = [&](const char* name) { return cast_as<bool>(given[name], concat_text("load: ", name)); };
  DecoderOptions o;
  o.context = integer("context");
  o.sequences = integer("sequences");
  o.max_tokens = integer("max_tokens");
  o.page = integer("page");
  o.pages = integer("pages");
  o.check_memory = flag("check_memory");
  o.whole_windows = flag("whole_windows");
  if (!nb::object(given["memory_limit"]).is_none()) {
    const std::int64_t limit = integer("memory_limit");
    if (limit < 1) raise(ErrorCode::InvalidArgument, concat_text("load: memory_limit is ", limit, " bytes"));
    o.memory_limit = static_cast<std::size_t>(limit);
  }
  set_cache_type(o, text("cache"));
  const std::string products = text("products");
  o.products = products_named(products, from);
  o.adapters = adapters_from(given["adapters"]);
  EngineOptions engine;
  engine.prefix_cache = flag("prefix_cache");
  engine.draft.tokens = integer("draft_tokens");
  engine.draft.lookup = integer("lookup");
  std::optional<std::string> drafts_from;
  if (const nb::object draft = given["draft"]; !draft.is_none()) {
    if (!is_path(draft))
      raise(ErrorCode::DTypeMismatch, concat_text("load: draft must be a path, got ", described(draft)));
    drafts_from = existing(nb::cast<std::filesystem::path>(draft));
  }
  const std::string usual = o.adapters.empty() || nb::isinstance<nb::dict>(given["adapters"]) ? "" : kUsualAdapter;
  const Session session = session_for(text("device"), cast_as<int>(given["threads"], "load: threads"), "", "", "",
                                      nullptr, device_options_from(given["device_options"]));
  const nb::gil_scoped_release free;
  LanguageModel m = load_language_model(from, o, session);
  std::optional<DraftModel> draft;
  if (drafts_from) {
    o.products = products_named(products, *drafts_from);
    draft = load_draft_model(*drafts_from, o, m.decoder, session);
  }
  return std::make_shared<PyLanguageModel>(std::move(m), from, usual, engine, std::move(draft));
}

}  // namespace

void bind_language_models(nb::module_& m) {
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
            PyAnswer& a = nb::cast<PyAnswer&>(self);
            finish(a);
            if (const std::optional<Diagnostic> problem = a.problem()) throw Error(*problem);
            return nb::borrow(self);
          },
          "Runs to the end; gives the answer itself. Raises the error of one that failed.")
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
      .def_prop_ro("logprobs", &logprobs_object,
                   "With the option logprobs: how likely each token was to the model alone, before penalties, "
                   "temperature, cuts and grammar: natural logarithms, a NumPy array [T] float64; without it [0].")
      .def_prop_ro("top_logprobs", &top_logprobs,
                   "With the option logprobs=N: for each token a list of the N likeliest, (token, logarithm of its "
                   "probability), the likeliest first.")
      .def_prop_ro("finish_reason", &finish_reason,
                   "None while it goes on; \"stop_token\", \"stop_string\", \"max_tokens\", \"context_full\", "
                   "\"grammar_end\" (its grammar allows nothing more), \"cancelled\" or \"failed\".")
      .def_prop_ro(
          "error",
          [](const PyAnswer& a) {
            const std::optional<Diagnostic> problem = a.problem();
            return problem ? exception_of(Error(*problem)) : nb::none();
          },
          "The rlx.Error of an answer that failed, which iterating and finish() raise; else None.")
      .def_prop_ro(
          "prompt_tokens", [](const PyAnswer& a) { return a.prompt().size(); }, "How many tokens the prompt has.")
      .def_prop_ro(
          "sequence", [](const PyAnswer& a) { return ids_object(a.sequence()); },
          "The tokens of the prompt and the answer, without the one that ended it: a prompt that goes on.")
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
          "min_p, typical_p, top_n_sigma, repetition_penalty and all others of docs/generation.md; grammar (GBNF or an "
          "rlx.models.Grammar) or json_schema (a dict or a JSON text); adapter (a name of `adapters`, None for none); "
          "logprobs (how many of the likeliest tokens Answer.top_logprobs has; None: no logarithms are kept); of "
          "messages also tools, documents, variables and template.")
      .def(
          "chat",
          [](const ModelPtr& self, nb::handle messages, nb::kwargs options) {
            return answer(self, messages, options, true);
          },
          nb::arg("messages").none(), nb::arg("options"),
          nb::sig("def chat(self, messages: object, **options: object) -> Answer"),
          "The answer to messages, or to one text of the user, through the model's chat template; options as generate.")
      .def(
          "generate_batch", &generate_batch, nb::arg("prompts").none(), nb::arg("options"),
          nb::sig("def generate_batch(self, prompts: object, **options: object) -> list[Answer]"),
          "The finished answers to a list of prompts, as many at once as the model was loaded with sequences; prompts "
          "and options as generate. Each answer is what it would be alone; one that fails says so by its finish_reason "
          "and error.")
      .def("logits", &logits, nb::arg("tokens").none(), nb::kw_only(), nb::arg("rows") = "all", nb::arg("sequence") = 0,
           nb::arg("adapter") = nb::none(),
           "Appends tokens to a sequence and runs them: float32 logits [T, vocab_size], or [1, vocab_size] with "
           "rows=\"last\". Keys and values stay, so the next call goes on from there. adapter: the name of one of "
           "`adapters`. Not while answers are under way; "
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
      .def(
          "save_state", &save_state, nb::arg("path"), nb::arg("said").none(), nb::arg("messages") = nb::none(),
          "Writes what was said, an answer or the tokens of a text, with its keys and values, and the messages that it "
          "was made of; rlx generate and rlx chat read it too. How many tokens the keys and values are of.")
      .def("load_state", &load_state, nb::arg("path"),
           "Reads what was saved of this model: (tokens, messages). A prompt that begins with these tokens goes on "
           "without computing them again.")
      .def(
          "resume",
          [](const ModelPtr& self, nb::handle said, nb::kwargs options) { return resume(self, said, options); },
          nb::arg("said").none(), nb::arg("options"),
          nb::sig("def resume(self, said: object, **options: object) -> Answer"),
          "The rest of an answer that was cut: of an Answer that is at its end, or of a file of save_state, rlx "
          "generate "
          "or rlx chat. With the options that it had, the tokens are those of an answer that was not cut: Mirostat, "
          "the "
          "grammar, penalties, stop strings and characters go on where they stood. max_new_tokens counts the new ones.")
      .def_prop_ro(
          "adapters", [](const PyLanguageModel& self) { return self.engine.model().adapters(); },
          "The names of its adapters.")
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
          "What was done so far, a dict: runs, prompt_tokens, reused_tokens, generated_tokens, preemptions, "
          "drafted_tokens, accepted_tokens.")
      .def("__repr__", [](const PyLanguageModel& self) {
        const DecoderConfig& c = self.engine.model().config();
        return concat_text("<rlx language model ", c.family, ", ", c.layers.size(), " layers of ", c.hidden_size,
                           ", context ", self.engine.model().context(), ">");
      });
  m.def("load_language_model", &load, nb::arg("path"), nb::arg("options"));
}

}  // namespace rlx::python
