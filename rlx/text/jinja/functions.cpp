// Tests, global functions and the methods of `loop`.
#include <algorithm>
#include <ctime>

#include "rlx/error.h"
#include "rlx/text/jinja/render.h"

namespace rlx::jinja {
namespace {

// -- tests --

bool is_kind_of(const Value& v, std::initializer_list<Kind> kinds) {
  return std::find(kinds.begin(), kinds.end(), v.kind()) != kinds.end();
}

bool same(Heap& heap, const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::BigInt) || a.is_string()) return equal(heap, a, b);  // Python shares equal constants, so `is` holds
  if (a.has_object()) return a.object() == b.object();
  return a.is(Kind::None) || (a.is_number() && compare_numbers(a, b) == 0);
}

struct Comparison {
  std::string_view name, op;
};
constexpr Comparison kComparisons[] = {{"==", "=="}, {"eq", "=="}, {"equalto", "=="},    {"!=", "!="}, {"ne", "!="},
                                       {">", ">"},   {"gt", ">"},  {"greaterthan", ">"}, {">=", ">="}, {"ge", ">="},
                                       {"<", "<"},   {"lt", "<"},  {"lessthan", "<"},    {"<=", "<="}, {"le", "<="}};

using Check = bool (*)(Renderer&, const Value&);
struct PlainTest {
  std::string_view name;
  Check check;
};

bool string_check(Renderer& r, const Value& v, std::string_view method) {
  Arguments none;
  return truth(call_string_method(r, to_string_value(r.heap(), v), method, none));
}

bool modulo(Renderer& r, const Value& v, const Value& by, std::int64_t rest) {
  return equal(r.heap(), arithmetic(r.heap(), Expr::Type::Mod, v, by), Value::integer(rest));
}

constexpr PlainTest kTests[] = {
    {"boolean", [](Renderer&, const Value& v) { return v.is(Kind::Bool); }},
    {"callable",
     [](Renderer&, const Value& v) {
       return is_kind_of(v, {Kind::Macro, Kind::Function, Kind::Method, Kind::Loop, Kind::Joiner, Kind::Undefined});
     }},
    {"defined", [](Renderer&, const Value& v) { return !v.is(Kind::Undefined); }},
    {"escaped", [](Renderer&, const Value& v) { return is_markup(v); }},
    {"even", [](Renderer& r, const Value& v) { return modulo(r, v, Value::integer(2), 0); }},
    {"false", [](Renderer&, const Value& v) { return v.is(Kind::Bool) && !v.as_bool(); }},
    {"float", [](Renderer&, const Value& v) { return v.is(Kind::Float); }},
    {"integer", [](Renderer&, const Value& v) { return v.is(Kind::Int) || v.is(Kind::BigInt); }},
    {"iterable", [](Renderer&, const Value& v) { return iterable(v); }},
    {"lower", [](Renderer& r, const Value& v) { return string_check(r, v, "islower"); }},
    {"mapping", [](Renderer&, const Value& v) { return v.is(Kind::Dict); }},
    {"none", [](Renderer&, const Value& v) { return v.is(Kind::None); }},
    {"number", [](Renderer&, const Value& v) { return v.is_any_number(); }},
    {"odd", [](Renderer& r, const Value& v) { return modulo(r, v, Value::integer(2), 1); }},
    {"sequence",
     [](Renderer&, const Value& v) {
       return is_kind_of(v, {Kind::String, Kind::List, Kind::Tuple, Kind::Dict, Kind::Range, Kind::Undefined});
     }},
    {"string", [](Renderer&, const Value& v) { return v.is_string(); }},
    {"true", [](Renderer&, const Value& v) { return v.is(Kind::Bool) && v.as_bool(); }},
    {"undefined", [](Renderer&, const Value& v) { return v.is(Kind::Undefined); }},
    {"upper", [](Renderer& r, const Value& v) { return string_check(r, v, "isupper"); }},
};

