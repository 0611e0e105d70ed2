// JSON documents on simdjson (kept out of the header) and error positions.
#include "rlx/formats/json.h"

#include <simdjson.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "rlx/error.h"
#include "rlx/formats/foreign_file.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxDepth = 1024;

// Finds the position of a JSON syntax error. Used only after simdjson refused the text, because its DOM gives no
// position.
class JsonErrorFinder {
 public:
  explicit JsonErrorFinder(std::string_view text) : text_(text) {}

  // The byte offset of the first error (text.size() when the text ends too early), and what was expected there.
  std::pair<std::size_t, std::string> find() {
    if (skip_value(0)) {
      skip_space();
      expected_ = at_ < text_.size() ? "the end of the text" : "";
    }
    return {at_, expected_};
  }

  // An integer beyond 64 bits, which JSON allows.
  struct LargeInteger {
    std::size_t end = 0;      // its end in the text
    std::size_t ordinal = 0;  // numbers before it
    std::string digits{};
  };
  // Those of a text that has no other error; none otherwise.
  std::vector<LargeInteger> large_integers() {
    if (!skip_value(0)) return {};
    skip_space();
    return at_ == text_.size() ? std::move(large_) : std::vector<LargeInteger>();
  }

 private:
  bool stop(std::string expected) {
    expected_ = std::move(expected);
    return false;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr && text_[at_] != '\0') ++at_;
  }
  bool skip_literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return stop(concat_text("\"", word, "\""));
    at_ += word.size();
    return true;
  }
  bool skip_string() {
    if (peek() != '"') return stop("a string in double quotes");
    ++at_;
    while (at_ < text_.size()) {
      const unsigned char c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c < 0x20) return stop("no raw control character inside a string");
      if (c >= 0x80) {
        const std::size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        for (std::size_t i = 1; i <= more; ++i)
          if (c < 0xc2 || c > 0xf4 || at_ + i >= text_.size() || (text_[at_ + i] & 0xc0) != 0x80)
            return stop("valid UTF-8");
        at_ += more;
      }
      if (c == '\\') {
        const char escape = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
        if (escape == '\0' || std::strchr("\"\\/bfnrtu", escape) == nullptr) return stop("a valid escape");
        ++at_;
      }
      ++at_;
    }
    return stop("the closing quote of a string");
  }
  bool skip_digits() {
    const std::size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > start || stop("a digit");
  }
  bool skip_number() {
    const std::size_t start = at_;
    if (!skip_digits_of_number()) return false;
    const std::string number(text_.substr(start, at_ - start));
    const std::size_t ordinal = num_numbers_++;
    errno = 0;
    if (number.find_first_of(".eE") != std::string::npos) {
      if (std::isfinite(std::strtod(number.c_str(), nullptr))) return true;
    } else {
      if (number[0] == '-')
        (void)std::strtoll(number.c_str(), nullptr, 10);
      else
        (void)std::strtoull(number.c_str(), nullptr, 10);
      if (errno != ERANGE) return true;
      if (std::isfinite(std::strtod(number.c_str(), nullptr))) {
        large_.push_back({at_, ordinal, number});
        return true;
      }
    }
    at_ = start;
    return stop("a number that fits 64 bits");
  }
  bool skip_digits_of_number() {
    if (peek() == '-') ++at_;
    if (peek() == '0') {
      ++at_;
    } else if (!skip_digits()) {
      return false;
    }
    if (peek() == '.' && (++at_, !skip_digits())) return false;
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!skip_digits()) return false;
    }
    return true;
  }
  bool skip_container(std::size_t depth, bool object) {
    const char end = object ? '}' : ']';
    ++at_;
    skip_space();
    if (peek() == end) {
      ++at_;
      return true;
    }
    while (true) {
      skip_space();
      if (object) {
        if (!skip_string()) return false;
        skip_space();
        if (peek() != ':') return stop("':' after a key");
        ++at_;
      }
      if (!skip_value(depth + 1)) return false;
      skip_space();
      if (peek() == ',') {
        ++at_;
      } else if (peek() == end) {
        ++at_;
        return true;
      } else {
        return stop(object ? "',' or '}'" : "',' or ']'");
      }
    }
  }
  bool skip_value(std::size_t depth) {
    if (depth > kMaxDepth) return stop("at most 1024 nested levels");
    skip_space();
    switch (peek()) {
      case '{': return skip_container(depth, true);
      case '[': return skip_container(depth, false);
      case '"': return skip_string();
      case 't': return skip_literal("true");
      case 'f': return skip_literal("false");
      case 'n': return skip_literal("null");
      default:
        if (peek() == '-' || (peek() >= '0' && peek() <= '9')) return skip_number();
        return stop("a value");
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string expected_;
  std::size_t num_numbers_ = 0;
  std::vector<LargeInteger> large_;
};

[[noreturn]] void throw_bad_json(std::string_view text, const std::string& source, std::string_view reason) {
  if (const auto foreign = foreign_file(text.substr(0, 256)))
    throw Error(ErrorCode::BadFile, concat_text(source, ": not JSON: this is ", foreign->what),
                std::string(foreign->hint));
  auto [at, expected] = JsonErrorFinder(text).find();
  if (expected.empty()) {
    // This scan found no error: bad UTF-8, an oversized number, ...; simdjson's own message says which.
    throw Error(ErrorCode::BadFile, concat_text(source, ": not valid JSON: ", reason));
  }
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i < at && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  throw Error(ErrorCode::BadFile,
              concat_text(source, ": not valid JSON at byte ", at, " (line ", line, ", column ", column, "): expected ",
                          expected, at >= text.size() ? ", but the text ends there" : ""));
}

}  // namespace

