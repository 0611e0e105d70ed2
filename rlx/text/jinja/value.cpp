// Values of chat templates: construction, memory accounting, comparison and iteration.
#include "rlx/text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/jinja/loop.h"

namespace rlx::jinja {

void raise(std::string_view type, std::string message) {
  throw Raised{std::string(type), std::move(message), Position{}};
}

void Budget::raise_steps() { raise(kLimit, "the template takes too many steps"); }
void Budget::raise_bytes() { raise(kLimit, "the values of the template take too much memory"); }
void Budget::require_string(std::size_t bytes) {
  if (bytes > kMaxString) raise(kLimit, "a string would have more than 64 MiB");
}
void Budget::require_string(std::size_t count, std::size_t bytes) {
  if (bytes != 0 && count > kMaxString / bytes) require_string(kMaxString + 1);
}

// -- construction --

Heap::~Heap() {
  for (const Value& v : namespaces_) v.get<NamespaceObject>().attributes.clear();
  for (const Value& v : loops_) v.get<LoopObject>().changed = Value();
}

Value Heap::adopt(Kind kind, Object* object, std::size_t bytes, std::int32_t depth) {
  Value out(kind, object);  // owns the object before anything can throw
  budget_.step();
  if (depth > Budget::kMaxValueDepth) raise(kLimit, "values are nested more than 200 deep");
  budget_.take(bytes + 64);
  object->budget = &budget_;
  object->bytes = bytes + 64;
  object->depth = depth;
  return out;
}

namespace {
std::int32_t depth_of(const Value& v) { return v.has_object() ? v.object()->depth : 0; }
// The cost of comparing a value with another, in steps.
std::uint64_t tree_of(const Value& v) {
  return v.is_string() ? 1 + v.text().size() / 64 : v.is(Kind::Tuple) ? v.object()->tree : 1;
}
std::int32_t depth_of(const std::vector<Value>& items) {
  std::int32_t depth = 0;
  for (const Value& v : items) depth = std::max(depth, depth_of(v));
  return depth;
}
}  // namespace

Value Heap::string(std::string text, bool markup) {
  Budget::require_string(text.size());
  budget_.copy(text.size());
  auto object = std::make_unique<StringObject>();
  object->text = std::move(text);
  object->markup = markup;
  const std::size_t bytes = object->text.capacity();
  return adopt(Kind::String, object.release(), bytes, 0);
}

Value Heap::list(std::vector<Value> items, Kind kind) {
  budget_.step(1 + items.size() / 8);
  auto object = std::make_unique<ListObject>();
  object->items = std::move(items);
  const std::size_t bytes = object->items.capacity() * sizeof(Value);
  const std::int32_t depth = depth_of(object->items) + 1;
  std::uint64_t tree = 1;
  if (kind == Kind::Tuple)
    for (const Value& v : object->items) tree += tree_of(v);
  object->tree = static_cast<std::uint32_t>(std::min<std::uint64_t>(tree, std::numeric_limits<std::uint32_t>::max()));
  return adopt(kind, object.release(), bytes, depth);
}

void Heap::spend_key(const Value& v) {
  constexpr std::uint64_t kComparisons = 4;  // of a look-up or an insertion
  budget_.step(1 + kComparisons * tree_of(v));
}

void Heap::use_as_key(const Value& v) {
  spend_key(v);
  require_hashable(v);
}

Value Heap::pair(Value first, Value second) {
  std::vector<Value> items;
  items.reserve(2);
  items.push_back(std::move(first));
  items.push_back(std::move(second));
  return tuple(std::move(items));
}

Value Heap::dict(std::vector<DictObject::Entry> entries) {
  constexpr std::size_t kFew = 8;
  budget_.step(1 + entries.size());
  auto object = std::make_unique<DictObject>();
  std::int32_t depth = 0;
  for (const auto& [key, value] : entries) {
    use_as_key(key);
    depth = std::max({depth, depth_of(key), depth_of(value)});
  }
  std::vector<std::uint32_t> order(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return compare_keys(entries[a].first, entries[b].first) < 0;
  });
  std::vector<bool> dropped(entries.size(), false);
  std::size_t kept = entries.size();
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && compare_keys(entries[order[i]].first, entries[order[end]].first) == 0) ++end;
    if (end > i + 1) entries[order[i]].second = entries[order[end - 1]].second;
    for (std::size_t k = i + 1; k < end; ++k) {
      dropped[order[k]] = true;
      --kept;
    }
    i = end;
  }
  if (kept == entries.size()) {
    object->entries = std::move(entries);
    if (kept > kFew) object->by_key = std::move(order);
  } else {
    std::vector<std::uint32_t> moved(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (dropped[i]) continue;
      moved[i] = static_cast<std::uint32_t>(object->entries.size());
      object->entries.push_back(std::move(entries[i]));
    }
    if (kept > kFew)
      for (const std::uint32_t i : order)
        if (!dropped[i]) object->by_key.push_back(moved[i]);
  }
  const std::size_t bytes = object->entries.capacity() * sizeof(DictObject::Entry) + object->by_key.capacity() * 4;
  return adopt(Kind::Dict, object.release(), bytes, depth + 1);
}

