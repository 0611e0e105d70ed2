// Tokenizers and chat templates in Python.
#include "python/bindings/text.h"

#include <limits>

#include "rlx/base/utf8.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/text/stream_decoder.h"

namespace rlx::python {

std::string text_from(nb::handle h, std::string_view what) {
  if (PyUnicode_Check(h.ptr())) {
    Py_ssize_t size = 0;
    if (const char* s = PyUnicode_AsUTF8AndSize(h.ptr(), &size)) return {s, static_cast<std::size_t>(size)};
    PyErr_Clear();
    Py_ssize_t at = 0;
    for (const Py_ssize_t n = PyUnicode_GetLength(h.ptr()); at < n; ++at)
      if (const Py_UCS4 c = PyUnicode_ReadChar(h.ptr(), at); c >= 0xD800 && c < 0xE000) break;
    raise(ErrorCode::InvalidArgument, concat_text(what, " has a lone surrogate at character ", at),
          "it has no UTF-8: text.encode('utf-8', 'replace').decode() replaces it by '?'");
  }
  if (PyBytes_Check(h.ptr())) {
    char* s = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(h.ptr(), &s, &size) != 0) throw nb::python_error();
    const std::string_view text(s, static_cast<std::size_t>(size));
    if (const auto bad = find_invalid_utf8(text))
      raise(ErrorCode::InvalidArgument, concat_text(what, ": invalid UTF-8 at byte ", *bad),
            "text in bytes must be UTF-8: data.decode('utf-8', 'replace') replaces it by U+FFFD");
    return std::string(text);
  }
  raise(ErrorCode::DTypeMismatch, concat_text(what, " must be a text, got ", described(h)));
}

namespace {

nb::object decoded_utf8(std::string_view text, const char* errors) {
  nb::object out = nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), errors));
  if (!out.is_valid()) throw nb::python_error();
  return out;
}
// The bytes of some tokens are not valid UTF-8. They become surrogates, as in the error handler surrogateescape of
// Python.
nb::object token_object(std::string_view token) { return decoded_utf8(token, "surrogateescape"); }
std::string token_text_from(nb::handle h, std::string_view what) {
  if (!PyUnicode_Check(h.ptr())) return text_from(h, what);
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(h.ptr(), "utf-8", "surrogateescape"));
  if (bytes.is_valid()) return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
  PyErr_Clear();
  return text_from(h, what);
}

TokenId checked_id(long long id, std::string_view what) {
  if (id < std::numeric_limits<TokenId>::min() || id > std::numeric_limits<TokenId>::max())
    raise(ErrorCode::InvalidArgument, concat_text(what, ": ", id, " is not a token: ids have 32 bits"));
  return static_cast<TokenId>(id);
}

}  // namespace

nb::object text_object(std::string_view text) { return decoded_utf8(text, "replace"); }

TokenId token_from(nb::handle h, std::string_view what) {
  const nb::object number = nb::steal(PyBool_Check(h.ptr()) ? nullptr : PyNumber_Index(h.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    raise(ErrorCode::DTypeMismatch, concat_text(what, ": a token must be an integer, got ", described(h)));
  }
  int overflow = 0;
  const long long id = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0)
    raise(ErrorCode::InvalidArgument, concat_text(what, ": ", described(h), " is not a token: ids have 32 bits"));
  return checked_id(id, what);
}

std::vector<TokenId> tokens_from(nb::handle h, std::string_view what) {
  std::vector<TokenId> out;
  const bool text = PyUnicode_Check(h.ptr()) || PyBytes_Check(h.ptr()) || PyByteArray_Check(h.ptr());
  if (!text && is_array_like(h)) {
    const Tensor t = on_host(tensor_from(h, std::string(what).c_str()));
    const DType type = t.dtype();
    if (t.rank() != 1 || !(is_signed_int(type) || is_unsigned_int(type)) || size_bytes(type) == 0) {
      if (t.rank() == 1 && t.num_elements() == 0) return out;  // NumPy gives an empty list a floating dtype
      raise(ErrorCode::DTypeMismatch,
            concat_text(what, ": tokens must be an array [T] of integers, got ", t.shape().text()));
    }
    if (type == DType::I32) {
      const auto ids = t.values<std::int32_t>();
      return {ids.begin(), ids.end()};
    }
    const Tensor wide = t.cast(DType::I64);
    for (const std::int64_t id : wide.values<std::int64_t>()) {
      if (type == DType::U64 && id < 0)
        raise(ErrorCode::InvalidArgument, concat_text(what, ": a number of more than 63 bits is not a token"));
      out.push_back(checked_id(id, what));
    }
    return out;
  }
  if (text || !PySequence_Check(h.ptr()))
    raise(ErrorCode::DTypeMismatch,
          concat_text(what, ": tokens must be a list or an array of integers, got ", described(h)));
  for (nb::handle item : nb::borrow<nb::sequence>(h)) out.push_back(token_from(item, what));
  return out;
}

