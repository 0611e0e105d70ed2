// Values of chat templates: Python's None, numbers, strings and containers as far as templates need them, reference
// counts, and the budget of a render.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/base/work_budget.h"
#include "rlx/text/jinja/big_integer.h"

namespace rlx::jinja {

/// A position in the source, counted from 1; line 0 when unknown.
struct Position {
  std::uint32_t line = 0, column = 0;
};

/// A template's exception in Python's terms: its class and its text. ChatTemplate converts it to an rlx::Error; no
/// other exception leaves this module.
struct Raised {
  std::string type;  // "UndefinedError", "TypeError", ...; "limit" and "unsupported" are ours
  std::string message;
  Position at;
};

[[noreturn]] void raise(std::string_view type, std::string message);
inline constexpr std::string_view kTypeError = "TypeError", kValueError = "ValueError",
                                  kOverflowError = "OverflowError", kUndefinedError = "UndefinedError",
                                  kRuntimeError = "TemplateRuntimeError", kSecurityError = "SecurityError",
                                  kFilterError = "FilterArgumentError", kLimit = "limit", kUnsupported = "unsupported";

/// The budget of a render, since a template is an untrusted program. Every evaluated node and every 64 bytes copied is
/// a step. Live memory is counted too.
class Budget {
 public:
  static constexpr std::size_t kMaxString = std::size_t{64} << 20;  // bytes of one string, and of the output
  static constexpr int kMaxValueDepth = 200;                        // nesting depth of containers
  Budget(std::uint64_t steps, std::size_t bytes) : left_(steps, bytes) {}
  void step(std::uint64_t n = 1) {
    if (!left_.spend(n)) raise_steps();
  }
  void copy(std::size_t bytes) { step(1 + bytes / 64); }
  void take(std::size_t bytes) {
    if (!left_.take(bytes)) raise_bytes();
  }
  void give(std::size_t bytes) { left_.give(bytes); }
  /// Throws unless one string may have `bytes` bytes.
  static void require_string(std::size_t bytes);
  /// As require_string for `count` times `bytes`.
  static void require_string(std::size_t count, std::size_t bytes);

 private:
  [[noreturn]] static void raise_steps();
  [[noreturn]] static void raise_bytes();
  WorkBudget left_;
};

enum class Kind : std::uint8_t {
  Missing,  // no value: an omitted argument, an unset variable
  None,
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Dict,
  Undefined,
  Range,
  View,      // keys(), values(), items() of a dict
  Iterator,  // lazy sequences: map, select, reversed, ...
  Namespace,
  Macro,
  Function,  // a global
  Method,    // a method of a value
  Loop,
  Cycler,
  Joiner,
  BigInt  // an integer beyond 64 bits
};

/// The reference-counted part of a value.
struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() {
    if (budget != nullptr) budget->give(bytes);
  }
  std::uint32_t refs = 0;
  std::int32_t depth = 0;  // nesting depth of a container's content
  std::uint32_t tree = 1;  // of a tuple: its values counted as a tree, in which shared parts count again
  Budget* budget = nullptr;
  std::size_t bytes = 0;
};

class Value {
 public:
  Value() = default;
  static Value none() { return Value(Kind::None); }
  static Value boolean(bool v) {
    Value out(Kind::Bool);
    out.data_.b = v;
    return out;
  }
  static Value integer(std::int64_t v) {
    Value out(Kind::Int);
    out.data_.i = v;
    return out;
  }
  static Value real(double v) {
    Value out(Kind::Float);
    out.data_.d = v;
    return out;
  }
  Value(Kind kind, Object* object) : kind_(kind) {
    data_.o = object;
    ++object->refs;
  }
  Value(const Value& other) : kind_(other.kind_), data_(other.data_) {
    if (has_object()) ++data_.o->refs;
  }
  Value(Value&& other) noexcept : kind_(other.kind_), data_(other.data_) { other.kind_ = Kind::Missing; }
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Value() {
    if (has_object() && --data_.o->refs == 0) delete data_.o;
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool missing() const { return kind_ == Kind::Missing; }
  bool is_string() const { return kind_ == Kind::String; }
  bool has_object() const { return kind_ >= Kind::String; }
  bool as_bool() const { return data_.b; }
  std::int64_t as_int() const { return kind_ == Kind::Bool ? std::int64_t{data_.b} : data_.i; }
  double as_real() const { return data_.d; }
  Object* object() const { return data_.o; }
  template <class T>
  T& get() const {
    return static_cast<T&>(*data_.o);
  }
  bool is_integral() const { return kind_ == Kind::Int || kind_ == Kind::Bool; }
  /// Numbers of 64 bits, which are nearly all. is_int and is_any_number include larger integers.
  bool is_number() const { return is_integral() || kind_ == Kind::Float; }
  double number() const { return kind_ == Kind::Float ? data_.d : static_cast<double>(as_int()); }
  bool is_int() const { return is_integral() || kind_ == Kind::BigInt; }
  bool is_any_number() const { return is_number() || kind_ == Kind::BigInt; }
  std::string_view text() const;

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  Kind kind_ = Kind::Missing;
  union Data {
    bool b;
    std::int64_t i;
    double d;
    Object* o;
  } data_ = {.i = 0};
};

struct StringObject final : Object {
  std::string text;
  bool markup = false;               // markupsafe.Markup: escapes text that is added to it
  mutable std::int64_t length = -1;  // code points, once counted
};

/// List or Tuple. Immutable once a template can see it: the sandbox of transformers forbids mutation.
struct ListObject final : Object {
  std::vector<Value> items;
  bool group = false;  // a tuple of groupby, whose elements have names
};

struct DictObject final : Object {
  using Entry = std::pair<Value, Value>;
  std::vector<Entry> entries;         // in insertion order, keys distinct
  std::vector<std::uint32_t> by_key;  // positions sorted by key; empty for a few entries
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};

struct UndefinedObject final : Object {
  std::string hint;
  Value of;    // Missing for a variable
  Value name;  // the name that was looked up
  std::string_view error = kUndefinedError;
  std::string message() const;
};

struct RangeObject final : Object {
  std::int64_t start = 0, stop = 0, step = 1, count = 0;
};

enum class ViewOf : std::uint8_t { Keys, Values, Items };
struct ViewObject final : Object {
  Value dict;
  ViewOf of = ViewOf::Keys;
};

class Heap;
struct IteratorObject : Object {
  std::string_view type = "generator";
  virtual bool next(Heap& heap, Value& out) = 0;
};

struct BigIntObject final : Object {
  BigInteger value;
};

struct NamespaceObject final : Object {
  std::vector<std::pair<Value, Value>> attributes;
  Value* find(std::string_view name);
};

struct CyclerObject final : Object {
  std::vector<Value> items;
  std::size_t at = 0;
};

struct JoinerObject final : Object {
  Value separator;
  bool used = false;
};

struct FunctionObject final : Object {
  std::string_view name;
};

struct MethodObject final : Object {
  Value self;
  std::string_view name;  // points into a static table
};

/// Allocates values and counts their memory. It must outlive every value that it made.
class Heap {
 public:
  explicit Heap(Budget budget) : budget_(std::move(budget)) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap();
  Budget& budget() { return budget_; }
  void step(std::uint64_t n = 1) { budget_.step(n); }