Value Heap::range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  auto object = std::make_unique<RangeObject>();
  object->start = start;
  object->stop = stop;
  object->step = step;
  // Unsigned arithmetic: the ends may be 2^64 apart.
  const std::uint64_t first = static_cast<std::uint64_t>(start), last = static_cast<std::uint64_t>(stop);
  std::uint64_t count = 0;
  if (step > 0 && start < stop) count = (last - first - 1) / static_cast<std::uint64_t>(step) + 1;
  if (step < 0 && start > stop) count = (first - last - 1) / (~static_cast<std::uint64_t>(step) + 1) + 1;
  constexpr std::uint64_t kMaxRange = 100000;  // MAX_RANGE of jinja2.sandbox
  if (count > kMaxRange)
    raise(kOverflowError, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  object->count = static_cast<std::int64_t>(count);
  return adopt(Kind::Range, object.release(), sizeof(RangeObject), 1);
}

Value Heap::undefined_hint(std::string hint, std::string_view name) {
  auto object = std::make_unique<UndefinedObject>();
  object->hint = std::move(hint);
  if (!name.empty()) object->name = string(std::string(name));
  return adopt(Kind::Undefined, object.release(), sizeof(UndefinedObject), 0);
}
Value Heap::undefined_variable(std::string_view name) { return undefined_hint({}, name); }

Value Heap::undefined_of(const Value& of, const Value& name) {
  auto object = std::make_unique<UndefinedObject>();
  object->of = of;
  object->name = name;
  const std::int32_t depth = std::max(depth_of(of), depth_of(name)) + 1;
  return adopt(Kind::Undefined, object.release(), sizeof(UndefinedObject), depth);
}

Value Heap::unsafe_attribute(const Value& of, std::string_view name) {
  Value out = undefined_hint(concat_text("access to attribute ", repr_of_string(name), " of ",
                                         repr_of_string(type_name(of)), " object is unsafe."),
                             name);
  out.get<UndefinedObject>().error = kSecurityError;
  return out;
}

Value Heap::view(const Value& dict, ViewOf of) {
  auto object = std::make_unique<ViewObject>();
  object->dict = dict;
  object->of = of;
  return adopt(Kind::View, object.release(), sizeof(ViewObject), depth_of(dict) + 1);
}

Value Heap::method(const Value& self, std::string_view name) {
  auto object = std::make_unique<MethodObject>();
  object->self = self;
  object->name = name;
  return adopt(Kind::Method, object.release(), sizeof(MethodObject), depth_of(self) + 1);
}

Value Heap::namespace_of(std::vector<DictObject::Entry> attributes) {
  auto object = std::make_unique<NamespaceObject>();
  object->attributes = std::move(attributes);
  const std::size_t bytes = object->attributes.capacity() * sizeof(DictObject::Entry);
  // Depth 0: the heap holds namespaces until the end, so destruction never recurses through them.
  Value out = adopt(Kind::Namespace, object.release(), bytes, 0);
  namespaces_.push_back(out);
  return out;
}

Value* NamespaceObject::find(std::string_view name) {
  for (auto& [key, value] : attributes)
    if (key.is_string() && key.text() == name) return &value;
  return nullptr;
}

std::string UndefinedObject::message() const {
  if (!hint.empty()) return hint;
  if (of.missing()) return concat_text(name.is_string() ? repr_of_string(name.text()) : "None", " is undefined");
  if (name.is_string())
    return concat_text(repr_of_string(type_in_messages(of)), " has no attribute ", repr_of_string(name.text()));
  Heap scratch(Budget(100000, std::size_t{1} << 20));
  return concat_text(type_in_messages(of), " has no element ", to_repr(scratch, name));
}

