// The canonical polynomial form of symbolic dimensions.
#include "rlx/tensor/dim.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "rlx/error.h"

namespace rlx {

enum class AtomKind : std::uint8_t { Symbol, FloorDiv, Mod, Min, Max };

// A factor of a term: a symbol, or a non-polynomial function of two dimensions. `key` is its canonical text. `depth` is
// the nesting depth of functions.
struct DimAtom {
  AtomKind kind = AtomKind::Symbol;
  std::string key;
  Dim a, b;
  int depth = 0;
};

namespace {
std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out))
    throw Error(ErrorCode::InvalidArgument, concat_text("dimension product ", a, " * ", b, " overflows 64 bits"));
  return out;
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out))
    throw Error(ErrorCode::InvalidArgument, concat_text("dimension sum ", a, " + ", b, " overflows 64 bits"));
  return out;
}

// a / b when b divides a; none otherwise and for b = 0.
std::optional<std::int64_t> divide_exactly(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return checked_mul(a, -1);  // the lowest int64 has no quotient here, and its remainder overflows too
  if (a % b != 0) return std::nullopt;
  return a / b;
}
}  // namespace

struct DimTerm {
  std::int64_t coefficient = 0;
  std::vector<DimAtom> factors;  // sorted by key; empty for the constant
};

// A sum of terms, keyed by the joined keys of their factors. It always contains a symbol; other sums are plain
// integers.
struct DimExpr {
  std::map<std::string, DimTerm> terms;

  static DimExpr of(const Dim& d) {
    if (d.expr_) return *d.expr_;
    DimExpr e;
    if (d.value_ != 0) e.terms.emplace("", DimTerm{d.value_, {}});
    return e;
  }
  void add(const std::string& key, const DimTerm& term) {
    auto [it, fresh] = terms.emplace(key, term);
    if (!fresh) it->second.coefficient = checked_add(it->second.coefficient, term.coefficient);
    if (it->second.coefficient == 0) terms.erase(it);
  }
};

Dim dim_from_expr(DimExpr expr) {
  if (expr.terms.empty()) return Dim(0);
  if (expr.terms.size() == 1 && expr.terms.begin()->first.empty()) return Dim(expr.terms.begin()->second.coefficient);
  Dim d;
  d.expr_ = std::make_shared<const DimExpr>(std::move(expr));
  return d;
}

namespace {
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

Dim atom_dim(DimAtom atom) {
  DimExpr e;
  std::string key = atom.key;
  DimTerm term{1, {std::move(atom)}};
  e.terms.emplace(std::move(key), std::move(term));
  return dim_from_expr(std::move(e));
}

int nesting(const Dim& d) {
  int deepest = 0;
  if (!d.is_static())
    for (const auto& [key, term] : DimExpr::of(d).terms)
      for (const DimAtom& f : term.factors) deepest = std::max(deepest, f.depth);
  return deepest;
}

constexpr const char* kFunctionNames[] = {"", "floordiv", "mod", "min", "max"};

Dim function_dim(AtomKind kind, Dim a, Dim b) {
  bool commutative = kind == AtomKind::Min || kind == AtomKind::Max;
  if (commutative && b.text() < a.text()) std::swap(a, b);
  std::string key = concat_text(kFunctionNames[static_cast<int>(kind)], "(", a, ", ", b, ")");
  // All code that visits an expression recurses, and each level holds the text of those below it.
  constexpr int kMaxNesting = 48;  // parse_dim reads what text() writes: it takes 64 levels
  constexpr std::size_t kMaxText = 4096;
  const int depth = 1 + std::max(nesting(a), nesting(b));
  if (depth > kMaxNesting || key.size() > kMaxText)
    throw Error(
        ErrorCode::InvalidArgument,
        depth > kMaxNesting
            ? concat_text("a dimension expression nests floordiv, mod, min and max more than ", kMaxNesting, " deep")
            : concat_text("a dimension expression would have more than ", kMaxText, " characters"),
        "use a new symbol for the inner part");
  return atom_dim(DimAtom{kind, std::move(key), std::move(a), std::move(b), depth});
}

void require_positive(const Dim& b, const char* what) {
  if (b.is_static() && b.value() <= 0)
    throw Error(ErrorCode::InvalidArgument, concat_text(what, " by ", b, ": the divisor must be positive"));
}
}  // namespace

