// Operators of chat templates with Python's semantics.
#include <algorithm>
#include <cmath>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/jinja/builtins.h"
#include "rlx/text/jinja/unicode.h"

namespace rlx::jinja {

using Op = Expr::Type;

void raise_undefined(const Value& v) {
  const UndefinedObject& u = v.get<UndefinedObject>();
  raise(u.error, u.message());
}

std::int64_t require_integer(const Value& v) {
  if (v.is_integral()) return v.as_int();
  if (v.is(Kind::BigInt)) raise(kOverflowError, "Python int too large to convert to C ssize_t");
  raise(kTypeError, concat_text("'", type_name(v), "' object cannot be interpreted as an integer"));
}

std::string_view require_text(const Value& v, std::string_view what) {
  if (v.is_string()) return v.text();
  raise(kTypeError, concat_text(what, ", not ", type_name(v)));
}

namespace {

constexpr std::string_view kZeroDivision = "ZeroDivisionError";

std::string_view symbol(Op op) {
  switch (op) {
    case Op::Add: return "+";
    case Op::Sub: return "-";
    case Op::Mul: return "*";
    case Op::Div: return "/";
    case Op::FloorDiv: return "//";
    case Op::Mod: return "%";
    default: return "** or pow()";
  }
}

[[noreturn]] void raise_operands(Op op, const Value& a, const Value& b) {
  raise(kTypeError,
        concat_text("unsupported operand type(s) for ", symbol(op), ": '", type_name(a), "' and '", type_name(b), "'"));
}

// base ** exponent, exponent >= 0.
BigInteger power(Heap& heap, BigInteger base, const BigInteger& exponent) {
  const std::optional<std::int64_t> e = exponent.as_int64();
  if (base.is_zero() || base.as_int64() == 1) return e == 0 ? BigInteger(1) : base;
  if (base.as_int64() == -1) return BigInteger(exponent.divided_by(BigInteger(2)).second.is_zero() ? 1 : -1);
  BigInteger result(1);
  for (std::int64_t left = e.value_or(1 << 30); left != 0; left >>= 1) {
    heap.step(1 + (base.num_limbs() * base.num_limbs()) / 16);
    if ((left & 1) != 0) result = result * base;
    if (result.too_large() || base.too_large()) raise(kLimit, "an integer has more than 4300 digits");
    if (left > 1) base = base * base;
  }
  return result;
}

double real_of(const BigInteger& v) {
  const double d = v.as_real();
  if (std::isinf(d)) raise(kOverflowError, "int too large to convert to float");
  return d;
}
double real_of(const Value& v) { return v.is(Kind::BigInt) ? real_of(v.get<BigIntObject>().value) : v.number(); }

Value big_arithmetic(Heap& heap, Op op, const BigInteger& a, const BigInteger& b) {
  heap.step(1 + (a.num_limbs() + 1) * (b.num_limbs() + 1) / 16);
  switch (op) {
    case Op::Add: return heap.integer(a + b);
    case Op::Sub: return heap.integer(a - b);
    case Op::Mul: return heap.integer(a * b);
    case Op::Div:
      if (b.is_zero()) raise(kZeroDivision, "division by zero");
      // Both operands are rounded first; Python rounds once.
      return Value::real(real_of(a) / real_of(b));
    case Op::FloorDiv:
    case Op::Mod: {
      if (b.is_zero())
        raise(kZeroDivision, op == Op::Mod ? "integer modulo by zero" : "integer division or modulo by zero");
      heap.step(2 * a.num_limbs() * (a.num_limbs() + b.num_limbs()));
      auto [quotient, rest] = a.divided_by(b);
      return heap.integer(op == Op::Mod ? std::move(rest) : std::move(quotient));
    }
    default:
      if (!b.negative()) return heap.integer(power(heap, a, b));
      if (a.is_zero()) raise(kZeroDivision, "0.0 cannot be raised to a negative power");
      return Value::real(std::pow(real_of(a), real_of(b)));
  }
}

Value integer_arithmetic(Heap& heap, Op op, std::int64_t a, std::int64_t b) {
  const auto big = [&] { return big_arithmetic(heap, op, BigInteger(a), BigInteger(b)); };
  std::int64_t out = 0;
  switch (op) {
    case Op::Add:
      if (__builtin_add_overflow(a, b, &out)) return big();
      return Value::integer(out);
    case Op::Sub:
      if (__builtin_sub_overflow(a, b, &out)) return big();
      return Value::integer(out);
    case Op::Mul:
      if (__builtin_mul_overflow(a, b, &out)) return big();
      return Value::integer(out);
    case Op::Div:
      if (b == 0) raise(kZeroDivision, "division by zero");
      return Value::real(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case Op::FloorDiv:
    case Op::Mod: {
      if (b == 0) raise(kZeroDivision, op == Op::Mod ? "integer modulo by zero" : "integer division or modulo by zero");
      if (b == -1) {
        if (op == Op::Mod) return Value::integer(0);
        if (__builtin_sub_overflow(std::int64_t{0}, a, &out)) return big();
        return Value::integer(out);
      }
      const std::int64_t rest = a % b, quotient = a / b;
      const bool down = rest != 0 && (rest < 0) != (b < 0);
      return Value::integer(op == Op::Mod ? (down ? rest + b : rest) : (down ? quotient - 1 : quotient));
    }
    default:
      if (b >= 0) return big();
      if (a == 0) raise(kZeroDivision, "0.0 cannot be raised to a negative power");
      return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
}

Value real_arithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::Add: return Value::real(a + b);
    case Op::Sub: return Value::real(a - b);
    case Op::Mul: return Value::real(a * b);
    case Op::Div:
      if (b == 0) raise(kZeroDivision, "float division by zero");
      return Value::real(a / b);
    case Op::FloorDiv:
    case Op::Mod: {
      if (b == 0) raise(kZeroDivision, op == Op::Mod ? "float modulo" : "float floor division by zero");
      double rest = std::fmod(a, b), quotient = (a - rest) / b;
      if (rest != 0) {
        if ((b < 0) != (rest < 0)) {
          rest += b;
          quotient -= 1;
        }
      } else {
        rest = std::copysign(0.0, b);
      }
      if (op == Op::Mod) return Value::real(rest);
      if (quotient == 0) return Value::real(std::copysign(0.0, a / b));
      const double whole = std::floor(quotient);
      return Value::real(quotient - whole > 0.5 ? whole + 1 : whole);
    }
    default: {
      if (a == 0 && b < 0) raise(kZeroDivision, "0.0 cannot be raised to a negative power");
      if (a < 0 && std::isfinite(b) && b != std::floor(b)) raise(kUnsupported, "complex numbers are not supported");
      const double out = std::pow(a, b);
      if (std::isinf(out) && std::isfinite(a) && std::isfinite(b))
        raise(kOverflowError, "(34, 'Numerical result out of range')");
      return Value::real(out);
    }
  }
}

Value concatenate(Heap& heap, const Value& a, const Value& b) {
  const bool markup = is_markup(a) || is_markup(b);
  std::string text;
  const auto append = [&](const Value& v) {
    if (markup && !is_markup(v))
      text += escape_html(v.text());
    else
      text += v.text();
  };
  Budget::require_string(a.text().size() + b.text().size());
  text.reserve(a.text().size() + b.text().size());
  append(a);
  append(b);
  return heap.string(std::move(text), markup);
}

Value add_sequences(Heap& heap, const Value& a, const Value& b) {
  std::vector<Value> items = a.get<ListObject>().items;
  const std::vector<Value>& more = b.get<ListObject>().items;
  heap.step((items.size() + more.size()) / 4);
  items.insert(items.end(), more.begin(), more.end());
  return heap.list(std::move(items), a.kind());
}

Value repeat(Heap& heap, const Value& v, std::int64_t count) {
  const std::size_t n = count < 0 ? 0 : static_cast<std::size_t>(count);
  if (v.is_string()) {
    Budget::require_string(n, v.text().size());
    std::string text;
    text.reserve(n * v.text().size());
    if (v.text().size() == 1)
      text.assign(n, v.text()[0]);
    else if (!v.text().empty())
      for (std::size_t i = 0; i < n; ++i) text += v.text();
    return heap.string(std::move(text), is_markup(v));
  }
  const std::vector<Value>& items = v.get<ListObject>().items;
  if (items.empty()) return heap.list({}, v.kind());
  constexpr std::size_t kMost = std::size_t{1} << 24;
  if (n > kMost / items.size()) raise(kLimit, "a list would have more than 16 million items");
  heap.step(n * items.size() / 4);
  std::vector<Value> out;
  out.reserve(n * items.size());
  for (std::size_t i = 0; i < n; ++i) out.insert(out.end(), items.begin(), items.end());
  return heap.list(std::move(out), v.kind());
}

bool is_sequence(const Value& v) { return v.is_string() || v.is(Kind::List) || v.is(Kind::Tuple); }

}  // namespace

Value arithmetic(Heap& heap, Op op, const Value& a, const Value& b) {
  if (a.is(Kind::Undefined)) raise_undefined(a);
  if (op == Op::Mod && a.is_string()) return format_percent(heap, a, b);
  if (op == Op::Mul && is_markup(a)) return repeat(heap, a, require_integer(b));
  if (b.is(Kind::Undefined)) raise_undefined(b);
  if (a.is_any_number() && b.is_any_number()) {
    if (a.is_integral() && b.is_integral()) return integer_arithmetic(heap, op, a.as_int(), b.as_int());
    if (a.is_int() && b.is_int()) return big_arithmetic(heap, op, big_integer(a), big_integer(b));
    return real_arithmetic(op, real_of(a), real_of(b));
  }
  if (op == Op::Add && is_sequence(a)) {
    if (a.is_string() && b.is_string()) return concatenate(heap, a, b);
    if (a.kind() == b.kind()) return add_sequences(heap, a, b);
    const std::string_view name = a.is_string() ? "str" : type_name(a);
    raise(kTypeError, concat_text("can only concatenate ", name, " (not \"", type_name(b), "\") to ", name));
  }
  if (op == Op::Mul && is_markup(b)) return repeat(heap, b, require_integer(a));
  if (op == Op::Mul && (is_sequence(a) || is_sequence(b))) {
    const Value &sequence = is_sequence(a) ? a : b, &count = is_sequence(a) ? b : a;
    if (count.is_integral()) return repeat(heap, sequence, count.as_int());
    if (count.is(Kind::BigInt)) raise(kOverflowError, "cannot fit 'int' into an index-sized integer");
    raise(kTypeError, concat_text("can't multiply sequence by non-int of type '", type_name(count), "'"));
  }
  if (op == Op::Sub && (a.is(Kind::View) || b.is(Kind::View))) raise(kUnsupported, "sets are not supported");
  raise_operands(op, a, b);
}

Value negate(Heap& heap, const Value& v) {
  if (v.is(Kind::Undefined)) raise_undefined(v);
  if (v.is(Kind::Float)) return Value::real(-v.as_real());
  if (v.is(Kind::BigInt)) return heap.integer(big_integer(v).negated());
  if (!v.is_integral()) raise(kTypeError, concat_text("bad operand type for unary -: '", type_name(v), "'"));
  std::int64_t out = 0;
  if (__builtin_sub_overflow(std::int64_t{0}, v.as_int(), &out)) return heap.integer(big_integer(v).negated());
  return Value::integer(out);
}

Value positive(const Value& v) {
  if (v.is(Kind::Undefined)) raise_undefined(v);
  if (v.is(Kind::Float) || v.is(Kind::BigInt)) return v;
  if (!v.is_integral()) raise(kTypeError, concat_text("bad operand type for unary +: '", type_name(v), "'"));
  return Value::integer(v.as_int());
}

// -- comparisons --

namespace {

// The order of two comparable values: -1, 0, 1, or 2 where no comparison holds (NaN).
int order(Heap& heap, std::string_view op, const Value& a, const Value& b) {
  heap.step();
  if (a.is(Kind::Undefined)) raise_undefined(a);
  if (b.is(Kind::Undefined)) raise_undefined(b);
  if (a.is_any_number() && b.is_any_number()) return compare_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    heap.budget().copy(std::min(a.text().size(), b.text().size()));
    const int c = a.text().compare(b.text());
    return c < 0 ? -1 : c > 0 ? 1 : 0;
  }
  if (a.kind() == b.kind() && (a.is(Kind::List) || a.is(Kind::Tuple))) {
    const std::vector<Value>&x = a.get<ListObject>().items, &y = b.get<ListObject>().items;
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i)
      if (!equal(heap, x[i], y[i])) return order(heap, op, x[i], y[i]);
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  raise(kTypeError,
        concat_text("'", op, "' not supported between instances of '", type_name(a), "' and '", type_name(b), "'"));
}

}  // namespace

