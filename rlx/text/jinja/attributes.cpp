// Attributes and items of values, with the rules of jinja2's immutable sandbox.
#include <algorithm>
#include <array>

#include "rlx/error.h"
#include "rlx/text/jinja/render.h"

namespace rlx::jinja {
namespace {

// Methods that the sandbox refuses, since they would change the value.
constexpr std::array kListMutators = {std::string_view("append"),  std::string_view("clear"),  std::string_view("pop"),
                                      std::string_view("reverse"), std::string_view("insert"), std::string_view("sort"),
                                      std::string_view("extend"),  std::string_view("remove")};
constexpr std::array kDictMutators = {std::string_view("clear"), std::string_view("pop"), std::string_view("popitem"),
                                      std::string_view("setdefault"), std::string_view("update")};
constexpr std::array kListMethods = {std::string_view("copy"), std::string_view("count"), std::string_view("index")};
constexpr std::array kDictMethods = {std::string_view("copy"), std::string_view("fromkeys"),
                                     std::string_view("get"),  std::string_view("items"),
                                     std::string_view("keys"), std::string_view("values")};
constexpr std::array kLoopMethods = {std::string_view("cycle"), std::string_view("changed")};
constexpr std::array kCyclerMethods = {std::string_view("next"), std::string_view("reset")};
// Attributes that every Python object has and the sandbox refuses.
constexpr std::array kDunders = {std::string_view("__class__"),
                                 std::string_view("__delattr__"),
                                 std::string_view("__dir__"),
                                 std::string_view("__doc__"),
                                 std::string_view("__eq__"),
                                 std::string_view("__format__"),
                                 std::string_view("__ge__"),
                                 std::string_view("__getattribute__"),
                                 std::string_view("__getstate__"),
                                 std::string_view("__gt__"),
                                 std::string_view("__hash__"),
                                 std::string_view("__init__"),
                                 std::string_view("__init_subclass__"),
                                 std::string_view("__le__"),
                                 std::string_view("__lt__"),
                                 std::string_view("__ne__"),
                                 std::string_view("__new__"),
                                 std::string_view("__reduce__"),
                                 std::string_view("__reduce_ex__"),
                                 std::string_view("__repr__"),
                                 std::string_view("__setattr__"),
                                 std::string_view("__sizeof__"),
                                 std::string_view("__str__"),
                                 std::string_view("__subclasshook__")};
constexpr std::array kContainerDunders = {std::string_view("__len__"), std::string_view("__getitem__"),
                                          std::string_view("__contains__"), std::string_view("__iter__")};

// The element of `names` that equals `name`, else an empty name. A bound method keeps the element, which is static,
// because the text of `name` may be gone when it is called.
template <std::size_t N>
std::string_view find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? std::string_view() : *it;
}

bool is_container(const Value& v) {
  return v.is_string() || v.is(Kind::List) || v.is(Kind::Tuple) || v.is(Kind::Dict) || v.is(Kind::Range);
}

// True for a method that modifies its list or dict, as `modifies_known_mutable` of jinja2.
bool is_mutating_method(const Value& v, std::string_view name) {
  if (v.is(Kind::List)) return !find_name(kListMutators, name).empty();
  return v.is(Kind::Dict) && !find_name(kDictMutators, name).empty();
}

std::optional<Value> loop_attribute(Heap& heap, const Value& v, std::string_view name) {
  LoopObject& loop = v.get<LoopObject>();
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") return Value::boolean(loop.peek().missing());
  if (name == "length") return Value::integer(loop.total(heap));
  if (name == "revindex") return Value::integer(loop.total(heap) - loop.index0);
  if (name == "revindex0") return Value::integer(loop.total(heap) - loop.index0 - 1);
  if (name == "depth") return Value::integer(loop.depth0 + 1);
  if (name == "depth0") return Value::integer(loop.depth0);
  if (name == "previtem") return loop.index0 == 0 ? heap.undefined_hint("there is no previous item") : loop.before;
  if (name == "nextitem") {
    const Value& next = loop.peek();
    return next.missing() ? heap.undefined_hint("there is no next item") : next;
  }
  if (const std::string_view method = find_name(kLoopMethods, name); !method.empty()) return heap.method(v, method);
  return std::nullopt;
}

std::optional<Value> macro_attribute(Heap& heap, const Value& v, std::string_view name) {
  const Stmt& s = *v.get<MacroObject>().definition;
  const auto has_caller = [&] {
    return std::any_of(s.targets.begin(), s.targets.end(), [](const ExprPtr& e) { return e->text == "caller"; });
  };
  if (name == "name") return s.text.empty() ? Value::none() : heap.string(s.text);
  if (name == "caller") return Value::boolean(s.takes_caller);
  if (name == "catch_kwargs") return Value::boolean(s.takes_kwargs);
  if (name == "catch_varargs") return Value::boolean(s.takes_varargs);
  if (name == "explicit_caller") return Value::boolean(has_caller());
  if (name != "arguments") return std::nullopt;
  std::vector<Value> names;
  for (const ExprPtr& e : s.targets) names.push_back(heap.string(e->text));
  return heap.tuple(std::move(names));
}

std::optional<Value> number_attribute(const Value& v, std::string_view name) {
  if (name == "real") return v.is(Kind::Bool) ? Value::integer(v.as_int()) : v;
  if (name == "imag") return v.is(Kind::Float) ? Value::real(0) : Value::integer(0);
  if (v.is_integral() && name == "numerator") return Value::integer(v.as_int());
  if (v.is_integral() && name == "denominator") return Value::integer(1);
  return std::nullopt;
}

std::optional<Value> sequence_attribute(Heap& heap, const Value& v, std::string_view name) {
  // An item of the filter `groupby`, a named tuple.
  if (v.is(Kind::Tuple) && v.get<ListObject>().group) {
    if (name == "grouper") return v.get<ListObject>().items[0];
    if (name == "list") return v.get<ListObject>().items[1];
  }
  const std::string_view method = find_name(kListMethods, name);
  if (method.empty() || (v.is(Kind::Tuple) && method == "copy")) return std::nullopt;
  return heap.method(v, method);
}

}  // namespace

