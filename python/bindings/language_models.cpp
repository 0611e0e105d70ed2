// Language models in Python: prompts, answers, logits and saved states of one.
#include "python/bindings/language_model.h"

#include "python/bindings/answer_options.h"
#include "python/bindings/runtime.h"
#include "python/bindings/text.h"

namespace rlx::python {
namespace {

// A loaded state file: the text, and the state of the answer at its end.
struct SavedText {
  Conversation text;
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
        "give generate() a text or tokens, which the model continues without a template");
}

bool is_conversation(nb::handle prompt) {
  if (!nb::isinstance<nb::list>(prompt) && !nb::isinstance<nb::tuple>(prompt)) return false;
  return nb::len(prompt) != 0 && nb::isinstance<nb::dict>(nb::object(nb::borrow<nb::sequence>(prompt)[0]));
}

std::vector<TokenId> encoded(const PyLanguageModel& m, const std::string& text, bool special_tokens) {
  const nb::gil_scoped_release free;
  return m.tokenizer->encode(text, special_tokens);
}

// The tokens of a prompt. A text and tokens are used as they are; messages are rendered by the chat template.
std::vector<TokenId> prompt_from(const PyLanguageModel& m, nb::handle prompt, nb::dict options, bool conversation) {
  if (conversation || is_conversation(prompt)) return encoded(m, render_chat(template_of(m), prompt, options), false);
  if (PyUnicode_Check(prompt.ptr()) || PyBytes_Check(prompt.ptr()))
    return encoded(m, text_from(prompt, "the prompt"), true);
  return tokens_from(prompt, "the prompt");
}

std::unique_ptr<PyAnswer> submit(const ModelPtr& m, std::vector<TokenId> tokens, const GenerationOptions& wanted) {
  const nb::gil_scoped_release free;
  const FairLock::Mine turn(m->turns);
  m->forget_dropped();
  auto pending = std::make_shared<Pending>();
  m->pending.emplace(m->engine.submit(tokens, wanted), pending);
  return std::make_unique<PyAnswer>(m, std::move(pending), std::move(tokens), wanted.begun);
}

std::unique_ptr<PyAnswer> answer(const ModelPtr& m, nb::handle prompt, nb::kwargs given, bool conversation) {
  nb::dict options;  // a copy, because render_chat removes its options from it
  options.update(given);
  std::vector<TokenId> tokens = prompt_from(*m, prompt, options, conversation);
  return submit(m, std::move(tokens), generation_options(*m, options));
}

// An answer that fails does not stop the others. It reports its own error.
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

LogitRows rows_from(const std::string& rows) {
  if (rows == "all") return LogitRows::All;
  if (rows == "last") return LogitRows::Last;
  raise(ErrorCode::InvalidArgument, concat_text("rows '", rows, "' is not one of all and last"));
}

std::int64_t adapter_named(const PyLanguageModel& m, const std::string& name) {
  if (name.empty()) return -1;
  const std::vector<std::string>& known = m.engine.model().adapters();
  const auto at = std::find(known.begin(), known.end(), name);
  if (at != known.end()) return at - known.begin();
  raise(ErrorCode::InvalidArgument, concat_text("no adapter called '", name, "' is loaded"),
        known.empty() ? "load adapters with the model: load(adapters=)"
                      : did_you_mean(name, known, concat_text("known are ", quoted_names(known))));
}

nb::object logits(PyLanguageModel& m, nb::handle tokens, const std::string& rows, std::int64_t sequence,
                  nb::handle adapter) {
  const std::vector<TokenId> ids = tokens_from(tokens, "logits");
  const LogitRows wanted = rows_from(rows);
  const std::int64_t which = adapter_named(m, adapter.is_none() ? "" : text_from(adapter, "logits: adapter"));
  const SequenceTokens part{sequence, ids, -1, which};
  return array_object(with_lock(m, [&] { return m.idle_model().forward(std::span(&part, 1), wanted); }));
}

// -- state files --

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
            concat_text("save_state: message ", out.size() + 1, " must have only role and content, got ", described(d)),
            "conversation files store only role and content");
    out.push_back({text_from(d["role"], "save_state: role"), text_from(d["content"], "save_state: content")});
  }
  return out;
}

// The conversation of a saved text, of an answer or of tokens.
Conversation conversation_of(nb::handle said) {
  if (nb::isinstance<SavedText>(said)) return nb::cast<const SavedText&>(said).text;
  if (nb::isinstance<PyAnswer>(said)) return nb::cast<const PyAnswer&>(said).conversation();
  return {tokens_from(said, "save_state")};
}