// simdjson's element is two words without a public constructor from them. It is trivially copyable, so JsonValue stores
// the words and the header does not need simdjson.
struct JsonValue::Access {
  struct Words {
    const void* tape;
    std::size_t index;
  };
  static simdjson::dom::element element(const JsonValue& v) {
    static_assert(sizeof(simdjson::dom::element) == sizeof(Words));
    static_assert(std::is_trivially_copyable_v<simdjson::dom::element>);
    const Words words{v.tape_, v.index_};
    simdjson::dom::element element;
    std::memcpy(static_cast<void*>(&element), &words, sizeof words);
    return element;
  }
  static JsonValue value(simdjson::dom::element element, const JsonValue::Source* source) {
    Words words;
    std::memcpy(&words, static_cast<const void*>(&element), sizeof words);
    JsonValue v;
    v.source_ = source;
    v.tape_ = words.tape;
    v.index_ = words.index;
    return v;
  }
};

struct JsonValue::Source {
  std::string name;
  std::map<std::size_t, std::string> large_integers;  // digits, by place on the tape
};

struct JsonDocument::Impl {
  JsonValue::Source source;
  simdjson::dom::parser parser;
  simdjson::dom::element root;
};

namespace {

// The places of the numbers with these ordinals on simdjson's tape. Values take one word, numbers and their kinds two.
template <class F>
void find_numbers(const simdjson::dom::document& document, const F& number_at) {
  const std::uint64_t* tape = document.tape.get();
  const std::uint64_t end = tape[0] & 0x00FF'FFFF'FFFF'FFFF;
  for (std::uint64_t i = 1, ordinal = 0; i < end; ++i) {
    const char kind = static_cast<char>(tape[i] >> 56);
    if (kind != 'l' && kind != 'u' && kind != 'd') continue;
    number_at(ordinal++, i);
    ++i;
  }
}

}  // namespace

std::string_view json_kind_name(JsonKind kind) {
  switch (kind) {
    case JsonKind::Null: return "null";
    case JsonKind::Bool: return "a boolean";
    case JsonKind::Integer: return "an integer";
    case JsonKind::Number: return "a number";
    case JsonKind::String: return "a string";
    case JsonKind::Array: return "an array";
    case JsonKind::Object: return "an object";
  }
  return "a value";
}

JsonKind JsonValue::kind() const {
  switch (Access::element(*this).type()) {
    case simdjson::dom::element_type::ARRAY: return JsonKind::Array;
    case simdjson::dom::element_type::OBJECT: return JsonKind::Object;
    case simdjson::dom::element_type::STRING: return JsonKind::String;
    case simdjson::dom::element_type::BOOL: return JsonKind::Bool;
    case simdjson::dom::element_type::INT64:
    case simdjson::dom::element_type::UINT64: return JsonKind::Integer;
    case simdjson::dom::element_type::DOUBLE: return JsonKind::Number;
    case simdjson::dom::element_type::NULL_VALUE: return JsonKind::Null;
  }
  return JsonKind::Null;
}

