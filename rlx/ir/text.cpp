// Prints graphs as text. The parser is in serial/text_parse.cpp.
#include "rlx/ir/text.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>

#include "rlx/ir/op_def.h"
#include "rlx/tensor/visit.h"

namespace rlx {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (u < 0x20 || u == 0x7f)
      out += {'\\', 'x', kHexDigits[u >> 4], kHexDigits[u & 15]};
    else
      out += c;
  }
  return out + "\"";
}

std::string graph_name_text(const std::string& name) {
  bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '-';
  });
  return "@" + (plain ? name : quoted(name));
}

template <class T>
void append_number(std::string& out, T v) {
  char buffer[40];
  auto r = std::to_chars(buffer, buffer + sizeof buffer, v);
  out.append(buffer, r.ptr);
}

void append_hex_bytes(std::string& out, const std::byte* data, std::size_t size) {
  out += "0x";
  for (std::size_t i = 0; i < size; ++i) {
    auto b = static_cast<unsigned>(data[i]);
    out += kHexDigits[b >> 4];
    out += kHexDigits[b & 15];
  }
}

void append_f64(std::string& out, double v) {
  if (std::isnan(v)) {
    auto bits = std::bit_cast<std::uint64_t>(v);
    out += "0x";
    for (int shift = 60; shift >= 0; shift -= 4) out += kHexDigits[(bits >> shift) & 15];
  } else if (std::isinf(v)) {
    out += v < 0 ? "-inf" : "inf";
  } else {
    append_number(out, v);
  }
}

// Appends element i, and stores in `back` the element that the parser would make of this text, so that the caller can
// compare the bits. False when it has no decimal text.
bool append_element(std::string& out, const Tensor& t, std::int64_t i, std::byte* back) {
  DType d = t.dtype();
  if (d == DType::Bool) {
    bool v = t.at_i64(i) != 0;
    out += v ? "true" : "false";
    store_element(back, d, i, std::int64_t{v});
  } else if (d == DType::U64) {
    auto v = load_element<std::uint64_t>(t.data(), d, i);
    append_number(out, v);
    store_element(back, d, i, v);
  } else if (is_int(d) || d == DType::I4 || d == DType::U4) {
    append_number(out, t.at_i64(i));
    store_element(back, d, i, t.at_i64(i));
  } else if (is_complex(d)) {
    auto v = load_element<std::complex<double>>(t.data(), d, i);
    if (!std::isfinite(v.real()) || !std::isfinite(v.imag())) return false;
    out += "(";
    if (d == DType::C64) {
      append_number(out, static_cast<float>(v.real()));
      out += ", ";
      append_number(out, static_cast<float>(v.imag()));
    } else {
      append_number(out, v.real());
      out += ", ";
      append_number(out, v.imag());
    }
    out += ")";
    store_element(back, d, i, v);
  } else {
    double v = t.at(i);
    if (!std::isfinite(v)) return false;
    // The shortest text of a float is exact for every dtype whose values a float holds.
    if (d == DType::F64)
      append_number(out, v);
    else
      append_number(out, static_cast<float>(v));
    store_element(back, d, i, v);
  }
  return true;
}

void append_tensor(std::string& out, const Tensor& t, const TextOptions& options) {
  if (t.empty()) {
    out += "none";
    return;
  }
  out += t.shape().text() + " ";
  if (options.max_elements >= 0 && t.num_elements() > options.max_elements) {
    out += "...";
    return;
  }
  if (t.num_elements() <= options.max_decimal_elements) {
    std::string list = "{";
    std::vector<std::byte> back(t.size_bytes());
    bool decimal = true;
    for (std::int64_t i = 0; decimal && i < t.num_elements(); ++i) {
      if (i) list += ", ";
      decimal = append_element(list, t, i, back.data());
    }
    // Unusual bits (a Bool that is 2, padding of a packed dtype) have no decimal text either.
    if (decimal && (back.empty() || std::memcmp(back.data(), t.data(), back.size()) == 0)) {
      out += list + "}";
      return;
    }
  }
  append_hex_bytes(out, t.data(), t.size_bytes());
}