void Dim::throw_too_large(std::uint64_t value) {
  throw Error(ErrorCode::InvalidArgument, concat_text("the dimension ", value, " is too large"),
              "a dimension must be below 2^63");
}

Dim Dim::symbol(std::string_view name) {
  bool ok = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (char c : name) ok = ok && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (!ok)
    throw Error(ErrorCode::InvalidArgument, concat_text("'", name, "' is not a symbol name"),
                "use letters, digits and _, starting with a letter");
  return atom_dim(DimAtom{AtomKind::Symbol, std::string(name), {}, {}, 0});
}

std::int64_t Dim::value() const {
  if (expr_)
    throw Error(ErrorCode::Unsupported, concat_text("dimension ", text(), " has no value before its symbols are bound"),
                "bind the symbols, or compile with values for them");
  return value_;
}

bool Dim::same_expression(const Dim& a, const Dim& b) {
  if (a.is_static() || b.is_static()) return false;
  if (a.expr_ == b.expr_) return true;
  const auto& x = a.expr_->terms;
  const auto& y = b.expr_->terms;
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](const auto& p, const auto& q) {
           return p.first == q.first && p.second.coefficient == q.second.coefficient;
         });
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(checked_add(a.value_, b.value_));
  DimExpr e = DimExpr::of(a);
  for (const auto& [key, term] : DimExpr::of(b).terms) e.add(key, term);
  return dim_from_expr(std::move(e));
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(checked_mul(a.value_, b.value_));
  DimExpr left = DimExpr::of(a), right = DimExpr::of(b), e;
  // Products of sums grow exponentially with the number of factors. Real shapes stay far below this limit.
  constexpr std::size_t kMaxTerms = 1024;
  if (left.terms.size() * right.terms.size() > kMaxTerms)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("a dimension expression would have more than ", kMaxTerms, " terms"));
  for (const auto& [lk, lt] : left.terms)
    for (const auto& [rk, rt] : right.terms) {
      DimTerm term{checked_mul(lt.coefficient, rt.coefficient), lt.factors};
      term.factors.insert(term.factors.end(), rt.factors.begin(), rt.factors.end());
      std::sort(term.factors.begin(), term.factors.end(),
                [](const DimAtom& p, const DimAtom& q) { return p.key < q.key; });
      std::string key;
      for (const DimAtom& f : term.factors) key += (key.empty() ? "" : "*") + f.key;
      e.add(key, term);
    }
  return dim_from_expr(std::move(e));
}

std::optional<Dim> exact_div(const Dim& a, const Dim& b) {
  if (a == b && !a.is_static(0)) return Dim(1);
  if (b.is_static()) {
    std::int64_t d = b.value();
    if (d == 0) return std::nullopt;
    DimExpr e;
    for (const auto& [key, term] : DimExpr::of(a).terms) {
      const auto quotient = divide_exactly(term.coefficient, d);
      if (!quotient) return std::nullopt;
      e.terms.emplace(key, DimTerm{*quotient, term.factors});
    }
    return dim_from_expr(std::move(e));
  }
  // For a divisor of one term, every term of a must contain its factors.
  DimExpr divisor = DimExpr::of(b);
  if (divisor.terms.size() != 1) return std::nullopt;
  const DimTerm& by = divisor.terms.begin()->second;
  Dim quotient(0);
  for (const auto& [key, term] : DimExpr::of(a).terms) {
    const auto coefficient = divide_exactly(term.coefficient, by.coefficient);
    if (!coefficient) return std::nullopt;
    std::vector<DimAtom> rest = term.factors;
    for (const DimAtom& f : by.factors) {
      auto it = std::find_if(rest.begin(), rest.end(), [&](const DimAtom& r) { return r.key == f.key; });
      if (it == rest.end()) return std::nullopt;
      rest.erase(it);
    }
    Dim part(*coefficient);
    for (DimAtom& f : rest) part = part * atom_dim(std::move(f));
    quotient = quotient + part;
  }
  return quotient;
}