bool compare(Heap& heap, std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return equal(heap, a, b);
  if (op == "!=") return !equal(heap, a, b);
  const int c = order(heap, op, a, b);
  if (c == 2) return false;
  if (op == "<") return c < 0;
  if (op == "<=") return c <= 0;
  return op == ">" ? c > 0 : c >= 0;
}

bool less(Heap& heap, const Value& a, const Value& b) { return order(heap, "<", a, b) == -1; }

bool contains(Heap& heap, const Value& container, const Value& item) {
  heap.step();
  switch (container.kind()) {
    case Kind::String: {
      if (!item.is_string())
        raise(kTypeError, concat_text("'in <string>' requires string as left operand, not ", type_name(item)));
      heap.budget().copy(container.text().size());
      return find_text(container.text(), item.text()) != std::string_view::npos;
    }
    case Kind::Dict: heap.use_as_key(item); return container.get<DictObject>().find(item) != nullptr;
    case Kind::View: {
      const ViewObject& view = container.get<ViewObject>();
      if (view.of == ViewOf::Keys) return contains(heap, view.dict, item);
      break;
    }
    default: break;
  }
  if (!iterable(container))
    raise(kTypeError, concat_text("argument of type '", type_name(container), "' is not iterable"));
  Cursor cursor(heap, container);
  for (Value v; cursor.next(v);)
    if (equal(heap, v, item)) return true;
  return false;
}

