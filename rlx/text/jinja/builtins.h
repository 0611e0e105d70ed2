// The built-ins of templates: operators, attributes and methods of values, filters, tests, functions.
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
  /// Removes and returns a keyword argument; Missing when it was not passed.
  Value take(std::string_view name);
};

/// Binds arguments to parameter names, with Python's messages for those that do not fit. `before` counts leading
/// parameters that the caller does not write (the filtered value, jinja2's context).
class Parameters {
 public:
  Parameters(Arguments& given, std::string_view function, std::initializer_list<std::string_view> names,
             std::size_t required = 0, std::size_t before = 1);
  /// The i-th argument; Missing when it was not passed.
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
/// A str argument. Errors: TypeError with the text `what` ("must be str, not int").
std::string_view require_text(const Value& v, std::string_view what);

// -- operators (operators.cpp) --

Value arithmetic(Heap& heap, Expr::Type op, const Value& a, const Value& b);
Value negate(Heap& heap, const Value& v);
Value positive(const Value& v);
bool compare(Heap& heap, std::string_view op, const Value& a, const Value& b);
/// a < b as in sorted(). Errors: TypeError.
bool less(Heap& heap, const Value& a, const Value& b);
bool contains(Heap& heap, const Value& container, const Value& item);
Value slice(Heap& heap, const Value& v, const Value& start, const Value& stop, const Value& step);
/// v % args of a string.
Value format_percent(Heap& heap, const Value& format, const Value& args);

// -- attributes and methods (attributes.cpp, string_methods.cpp, format.cpp) --

/// getattr(v, name) without the sandbox rules; nothing where Python raises AttributeError.
std::optional<Value> python_attribute(Renderer& r, const Value& v, std::string_view name);
/// v[key]; nothing where Python raises.
std::optional<Value> python_item(Heap& heap, const Value& v, const Value& key);
/// v.name and v[key] with the sandbox rules.
Value get_attribute(Renderer& r, const Value& v, const Value& name);
Value get_item(Renderer& r, const Value& v, const Value& key);
/// The static name of a method of str, or an empty name.
std::string_view string_method(std::string_view name);
Value call_method(Renderer& r, const MethodObject& method, Arguments& args);
Value call_string_method(Renderer& r, const Value& self, std::string_view name, Arguments& args);
/// str.format with sandboxed attribute access.
Value format_braces(Renderer& r, const Value& format, Arguments& args);
/// format(value, spec)
std::string format_value(Heap& heap, const Value& v, std::string_view spec);

// -- by name (filters.cpp, filters_sequence.cpp, functions.cpp) --

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
/// Filters of sequences, sorted by name.
const NamedFilter* find_sequence_filter(std::string_view name);
/// Filters that lay out or clean text (filters_text.cpp).
const NamedFilter* find_text_filter(std::string_view name);

/// Looks up a filter's attribute path: "address.city", 0. Undefined values become `fallback`.
class AttributePath {
 public:
  AttributePath(Heap& heap, const Value& attribute, Value fallback = {});
  Value operator()(Renderer& r, Value item) const;

 private:
  std::vector<Value> parts_;
  Value fallback_;
};
/// Strings in lower case, other values unchanged: the keys of sort, unique, groupby, min and max.
Value ignore_case(Heap& heap, const Value& v);
/// A stable sort, like Python's sorted. `keys[i]` belongs to `items[i]`.
std::vector<Value> sorted_by(Heap& heap, std::vector<Value> items, std::vector<Value> keys, bool reverse);

}  // namespace rlx::jinja