nb::object ids_object(std::span<const TokenId> ids) {
  const auto n = static_cast<std::int64_t>(ids.size());
  // A copy, so that the caller may write to it.
  return nb::module_::import_("numpy").attr("array")(array_object(Tensor::of<std::int32_t>({n}, ids)));
}

std::string json_text_from(nb::handle h, const std::string& what) {
  nb::object text;
  try {
    text = nb::module_::import_("json").attr("dumps")(h, nb::arg("ensure_ascii") = false, nb::arg("allow_nan") = false);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError) && !e.matches(PyExc_ValueError) && !e.matches(PyExc_RecursionError)) throw;
    raise(ErrorCode::DTypeMismatch, concat_text(what, " cannot be written as JSON: ", nb::str(e.value()).c_str()),
          "JSON holds dicts with string keys, lists, strings, numbers, True, False and None");
  }
  return text_from(text, what);
}
JsonDocument json_from(nb::handle h, const std::string& what) {
  return JsonDocument::parse(json_text_from(h, what), what);
}

nb::object object_of_json(const JsonValue& v) {
  switch (v.kind()) {
    case JsonKind::Null: return nb::none();
    case JsonKind::Bool: return nb::bool_(v.as_bool("a value"));
    case JsonKind::Integer: return nb::int_(v.as_int("a value"));
    case JsonKind::Number: return nb::float_(v.as_number("a value"));
    case JsonKind::String: return text_object(v.as_string("a value"));
    case JsonKind::Array: {
      nb::list out;
      for (const JsonValue& e : v.elements("a value")) out.append(object_of_json(e));
      return out;
    }
    case JsonKind::Object: break;
  }
  nb::dict out;
  for (const auto& [key, value] : v.members("a value")) out[text_object(key)] = object_of_json(value);
  return out;
}

namespace {

// Removes an entry of a dict of keywords and returns it; null if it is missing or None.
nb::object taken(nb::dict options, const char* name) {
  if (!options.contains(name)) return {};
  nb::object value = options[name];
  nb::del(options[name]);
  return value.is_none() ? nb::object() : value;
}

}  // namespace

std::string render_chat(const ChatTemplate& chat, nb::handle messages, nb::dict options, bool all) {
  ChatTemplateOptions o;
  std::vector<JsonDocument> documents;
  documents.reserve(3);
  const auto json = [&](const char* name, std::optional<JsonValue>& to) {
    const nb::object value = taken(options, name);
    if (value.is_valid()) to = documents.emplace_back(json_from(value, name)).root();
  };
  json("tools", o.tools);
  json("documents", o.documents);
  json("variables", o.variables);
  if (const nb::object name = taken(options, "template"); name.is_valid())
    o.template_name = text_from(name, "template");
  if (const nb::object now = taken(options, "now"); now.is_valid()) o.now = cast_as<std::int64_t>(now, "now");
  if (const nb::object prompt = taken(options, "add_generation_prompt"); prompt.is_valid())
    o.add_generation_prompt = cast_as<bool>(prompt, "add_generation_prompt");
  if (const nb::object tokens = taken(options, "special_tokens"); tokens.is_valid())
    for (const auto [name, token] : cast_as<nb::dict>(tokens, "special_tokens"))
      o.special_tokens.emplace_back(text_from(name, "special_tokens"), text_from(token, "special_tokens"));
  if (all && options.size() != 0) {
    PyErr_SetString(PyExc_TypeError,
                    concat_text("render has no option '", nb::str((*options.begin()).first).c_str(), "'").c_str());
    throw nb::python_error();
  }
  if (PyUnicode_Check(messages.ptr()) || PyBytes_Check(messages.ptr())) {
    const ChatMessage message{"user", text_from(messages, "the message")};
    const nb::gil_scoped_release free;
    return chat.render(std::span(&message, 1), o);
  }
  if (!nb::isinstance<nb::list>(messages) && !nb::isinstance<nb::tuple>(messages))
    raise(ErrorCode::DTypeMismatch,
          concat_text("messages must be a text or a list of dicts, got ", described(messages)),
          "[{\"role\": \"user\", \"content\": \"...\"}]");
  std::size_t place = 0;
  for (const nb::handle message : messages) {  // a template ignores what it does not find in a message
    if (!nb::isinstance<nb::dict>(message) || !nb::cast<nb::dict>(message).contains("role"))
      raise(ErrorCode::DTypeMismatch,
            concat_text("message ", place, " must be a dict with a role, got ", described(message)),
            "{\"role\": \"user\", \"content\": \"...\"}");
    ++place;
  }
  const JsonDocument list = json_from(messages, "messages");
  const nb::gil_scoped_release free;
  return chat.render(list.root(), o);
}