const PlainTest* plain_test(std::string_view name) {
  for (const PlainTest& t : kTests)
    if (t.name == name) return &t;
  return nullptr;
}

const Comparison* comparison(std::string_view name) {
  for (const Comparison& c : kComparisons)
    if (c.name == name) return &c;
  return nullptr;
}

constexpr std::string_view kOtherTests[] = {"divisibleby", "filter", "in", "sameas", "test"};

}  // namespace

bool is_test(std::string_view name) {
  return plain_test(name) != nullptr || comparison(name) != nullptr ||
         std::find(std::begin(kOtherTests), std::end(kOtherTests), name) != std::end(kOtherTests);
}

bool call_test(Renderer& r, std::string_view name, const Value& subject, Arguments& args) {
  Heap& heap = r.heap();
  heap.step();
  const std::string function = concat_text("test_", name);
  if (const PlainTest* t = plain_test(name)) {
    const Parameters none(args, function, {});
    return t->check(r, subject);
  }
  if (const Comparison* c = comparison(name)) {
    if (args.positional.size() != 1 || !args.named.empty())
      raise(kTypeError, concat_text(c->op == "=="   ? "eq"
                                    : c->op == "!=" ? "ne"
                                    : c->op == ">"  ? "gt"
                                    : c->op == ">=" ? "ge"
                                    : c->op == "<"  ? "lt"
                                                    : "le",
                                    " expected 2 arguments, got ", args.positional.size() + 1));
    return compare(heap, c->op, subject, args.positional[0]);
  }
  if (name == "divisibleby") {
    const Parameters p(args, function, {"num"}, 1);
    return modulo(r, subject, p[0], 0);
  }
  if (name == "in") {
    const Parameters p(args, function, {"seq"}, 1);
    return contains(heap, p[0], subject);
  }
  if (name == "sameas") {
    const Parameters p(args, function, {"other"}, 1);
    return same(heap, subject, p[0]);
  }
  const Parameters none(args, function, {}, 0, 2);
  heap.use_as_key(subject);
  if (!subject.is_string()) return false;
  if (name == "test") return is_test(subject.text());
  return is_filter(subject.text()) || is_unsupported_filter(subject.text());
}

// -- functions --

namespace {

constexpr std::string_view kFunctions[] = {"cycler",          "dict",  "joiner",      "lipsum", "namespace",
                                           "raise_exception", "range", "strftime_now"};

// dict(mapping or pairs, key=value, ...)
std::vector<DictObject::Entry> entries_of(Heap& heap, Arguments& args) {
  std::vector<DictObject::Entry> entries;
  if (args.positional.size() > 1)
    raise(kTypeError, concat_text("dict expected at most 1 argument, got ", args.positional.size()));
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (from.is(Kind::Dict)) {
      entries = from.get<DictObject>().entries;
    } else {
      Cursor cursor(heap, from);
      std::int64_t i = 0;
      for (Value item; cursor.next(item); ++i) {
        if (!iterable(item))
          raise(kTypeError, concat_text("cannot convert dictionary update sequence element #", i, " to a sequence"));
        const std::vector<Value> pair = collect(heap, item);
        if (pair.size() != 2)
          raise(kValueError,
                concat_text("dictionary update sequence element #", i, " has length ", pair.size(), "; 2 is required"));
        entries.emplace_back(pair[0], pair[1]);
      }
    }
  }
  for (auto& [name, value] : args.named) entries.emplace_back(heap.string(name), value);
  return entries;
}

Value make_range(Heap& heap, Arguments& args) {
  if (!args.named.empty())
    raise(kTypeError, "safe_range() got an unexpected keyword argument '" + args.named[0].first + "'");
  const std::vector<Value>& given = args.positional;
  if (given.empty()) raise(kTypeError, "range expected at least 1 argument, got 0");
  if (given.size() > 3) raise(kTypeError, concat_text("range expected at most 3 arguments, got ", given.size()));
  const std::int64_t first = require_integer(given[0]);
  if (given.size() == 1) return heap.range(0, first, 1);
  const std::int64_t stop = require_integer(given[1]), step = given.size() > 2 ? require_integer(given[2]) : 1;
  if (step == 0) raise(kValueError, "range() arg 3 must not be zero");
  return heap.range(first, stop, step);
}

