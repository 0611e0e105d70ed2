#include "cli/graph_file.h"

#include <algorithm>
#include <charconv>
#include <complex>

#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/tensor/visit.h"

namespace rlx::cli {
namespace {

template <class V>
void append_shortest(std::string& out, V v) {
  char digits[64];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
}

// Prints a float element with the digits of its own precision: 0.1f as 0.1.
void append_float(std::string& out, DType t, double v) {
  if (t == DType::F64 || t == DType::C128)
    append_shortest(out, v);
  else
    append_shortest(out, static_cast<float>(v));
}

void append_element(std::string& out, const Tensor& t, std::int64_t i) {
  const DType d = t.dtype();
  if (is_complex(d)) {
    const auto z = load_element<std::complex<double>>(t.data(), d, i);
    out += '(';
    append_float(out, d, z.real());
    out += ", ";
    append_float(out, d, z.imag());
    out += ')';
  } else if (d == DType::Bool) {
    out += t.at_i64(i) ? "true" : "false";
  } else if (d == DType::U64) {
    append_shortest(out, load_element<std::uint64_t>(t.data(), d, i));
  } else if (is_int(d) || d == DType::I4 || d == DType::U4) {
    append_shortest(out, t.at_i64(i));
  } else {
    append_float(out, d, t.at(i));
  }
}

}  // namespace

Graph read_graph(const std::string& path) {
  const std::string content = read_text(path);
  const std::string source = path == "-" ? "the standard input" : path;
  if (content.starts_with("RLXPROG"))
    throw Error(ErrorCode::BadFile, concat_text(source, " is a program that Python saved, not a graph file"),
                "rlx.load reads it; f.lower(..).as_text() in Python is the text of a graph file");
  // A graph text has no zero byte. Files with one go to the binary reader, whose errors are more exact.
  const bool binary = content.starts_with("RLXGRAPH") || content.find('\0') != std::string::npos;
  Graph g = binary ? from_bytes(std::as_bytes(std::span(content)), source) : parse_text(content, source);
  verify_or_throw(g, Level::Hir, source);
  return g;
}

Binding split_binding(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || is_file(text)) return {"", text};
  if (at + 1 == text.size())
    throw UsageError(ErrorCode::InvalidArgument, concat_text("'", text, "' has no file name"),
                     "write it like x=FILE.npy");
  return {text.substr(0, at), text.substr(at + 1)};
}

SymbolBinding parse_symbols(const Graph& g, const std::vector<std::string>& texts) {
  SymbolBinding out;
  const std::vector<std::string> symbols = g.dynamic_symbols();
  for (const std::string& text : texts) {
    const std::size_t at = text.find('=');
    const std::string name = text.substr(0, at);
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const char* first = at == std::string::npos ? end : text.data() + at + 1;
    const auto [rest, failed] = std::from_chars(first, end, value);
    if (failed == std::errc::result_out_of_range)
      throw UsageError(ErrorCode::InvalidArgument, concat_text("'", text, "': the dimension is too large"),
                       "a dimension must be below 2^63");
    if (first == end || rest != end || failed != std::errc{} || value < 0)
      throw UsageError(ErrorCode::InvalidArgument, concat_text("'", text, "' does not bind a dimension"),
                       "write it like batch=8");
    if (!std::binary_search(symbols.begin(), symbols.end(), name) && !g.symbols().contains(name)) {
      throw UsageError(
          ErrorCode::InvalidArgument, concat_text("the graph has no symbol '", name, "'"),
          symbols.empty() ? "all of its dimensions are numbers" : concat_text("it has ", quoted_names(symbols)));
    }
    if (auto it = g.symbols().find(name); it != g.symbols().end())
      check_arguments([&] { check_symbol_value(name, it->second, value); });
    if (!out.emplace(name, value).second)
      throw UsageError(ErrorCode::InvalidArgument, concat_text("dimension '", name, "' is bound twice"));
  }
  return out;
}

namespace {
std::vector<std::string> open_symbols(const Graph& g, const SymbolBinding& binding) {
  std::vector<std::string> open = g.dynamic_symbols();
  std::erase_if(open, [&](const std::string& name) { return binding.contains(name); });
  return open;
}
}  // namespace

std::string without_value(const Graph& g, const SymbolBinding& binding) {
  const std::vector<std::string> open = open_symbols(g, binding);
  if (open.empty()) return {};
  return concat_text(open.size() == 1 ? "dimension " : "dimensions ", quoted_names(open, open.size()),
                     open.size() == 1 ? " has no value" : " have no value");
}

std::string bind_options(const Graph& g, const SymbolBinding& binding) {
  std::string out;
  for (const std::string& name : open_symbols(g, binding)) {
    const auto it = g.symbols().find(name);
    const SymbolInfo info = it == g.symbols().end() ? SymbolInfo{} : it->second;
    std::int64_t value = std::clamp(std::int64_t{16}, info.min, info.max);
    value -= value % info.divisor;
    if (value < info.min) value += info.divisor;
    out += concat_text(out.empty() ? "" : " ", "--bind ", name, "=", value);
  }
  return out;
}

std::string tensor_text(const Tensor& t, std::int64_t max_values) {
  std::string out = t.shape().text();
  if (t.rank() == 0) {
    out += ' ';
    append_element(out, t, 0);
    return out + "\n";
  }
  out += '\n';
  const std::int64_t n = t.num_elements(), row = std::max<std::int64_t>(t.dim(-1), 1);
  for (std::int64_t i = 0; i < std::min(n, max_values); ++i) {
    out += i % row == 0 ? "  " : " ";
    append_element(out, t, i);
    if (i % row == row - 1) out += '\n';
  }
  if (n > max_values) out += concat_text(max_values % row ? " ..." : "  ...", " (", n - max_values, " more)\n");
  return out;
}

}  // namespace rlx::cli