void JsonValue::fail(std::string_view what, std::string_view expected) const {
  throw Error(ErrorCode::BadFile,
              concat_text(source_->name, ": \"", what, "\" must be ", expected, ", got ", json_kind_name(kind())));
}

std::optional<std::string> JsonValue::large_integer() const {
  std::uint64_t unsigned_value = 0;
  const simdjson::dom::element element = Access::element(*this);
  if (element.type() == simdjson::dom::element_type::UINT64 &&
      element.get_uint64().get(unsigned_value) == simdjson::SUCCESS)
    return std::to_string(unsigned_value);
  const auto found = source_->large_integers.find(index_);
  if (found == source_->large_integers.end()) return std::nullopt;
  return found->second;
}

bool JsonValue::as_bool(std::string_view what) const {
  bool v = false;
  if (Access::element(*this).get_bool().get(v) != simdjson::SUCCESS) fail(what, "true or false");
  return v;
}

std::int64_t JsonValue::as_int(std::string_view what) const {
  std::int64_t v = 0;
  if (Access::element(*this).get_int64().get(v) == simdjson::SUCCESS) return v;
  if (kind() == JsonKind::Integer) {
    throw Error(ErrorCode::BadFile,
                concat_text(source_->name, ": \"", what, "\" is larger than a 64-bit signed integer"));
  }
  fail(what, "an integer");
}

double JsonValue::as_number(std::string_view what) const {
  double v = 0;
  if (Access::element(*this).get_double().get(v) != simdjson::SUCCESS) fail(what, "a number");
  return v;
}

std::string_view JsonValue::as_string(std::string_view what) const {
  std::string_view v;
  if (Access::element(*this).get_string().get(v) != simdjson::SUCCESS) fail(what, "a string");
  return v;
}

std::vector<std::pair<std::string_view, JsonValue>> JsonValue::members(std::string_view what) const try {
  simdjson::dom::object object;
  if (Access::element(*this).get_object().get(object) != simdjson::SUCCESS) fail(what, "an object");
  std::vector<std::pair<std::string_view, JsonValue>> out;
  out.reserve(object.size());  // simdjson saturates this count at 2^24 - 1; push_back grows past it
  for (const simdjson::dom::key_value_pair pair : object) {
    out.emplace_back(pair.key, Access::value(pair.value, source_));
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("JsonValue::members");
}

std::vector<JsonValue> JsonValue::elements(std::string_view what) const try {
  simdjson::dom::array array;
  if (Access::element(*this).get_array().get(array) != simdjson::SUCCESS) fail(what, "an array");
  std::vector<JsonValue> out;
  out.reserve(array.size());
  for (const simdjson::dom::element element : array) out.push_back(Access::value(element, source_));
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("JsonValue::elements");
}

void JsonValue::read_strings(std::string_view what, std::span<std::string_view> out) const {
  simdjson::dom::array array;
  if (Access::element(*this).get_array().get(array) != simdjson::SUCCESS) fail(what, "an array");
  std::size_t count = 0;
  for (const simdjson::dom::element element : array) {
    if (count < out.size() && element.get_string().get(out[count]) != simdjson::SUCCESS)
      Access::value(element, source_).fail(what, "a string");
    ++count;
  }
  if (count != out.size()) {
    throw Error(ErrorCode::BadFile, concat_text(source_->name, ": \"", what, "\" must be ", out.size(),
                                                " strings, got ", count, " values"));
  }
}

std::size_t JsonValue::size() const {
  std::size_t count = 0;
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (Access::element(*this).get_object().get(object) == simdjson::SUCCESS) {
    count = object.size();
  } else if (Access::element(*this).get_array().get(array) == simdjson::SUCCESS) {
    count = array.size();
  }
  return count;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  simdjson::dom::object object;
  if (Access::element(*this).get_object().get(object) != simdjson::SUCCESS) return std::nullopt;
  simdjson::dom::element element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) return std::nullopt;
  return Access::value(element, source_);
}