Value format_time(Renderer& r, Arguments& args) {
  const Parameters p(args, "strftime_now", {"format"}, 1, 0);
  if (!p[0].is_string()) raise(kTypeError, concat_text("strftime() argument 1 must be str, not ", type_name(p[0])));
  const std::time_t now = r.now();
  std::tm local{};
  localtime_r(&now, &local);
  std::string format;
  for (std::size_t i = 0; i < p[0].text().size(); ++i) {  // %f is Python's own: microseconds, which `now` does not have
    const std::string_view text = p[0].text();
    if (text.substr(i, 2) == "%f") {
      format += "000000";
      ++i;
    } else {
      format += text[i];
      if (text[i] == '%' && i + 1 < text.size()) format += text[++i];
    }
  }
  if (format.empty()) return r.heap().string({});
  if (format.size() > 4096) raise(kLimit, "a format of strftime_now has at most 4096 bytes");
  std::string out(format.size() * 40 + 64, '\0');  // a longer result (huge widths) becomes empty
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &local));
  return r.heap().string(std::move(out));
}

}  // namespace

bool is_function(std::string_view name) {
  return std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

Value call_function(Renderer& r, std::string_view name, Arguments& args) {
  Heap& heap = r.heap();
  if (name == "raise_exception") {
    const Parameters p(args, "raise_exception", {"message"}, 1, 0);
    raise("TemplateError", to_text(heap, p[0]));
  }
  if (name == "namespace") {
    const Value attributes = heap.dict(entries_of(heap, args));
    return heap.namespace_of(attributes.get<DictObject>().entries);
  }
  if (name == "dict") return heap.dict(entries_of(heap, args));
  if (name == "range") return make_range(heap, args);
  if (name == "strftime_now") return format_time(r, args);
  if (name == "cycler") {
    if (!args.named.empty())
      raise(kTypeError,
            concat_text("Cycler.__init__() got an unexpected keyword argument '", args.named[0].first, "'"));
    if (args.positional.empty()) raise("RuntimeError", "at least one item has to be provided");
    auto object = std::make_unique<CyclerObject>();
    object->items = args.positional;
    std::int32_t depth = 0;
    for (const Value& v : args.positional) depth = std::max(depth, v.has_object() ? v.object()->depth : 0);
    return heap.adopt(Kind::Cycler, object.release(), args.positional.size() * sizeof(Value), depth + 1);
  }
  if (name == "joiner") {
    const Parameters p(args, "Joiner.__init__", {"sep"});
    auto object = std::make_unique<JoinerObject>();
    object->separator = p[0].missing() ? heap.string(", ") : p[0];
    const std::int32_t depth = object->separator.has_object() ? object->separator.object()->depth : 0;
    return heap.adopt(Kind::Joiner, object.release(), sizeof(JoinerObject), depth + 1);
  }
  raise(kUnsupported, concat_text("the function '", name, "' is not supported"));
}

Value call_loop_method(Renderer& r, const Value& loop, std::string_view name, Arguments& args) {
  LoopObject& state = loop.get<LoopObject>();
  if (!args.named.empty())
    raise(kTypeError,
          concat_text("LoopContext.", name, "() got an unexpected keyword argument '", args.named[0].first, "'"));
  if (name == "cycle") {
    if (args.positional.empty()) raise(kTypeError, "no items for cycling given");
    return args.positional[static_cast<std::size_t>(state.index0) % args.positional.size()];
  }
  Value now = r.heap().tuple(args.positional);
  if (!state.changed.missing() && equal(r.heap(), state.changed, now)) return Value::boolean(false);
  if (state.changed.missing()) r.heap().remember_loop(loop);
  state.changed = std::move(now);
  return Value::boolean(true);
}

}  // namespace rlx::jinja