  Value string(std::string text, bool markup = false);
  /// An integer of any size. Errors: limit for more than 4300 digits.
  Value integer(BigInteger v);
  Value list(std::vector<Value> items, Kind kind = Kind::List);
  Value tuple(std::vector<Value> items) { return list(std::move(items), Kind::Tuple); }
  Value pair(Value first, Value second);
  /// Makes a dict. Of equal keys the first position and the last value win. Errors: TypeError for an unhashable key.
  Value dict(std::vector<DictObject::Entry> entries);
  Value range(std::int64_t start, std::int64_t stop, std::int64_t step);
  Value undefined_variable(std::string_view name);
  Value undefined_hint(std::string hint, std::string_view name = {});
  Value undefined_of(const Value& of, const Value& name);
  Value unsafe_attribute(const Value& of, std::string_view name);
  Value view(const Value& dict, ViewOf of);
  Value method(const Value& self, std::string_view name);
  Value namespace_of(std::vector<DictObject::Entry> attributes);
  /// Checks that `v` can be the key of a dict, and spends the steps of a look-up. A tuple is compared as a tree, though
  /// its parts may be shared. Errors: TypeError for an unhashable value, limit.
  void use_as_key(const Value& v);
  /// The steps alone.
  void spend_key(const Value& v);
  /// Registers a loop whose `changed` is cleared at the end: `loop.changed(loop)` stores the loop in itself, which is a
  /// reference cycle.
  void remember_loop(const Value& loop) { loops_.push_back(loop); }
  /// Counts a finished object. `depth` is the depth of its content.
  Value adopt(Kind kind, Object* object, std::size_t bytes, std::int32_t depth);

 private:
  Budget budget_;
  std::vector<Value> namespaces_, loops_;  // possible cycles, cleared at the end
};

inline std::string_view Value::text() const { return get<StringObject>().text; }
inline bool is_markup(const Value& v) { return v.is_string() && v.get<StringObject>().markup; }

/// Code points of a string value.
std::int64_t code_points(const Value& string);
std::int64_t code_points(std::string_view text);
/// Byte offset of code point `at`.
std::size_t offset_of(std::string_view text, bool ascii, std::int64_t at);

/// type(value).__name__
std::string_view type_name(const Value& v);
/// jinja2's name of the type in "... has no attribute".
std::string type_in_messages(const Value& v);
bool truth(const Value& v);
/// Python's ==.
bool equal(Heap& heap, const Value& a, const Value& b);
/// A total order of dict keys, equal where Python's == is true.
int compare_keys(const Value& a, const Value& b);
/// Throws TypeError for lists, dicts and values that contain them.
void require_hashable(const Value& v);
/// The value of an integer of any size.
BigInteger big_integer(const Value& v);
/// Exact comparison of numbers of any size: -1, 0, 1; 2 with a NaN.
int compare_numbers(const Value& a, const Value& b);

/// Iterates over any Python iterable.
class Cursor {
 public:
  /// Errors: TypeError "'int' object is not iterable".
  Cursor(Heap& heap, Value over);
  bool next(Value& out);
  /// len() of the rest, or nothing for a lazy sequence.
  std::optional<std::int64_t> length() const;

 private:
  Heap* heap_;
  Value over_;
  std::size_t at_ = 0;
};
bool iterable(const Value& v);
/// len(value), or nothing where Python raises.
std::optional<std::int64_t> length_of(const Value& v);
std::vector<Value> collect(Heap& heap, const Value& v);

// -- conversion to text --

/// str(value) and repr(value).
std::string to_text(Heap& heap, const Value& v);
std::string to_repr(Heap& heap, const Value& v);
std::string repr_of_string(std::string_view text);
std::string repr_of_float(double v);
Value to_string_value(Heap& heap, const Value& v);  // str(value): the string itself when it is one without markup
/// json.dumps with ensure_ascii, indent (empty: none), separators (empty: the usual ones) and sort_keys.
struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false;
  std::optional<std::string> indent;
  std::optional<std::string> item_separator, key_separator;
};
std::string to_json(Heap& heap, const Value& v, const JsonStyle& style);
/// markupsafe.escape of plain text.
std::string escape_html(std::string_view text);

}  // namespace rlx::jinja