// -- slices --

namespace {

struct Bounds {
  std::int64_t start = 0, step = 1, count = 0;
};

std::int64_t slice_index(const Value& v) {
  if (v.is_integral()) return v.as_int();
  raise(kTypeError, "slice indices must be integers or None or have an __index__ method");
}

// The bounds of a slice of `length` items, as in Python's slice.indices().
Bounds bounds(const Value& start, const Value& stop, const Value& step, std::int64_t length) {
  Bounds out;
  if (!step.is(Kind::None)) out.step = slice_index(step);
  if (out.step == 0) raise(kValueError, "slice step cannot be zero");
  const bool down = out.step < 0;
  out.step = std::max(out.step, -INT64_MAX);
  const auto place = [&](const Value& v, std::int64_t otherwise) {
    if (v.is(Kind::None)) return otherwise;
    std::int64_t i = slice_index(v);
    if (i < 0) {
      i = i < -length ? (down ? -1 : 0) : i + length;
    } else if (i >= length) {
      i = down ? length - 1 : length;
    }
    return i;
  };
  out.start = place(start, down ? length - 1 : 0);
  const std::int64_t end = place(stop, down ? -1 : length);
  if (down && end < out.start) out.count = (out.start - end - 1) / -out.step + 1;
  if (!down && out.start < end) out.count = (end - out.start - 1) / out.step + 1;
  return out;
}

Value slice_string(Heap& heap, const Value& v, const Bounds& b) {
  const std::string_view text = v.text();
  const std::int64_t length = code_points(v);
  const bool ascii = length == static_cast<std::int64_t>(text.size());
  heap.budget().copy(ascii ? 0 : text.size());
  if (b.count == 0) return heap.string({}, is_markup(v));
  if (b.step == 1) {
    const std::size_t from = offset_of(text, ascii, b.start);
    const std::string_view rest = text.substr(from);
    return heap.string(std::string(rest.substr(0, offset_of(rest, ascii, b.count))), is_markup(v));
  }
  std::vector<std::size_t> offsets;  // byte offset of every character
  if (!ascii)
    for (std::size_t i = 0; i < text.size(); ++i)
      if (!is_utf8_continuation(text[i])) offsets.push_back(i);
  std::string out;
  for (std::int64_t k = 0, i = b.start; k < b.count; ++k, i += b.step) {
    if (ascii) {
      out += text[static_cast<std::size_t>(i)];
    } else {
      const std::size_t from = offsets[static_cast<std::size_t>(i)];
      const std::size_t next = static_cast<std::size_t>(i) + 1;
      out += text.substr(from, (next < offsets.size() ? offsets[next] : text.size()) - from);
    }
  }
  return heap.string(std::move(out), is_markup(v));
}

}  // namespace