// -- strings --

std::int64_t code_points(std::string_view text) {
  std::int64_t n = 0;
  for (const char c : text) n += is_utf8_continuation(c) ? 0 : 1;
  return n;
}

std::int64_t code_points(const Value& string) {
  const StringObject& s = string.get<StringObject>();
  if (s.length < 0) s.length = code_points(s.text);
  return s.length;
}

std::size_t offset_of(std::string_view text, bool ascii, std::int64_t at) {
  if (ascii) return std::min(text.size(), static_cast<std::size_t>(at));
  std::size_t byte = 0;
  while (byte < text.size()) {
    if (!is_utf8_continuation(text[byte]) && at-- == 0) break;
    ++byte;
  }
  return byte;
}

// -- comparison --

BigInteger big_integer(const Value& v) {
  return v.is(Kind::BigInt) ? v.get<BigIntObject>().value : BigInteger(v.as_int());
}

Value Heap::integer(BigInteger v) {
  if (const std::optional<std::int64_t> small = v.as_int64()) return Value::integer(*small);
  if (v.too_large()) raise(kLimit, "an integer has more than 4300 digits");
  auto object = std::make_unique<BigIntObject>();
  object->value = std::move(v);
  const std::size_t bytes = sizeof(BigIntObject) + 4 * object->value.num_limbs();
  return adopt(Kind::BigInt, object.release(), bytes, 0);
}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
  if ((a.is(Kind::Float) && std::isnan(a.as_real())) || (b.is(Kind::Float) && std::isnan(b.as_real()))) return 2;
  if (a.is(Kind::BigInt) || b.is(Kind::BigInt)) {
    const auto whole = [](const Value& v) { return v.is_int() ? big_integer(v) : BigInteger::of_real(v.as_real()); };
    for (const Value* v : {&a, &b})
      if (v->is(Kind::Float) && std::isinf(v->as_real())) return (v->as_real() > 0) == (v == &a) ? 1 : -1;
    // A number with a fraction is far smaller than the other.
    return BigInteger::compare(whole(a), whole(b));
  }
  // long double represents every 64-bit integer exactly on the supported machines.
  const long double x = a.is(Kind::Float) ? a.as_real() : static_cast<long double>(a.as_int());
  const long double y = b.is(Kind::Float) ? b.as_real() : static_cast<long double>(b.as_int());
  return x < y ? -1 : x > y ? 1 : 0;
}