std::int64_t save_state(PyLanguageModel& m, const std::filesystem::path& path, nb::handle said, nb::handle messages) {
  Conversation c = conversation_of(said);
  c.messages = messages_from(messages);
  if (c.tokens.empty())
    raise(ErrorCode::InvalidArgument, concat_text("there is no text to save in '", path.string(), "'"));
  return with_lock(m, [&] {
    m.forget_dropped();
    return m.engine.save(path.string(), c);
  });
}

Conversation loaded_state(PyLanguageModel& m, const std::filesystem::path& path) {
  const std::string from = existing(path);
  return with_lock(m, [&] {
    m.forget_dropped();
    return m.engine.load(from);
  });
}

nb::list messages_of(const Conversation& c) {
  nb::list messages;
  for (const ChatMessage& said : c.messages) {
    nb::dict d;
    d["role"] = text_object(said.role);
    d["content"] = text_object(said.content);
    messages.append(d);
  }
  return messages;
}

nb::tuple load_state(PyLanguageModel& m, const std::filesystem::path& path) {
  const Conversation c = loaded_state(m, path);
  return nb::make_tuple(ids_object(c.tokens), messages_of(c));
}
// The same, with the state of the answer that the text ends with, so that it can be saved again unchanged.
nb::tuple load_whole_state(PyLanguageModel& m, const std::filesystem::path& path) {
  Conversation c = loaded_state(m, path);
  const nb::list messages = messages_of(c);
  return nb::make_tuple(nb::cast(SavedText{std::move(c)}), messages);
}

