// Parses the text of graphs: a recursive-descent parser that checks every shape it reads.
#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "rlx/base/printable.h"
#include "rlx/base/utf8.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/text.h"
#include "rlx/tensor/visit.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxWrittenRank = 32;  // of a written shape
constexpr std::size_t kMaxDimText = 512;     // characters of one dimension expression
constexpr std::int64_t kMaxResults = 64;

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Graph whole() {
    Graph g = graph(0);
    skip();
    if (at_ != text_.size()) fail(at_, "expected the end of the text after the graph");
    return g;
  }

 private:
  // -- positions and errors --

  // The token at `pos`, for messages.
  std::string token(std::size_t pos) const {
    if (pos >= text_.size()) return "the end of the text";
    std::size_t end = pos + 1;
    char c = text_[pos];
    if (c == '\n') return "the end of the line";
    if (is_word(c)) {
      while (end < text_.size() && is_word(text_[end])) ++end;
    } else if (c == '"') {
      while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') ++end;
      if (end < text_.size() && text_[end] == '"') ++end;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      constexpr char digits[] = "0123456789abcdef";
      auto u = static_cast<unsigned char>(c);
      return concat_text("byte 0x", digits[u >> 4], digits[u & 15]);
    }
    return concat_text("'", printable(text_.substr(pos, end - pos), 40), "'");
  }

  [[noreturn]] void fail_plain(std::size_t pos, std::string message, std::string hint = {}) const {
    pos = std::min(pos, text_.size());
    std::size_t begin = pos == 0 ? 0 : text_.rfind('\n', pos - 1) + 1;  // npos + 1 is 0
    std::size_t end = std::min(text_.find('\n', pos), text_.size());
    std::size_t line = 1;
    for (std::size_t i = 0; i < begin; ++i) line += text_[i] == '\n';
    std::size_t column = pos - begin + 1;
    while (end > pos && text_[end - 1] == '\r') --end;
    std::string where = concat_text(file_, ":", line, ":", column);
    // Long lines (constants, binary files) are truncated on both sides of the position, at character boundaries.
    constexpr std::size_t kBefore = 80;
    std::size_t from = column > kBefore ? pos - 60 : begin, caret = 0;
    while ((caret = printable_columns(text_.substr(from, pos - from))) > kBefore ||
           (from < pos && is_utf8_continuation(text_[from])))
      ++from;
    if (from < end)
      where +=
          concat_text("\n    ", printable(text_.substr(from, end - from), 100), "\n    ", std::string(caret, ' '), "^");
    throw Error(Diagnostic{ErrorCode::BadFile, std::move(message), std::move(where), std::move(hint)});
  }
  [[noreturn]] void fail(std::size_t pos, std::string message, std::string hint = {}) const {
    fail_plain(pos, concat_text(message, ", got ", token(pos)), std::move(hint));
  }
  // Runs f. Errors of the graph or of the rules get this position.
  template <class F>
  auto at_position(std::size_t pos, F f) {
    try {
      return f();
    } catch (const Error& e) {
      if (e.code() == ErrorCode::Internal || e.code() == ErrorCode::BadFile || e.code() == ErrorCode::OutOfMemory)
        throw;
      fail_plain(pos, e.diagnostic().message, e.diagnostic().hint);
    }
  }

  // -- tokens --

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void skip() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }
  bool peek(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool eat(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  template <class... Parts>
  void expect(char c, const Parts&... what) {
    if (!eat(c)) fail(at_, concat_text("expected '", c, "' ", what...));
  }
  std::string_view peek_word() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  std::string_view word(std::string_view what) {
    std::string_view w = peek_word();
    if (w.empty()) fail(at_, concat_text("expected ", what));
    at_ += w.size();
    return w;
  }
  bool eat_word(std::string_view w) {
    if (peek_word() != w) return false;
    at_ += w.size();
    return true;
  }

  std::string string(std::string_view what) {
    skip();
    std::size_t start = at_;
    if (!eat('"')) fail(at_, concat_text("expected ", what, " in double quotes"));
    std::string out;
    while (true) {
      if (at_ >= text_.size() || text_[at_] == '\n') fail_plain(start, concat_text(what, " has no closing quote"));
      char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      char e = at_ < text_.size() ? text_[at_++] : '\0';
      if (e == 'n') {
        out += '\n';
      } else if (e == '"' || e == '\\') {
        out += e;
      } else if (e == 'x' && at_ + 2 <= text_.size() && hex(text_[at_]) >= 0 && hex(text_[at_ + 1]) >= 0) {
        out += static_cast<char>(hex(text_[at_]) * 16 + hex(text_[at_ + 1]));
        at_ += 2;
      } else {
        fail_plain(at_ - 2, "unknown escape in a string",
                   "escapes are \\\" \\\\ \\n and \\x with two hexadecimal digits");
      }
    }
  }

  static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  // A decimal number of type T (integer or floating).
  template <class T>
  T number(std::string_view what) {
    skip();
    T v{};
    auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (r.ec == std::errc::result_out_of_range) {
      std::size_t size = static_cast<std::size_t>(r.ptr - (text_.data() + at_));
      fail_plain(at_, concat_text(what, " ", text_.substr(at_, std::min<std::size_t>(size, 40)), " is out of range"));
    }
    auto end = static_cast<std::size_t>(r.ptr - text_.data());
    bool finite = true;
    if constexpr (std::is_floating_point_v<T>) finite = std::isfinite(v);
    if (r.ec != std::errc() || !finite || (end < text_.size() && is_word(text_[end])))
      fail(at_, concat_text("expected ", what));
    at_ = end;
    return v;
  }

  // inf, -inf or nan, which from_chars does not read here.
  std::optional<double> special() {
    skip();
    std::string_view rest = text_.substr(at_);
    constexpr std::pair<std::string_view, double> kSpecial[] = {
        {"inf", HUGE_VAL}, {"-inf", -HUGE_VAL}, {"nan", std::numeric_limits<double>::quiet_NaN()}};
    for (const auto& [name, value] : kSpecial)
      if (rest.starts_with(name) && (rest.size() == name.size() || !is_word(rest[name.size()]))) {
        at_ += name.size();
        return value;
      }
    return std::nullopt;
  }

  double f64() {
    if (auto v = special()) return *v;
    std::string_view rest = text_.substr(at_);
    if (!rest.starts_with("0x")) return number<double>("a number");
    std::uint64_t bits = 0;
    std::size_t start = at_;
    at_ += 2;
    for (int i = 0; i < 16; ++i, ++at_) {
      int h = at_ < text_.size() ? hex(text_[at_]) : -1;
      if (h < 0) fail_plain(start, "expected 0x and the 16 hexadecimal digits of a double");
      bits = bits << 4 | static_cast<std::uint64_t>(h);
    }
    return std::bit_cast<double>(bits);
  }

  // "0x" and pairs of hexadecimal digits for `size` bytes (any number when negative).
  std::vector<std::byte> hex_bytes(std::int64_t size) {
    skip();
    std::size_t start = at_;
    if (!text_.substr(at_).starts_with("0x")) fail(at_, "expected 0x and hexadecimal bytes");
    at_ += 2;
    std::vector<std::byte> out;
    while (at_ + 2 <= text_.size() && hex(text_[at_]) >= 0 && hex(text_[at_ + 1]) >= 0) {
      out.push_back(static_cast<std::byte>(hex(text_[at_]) * 16 + hex(text_[at_ + 1])));
      at_ += 2;
    }
    if (at_ < text_.size() && is_word(text_[at_])) fail(at_, "expected pairs of hexadecimal digits");
    if (size >= 0 && out.size() != static_cast<std::size_t>(size))
      fail_plain(start, concat_text("expected ", size, " bytes, got ", out.size()));
    return out;
  }

  // -- types --

  // True when a number of the expression has more digits than a 64-bit integer.
  static bool has_long_number(std::string_view expression) {
    std::size_t digits = 0;
    for (char c : expression) {
      digits = is_digit(c) ? digits + (digits > 0 || c != '0' ? 1 : 0) : 0;
      if (digits >= 19) return true;
    }
    return false;
  }

  Dim dim() {
    skip();
    std::size_t start = at_;
    int parens = 0;
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '(') ++parens;
      if (c == ')' && --parens < 0) break;
      if (c == ']' || c == '\n' || (c == ',' && parens == 0)) break;
      ++at_;
    }
    std::string_view expression = text_.substr(start, at_ - start);
    while (!expression.empty() && (expression.back() == ' ' || expression.back() == '\t')) expression.remove_suffix(1);
    if (expression.empty()) fail(start, "expected a dimension");
    auto d = expression.size() <= kMaxDimText ? parse_dim(expression) : std::nullopt;
    if (!d && has_long_number(expression))
      fail_plain(start, concat_text("the dimension ", token(start), " is too large"), "a dimension must be below 2^63");
    if (!d)
      fail(start, "expected a dimension",
           "write an integer, a symbol, or an expression such as 2*seq + 1 or floordiv(seq, 16)");
    return *d;
  }

  Dims dims(std::string_view what) {
    Dims out;
    expect('[', what);
    if (eat(']')) return out;
    do {
      if (out.size() == kMaxWrittenRank) fail_plain(at_, concat_text("more than ", kMaxWrittenRank, " dimensions"));
      out.push_back(dim());
    } while (eat(','));
    expect(']', "after the dimensions");
    return out;
  }

  DType dtype() {
    skip();
    std::size_t start = at_;
    std::string_view w = word("a dtype");
    auto t = parse_dtype(w);
    if (!t) {
      std::vector<std::string> names;
      for (int i = 0; i < kNumDTypes; ++i) names.emplace_back(dtype_name(static_cast<DType>(i)));
      at_ = start;
      fail(start, "expected a dtype", did_you_mean(w, names, "for example f32, bf16, i64 or bool"));
    }
    return *t;
  }

  Shape shape() {
    Dims d = dims("in front of the dimensions of a type");
    return Shape(std::move(d), dtype());
  }

  // -- tensors --

  template <class T>
  void integer_element(std::byte* data, std::int64_t i) {
    T v = number<T>("an integer of this dtype");
    std::memcpy(data + static_cast<std::size_t>(i) * sizeof(T), &v, sizeof(T));
  }
  void packed_element(std::byte* data, DType t, std::int64_t i, std::int64_t low, std::int64_t high) {
    std::size_t start = at_;
    auto v = number<std::int64_t>("an integer");
    if (v < low || v > high)
      fail_plain(start, concat_text(v, " is outside ", dtype_name(t), " [", low, ", ", high, "]"));
    store_element(data, t, i, v);
  }

  // A number as T, or an infinity or NaN.
  template <class T>
  double float_number() {
    if (auto v = special()) return *v;
    return static_cast<double>(number<T>("a number"));
  }
  void float_element(std::byte* data, DType t, std::int64_t i) {
    skip();
    const std::size_t start = at_;
    const auto v = special();
    store_element(data, t, i, v ? *v : t == DType::F32 ? float_number<float>() : float_number<double>());
    if (v && t == DType::F8E5M2)  // has infinities, but conversions saturate other numbers
      data[i] = static_cast<std::byte>(float_to_f8e5m2_bits(static_cast<float>(*v), false));
    const double stored = load_element<double>(data, t, i);
    if (v && (std::isnan(*v) ? !std::isnan(stored) : stored != *v))
      fail_plain(start, concat_text(dtype_name(t), " has no ", token(start)));
  }

  void element(std::byte* data, DType t, std::int64_t i) {
    skip();
    switch (t) {
      case DType::Bool: {
        bool v = eat_word("true");
        if (!v && !eat_word("false")) fail(at_, "expected true or false");
        store_element(data, t, i, std::int64_t{v});
        return;
      }
      case DType::I8: return integer_element<std::int8_t>(data, i);
      case DType::I16: return integer_element<std::int16_t>(data, i);
      case DType::I32: return integer_element<std::int32_t>(data, i);
      case DType::I64: return integer_element<std::int64_t>(data, i);
      case DType::U8: return integer_element<std::uint8_t>(data, i);
      case DType::U16: return integer_element<std::uint16_t>(data, i);
      case DType::U32: return integer_element<std::uint32_t>(data, i);
      case DType::U64: return integer_element<std::uint64_t>(data, i);
      case DType::I4: return packed_element(data, t, i, -8, 7);
      case DType::U4: return packed_element(data, t, i, 0, 15);
      case DType::C64:
      case DType::C128: {
        expect('(', "in front of a complex element");
        double re = t == DType::C64 ? float_number<float>() : float_number<double>();
        expect(',', "between real and imaginary part");
        double im = t == DType::C64 ? float_number<float>() : float_number<double>();
        expect(')', "after a complex element");
        store_element(data, t, i, std::complex<double>(re, im));
        return;
      }
      default: return float_element(data, t, i);
    }
  }

  Tensor tensor() {
    skip();
    std::size_t start = at_;
    Shape s = shape();
    if (!s.is_static()) fail_plain(start, concat_text("a tensor needs integer dimensions, got ", s));
    std::int64_t n = at_position(start, [&] { return s.num_elements(); });
    // Every element takes at least one character, so a hostile shape allocates nothing.
    if (static_cast<std::uint64_t>(n) > text_.size() - at_ + 2)
      fail_plain(start, concat_text("the text ends before the ", n, " elements of ", s));
    Tensor t = Tensor::zeros(s);
    std::byte* data = t.mutable_data();
    if (!peek('{')) {
      std::vector<std::byte> bytes = hex_bytes(static_cast<std::int64_t>(t.size_bytes()));
      if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
      return t;
    }
    eat('{');
    for (std::int64_t i = 0; i < n; ++i) {
      if (i && !eat(',')) fail(at_, concat_text("expected ',' and ", n - i, " more of the ", n, " elements of ", s));
      element(data, s.dtype(), i);
    }
    if (!eat('}')) fail(at_, concat_text("expected '}' after the ", n, " elements of ", s));
    return t;
  }

  // -- attributes --

  std::int64_t enumerator(const AttrField& f) {
    skip();
    std::size_t start = at_;
    std::string_view w = word(concat_text("a value of ", f.name));
    for (std::size_t i = 0; i < f.enum_names.size(); ++i)
      if (f.enum_names[i] == w) return static_cast<std::int64_t>(i);
    std::vector<std::string> names(f.enum_names.begin(), f.enum_names.end());
    std::string all;
    for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
    fail(start, concat_text("expected a value of ", f.name), did_you_mean(w, names, all));
  }

  bool boolean() {
    if (eat_word("true")) return true;
    if (eat_word("false")) return false;
    fail(at_, "expected true or false");
  }

  template <class T, class F>
  std::vector<T> list(F element_parser) {
    std::vector<T> out;
    expect('[', "in front of a list");
    if (eat(']')) return out;
    do out.push_back(element_parser());
    while (eat(','));
    expect(']', "after a list");
    return out;
  }

  AttrValue attribute(const AttrField& f, int depth) {
    bool may_be_none = is_optional(f.type) || f.type == AttrType::Tensor || f.type == AttrType::Body;
    if (may_be_none && eat_word("none")) {
      if (f.type == AttrType::Tensor) return Tensor();
      if (holds_body(f.type)) return Subgraph();
      return std::monostate{};
    }
    switch (f.type) {
      case AttrType::Bool:
      case AttrType::OptBool: return boolean();
      case AttrType::I64:
      case AttrType::OptI64: return number<std::int64_t>("an integer");
      case AttrType::F64:
      case AttrType::OptF64: return f64();
      case AttrType::Enum:
      case AttrType::OptEnum: return enumerator(f);
      case AttrType::Operands: break;  // written before the operands
      case AttrType::String: return string(concat_text("the string ", f.name));
      case AttrType::DType:
      case AttrType::OptDType: return dtype();
      case AttrType::DimList: return dims(concat_text("in front of ", f.name));
      case AttrType::I64List: return list<std::int64_t>([&] { return number<std::int64_t>("an integer"); });
      case AttrType::F64List: return list<double>([&] { return f64(); });
      case AttrType::EnumList: return list<std::int64_t>([&] { return enumerator(f); });
      case AttrType::Bytes: return hex_bytes(-1);
      case AttrType::Tensor: return tensor();
      case AttrType::Body:
      case AttrType::OptBody: return Subgraph(std::make_shared<const Graph>(graph(depth + 1)));
    }
    return {};
  }

  // `axis = 1` for an op that now has a list of axes: older text.
  bool read_only_axis(const OpDef& def, void* op, std::vector<bool>& seen) {
    for (std::size_t i = 0; i < def.attrs.size(); ++i) {
      if (def.attrs[i].name != "axes" || def.attrs[i].type != AttrType::I64List || seen[i]) continue;
      seen[i] = true;
      expect('=', "after attribute axis");
      def.attrs[i].set(op, std::vector{number<std::int64_t>("an integer")});
      return true;
    }
    return false;
  }

  void attributes(const OpDef& def, std::string_view op_name, void* op, int depth) {
    std::vector<bool> seen(def.attrs.size());
    do {
      skip();
      std::size_t start = at_;
      std::string_view name = word("an attribute name");
      std::size_t i = 0;
      while (i < def.attrs.size() && (def.attrs[i].name != name || def.attrs[i].place != AttrPlace::Braces)) ++i;
      if (i == def.attrs.size() && name == "axis" && read_only_axis(def, op, seen)) continue;
      if (i == def.attrs.size()) {
        std::vector<std::string> names;
        for (const AttrField& f : def.attrs)
          if (f.place == AttrPlace::Braces) names.emplace_back(f.name);
        std::string hint = names.empty() ? concat_text(op_name, " has no attributes") : "the attributes are";
        for (std::size_t k = 0; k < names.size(); ++k) hint += (k ? ", " : " ") + names[k];
        fail_plain(start, concat_text(op_name, " has no attribute '", name.substr(0, 40), "'"),
                   did_you_mean(name, names, hint));
      }
      if (seen[i]) fail_plain(start, concat_text("attribute '", name, "' is given twice"));
      seen[i] = true;
      expect('=', "after attribute ", name);
      def.attrs[i].set(op, attribute(def.attrs[i], depth));
    } while (eat(','));
    expect('}', "after the attributes");
  }

  // -- graphs --

  struct Scope {
    Graph graph;
    std::unordered_map<std::string_view, NodeId> ids;
    std::unordered_set<std::string> leaf_names;
  };

  Value value(Scope& scope) {
    skip();
    std::size_t start = at_;
    if (!eat('%')) fail(at_, "expected a value such as %3");
    if (at_ >= text_.size() || !is_word(text_[at_])) fail(at_, "expected a node id after '%'");
    std::string_view id = word("a node id");
    auto it = scope.ids.find(id);
    if (it == scope.ids.end())
      fail_plain(start, concat_text("%", id.substr(0, 40), " is not defined above this line"),
                 "a node may use only nodes that are written before it, in the same graph");
    Value v(it->second);
    if (at_ < text_.size() && text_[at_] == '#') {
      ++at_;
      std::size_t number_at = at_;
      auto r = number<std::uint32_t>("a result index");
      std::uint32_t n = scope.graph.node(v.node).num_results();
      if (r >= n)
        fail_plain(number_at, concat_text("%", id, " has ", n, n == 1 ? " result" : " results", ", there is no #", r));
      v.result = r;
    }
    return v;
  }

  std::vector<Value> values(Scope& scope) {
    std::vector<Value> out;
    do out.push_back(value(scope));
    while (eat(','));
    return out;
  }

  struct WrittenOperand {
    std::string_view name;  // empty: placed by position
    Value value;
    std::size_t at;
  };
  std::vector<WrittenOperand> written_operands(Scope& scope) {
    std::vector<WrittenOperand> out;
    do {
      skip();
      const std::size_t start = at_;
      std::string_view name = peek_word();
      if (!name.empty() && is_digit(name[0])) name = {};  // a value without its %
      if (!name.empty()) {
        at_ += name.size();
        expect('=', "after the operand's name ", name.substr(0, 40));
      }
      out.push_back({name, value(scope), start});
    } while (eat(','));
    return out;
  }

  // The operands in the order of the record, and the op with its mask of present operands. Operands without a name are
  // those that every such node has, in order; for an op without a mask they are the first ones of the record.
  OpBox place(std::size_t op_at, OpBox op, const std::vector<WrittenOperand>& written, std::vector<Value>& operands) {
    const OpDef& def = op_def(op);
    const bool named = std::any_of(written.begin(), written.end(), [](const auto& o) { return !o.name.empty(); });
    if (!named && !def.inputs.masked) {
      for (const WrittenOperand& o : written) operands.push_back(o.value);
      return op;
    }
    std::vector<NamedOperand> by_name;
    int next = 0;
    for (const WrittenOperand& o : written) {
      if (!o.name.empty()) {
        by_name.push_back({o.name, o.value});
        continue;
      }
      while (def.inputs.masked && next < def.inputs.count && def.inputs.is_optional(next)) ++next;
      if (next >= def.inputs.count)
        fail_plain(
            o.at,
            concat_text(def.name, " takes (", def.inputs.text(), "), so there are too many operands without a name"),
            def.inputs.optional_bits ? "write optional operands by name: name=%3" : "");
      by_name.push_back({def.inputs.names[next++], o.value});
    }
    Result<PlacedOperands> placed = place_operands(std::move(op), by_name);
    if (!placed) fail_plain(op_at, placed.error().message, placed.error().hint);
    operands = std::move(placed->inputs);
    return std::move(placed->op);
  }

  void node(Scope& scope, int depth) {
    expect('%', "in front of a node");
    std::size_t id_at = at_;
    if (at_ >= text_.size() || !is_word(text_[at_])) fail(at_, "expected a node id after '%'");
    std::string_view id = word("a node id");
    if (scope.ids.count(id)) fail_plain(id_at - 1, concat_text("%", id.substr(0, 40), " is defined twice"));
    std::int64_t num_results = 1;
    if (eat(':')) {
      std::size_t n_at = at_;
      num_results = number<std::int64_t>("the number of results");
      if (num_results < 1 || num_results > kMaxResults)
        fail_plain(n_at, concat_text("a node has 1 to ", kMaxResults, " results, not ", num_results));
    }
    expect('=', "after the node id");
    skip();
    std::size_t op_at = at_;
    std::string_view op_name = word("an op name");
    while (at_ + 1 < text_.size() && text_[at_] == '.' && is_word(text_[at_ + 1])) {  // a custom op: "acme.scaled_tanh"
      ++at_;
      word("an op name");
      op_name = text_.substr(op_at, at_ - op_at);
    }
    auto named = find_op(op_name);
    if (!named) unknown_op(op_at, op_name);
    expect('(', "before the operands");
    std::vector<WrittenOperand> written;
    if (!peek(')')) written = written_operands(scope);
    expect(')', "after the operands");
    if (eat('{')) attributes(*named->def, op_name, named->op.get(), depth);
    // Types may be omitted when inference knows them. They are required when they hold attributes of the op
    // (AttrPlace).
    skip();
    std::size_t type_at = at_;
    std::vector<Shape> types;
    bool needs_type = false;
    for (const AttrField& f : named->def->attrs)
      needs_type = needs_type || f.place == AttrPlace::TypeDims || f.place == AttrPlace::TypeDType;
    if (needs_type || peek(':')) {
      expect(':', "before the result types", needs_type ? " of " : "", needs_type ? std::string_view(op_name) : "");
      skip();
      type_at = at_;
      do {
        if (types.size() == static_cast<std::size_t>(kMaxResults))
          fail_plain(at_, concat_text("more than ", kMaxResults, " result types"));
        types.push_back(shape());
      } while (eat(','));
      check_result_count(type_at, id, num_results, types.size(), " type");
    }
    for (const AttrField& f : named->def->attrs) {
      if (f.place == AttrPlace::TypeDims) f.set(named->op.get(), types[0].dims());
      if (f.place == AttrPlace::TypeDType) f.set(named->op.get(), types[0].dtype());
    }
    Origin origin;
    if (eat('@')) origin.label = string("a label");

    std::vector<Value> operands;
    const OpBox op = place(op_at, OpBox(named->def->kind, std::move(named->op)), written, operands);
    ShapeRefs operand_shapes;
    for (Value v : operands) operand_shapes.add(scope.graph.shape(v));
    Result<Shapes> inferred = at_position(op_at, [&] { return infer_shapes(op, operand_shapes); });
    if (!inferred) fail_plain(op_at, inferred.error().message, inferred.error().hint);
    if (types.empty()) {
      check_result_count(op_at, id, num_results, inferred->size(), " result");
      types = *inferred;
    }
    if (*inferred != types)
      fail_plain(type_at,
                 concat_text(op_name, " returns ", types_text(*inferred), ", but the text says ", types_text(types)));
    NodeId node_id = at_position(op_at, [&] {
      return scope.graph.add_node(Node{op, std::move(operands), std::move(types), std::move(origin)});
    });
    scope.ids.emplace(id, node_id);
    if (named->def->leaf == LeafKind::Named && !scope.leaf_names.insert(scope.graph.leaf_name(node_id)).second)
      fail_plain(op_at, concat_text("the name '", scope.graph.leaf_name(node_id), "' is used by another leaf"),
                 "give every input, param and state its own name");
  }

  // `what`: " type" for written types, " result" for inferred ones.
  void check_result_count(std::size_t pos, std::string_view id, std::int64_t declared, std::size_t have,
                          std::string_view what) const {
    if (have == static_cast<std::size_t>(declared)) return;
    fail_plain(pos,
               concat_text("%", id, " has ", declared, declared == 1 ? " result" : " results", " but ", have, what,
                           have == 1 ? "" : "s"),
               concat_text("write %", id, have == 1 ? std::string() : concat_text(":", have), " = ..."));
  }

  static std::string types_text(const Shapes& shapes) {
    std::string out;
    for (std::size_t i = 0; i < shapes.size(); ++i) out += (i ? ", " : "") + shapes[i].text();
    return out;
  }

  [[noreturn]] void unknown_op(std::size_t pos, std::string_view name) {
    if (name.find('.') != std::string_view::npos)
      fail_plain(pos, concat_text("no op '", name.substr(0, 60), "' is registered"),
                 "call register_op with its record before parsing");
    fail_plain(pos, concat_text("there is no op '", name.substr(0, 40), "'"),
               did_you_mean(name, op_text_names(), "`rlx ops` lists all ops"));
  }

  void symbol(Scope& scope) {
    skip();
    std::size_t start = at_;
    std::string name(word("a symbol name"));
    if (is_digit(name[0])) fail(start, "expected a symbol name");
    if (scope.graph.symbols().count(name)) fail_plain(start, concat_text("symbol ", name, " is declared twice"));
    SymbolInfo info;
    if (eat('[')) {
      info.min = number<std::int64_t>("a lower bound");
      expect(',', "between the bounds");
      info.max = number<std::int64_t>("an upper bound");
      expect(']', "after the bounds");
    }
    if (eat_word("div")) info.divisor = number<std::int64_t>("a divisor");
    if (info.min < 0 || info.min > info.max || info.divisor < 1)
      fail_plain(start, concat_text("symbol ", name, " needs 0 <= lower <= upper bound and a divisor of 1 or more"));
    at_position(start, [&] { scope.graph.symbol(name, info); });
  }

  Graph graph(int depth) {
    skip();
    if (depth > kMaxBodyDepth) fail_plain(at_, concat_text("sub-graphs are nested more than ", kMaxBodyDepth, " deep"));
    if (!eat_word("graph")) fail(at_, "expected 'graph'");
    expect('@', "before the graph's name");
    Scope scope;
    if (at_ < text_.size() && text_[at_] == '"') {
      scope.graph.set_name(string("the graph's name"));
    } else {
      std::size_t start = at_;
      while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '-')) ++at_;
      if (at_ == start) fail(at_, "expected the graph's name after '@'");
      scope.graph.set_name(std::string(text_.substr(start, at_ - start)));
    }
    expect('{', "after the graph's name");
    bool returned = false;
    while (!eat('}')) {
      std::size_t start = at_;
      if (peek('%')) {
        if (returned) fail_plain(at_, "a node follows the return line");
        node(scope, depth);
      } else if (eat_word("symbol")) {
        symbol(scope);
      } else if (eat_word("return")) {
        if (returned) fail_plain(start, "a graph must have only one return line");
        returned = true;
        std::vector<Value> outputs = values(scope);
        at_position(start, [&] { scope.graph.set_outputs(std::move(outputs)); });
      } else if (eat_word("set_symbol")) {
        const std::string name(word("a symbol name"));
        const Value v = value(scope);
        if (!scope.graph.symbols().count(name)) fail_plain(start, concat_text("symbol ", name, " is not declared"));
        if (scope.graph.symbol_sources().count(name)) fail_plain(start, concat_text("symbol ", name, " is set twice"));
        at_position(start, [&] { scope.graph.set_symbol_source(name, v); });
      } else if (eat_word("set_state")) {
        std::string name = string("a state's name");
        Value v = value(scope);
        for (const auto& update : scope.graph.state_updates())
          if (update.name == name) fail_plain(start, concat_text("state '", name, "' is set twice"));
        at_position(start, [&] { scope.graph.set_state(name, v); });
      } else {
        fail(at_, "expected a node (%0 = ...), symbol, return, set_symbol, set_state or '}'");
      }
    }
    return std::move(scope.graph);
  }

  static std::vector<std::string> op_text_names() {
    std::vector<std::string> names;
    for (const OpDef* def : all_op_defs()) {
      const AttrField* mnemonic = nullptr;
      for (const AttrField& f : def->attrs)
        if (f.place == AttrPlace::Mnemonic || f.place == AttrPlace::Suffix) mnemonic = &f;
      if (!mnemonic) {
        names.emplace_back(def->name);
        continue;
      }
      for (std::size_t i = 0; i < mnemonic->enum_names.size(); ++i) {
        std::shared_ptr<void> op = make_default_op(def->kind);
        mnemonic->set(op.get(), static_cast<std::int64_t>(i));
        names.push_back(op_text_name(OpBox(def->kind, std::move(op))));
      }
    }
    return names;
  }

  std::string_view text_, file_;
  std::size_t at_ = 0;
};

}  // namespace

Graph parse_text(std::string_view text, std::string_view file) { return Parser(text, file).whole(); }

}  // namespace rlx