namespace {

int key_rank(const Value& v) {
  if (v.is(Kind::None)) return 0;
  if (v.is_any_number()) return 1;
  if (v.is_string()) return 2;
  if (v.is(Kind::Tuple)) return 3;
  return v.is(Kind::Undefined) ? 5 : 4;
}

template <class T>
int sign_of(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

int compare_keys(const Value& a, const Value& b) {
  const int rank = key_rank(a);
  if (rank != key_rank(b)) return sign_of(rank, key_rank(b));
  if (rank == 1) {
    const int c = compare_numbers(a, b);
    if (c != 2) return c;
    const bool x = a.is(Kind::Float) && std::isnan(a.as_real()), y = b.is(Kind::Float) && std::isnan(b.as_real());
    return sign_of(!x, !y);  // NaNs first, all equal
  }
  if (rank == 2) return sign_of(a.text(), b.text());
  if (rank == 3) {
    const std::vector<Value>&x = a.get<ListObject>().items, &y = b.get<ListObject>().items;
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i)
      if (const int c = compare_keys(x[i], y[i]); c != 0) return c;
    return sign_of(x.size(), y.size());
  }
  return rank == 4 ? sign_of(reinterpret_cast<std::uintptr_t>(a.object()), reinterpret_cast<std::uintptr_t>(b.object()))
                   : 0;
}

void require_hashable(const Value& v) {
  if (v.is(Kind::List) || v.is(Kind::Dict) || (v.is(Kind::View) && v.get<ViewObject>().of != ViewOf::Values))
    raise(kTypeError, concat_text("unhashable type: '", type_name(v), "'"));
  if (v.is(Kind::Tuple))
    for (const Value& item : v.get<ListObject>().items) require_hashable(item);
}

const Value* DictObject::find(const Value& key) const {
  if (by_key.empty()) {
    for (const auto& [k, v] : entries)
      if (compare_keys(k, key) == 0) return &v;
    return nullptr;
  }
  const auto it = std::lower_bound(by_key.begin(), by_key.end(), key, [&](std::uint32_t i, const Value& wanted) {
    return compare_keys(entries[i].first, wanted) < 0;
  });
  return it != by_key.end() && compare_keys(entries[*it].first, key) == 0 ? &entries[*it].second : nullptr;
}

const Value* DictObject::find(std::string_view key) const {
  const auto before = [&](const Value& k) { return key_rank(k) < 2 || (k.is_string() && k.text() < key); };
  if (by_key.empty()) {
    for (const auto& [k, v] : entries)
      if (k.is_string() && k.text() == key) return &v;
    return nullptr;
  }
  const auto it =
      std::partition_point(by_key.begin(), by_key.end(), [&](std::uint32_t i) { return before(entries[i].first); });
  if (it == by_key.end()) return nullptr;
  const auto& [k, v] = entries[*it];
  return k.is_string() && k.text() == key ? &v : nullptr;
}

bool equal(Heap& heap, const Value& a, const Value& b) {
  heap.step();
  if (a.is_any_number() && b.is_any_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  if (!a.has_object()) return true;
  if (a.object() == b.object()) return true;
  switch (a.kind()) {
    case Kind::String: heap.budget().copy(std::min(a.text().size(), b.text().size())); return a.text() == b.text();
    case Kind::List:
    case Kind::Tuple: {
      const std::vector<Value>&x = a.get<ListObject>().items, &y = b.get<ListObject>().items;
      if (x.size() != y.size()) return false;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!equal(heap, x[i], y[i])) return false;
      return true;
    }
    case Kind::Dict: {
      const DictObject &x = a.get<DictObject>(), &y = b.get<DictObject>();
      if (x.entries.size() != y.entries.size()) return false;
      for (const auto& [key, value] : x.entries) {
        heap.use_as_key(key);
        const Value* other = y.find(key);
        if (other == nullptr || !equal(heap, value, *other)) return false;
      }
      return true;
    }
    case Kind::Undefined: return true;
    case Kind::Range: {
      const RangeObject &x = a.get<RangeObject>(), &y = b.get<RangeObject>();
      return x.count == y.count && (x.count == 0 || (x.start == y.start && (x.count == 1 || x.step == y.step)));
    }
    case Kind::Method: {
      const MethodObject &x = a.get<MethodObject>(), &y = b.get<MethodObject>();
      return x.name == y.name && x.self.has_object() && y.self.has_object() && x.self.object() == y.self.object();
    }
    case Kind::Function: return a.get<FunctionObject>().name == b.get<FunctionObject>().name;
    default: return false;
  }
}

bool truth(const Value& v) {
  switch (v.kind()) {
    case Kind::Bool: return v.as_bool();
    case Kind::Int: return v.as_int() != 0;
    case Kind::Float: return v.as_real() != 0;
    case Kind::String: return !v.text().empty();
    case Kind::List:
    case Kind::Tuple: return !v.get<ListObject>().items.empty();
    case Kind::Dict: return !v.get<DictObject>().entries.empty();
    case Kind::Range: return v.get<RangeObject>().count != 0;
    case Kind::View: return !v.get<ViewObject>().dict.get<DictObject>().entries.empty();
    case Kind::Missing:
    case Kind::None:
    case Kind::Undefined: return false;
    default: return true;
  }
}

// -- types --

std::string_view type_name(const Value& v) {
  switch (v.kind()) {
    case Kind::Missing:
    case Kind::None: return "NoneType";
    case Kind::Bool: return "bool";
    case Kind::Int:
    case Kind::BigInt: return "int";
    case Kind::Float: return "float";
    case Kind::String: return is_markup(v) ? "Markup" : "str";
    case Kind::List: return "list";
    case Kind::Tuple: return v.get<ListObject>().group ? "_GroupTuple" : "tuple";
    case Kind::Dict: return "dict";
    case Kind::Undefined: return "Undefined";
    case Kind::Range: return "range";
    case Kind::View: {
      const ViewOf of = v.get<ViewObject>().of;
      return of == ViewOf::Keys ? "dict_keys" : of == ViewOf::Values ? "dict_values" : "dict_items";
    }
    case Kind::Iterator: return v.get<IteratorObject>().type;
    case Kind::Namespace: return "Namespace";
    case Kind::Macro: return "Macro";
    case Kind::Function: {
      const std::string_view name = v.get<FunctionObject>().name;
      return name == "dict" || name == "namespace" || name == "cycler" || name == "joiner" ? "type" : "function";
    }
    case Kind::Method: {
      const Value& self = v.get<MethodObject>().self;
      const bool ours = self.is(Kind::Loop) || self.is(Kind::Cycler);
      return ours || is_markup(self) ? "method" : "builtin_function_or_method";
    }
    case Kind::Loop: return "LoopContext";
    case Kind::Cycler: return "Cycler";
    case Kind::Joiner: return "Joiner";
  }
  return "object";
}

std::string type_in_messages(const Value& v) {
  std::string_view module;
  switch (v.kind()) {
    case Kind::None: return "None";
    case Kind::String: module = is_markup(v) ? "markupsafe." : ""; break;
    case Kind::Tuple: module = v.get<ListObject>().group ? "jinja2.filters." : ""; break;
    case Kind::Namespace:
    case Kind::Cycler:
    case Kind::Joiner: module = "jinja2.utils."; break;
    case Kind::Macro:
    case Kind::Undefined:
    case Kind::Loop: module = "jinja2.runtime."; break;
    default: break;
  }
  return concat_text(module, type_name(v), " object");
}

// -- iteration --

bool iterable(const Value& v) {
  switch (v.kind()) {
    case Kind::String:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Dict:
    case Kind::Undefined:
    case Kind::Range:
    case Kind::View:
    case Kind::Iterator:
    case Kind::Loop: return true;
    default: return false;
  }
}

std::optional<std::int64_t> length_of(const Value& v) {
  switch (v.kind()) {
    case Kind::String: return code_points(v);
    case Kind::List:
    case Kind::Tuple: return static_cast<std::int64_t>(v.get<ListObject>().items.size());
    case Kind::Dict: return static_cast<std::int64_t>(v.get<DictObject>().entries.size());
    case Kind::View: return length_of(v.get<ViewObject>().dict);
    case Kind::Range: return v.get<RangeObject>().count;
    case Kind::Undefined: return 0;
    default: return std::nullopt;
  }
}

Cursor::Cursor(Heap& heap, Value over) : heap_(&heap), over_(std::move(over)) {
  if (!iterable(over_)) raise(kTypeError, concat_text("'", type_name(over_), "' object is not iterable"));
}

bool Cursor::next(Value& out) {
  heap_->step();
  switch (over_.kind()) {
    case Kind::String: {
      const std::string_view text = over_.text();
      if (at_ >= text.size()) return false;
      std::size_t end = at_;
      (void)decode_utf8(text, end);
      out = heap_->string(std::string(text.substr(at_, end - at_)));
      at_ = end;
      return true;
    }
    case Kind::List:
    case Kind::Tuple: {
      const std::vector<Value>& items = over_.get<ListObject>().items;
      if (at_ >= items.size()) return false;
      out = items[at_++];
      return true;
    }
    case Kind::Dict: {
      const auto& entries = over_.get<DictObject>().entries;
      if (at_ >= entries.size()) return false;
      out = entries[at_++].first;
      return true;
    }
    case Kind::View: {
      const ViewObject& view = over_.get<ViewObject>();
      const auto& entries = view.dict.get<DictObject>().entries;
      if (at_ >= entries.size()) return false;
      const auto& [key, value] = entries[at_++];
      out = view.of == ViewOf::Keys ? key : view.of == ViewOf::Values ? value : heap_->pair(key, value);
      return true;
    }
    case Kind::Range: {
      const RangeObject& range = over_.get<RangeObject>();
      if (static_cast<std::int64_t>(at_) >= range.count) return false;
      out = Value::integer(range.start + static_cast<std::int64_t>(at_++) * range.step);
      return true;
    }
    case Kind::Iterator: return over_.get<IteratorObject>().next(*heap_, out);
    case Kind::Loop: {
      if (!over_.get<LoopObject>().advance(*heap_)) return false;
      out = heap_->pair(over_.get<LoopObject>().current, over_);
      return true;
    }
    default: return false;
  }
}

std::optional<std::int64_t> Cursor::length() const { return length_of(over_); }

std::vector<Value> collect(Heap& heap, const Value& v) {
  std::vector<Value> out;
  Cursor cursor(heap, v);
  if (const std::optional<std::int64_t> n = cursor.length()) out.reserve(static_cast<std::size_t>(*n));
  for (Value item; cursor.next(item);) {
    if (out.size() == out.capacity()) heap.step(out.size() / 8);
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace rlx::jinja