JsonValue JsonValue::at(std::string_view key) const {
  if (std::optional<JsonValue> value = find(key)) return *value;
  if (is_object()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : members("")) {
      if (names.size() == 200) break;  // the names of a vocabulary make no useful hints
      names.emplace_back(name);
    }
    throw Error(ErrorCode::BadFile, concat_text(source_->name, ": missing key \"", key, "\""),
                did_you_mean(key, names));
  }
  throw Error(ErrorCode::BadFile, concat_text(source_->name, ": expected an object with the key \"", key, "\", got ",
                                              json_kind_name(kind())));
}

bool JsonValue::get_bool(std::string_view key, bool fallback) const {
  const std::optional<JsonValue> value = find(key);
  return value && !value->is_null() ? value->as_bool(key) : fallback;
}

std::int64_t JsonValue::get_int(std::string_view key, std::int64_t fallback) const {
  const std::optional<JsonValue> value = find(key);
  return value && !value->is_null() ? value->as_int(key) : fallback;
}

std::string_view JsonValue::get_string(std::string_view key, std::string_view fallback) const {
  const std::optional<JsonValue> value = find(key);
  return value && !value->is_null() ? value->as_string(key) : fallback;
}

JsonDocument::JsonDocument(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

const JsonDocument::Impl& JsonDocument::impl() const {
  if (!impl_) throw Error(ErrorCode::InvalidArgument, "a JsonDocument was used after it was moved from");
  return *impl_;
}

JsonDocument JsonDocument::parse(std::string_view text, std::string source) try {
  return parse(text, std::move(source), 0);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("JsonDocument::parse");
}

JsonDocument JsonDocument::parse(std::string_view text, std::string source, std::size_t readable) {
  auto impl = std::make_unique<Impl>();
  impl->source.name = std::move(source);
  if (const std::string_view rest = without_bom(text); rest.size() < text.size()) {
    readable -= std::min(readable, text.size() - rest.size());
    text = rest;
  }
  // The parser reads past the end of its input, so simdjson copies the text into a padded buffer when there is no room
  // after it. It copies with memcpy, which must not get the null pointer of an empty text.
  const char* data = text.empty() ? "" : text.data();
  const bool copy = readable < text.size() + simdjson::SIMDJSON_PADDING;
  simdjson::error_code code = impl->parser.parse(data, text.size(), copy).get(impl->root);
  // Integers beyond 64 bits (10^30 means "no limit" in many models' files) are read as F64, as other parsers do.
  if (code != simdjson::SUCCESS && code != simdjson::MEMALLOC) {
    if (const auto ends = JsonErrorFinder(text).large_integers(); !ends.empty()) {
      std::string with_fractions;
      std::size_t from = 0;
      for (const JsonErrorFinder::LargeInteger& large : ends) {
        with_fractions.append(text.substr(from, large.end - from)).append(".0");
        from = large.end;
      }
      with_fractions.append(text.substr(from));
      code = impl->parser.parse(with_fractions).get(impl->root);
      auto next = ends.begin();
      if (code == simdjson::SUCCESS)
        find_numbers(impl->parser.doc, [&](std::size_t ordinal, std::size_t place) {
          if (next == ends.end() || next->ordinal != ordinal) return;
          impl->source.large_integers.emplace(place, next->digits);
          ++next;
        });
    }
  }
  if (code == simdjson::MEMALLOC)
    throw Error(ErrorCode::OutOfMemory,
                concat_text(impl->source.name, ": not enough memory to parse ", text.size(), " bytes of JSON"));
  if (code != simdjson::SUCCESS) throw_bad_json(text, impl->source.name, simdjson::error_message(code));
  return JsonDocument(std::move(impl));
}

JsonDocument JsonDocument::read(const std::string& path) try {
  const std::string text = read_file(path);
  return parse(text, path, text.capacity());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("JsonDocument::read");
}

JsonValue JsonDocument::root_object() const {
  if (!root().is_object())
    throw Error(ErrorCode::BadFile, concat_text(source(), ": expected an object, got ", json_kind_name(root().kind())));
  return root();
}

JsonValue JsonDocument::root() const { return JsonValue::Access::value(impl().root, &impl().source); }

const std::string& JsonDocument::source() const { return impl().source.name; }

}  // namespace rlx