// Dunder attributes have no values here: none() says that Python has the attribute. `safe_attribute` then refuses it,
// because its name begins with an underscore.
std::optional<Value> python_attribute(Renderer& r, const Value& v, std::string_view name) {
  Heap& heap = r.heap();
  if (v.is(Kind::Undefined)) {
    if (!find_name(kDunders, name).empty() || !find_name(kContainerDunders, name).empty()) return Value::none();
    if (name.size() > 3 && name.starts_with("__") && name.ends_with("__")) return std::nullopt;
    raise_undefined(v);
  }
  if (v.is(Kind::Namespace)) {
    heap.step(v.get<NamespaceObject>().attributes.size() / 8);  // the cost of a linear search
    const Value* found = v.get<NamespaceObject>().find(name);
    if (found != nullptr) return *found;
    return name == "__class__" ? std::optional(Value::none()) : std::nullopt;
  }
  if (!find_name(kDunders, name).empty() || (is_container(v) && !find_name(kContainerDunders, name).empty()))
    return Value::none();
  switch (v.kind()) {
    case Kind::String: {
      const std::string_view method = string_method(name);
      return method.empty() ? std::nullopt : std::optional(heap.method(v, method));
    }
    case Kind::Dict: {
      const std::string_view method = find_name(kDictMethods, name);
      return method.empty() ? std::nullopt : std::optional(heap.method(v, method));
    }
    case Kind::List:
    case Kind::Tuple: return sequence_attribute(heap, v, name);
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float: return number_attribute(v, name);
    case Kind::Loop: return loop_attribute(heap, v, name);
    case Kind::Macro: return macro_attribute(heap, v, name);
    case Kind::Range: {
      const RangeObject& range = v.get<RangeObject>();
      if (name == "start") return Value::integer(range.start);
      if (name == "stop") return Value::integer(range.stop);
      if (name == "step") return Value::integer(range.step);
      const std::string_view method = name == "copy" ? std::string_view() : find_name(kListMethods, name);
      return method.empty() ? std::nullopt : std::optional(heap.method(v, method));
    }
    case Kind::Cycler: {
      const CyclerObject& cycler = v.get<CyclerObject>();
      if (name == "current") return cycler.items[cycler.at];
      if (name == "pos") return Value::integer(static_cast<std::int64_t>(cycler.at));
      if (name == "items") return heap.tuple(cycler.items);
      const std::string_view method = find_name(kCyclerMethods, name);
      return method.empty() ? std::nullopt : std::optional(heap.method(v, method));
    }
    case Kind::Joiner:
      if (name == "sep") return v.get<JoinerObject>().separator;
      if (name == "used") return Value::boolean(v.get<JoinerObject>().used);
      return std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<Value> python_item(Heap& heap, const Value& v, const Value& key) {
  switch (v.kind()) {
    case Kind::Undefined: raise_undefined(v);
    case Kind::Dict: {
      if (key.is(Kind::List) || key.is(Kind::Dict)) return std::nullopt;
      heap.spend_key(key);
      const Value* found = v.get<DictObject>().find(key);
      return found == nullptr ? std::nullopt : std::optional(*found);
    }
    case Kind::String:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range: {
      if (!key.is_integral()) return std::nullopt;
      const std::int64_t length = *length_of(v);
      std::int64_t at = key.as_int();
      if (at < -length || at >= length) return std::nullopt;
      if (at < 0) at += length;
      if (v.is_string()) return slice(heap, v, Value::integer(at), Value::integer(at + 1), Value::none());
      if (v.is(Kind::Range)) {
        const RangeObject& range = v.get<RangeObject>();
        return Value::integer(range.start + at * range.step);
      }
      return v.get<ListObject>().items[static_cast<std::size_t>(at)];
    }
    default: return std::nullopt;
  }
}

namespace {

// An existing attribute, unless the sandbox forbids it.
std::optional<Value> safe_attribute(Renderer& r, const Value& v, std::string_view name) {
  if (is_mutating_method(v, name)) return r.heap().unsafe_attribute(v, name);
  std::optional<Value> found = python_attribute(r, v, name);
  if (found && name.starts_with('_')) return r.heap().unsafe_attribute(v, name);
  return found;
}

}  // namespace

Value get_attribute(Renderer& r, const Value& v, const Value& name) {
  r.heap().step();
  if (std::optional<Value> found = safe_attribute(r, v, name.text())) return *std::move(found);
  if (std::optional<Value> found = python_item(r.heap(), v, name)) return *std::move(found);
  return r.heap().undefined_of(v, name);
}

Value get_item(Renderer& r, const Value& v, const Value& key) {
  r.heap().step();
  if (std::optional<Value> found = python_item(r.heap(), v, key)) return *std::move(found);
  if (key.is_string())
    if (std::optional<Value> found = safe_attribute(r, v, key.text())) return *std::move(found);
  return r.heap().undefined_of(v, key);
}

// -- methods of containers --

namespace {

Value call_dict_method(Renderer& r, const Value& self, std::string_view name, Arguments& args) {
  Heap& heap = r.heap();
  const DictObject& dict = self.get<DictObject>();
  if (name == "get") {
    if (!args.named.empty()) raise(kTypeError, "dict.get() takes no keyword arguments");
    if (args.positional.empty()) raise(kTypeError, "get expected at least 1 argument, got 0");
    if (args.positional.size() > 2)
      raise(kTypeError, concat_text("get expected at most 2 arguments, got ", args.positional.size()));
    heap.use_as_key(args.positional[0]);
    const Value* found = dict.find(args.positional[0]);
    if (found != nullptr) return *found;
    return args.positional.size() > 1 ? args.positional[1] : Value::none();
  }
  if (name == "fromkeys") raise(kUnsupported, "dict.fromkeys is not supported");
  if (!args.named.empty()) raise(kTypeError, concat_text("dict.", name, "() takes no keyword arguments"));
  if (!args.positional.empty())
    raise(kTypeError, concat_text("dict.", name, "() takes no arguments (", args.positional.size(), " given)"));
  if (name == "copy") return heap.dict(dict.entries);
  return heap.view(self, name == "keys" ? ViewOf::Keys : name == "values" ? ViewOf::Values : ViewOf::Items);
}

// copy, count and index of lists, tuples and ranges. count and index share the loop: index looks at [start, stop) and
// returns at the first equal item.
Value call_sequence_method(Renderer& r, const Value& self, std::string_view name, Arguments& args) {
  Heap& heap = r.heap();
  const std::string_view type = type_name(self);
  if (!args.named.empty()) raise(kTypeError, concat_text(type, ".", name, "() takes no keyword arguments"));
  if (name == "copy") {
    if (!args.positional.empty())
      raise(kTypeError, concat_text("list.copy() takes no arguments (", args.positional.size(), " given)"));
    return heap.list(self.get<ListObject>().items);
  }
  if (name == "count" && args.positional.size() != 1)
    raise(kTypeError, concat_text(type, ".count() takes exactly one argument (", args.positional.size(), " given)"));
  if (args.positional.empty()) raise(kTypeError, "index expected at least 1 argument, got 0");
  if (args.positional.size() > 3)
    raise(kTypeError, concat_text("index expected at most 3 arguments, got ", args.positional.size()));
  const std::int64_t length = *length_of(self);
  std::int64_t start = args.positional.size() > 1 ? require_integer(args.positional[1]) : 0;
  std::int64_t stop = args.positional.size() > 2 ? require_integer(args.positional[2]) : length;
  if (start < 0) start = std::max<std::int64_t>(0, start + length);
  if (stop < 0) stop += length;
  Cursor cursor(heap, self);
  std::int64_t count = 0, at = 0;
  for (Value v; cursor.next(v); ++at) {
    if (name == "index" && (at < start || at >= stop)) continue;
    if (!equal(heap, v, args.positional[0])) continue;
    if (name == "index") return Value::integer(at);
    ++count;
  }
  if (name == "count") return Value::integer(count);
  if (self.is(Kind::Tuple)) raise(kValueError, "tuple.index(x): x not in tuple");
  const std::string item = to_repr(heap, args.positional[0]);
  raise(kValueError,
        self.is(Kind::Range) ? concat_text(item, " is not in range") : concat_text(item, " is not in list"));
}

}  // namespace

Value call_method(Renderer& r, const MethodObject& method, Arguments& args) {
  const Value self = method.self;
  switch (self.kind()) {
    case Kind::String: return call_string_method(r, self, method.name, args);
    case Kind::Dict: return call_dict_method(r, self, method.name, args);
    case Kind::Loop: return call_loop_method(r, self, method.name, args);
    case Kind::Cycler: {
      const Parameters none(args, concat_text("Cycler.", method.name), {});
      CyclerObject& cycler = self.get<CyclerObject>();
      if (method.name == "reset") {
        cycler.at = 0;
        return Value::none();
      }
      const Value v = cycler.items[cycler.at];
      cycler.at = (cycler.at + 1) % cycler.items.size();
      return v;
    }
    default: return call_sequence_method(r, self, method.name, args);
  }
}

}  // namespace rlx::jinja