Dim floordiv(const Dim& a, const Dim& b) {
  require_positive(b, "floordiv");
  if (a.is_static() && b.is_static()) return Dim(floor_div(a.value_, b.value_));
  if (auto exact = exact_div(a, b)) return *exact;
  return function_dim(AtomKind::FloorDiv, a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  require_positive(b, "mod");
  if (a.is_static() && b.is_static()) {
    const std::int64_t rest = a.value_ % b.value_;  // has the sign of a
    return Dim(rest < 0 ? rest + b.value_ : rest);
  }
  if (exact_div(a, b)) return Dim(0);
  return function_dim(AtomKind::Mod, a, b);
}

Dim min(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a.is_static() && b.is_static()) return Dim(std::min(a.value_, b.value_));
  return function_dim(AtomKind::Min, a, b);
}

Dim max(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a.is_static() && b.is_static()) return Dim(std::max(a.value_, b.value_));
  return function_dim(AtomKind::Max, a, b);
}

Dim Dim::bind(const SymbolBinding& binding) const {
  if (!expr_) return *this;
  Dim out(0);
  for (const auto& [key, term] : expr_->terms) {
    Dim product(term.coefficient);
    for (const DimAtom& f : term.factors) {
      switch (f.kind) {
        case AtomKind::Symbol: {
          auto it = binding.find(f.key);
          product = product * (it == binding.end() ? Dim::symbol(f.key) : Dim(it->second));
          break;
        }
        case AtomKind::FloorDiv: product = product * floordiv(f.a.bind(binding), f.b.bind(binding)); break;
        case AtomKind::Mod: product = product * mod(f.a.bind(binding), f.b.bind(binding)); break;
        case AtomKind::Min: product = product * min(f.a.bind(binding), f.b.bind(binding)); break;
        case AtomKind::Max: product = product * max(f.a.bind(binding), f.b.bind(binding)); break;
      }
    }
    out = out + product;
  }
  return out;
}

namespace {
[[noreturn]] void no_value(const std::string& symbol, const char* what) {
  throw Error(ErrorCode::Unsupported, concat_text("symbol '", symbol, "' has no ", what));
}

DimRange product(const DimRange& a, const DimRange& b) {
  const std::int64_t corners[] = {checked_mul(a.min, b.min), checked_mul(a.min, b.max), checked_mul(a.max, b.min),
                                  checked_mul(a.max, b.max)};
  const auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return {*low, *high};
}

DimRange quotient(const DimRange& a, DimRange b) {
  b.min = std::max<std::int64_t>(1, b.min);  // a divisor is positive
  b.max = std::max(b.min, b.max);
  const std::int64_t corners[] = {floor_div(a.min, b.min), floor_div(a.min, b.max), floor_div(a.max, b.min),
                                  floor_div(a.max, b.max)};
  const auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return {*low, *high};
}
}  // namespace

std::int64_t Dim::evaluate(const SymbolBinding& binding) const {
  if (!expr_) return value_;
  std::int64_t sum = 0;
  for (const auto& [key, term] : expr_->terms) {
    std::int64_t value = term.coefficient;
    for (const DimAtom& f : term.factors) {
      if (f.kind == AtomKind::Symbol) {
        auto it = binding.find(f.key);
        if (it == binding.end()) no_value(f.key, "value");
        value = checked_mul(value, it->second);
        continue;
      }
      const Dim a = f.a.evaluate(binding), b = f.b.evaluate(binding);
      const Dim result = f.kind == AtomKind::FloorDiv ? floordiv(a, b)
                         : f.kind == AtomKind::Mod    ? mod(a, b)
                         : f.kind == AtomKind::Min    ? min(a, b)
                                                      : max(a, b);
      value = checked_mul(value, result.value_);
    }
    sum = checked_add(sum, value);
  }
  return sum;
}

DimRange Dim::range(const SymbolRanges& symbols) const {
  if (!expr_) return {value_, value_};
  DimRange sum;
  for (const auto& [key, term] : expr_->terms) {
    DimRange value{term.coefficient, term.coefficient};
    for (const DimAtom& f : term.factors) {
      if (f.kind == AtomKind::Symbol) {
        auto it = symbols.find(f.key);
        if (it == symbols.end()) no_value(f.key, "bounds");
        value = product(value, it->second);
        continue;
      }
      const DimRange a = f.a.range(symbols), b = f.b.range(symbols);
      DimRange result;
      switch (f.kind) {
        case AtomKind::FloorDiv: result = quotient(a, b); break;
        case AtomKind::Mod:
          result = {0, std::max<std::int64_t>(0, b.max - 1)};
          if (a.min >= 0 && a.max < b.min) result = a;
          break;
        case AtomKind::Min: result = {std::min(a.min, b.min), std::min(a.max, b.max)}; break;
        default: result = {std::max(a.min, b.min), std::max(a.max, b.max)}; break;
      }
      value = product(value, result);
    }
    sum.min = checked_add(sum.min, value.min);
    sum.max = checked_add(sum.max, value.max);
  }
  return sum;
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  if (expr_)
    for (const auto& [key, term] : expr_->terms)
      for (const DimAtom& f : term.factors) {
        if (f.kind == AtomKind::Symbol) {
          names.insert(f.key);
          continue;
        }
        for (const Dim* part : {&f.a, &f.b})
          for (std::string& name : part->symbols()) names.insert(std::move(name));
      }
  return {names.begin(), names.end()};
}