template <class List, class F>
void append_list(std::string& out, const List& list, F element) {
  out += "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i) out += ", ";
    element(list[i]);
  }
  out += "]";
}

void append_graph(std::string& out, const Graph& g, const TextOptions& options, int indent);

// "@epilogue(add, gelu)": the ops of a body in order.
std::string body_summary(const Graph& body) {
  std::string ops;
  for (const Node& n : body.nodes())
    if (!op_def(n.kind()).is_leaf()) ops += (ops.empty() ? "" : ", ") + op_text_name(n.op);
  return graph_name_text(body.name()) + "(" + ops + ")";
}

// A value without a name prints as its number, because errors about broken ops are printed here too.
std::string enum_text(const AttrField& f, std::int64_t v) {
  if (v < 0 || static_cast<std::size_t>(v) >= f.enum_names.size()) return std::to_string(v);
  return std::string(f.enum_names[static_cast<std::size_t>(v)]);
}

void append_attr(std::string& out, const AttrField& f, const AttrValue& v, const TextOptions& options, int indent) {
  if (std::holds_alternative<std::monostate>(v)) {
    out += "none";
    return;
  }
  switch (f.type) {
    case AttrType::Bool:
    case AttrType::OptBool: out += std::get<bool>(v) ? "true" : "false"; break;
    case AttrType::I64:
    case AttrType::OptI64: append_number(out, std::get<std::int64_t>(v)); break;
    case AttrType::F64:
    case AttrType::OptF64: append_f64(out, std::get<double>(v)); break;
    case AttrType::Operands: append_number(out, std::get<std::int64_t>(v)); break;
    case AttrType::Enum:
    case AttrType::OptEnum: out += enum_text(f, std::get<std::int64_t>(v)); break;
    case AttrType::String: {
      const auto& text = std::get<std::string>(v);
      out += quoted(options.bodies ? text : short_name(text));  // without bodies it is for a message, so shortened
      break;
    }
    case AttrType::DType:
    case AttrType::OptDType: out += dtype_name(std::get<DType>(v)); break;
    case AttrType::DimList: out += dims_text(std::get<Dims>(v)); break;
    case AttrType::I64List:
      append_list(out, std::get<std::vector<std::int64_t>>(v), [&](std::int64_t e) { append_number(out, e); });
      break;
    case AttrType::F64List:
      append_list(out, std::get<std::vector<double>>(v), [&](double e) { append_f64(out, e); });
      break;
    case AttrType::EnumList:
      append_list(out, std::get<std::vector<std::int64_t>>(v), [&](std::int64_t e) { out += enum_text(f, e); });
      break;
    case AttrType::Bytes: {
      const auto& bytes = std::get<std::vector<std::byte>>(v);
      append_hex_bytes(out, bytes.data(), bytes.size());
      break;
    }
    case AttrType::Tensor: append_tensor(out, std::get<Tensor>(v), options); break;
    case AttrType::Body:
    case AttrType::OptBody: {
      const auto& body = std::get<Subgraph>(v);
      if (!body)
        out += "none";
      else if (options.bodies)
        append_graph(out, *body, options, indent + 2);
      else
        out += body_summary(*body);
      break;
    }
  }
}

std::string attrs_text(const OpBox& op, const TextOptions& options, int indent) {
  std::string out;
  const OpBox& defaults = default_op(op.kind());
  for (const AttrField& f : attr_fields(op.kind())) {
    if (f.place != AttrPlace::Braces) continue;
    AttrValue v = f.get(op.data());
    if (same_attr(v, f.get(defaults.data()))) continue;
    if (!out.empty()) out += ", ";
    out += concat_text(f.name, " = ");
    append_attr(out, f, v, options, indent);
  }
  return out;
}

