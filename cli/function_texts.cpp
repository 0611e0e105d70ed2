// Reading the declarations and comments of the headers of rlx/functions.
#include <algorithm>
#include <utility>

#include "cli/op_texts.h"
#include "cli/terminal.h"

namespace rlx::cli {
namespace {

// The text without leading and trailing blanks.
std::string trimmed(std::string_view s) {
  const std::size_t first = s.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string()
                                         : std::string(s.substr(first, s.find_last_not_of(" \t\r") + 1 - first));
}

void append_words(std::string& text, std::string_view words) {
  if (!words.empty()) text += concat_text(text.empty() ? "" : " ", words);
}

// The number of `open` minus the number of `close`.
int depth(std::string_view s, char open, char close) {
  return static_cast<int>(std::count(s.begin(), s.end(), open) - std::count(s.begin(), s.end(), close));
}

// Splits "Losses: how far predictions are ..." into the title "Losses" and the rest.
void set_title(FunctionFamily& family, const std::string& comment) {
  std::size_t end = comment.size();
  for (std::string_view stop : {". ", ": ", "; "}) end = std::min(end, comment.find(stop));
  family.title = comment.substr(0, end);
  if (family.title.ends_with('.')) family.title.pop_back();
  // Text after a colon or semicolon is no sentence without the title, so `about` gets the whole sentence.
  const bool whole = end < comment.size() && comment[end] != '.';
  family.about = end == comment.size() ? std::string() : trimmed(std::string_view(comment).substr(whole ? 0 : end + 1));
}

// The declaration without the SourceLoc parameter, which callers omit, and without the text after the last parenthesis.
std::string shown_declaration(std::string text) {
  for (std::string_view origin : {", SourceLoc loc = SourceLoc::current()", "SourceLoc loc = SourceLoc::current()"})
    if (const std::size_t at = text.find(origin); at != std::string::npos) text.erase(at, origin.size());
  return text.substr(0, text.rfind(')') + 1);
}

// Reads one header, line by line.
class HeaderReader {
 public:
  explicit HeaderReader(FunctionFamily& family) : family_(family) {}

  void take(const std::string& line) {
    if (!statement_.empty()) return add_to_statement(line);
    if (line.starts_with("///")) {
      if (!in_comment_) comment_.clear();
      in_comment_ = true;
      append_words(comment_, trimmed(std::string_view(line).substr(3)));
      return;
    }
    const bool commented = std::exchange(in_comment_, false);
    if (line.starts_with("namespace ")) family_.space = line.substr(10, line.find(" {") - 10);
    if (line.empty() || line[0] == '#' || line[0] == '}' || line.starts_with("//") || line.starts_with("namespace ") ||
        line.starts_with("using ")) {
      group_ = false;  // such a line ends a list of functions that share a comment
      return;
    }
    commented_ = commented;
    add_to_statement(line);
  }

 private:
  void add_to_statement(const std::string& line) {
    statement_ += line + "\n";
    const std::string code = trimmed(line.substr(0, line.find("//")));  // a comment may hold any bracket
    open_ += depth(code, '(', ')') + depth(code, '{', '}');
    if (open_ == 0 && (code.ends_with(';') || code.ends_with('}'))) finish(std::exchange(statement_, {}));
  }

  void finish(const std::string& statement) {
    const bool type = statement.starts_with("struct ") || statement.starts_with("enum ");
    std::string comment = commented_ ? std::exchange(comment_, {}) : std::string();
    if (type) {
      family_.entries.push_back({{}, statement, std::move(comment)});
      group_ = false;
      return;
    }
    if (statement.starts_with("template") || statement.starts_with("class ")) return;
    std::string declaration;
    for (const std::string& line : split_lines(statement)) append_words(declaration, trimmed(line));
    declaration = shown_declaration(std::move(declaration));
    if (!commented_ && group_)
      family_.entries.back().declarations.push_back(std::move(declaration));
    else
      family_.entries.push_back({{std::move(declaration)}, {}, std::move(comment)});
    group_ = true;
  }

  FunctionFamily& family_;
  std::string comment_, statement_;
  int open_ = 0;  // parentheses and braces of the statement that are not closed yet
  bool in_comment_ = false;
  bool commented_ = false;  // the statement has a comment of its own
  bool group_ = false;      // a function without a comment is added to the last entry
};

}  // namespace

std::vector<FunctionFamily> function_families() {
  std::string_view all;
  for (const EmbeddedHeader& h : embedded_headers())
    if (h.path == "rlx/functions/functions.h") all = h.text;
  std::vector<FunctionFamily> out;
  for (const EmbeddedHeader& h : embedded_headers()) {
    if (all.find(concat_text("\"", h.path, "\"")) == std::string_view::npos) continue;
    FunctionFamily family;
    family.path = h.path;
    HeaderReader reader(family);
    std::string first;
    bool past_first = false;
    for (const std::string& line : split_lines(h.text)) {
      past_first = past_first || !line.starts_with("//");
      if (past_first)
        reader.take(line);
      else
        append_words(first, trimmed(std::string_view(line).substr(2)));
    }
    set_title(family, first);
    if (!family.entries.empty()) out.push_back(std::move(family));
  }
  return out;
}

}  // namespace rlx::cli
