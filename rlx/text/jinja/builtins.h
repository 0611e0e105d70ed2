// What templates find in the language: operators, attributes and methods of values, filters, tests, functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/text/jinja/program.h"
#include "rlx/text/jinja/value.h"

namespace rlx::jinja {

class Renderer;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  /// Takes a keyword argument out; Missing when it is not there.
  Value take(std::string_view name);
};

/// Arguments by the names of parameters, with Python's messages for those that do not fit. `before` counts parameters
/// that the caller does not write (the value a filter is applied to, jinja2's context).
class Parameters {
 public:
  Parameters(Arguments& given, std::string_view function, std::initializer_list<std::string_view> names,
             std::size_t required = 0, std::size_t before = 1);
  /// The i-th argument, Missing when it was not given.
  const Value& operator[](std::size_t i) const { return values_[i]; }
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  bool flag(std::size_t i) const { return !values_[i].missing() && truth(values_[i]); }
  bool given(std::size_t i) const { return !values_[i].missing() && !values_[i].is(Kind::None); }

 private:
  std::vector<Value> values_;
};

[[noreturn]] void raise_undefined(const Value& v);
/// The operand of an index or a count. Errors: TypeError "'str' object cannot be interpreted as an integer".
std::int64_t require_integer(const Value& v);
/// A str argument. Errors: TypeError as `what` says ("must be str, not int").
std::string_view require_text(const Value& v, std::string_view what);

// -- operators (jinja_operators.cpp) --

Value arithmetic(Heap& heap, Expr::Type op, const Value& a, const Value& b);
Value negate(const Value& v);
Value positive(const Value& v);
bool compare(Heap& heap, std::string_view op, const Value& a, const Value& b);
/// a < b as sorted() asks. Errors: TypeError.
bool less(Heap& heap, const Value& a, const Value& b);
bool contains(Heap& heap, const Value& container, const Value& item);
Value slice(Heap& heap, const Value& v, const Value& start, const Value& stop, const Value& step);
/// v % args of a string.
Value format_percent(Heap& heap, const Value& format, const Value& args);

// -- attributes and methods (jinja_attributes.cpp, jinja_string_methods.cpp, jinja_format.cpp) --

/// getattr(v, name) without the rules of the sandbox; nothing where Python raises AttributeError.
std::optional<Value> python_attribute(Renderer& r, const Value& v, std::string_view name);
/// v[key] where Python finds it.
std::optional<Value> python_item(Heap& heap, const Value& v, const Value& key);
/// v.name and v[key] as a sandboxed template has them.
Value get_attribute(Renderer& r, const Value& v, const Value& name);
Value get_item(Renderer& r, const Value& v, const Value& key);
/// The static name of a method of str, or an empty one.
std::string_view string_method(std::string_view name);
Value call_method(Renderer& r, const MethodObject& method, Arguments& args);
Value call_string_method(Renderer& r, const Value& self, std::string_view name, Arguments& args);
/// str.format with the sandbox's way to attributes.
Value format_braces(Renderer& r, const Value& format, Arguments& args);
/// format(value, spec)
std::string format_value(Heap& heap, const Value& v, std::string_view spec);

// -- by name (jinja_filters.cpp, jinja_filters_sequence.cpp, jinja_tests.cpp, jinja_functions.cpp) --

bool is_filter(std::string_view name);
bool is_unsupported_filter(std::string_view name);
bool is_test(std::string_view name);
bool is_function(std::string_view name);
Value call_filter(Renderer& r, std::string_view name, const Value& subject, Arguments& args);
bool call_test(Renderer& r, std::string_view name, const Value& subject, Arguments& args);
Value call_function(Renderer& r, std::string_view name, Arguments& args);
Value call_loop_method(Renderer& r, const Value& loop, std::string_view name, Arguments& args);

using Filter = Value (*)(Renderer& r, const Value& subject, Arguments& args);
struct NamedFilter {
  std::string_view name;
  Filter filter;
};
/// Filters of sequences, in the order of their names.
const NamedFilter* find_sequence_filter(std::string_view name);

/// Looks up an attribute as filters name it: "address.city", 0. Takes `fallback` for what is undefined.
class AttributePath {
 public:
  AttributePath(Heap& heap, const Value& attribute, Value fallback = {});
  Value operator()(Renderer& r, Value item) const;

 private:
  std::vector<Value> parts_;
  Value fallback_;
};
/// Strings in lower case, others as they are: the keys of sort, unique, groupby, min and max.
Value ignore_case(Heap& heap, const Value& v);
/// Stable, as Python's sorted: `keys[i]` belongs to `items[i]`.
std::vector<Value> sorted_by(Heap& heap, std::vector<Value> items, std::vector<Value> keys, bool reverse);

}  // namespace rlx::jinja