namespace {

// A GGUF file begins with the bytes "GGUF".
bool begins_as_gguf(const std::string& path) { return MappedFile::open(path).text().starts_with("GGUF"); }

std::shared_ptr<const Tokenizer> tokenizer_at(const std::string& path) {
  if (!is_file(path)) return load_tokenizer(path);
  if (begins_as_gguf(path)) return tokenizer_from_gguf(*GgufFile::open(path));
  return tokenizer_from_json(JsonDocument::read(path));
}

ChatTemplate template_at(const std::string& path) {
  if (!is_file(path)) return ChatTemplate::load(path);
  if (!begins_as_gguf(path)) return ChatTemplate::parse(read_file(path), path);
  return ChatTemplate::load(*GgufFile::open(path));
}

nb::tuple encode_batch(const PyTokenizer& t, nb::handle texts, std::int64_t max_length, std::int64_t multiple,
                       bool special_tokens) {
  if (!PySequence_Check(texts.ptr()) || PyUnicode_Check(texts.ptr()) || PyBytes_Check(texts.ptr()))
    raise(ErrorCode::DTypeMismatch, concat_text("encode_batch: texts must be a list of texts, got ", described(texts)));
  std::vector<std::string> list;
  for (nb::handle text : nb::borrow<nb::sequence>(texts))
    list.push_back(text_from(text, concat_text("text ", list.size() + 1)));
  EncodedBatch b;
  {
    const nb::gil_scoped_release free;
    b = t.tokenizer->encode_batch(list, {max_length, multiple, special_tokens});
  }
  const auto block = [&](const std::vector<std::int32_t>& values) {
    return nb::module_::import_("numpy").attr("array")(
        array_object(Tensor::of<std::int32_t>({b.batch, b.sequence}, values)));
  };
  return nb::make_tuple(block(b.ids), block(b.mask));
}

std::string decode(const PyTokenizer& t, nb::handle ids, bool skip) {
  const std::vector<TokenId> list = tokens_from(ids, "decode");
  const nb::gil_scoped_release free;
  return t.tokenizer->decode(list, skip);
}

// The tokens that decode skips.
nb::dict special_tokens(const PyTokenizer& t) {
  nb::dict out;
  for (std::int64_t i = 0; i < t.tokenizer->vocab_size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const auto token = t.tokenizer->id_to_token(id);
    if (token && !t.tokenizer->decoded_piece(id, true)) out[token_object(*token)] = id;
  }
  return out;
}

// A decoder that keeps its tokenizer alive.
struct PyStreamDecoder {
  explicit PyStreamDecoder(const PyTokenizer& t, bool skip) : tokenizer(t.tokenizer), decoder(*tokenizer, skip) {}
  std::shared_ptr<const Tokenizer> tokenizer;
  StreamDecoder decoder;
};

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<PyTokenizer>(m, "Tokenizer",
                          "The tokenizer of a model. path: a tokenizer.json, a Hugging Face folder or a GGUF file. It "
                          "is immutable, so any number of threads may use it.")
      .def(
          "__init__",
          [](PyTokenizer* self, const std::filesystem::path& path) {
            const std::string file = existing(path);
            const nb::gil_scoped_release free;
            new (self) PyTokenizer{tokenizer_at(file)};
          },
          nb::arg("path"))
      .def_static(
          "from_json",
          [](nb::handle text) {
            const std::string json = text_from(text, "Tokenizer.from_json: text");
            const nb::gil_scoped_release free;
            return PyTokenizer{tokenizer_from_json(JsonDocument::parse(json, "tokenizer.json"))};
          },
          nb::arg("text").none(), "The tokenizer of the text of a tokenizer.json.")
      .def(
          "encode",
          [](const PyTokenizer& t, nb::handle text, bool special) {
            const std::string utf8 = text_from(text, "encode: text");
            std::vector<TokenId> ids;
            {
              const nb::gil_scoped_release free;
              ids = t.tokenizer->encode(utf8, special);
            }
            return ids_object(ids);
          },
          nb::arg("text").none(), nb::kw_only(), nb::arg("special_tokens") = true,
          "The token ids of a text, a NumPy array [T] int32. special_tokens: adds the special tokens that the model "
          "expects around a text.")
      .def("encode_batch", &encode_batch, nb::arg("texts").none(), nb::kw_only(), nb::arg("max_length") = 0,
           nb::arg("pad_to_multiple") = 1, nb::arg("special_tokens") = true,
           "(ids, mask) of a list of texts, NumPy arrays [B, S] int32. Each text is cut to max_length tokens (0: not "
           "at all) and padded to the longest. The mask is 1 for tokens and 0 for padding.")
      .def(
          "decode", [](const PyTokenizer& t, nb::handle ids, bool skip) { return text_object(decode(t, ids, skip)); },
          nb::arg("ids").none(), nb::kw_only(), nb::arg("skip_special_tokens") = true, "The text of token ids.")
      .def(
          "token_to_id",
          [](const PyTokenizer& t, nb::handle token) {
            return t.tokenizer->token_to_id(token_text_from(token, "token_to_id: token"));
          },
          nb::arg("token").none(), "The id of a token of the vocabulary; None if there is no such token.")
      .def(
          "id_to_token",
          [](const PyTokenizer& t, nb::handle id) -> nb::object {
            const auto token = t.tokenizer->id_to_token(token_from(id, "id_to_token"));
            return token ? token_object(*token) : nb::none();
          },
          nb::arg("id").none(),
          "The token with this id, as the vocabulary writes it; None if there is no such id. Bytes that are not valid "
          "UTF-8 become surrogates, as with surrogateescape in Python.")
      .def_prop_ro(
          "vocab_size", [](const PyTokenizer& t) { return t.tokenizer->vocab_size(); }, "The largest id plus one.")
      .def("__len__", [](const PyTokenizer& t) { return t.tokenizer->vocab_size(); })
      .def_prop_ro("special_tokens", &special_tokens, "Token -> id, of the tokens that decode skips.")
      .def_prop_ro(
          "prefix", [](const PyTokenizer& t) { return ids_object(t.tokenizer->prefix_ids()); },
          "The special tokens before every text.")
      .def_prop_ro(
          "suffix", [](const PyTokenizer& t) { return ids_object(t.tokenizer->suffix_ids()); },
          "The special tokens after every text.")
      .def_prop_ro(
          "pad_id", [](const PyTokenizer& t) { return t.tokenizer->pad_id(); }, "The id of the padding token.")
      .def("__repr__", [](const PyTokenizer& t) {
        return concat_text("<rlx tokenizer of ", t.tokenizer->vocab_size(), " tokens>");
      });
  nb::class_<PyStreamDecoder>(m, "StreamDecoder",
                              "Decodes token ids one by one. The chunks of push and the rest of flush together are the "
                              "text that decode gives for all ids. No chunk ends inside a character.")
      .def(nb::init<const PyTokenizer&, bool>(), nb::arg("tokenizer"), nb::kw_only(),
           nb::arg("skip_special_tokens") = true)
      .def(
          "push", [](PyStreamDecoder& d, nb::handle id) { return text_object(d.decoder.push(token_from(id, "push"))); },
          nb::arg("id").none(), "Adds an id. Returns the text that is complete, which is often empty.")
      .def(
          "flush", [](PyStreamDecoder& d) { return text_object(d.decoder.flush()); },
          "Returns the rest of the text. The next push begins a new text.");
  nb::class_<PyChatTemplate>(m, "ChatTemplate",
                             "A chat template: a Jinja program that renders a conversation as the text that a model "
                             "expects, as in transformers. source: its text.")
      .def(
          "__init__",
          [](PyChatTemplate* self, nb::handle source) {
            new (self) PyChatTemplate{ChatTemplate::parse(text_from(source, "ChatTemplate: source"), "template")};
          },
          nb::arg("source").none())
      .def_static(
          "load", [](const std::filesystem::path& path) { return PyChatTemplate{template_at(existing(path))}; },
          nb::arg("path"), "The chat template of a Hugging Face folder, of a GGUF file or of a Jinja file.")
      .def(
          "render",
          [](const PyChatTemplate& t, nb::handle messages, nb::kwargs options) {
            return text_object(render_chat(t.chat, messages, options, true));
          },
          nb::arg("messages").none(), nb::arg("options"),
          nb::sig("def render(self, messages: object, **options: object) -> str"),
          "Renders messages: a list of dicts with role and content, or a str, one message of the user. Options: "
          "add_generation_prompt (True), tools, documents, variables {name: value}, special_tokens {\"bos_token\": "
          "\"<s>\"}, template (one of names), now (seconds since 1970).")
      .def_prop_ro(
          "names", [](const PyChatTemplate& t) { return t.chat.names(); },
          "The names of the templates, the default one first.")
      .def(
          "source", [](const PyChatTemplate& t, const std::string& name) { return text_object(t.chat.source(name)); },
          nb::arg("name") = "", "The text of a template, by default of the default one.")
      .def_prop_ro(
          "special_tokens",
          [](const PyChatTemplate& t) {
            nb::dict out;
            for (const auto& [name, token] : t.chat.special_tokens()) out[text_object(name)] = text_object(token);
            return out;
          },
          "Name -> token, of the special tokens that the files of the model name: {\"bos_token\": \"<s>\"}.");
}

}  // namespace rlx::python