std::string Dim::text() const {
  if (!expr_) return std::to_string(value_);
  std::string out;
  auto append = [&](const std::string& key, std::int64_t c) {
    if (out.empty())
      out += c < 0 ? "-" : "";
    else
      out += c < 0 ? " - " : " + ";
    std::uint64_t magnitude = c < 0 ? 0 - static_cast<std::uint64_t>(c) : static_cast<std::uint64_t>(c);
    if (key.empty())
      out += std::to_string(magnitude);
    else if (magnitude == 1)
      out += key;
    else
      out += std::to_string(magnitude) + "*" + key;
  };
  std::int64_t constant = 0;
  for (const auto& [key, term] : expr_->terms) {
    if (key.empty())
      constant = term.coefficient;
    else
      append(key, term.coefficient);
  }
  if (constant != 0) append("", constant);
  return out;
}

namespace {
// A recursive-descent parser: sum := product (('+'|'-') product)*; product := atom ('*' atom)*; atom := int | name | f
// '(' sum ',' sum ')' | '(' sum ')' | '-' atom.
struct DimParser {
  std::string_view s;
  std::size_t at = 0;
  int depth = 0;
  bool failed = false;

  void skip() {
    while (at < s.size() && s[at] == ' ') ++at;
  }
  bool eat(char c) {
    skip();
    if (at < s.size() && s[at] == c) {
      ++at;
      return true;
    }
    return false;
  }
  Dim fail() {
    failed = true;
    return Dim(0);
  }
  Dim sum() {
    if (++depth > 64) return fail();
    Dim d = product();
    while (!failed) {
      if (eat('+'))
        d = d + product();
      else if (eat('-'))
        d = d - product();
      else
        break;
    }
    --depth;
    return d;
  }
  Dim product() {
    Dim d = atom();
    while (!failed && eat('*')) d = d * atom();
    return d;
  }
  Dim atom() {
    skip();
    if (at >= s.size()) return fail();
    if (eat('-')) {
      if (++depth > 64) return fail();
      Dim d = Dim(-1) * atom();
      --depth;
      return d;
    }
    if (eat('(')) {
      Dim d = sum();
      return failed || !eat(')') ? fail() : d;
    }
    std::size_t start = at;
    while (at < s.size() && (std::isalnum(static_cast<unsigned char>(s[at])) || s[at] == '_')) ++at;
    std::string_view word = s.substr(start, at - start);
    if (word.empty()) return fail();
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      std::int64_t v = 0;
      for (char c : word) {
        const int digit = c - '0';
        if (digit < 0 || digit > 9 || v > (std::numeric_limits<std::int64_t>::max() - digit) / 10) return fail();
        v = v * 10 + digit;
      }
      return Dim(v);
    }
    if (!eat('(')) return Dim::symbol(word);
    Dim a = sum();
    if (failed || !eat(',')) return fail();
    Dim b = sum();
    if (failed || !eat(')')) return fail();
    if (word == "min") return min(a, b);
    if (word == "max") return max(a, b);
    if (b.is_static() && b.value() <= 0) return fail();
    if (word == "floordiv") return floordiv(a, b);
    if (word == "mod") return mod(a, b);
    return fail();
  }
};
}  // namespace

std::optional<Dim> parse_dim(std::string_view text) {
  try {
    DimParser p{text};
    Dim d = p.sum();
    p.skip();
    if (p.failed || p.at != text.size()) return std::nullopt;
    return d;
  } catch (const Error&) {  // overflow of a product
    return std::nullopt;
  }
}

}  // namespace rlx
