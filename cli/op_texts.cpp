// Reads the comments of headers.
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

// "// Op structs of matrix products." -> "Matrix products"; "// Op structs that ..." -> "Ops that ...".
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

// Collects the text of "///" lines until `release` takes it.
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

}  // namespace

std::string family_of(OpKind kind) { return title_of(find_struct(kind).header); }
std::string struct_comment(OpKind kind) { return find_struct(kind).comment; }

}  // namespace rlx::cli