// Continues an answer: one that has ended, or one of a state file.
std::unique_ptr<PyAnswer> resume(const ModelPtr& m, nb::handle said, nb::kwargs given) {
  nb::dict options;
  options.update(given);
  GenerationOptions wanted = generation_options(*m, options);
  Conversation c;
  if (nb::isinstance<PyAnswer>(said)) {
    const PyAnswer& a = nb::cast<const PyAnswer&>(said);
    if (a.model() != m)
      raise(ErrorCode::InvalidArgument, "resume: the answer belongs to another model",
            "resume it on that model, or save and load its state");
    if (a.finish() == FinishReason::None)
      raise(ErrorCode::InvalidArgument, "resume: the answer is still running", "call finish() or close() on it first");
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

}  // namespace

void bind_language_models(nb::module_& m) {
  bind_answers(m);
  nb::class_<SavedText>(m, "_SavedText");
  nb::class_<PyLanguageModel>(
      m, "LanguageModel",
      "A language model from rlx.models.load. Any number of threads may use it; their answers run together.")
      .def(
          "generate",
          [](const ModelPtr& self, nb::handle prompt, nb::kwargs options) {
            return answer(self, prompt, options, false);
          },
          nb::arg("prompt").none(), nb::arg("options"),
          nb::sig("def generate(self, prompt: object, **options: object) -> Answer"),
          "Starts an answer to a prompt. A text or tokens are continued as they are. Messages, a list of dicts with "
          "role and content, go through the chat template of the model. Options: max_new_tokens (0: until the context "
          "is full), stop (strings), stop_tokens (in place of end_tokens), seed, temperature (0: the likeliest token), "
          "top_k, top_p, min_p, typical_p, top_n_sigma, repetition_penalty and all others of docs/generation.md; "
          "grammar (GBNF or an rlx.models.Grammar) or json_schema (a dict or a JSON text); adapter (a name of "
          "`adapters`, None for none); logprobs (the number of tokens in each entry of Answer.top_logprobs; None: no "
          "log-probabilities are kept). For messages also tools, documents, variables and template.")
      .def(
          "chat",
          [](const ModelPtr& self, nb::handle messages, nb::kwargs options) {
            return answer(self, messages, options, true);
          },
          nb::arg("messages").none(), nb::arg("options"),
          nb::sig("def chat(self, messages: object, **options: object) -> Answer"),
          "Starts an answer to messages, or to one text of the user, through the chat template of the model. Options "
          "are those of generate.")
      .def("generate_batch", &generate_batch, nb::arg("prompts").none(), nb::arg("options"),
           nb::sig("def generate_batch(self, prompts: object, **options: object) -> list[Answer]"),
           "The finished answers to a list of prompts. As many run at once as the model has sequences. Prompts and "
           "options are those of generate. Each answer is the same as if it ran alone; the finish_reason and error of "
           "an answer report its failure.")
      .def("logits", &logits, nb::arg("tokens").none(), nb::kw_only(), nb::arg("rows") = "all", nb::arg("sequence") = 0,
           nb::arg("adapter") = nb::none(),
           "Appends tokens to a sequence and runs them. Returns float32 logits [T, vocab_size], or [1, vocab_size] "
           "with rows=\"last\". Keys and values stay in the cache, so the next call continues the sequence. adapter: a "
           "name of `adapters`. It cannot run beside answers; call reset() before the next answer.")
      .def(
          "length",
          [](PyLanguageModel& self, std::int64_t sequence) {
            return with_lock(self, [&] { return self.engine.model().length(sequence); });
          },
          nb::arg("sequence") = 0, "The number of tokens that logits() has run in a sequence.")
      .def(
          "truncate",
          [](PyLanguageModel& self, std::int64_t length, std::int64_t sequence) {
            with_lock(self, [&] { self.idle_model().truncate(length, sequence); });
          },
          nb::arg("length"), nb::kw_only(), nb::arg("sequence") = 0, "Cuts a sequence to this number of tokens.")
      .def(
          "reset", [](PyLanguageModel& self) { with_lock(self, [&] { self.idle_model().reset(); }); },
          "Clears all sequences of logits() and the prefix cache.")
      .def("save_state", &save_state, nb::arg("path"), nb::arg("said").none(), nb::arg("messages") = nb::none(),
           "Writes an answer, or the tokens of a text, with its keys and values, and the messages of the conversation "
           "to a file. rlx generate and rlx chat read it too. Returns the number of tokens whose keys and values were "
           "written.")
      .def("_load_state", &load_whole_state, nb::arg("path"))
      .def("load_state", &load_state, nb::arg("path"),
           "Reads a file of save_state, of the same model: (tokens, messages). A prompt that begins with these tokens "
           "reuses their keys and values.")
      .def(
          "resume",
          [](const ModelPtr& self, nb::handle said, nb::kwargs options) { return resume(self, said, options); },
          nb::arg("said").none(), nb::arg("options"),
          nb::sig("def resume(self, said: object, **options: object) -> Answer"),
          "Continues an answer that ended early: an Answer that has ended, or a file of save_state, rlx generate or "
          "rlx chat. With the options of that answer, the tokens are the same as without the cut: Mirostat, the "
          "grammar, penalties, stop strings and partial characters continue from their state. max_new_tokens counts "
          "only new tokens.")
      .def_prop_ro(
          "adapters", [](const PyLanguageModel& self) { return self.engine.model().adapters(); },
          "The names of the adapters.")
      .def_prop_ro(
          "tokenizer", [](const PyLanguageModel& self) { return PyTokenizer{self.tokenizer}; }, "The tokenizer.")
      .def_prop_ro(
          "chat_template",
          [](const PyLanguageModel& self) -> nb::object {
            return self.chat ? nb::cast(PyChatTemplate{*self.chat}) : nb::none();
          },
          "The chat template; None if the files have none.")
      .def_prop_ro(
          "end_tokens", [](const PyLanguageModel& self) { return ids_object(self.end_tokens); },
          "The tokens that end an answer.")
      .def_prop_ro(
          "config", [](const PyLanguageModel& self) { return config_dict(self.engine.model().config()); },
          "The architecture, a dict: family, sizes, and one dict for each layer.")
      .def_prop_ro(
          "context", [](const PyLanguageModel& self) { return self.engine.model().context(); },
          "The largest number of tokens in a sequence.")
      .def_prop_ro(
          "sequences", [](const PyLanguageModel& self) { return self.engine.model().cache().sequences(); },
          "The largest number of answers that run at once.")
      .def_prop_ro(
          "cache_bytes", [](const PyLanguageModel& self) { return self.engine.model().cache_bytes(); },
          "The bytes of the KV cache.")
      .def_prop_ro(
          "problems", [](const PyLanguageModel& self) { return self.problems; },
          "What is wrong with the model's files where the model works in spite of it, one line each. load() warns of "
          "each.")
      .def_prop_ro(
          "packed_weight_problems", [](const PyLanguageModel& self) { return self.packed_weight_problems; },
          "The files of packed weights that could not be used or written, one line each. load() warns of each.")
      .def_prop_ro(
          "form_problems",
          [](const PyLanguageModel& self) {
            warn_renamed("LanguageModel.form_problems", "packed_weight_problems");
            return self.packed_weight_problems;
          },
          "Deprecated: packed_weight_problems.")
      .def_prop_ro(
          "statistics",
          [](PyLanguageModel& self) {
            return statistics_dict(with_lock(self, [&] { return self.engine.statistics(); }));
          },
          "Counters since the load, a dict: runs, prompt_tokens, reused_tokens, generated_tokens, preemptions, "
          "drafted_tokens, accepted_tokens.")
      .def("__repr__", [](const PyLanguageModel& self) {
        const DecoderConfig& c = self.engine.model().config();
        return concat_text("<rlx language model ", c.family, ", ", c.layers.size(), " layers of ", c.hidden_size,
                           ", context ", self.engine.model().context(), ">");
      });
  m.def("load_language_model", &loaded_model, nb::arg("path"), nb::arg("options"));
}

}  // namespace rlx::python