Value slice(Heap& heap, const Value& v, const Value& start, const Value& stop, const Value& step) {
  switch (v.kind()) {
    case Kind::Undefined: raise_undefined(v);
    case Kind::String: return slice_string(heap, v, bounds(start, stop, step, code_points(v)));
    case Kind::List:
    case Kind::Tuple: {
      const std::vector<Value>& items = v.get<ListObject>().items;
      const Bounds b = bounds(start, stop, step, static_cast<std::int64_t>(items.size()));
      std::vector<Value> out;
      out.reserve(static_cast<std::size_t>(b.count));
      for (std::int64_t k = 0, i = b.start; k < b.count; ++k, i += b.step)
        out.push_back(items[static_cast<std::size_t>(i)]);
      return heap.list(std::move(out), v.kind());
    }
    case Kind::Range: {
      const RangeObject& r = v.get<RangeObject>();
      const Bounds b = bounds(start, stop, step, r.count);
      const std::int64_t first = r.start + b.start * r.step;
      return heap.range(first, first + b.count * b.step * r.step, b.step * r.step);
    }
    case Kind::Dict: raise(kTypeError, "unhashable type: 'slice'");
    default: raise(kTypeError, concat_text("'", type_name(v), "' object is not subscriptable"));
  }
}

}  // namespace rlx::jinja