// "%0, scale=%1": an op with a mask of its optional operands prints these by name.
std::string operands_text(const Node& n) {
  const InputSpec& spec = op_def(n.op).inputs;
  const int count = static_cast<int>(n.inputs.size());
  const bool named = spec.masked && !check_operand_count(n.op, count);  // errors about broken ops are printed too
  std::string out;
  for (int i = 0; i < count; ++i) {
    if (i) out += ", ";
    if (named) {
      const std::string_view name = operand_name(n.op, count, i);
      for (int place = 0; place < spec.count; ++place)
        if (spec.names[place] == name && spec.is_optional(place)) out += concat_text(name, "=");
    }
    out += n.inputs[static_cast<std::size_t>(i)].text();
  }
  return out;
}

void append_node(std::string& out, const Graph& g, NodeId id, const TextOptions& options, int indent) {
  const Node& n = g.node(id);
  out += id.text();
  if (n.num_results() != 1) out += ":" + std::to_string(n.num_results());
  out += " = " + op_text_name(n.op) + "(" + operands_text(n) + ")";
  std::string attrs = attrs_text(n.op, options, indent);
  if (!attrs.empty()) out += " {" + attrs + "}";
  out += " : ";
  for (std::size_t r = 0; r < n.shapes.size(); ++r) out += (r ? ", " : "") + n.shapes[r].text();
  const Origin& o = n.origin;
  if (options.labels && !o.label.empty()) out += " @" + quoted(o.label);
  if (!options.origins) return;
  std::string comment;
  if (o.loc.line > 0) comment += concat_text(" ", o.loc.file, ":", o.loc.line);
  if (!o.pass.empty()) {
    comment += " by " + o.pass;
    for (std::size_t i = 0; i < o.from.size(); ++i) comment += (i ? ", " : " <- ") + o.from[i];
  }
  // A comment ends at the end of its line.
  std::replace(comment.begin(), comment.end(), '\n', ' ');
  if (!comment.empty()) out += "  //" + comment;
}

std::string symbol_text(const std::string& name, const SymbolInfo& info) {
  std::string out = "symbol " + name;
  const SymbolInfo defaults;
  if (info.min != defaults.min || info.max != defaults.max) out += concat_text(" [", info.min, ", ", info.max, "]");
  if (info.divisor != defaults.divisor) out += concat_text(" div ", info.divisor);
  return out;
}

void append_graph(std::string& out, const Graph& g, const TextOptions& options, int indent) {
  const std::string margin(static_cast<std::size_t>(indent) + 2, ' ');
  out += "graph " + graph_name_text(g.name()) + " {\n";
  for (const auto& [name, info] : g.symbols()) out += margin + symbol_text(name, info) + "\n";
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    out += margin;
    append_node(out, g, NodeId{i}, options, indent + 2);
    out += "\n";
  }
  if (!g.outputs().empty()) {
    out += margin + "return ";
    for (std::size_t i = 0; i < g.outputs().size(); ++i) out += (i ? ", " : "") + g.outputs()[i].text();
    out += "\n";
  }
  for (const auto& [symbol, source] : g.symbol_sources())
    out += margin + "set_symbol " + symbol + " " + source.text() + "\n";
  for (const auto& update : g.state_updates())
    out += margin + "set_state " + quoted(update.name) + " " + update.value.text() + "\n";
  out += std::string(static_cast<std::size_t>(indent), ' ') + "}";
}

}  // namespace

std::string print_text(const Graph& g, const TextOptions& options) {
  std::string out;
  append_graph(out, g, options, 0);
  return out + "\n";
}

std::string print_node(const Graph& g, NodeId id, const TextOptions& options) {
  std::string out;
  append_node(out, g, id, options, 0);
  return out;
}

std::string node_text(const Graph& g, NodeId id) {
  return print_node(g, id, {.labels = false, .bodies = false, .max_elements = 4});
}

std::string print_attrs(const OpBox& op, const TextOptions& options) { return attrs_text(op, options, 0); }

}  // namespace rlx
