// Reading the comments of headers.
#include "cli/op_texts.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "cli/terminal.h"

namespace rlx::cli {
namespace {

constexpr std::string_view kStructNames[] = {
#define RLX_STRUCT_NAME(Kind) #Kind,
    RLX_FOR_EACH_OP(RLX_STRUCT_NAME)
#undef RLX_STRUCT_NAME
};

std::string stripped(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front())) != 0) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back())) != 0) s.remove_suffix(1);
  return std::string(s);
}

// "// Op structs of matrix products." -> "Matrix products"; of those that do something "Ops that ...".
std::string title_of(std::string_view text) {
  std::string line = stripped(text.substr(0, text.find('\n')));
  const auto replace = [&line](std::string_view prefix, std::string_view by) {
    if (!line.starts_with(prefix)) return;
    line.replace(0, prefix.size(), by);
  };
  replace("// ", "");
  for (std::string_view prefix : {"Op structs of ", "The op struct of ", "Op structs: "}) replace(prefix, "");
  replace("Op structs", "Ops");
  while (!line.empty() && (line.back() == '.' || line.back() == ',')) line.pop_back();
  if (!line.empty()) line[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(line[0])));
  return line;
}

// Lines of "///" become text, which `declaration` takes and forgets.
class CommentLines {
 public:
  /// True when the line was one of a comment.
  bool take(std::string_view line) {
    if (!line.starts_with("///")) return false;
    const std::string words = stripped(line.substr(3));
    if (!words.empty()) text_ += (text_.empty() ? "" : " ") + words;
    return true;
  }
  std::string release() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

struct FoundStruct {
  std::string_view header;
  std::string comment;
};
FoundStruct find_struct(OpKind kind) {
  const std::string_view name = kStructNames[static_cast<std::size_t>(kind)];
  const std::string opening = concat_text("struct ", name, " {");
  for (const EmbeddedHeader& h : embedded_headers()) {
    if (!h.path.starts_with("rlx/ir/ops/")) continue;
    CommentLines comment;
    for (const std::string& line : split_lines(h.text)) {
      if (comment.take(line)) continue;
      const std::string text = comment.release();
      if (line.starts_with(opening)) return {h.text, text};
    }
  }
  return {};
}

// The name that a declaration declares: what stands in front of its first parenthesis.
std::string declared_name(const std::string& declaration) {
  const std::size_t end = declaration.find('(');
  if (end == std::string::npos) return {};
  std::size_t begin = end;
  while (begin > 0 &&
         (std::isalnum(static_cast<unsigned char>(declaration[begin - 1])) != 0 || declaration[begin - 1] == '_'))
    --begin;
  return declaration.substr(begin, end - begin);
}

}  // namespace

std::string family_of(OpKind kind) { return title_of(find_struct(kind).header); }
std::string struct_comment(OpKind kind) { return find_struct(kind).comment; }

std::vector<CompositeFamily> composite_families() {
  std::vector<CompositeFamily> out;
  for (const EmbeddedHeader& h : embedded_headers()) {
    if (!h.path.starts_with("rlx/functions/")) continue;
    CompositeFamily family{title_of(h.text), {}};
    std::string space, declaration, text;
    CommentLines comment;
    int braces = 0;  // inside of structs and classes nothing is a function of ours
    for (const std::string& line : split_lines(h.text)) {
      if (line.starts_with("namespace rlx")) {
        const std::string name = line.substr(10, line.find(" {") == std::string::npos ? 0 : line.find(" {") - 10);
        space = name.starts_with("::") ? name.substr(2) + "::" : "";
        continue;
      }
      if (declaration.empty() && braces == 0 && comment.take(line)) continue;
      if (declaration.empty()) {
        text = comment.release();
        if (braces == 0 && (text.empty() || line.starts_with("struct ") || line.starts_with("class ") ||
                            line.starts_with("enum ") || line.starts_with("template")))
          text.clear();
      }
      if (!text.empty()) {
        declaration += (declaration.empty() ? "" : " ") + stripped(line);
        const bool whole = declaration.find(';') != std::string::npos || declaration.find('{') != std::string::npos;
        if (whole) {
          std::string shown = declaration.substr(0, declaration.find_first_of(";{"));
          if (const std::string name = declared_name(shown); !name.empty())
            family.functions.push_back({space + name, stripped(shown), text});
        }
        for (const char c : line) braces += c == '{' ? 1 : c == '}' ? -1 : 0;
        if (whole) declaration.clear(), text.clear();
        continue;
      }
      for (const char c : line) braces += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (line.starts_with("}")) braces = 0;  // the end of a namespace
    }
    if (!family.functions.empty()) out.push_back(std::move(family));
  }
  return out;
}

}  // namespace rlx::cli
