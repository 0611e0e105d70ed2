// A small reader of C++ declarations, enough for the headers of this repository; header_scan_test checks it.
#include "tests/unit/api/header_scan.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "rlx/error.h"

namespace rlx::test {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name(const std::string& t) {
  return !t.empty() && is_word(t[0]) && !std::isdigit(static_cast<unsigned char>(t[0]));
}

// The words and punctuation of a text, without comments, literals and preprocessor lines.
std::vector<std::string> tokens_of(const std::string& s) {
  std::vector<std::string> out;
  bool line_start = true;
  for (std::size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (c == '\n') {
      line_start = true;
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (s.compare(i, 2, "//") == 0) {
      i = std::min(s.find('\n', i), s.size());
    } else if (s.compare(i, 2, "/*") == 0) {
      i = std::min(s.find("*/", i), s.size() - 2) + 2;
    } else if (c == '#' && line_start) {
      while (i < s.size() && s[i] != '\n') i += s[i] == '\\' ? 2 : 1;
    } else if (c == '"' || c == '\'') {
      for (++i; i < s.size() && s[i] != c; ++i) i += s[i] == '\\' ? 1 : 0;
      ++i;
      out.emplace_back("0");
      line_start = false;
    } else if (is_word(c)) {
      const std::size_t begin = i;
      while (i < s.size() && (is_word(s[i]) || (s[i] == '\'' && is_word(s[i - 1]) &&
                                                std::isdigit(static_cast<unsigned char>(s[begin])))))
        ++i;
      out.push_back(s.substr(begin, i - begin));
      line_start = false;
    } else {
      std::string t(1, c);
      for (const char* two : {"::", "->", "&&", "||", "==", "!=", "<=", ">="})
        if (s.compare(i, 2, two) == 0) t = two;
      out.push_back(t);
      i += t.size();
      line_start = false;
    }
  }
  return out;
}

class Reader {
 public:
  explicit Reader(std::vector<std::string> tokens) : t_(std::move(tokens)) {}
  std::vector<std::string> read() {
    while (at_ < t_.size()) declaration("", true);
    return std::move(found_);
  }

 private:
  const std::string& peek(std::size_t ahead = 0) const {
    static const std::string end;
    return at_ + ahead < t_.size() ? t_[at_ + ahead] : end;
  }
  bool eat(const char* token) {
    if (peek() != token) return false;
    ++at_;
    return true;
  }
  // The position after the bracket that closes the one at the current position.
  void skip_balanced() {
    int depth = 0;
    do {
      const std::string& t = peek();
      if (t.empty()) throw Error(ErrorCode::BadFile, "a bracket of a header is never closed");
      depth += (t == "(" || t == "{" || t == "[") - (t == ")" || t == "}" || t == "]");
      ++at_;
    } while (depth > 0);
  }
  // The position after the `>` of the `<` at the current position.
  void skip_angles() {
    int depth = 0;
    do {
      const std::string& t = peek();
      if (t.empty()) throw Error(ErrorCode::BadFile, "a template list of a header is never closed");
      if (t == "(" || t == "{" || t == "[") {
        skip_balanced();
        continue;
      }
      depth += (t == "<") - (t == ">");
      ++at_;
    } while (depth > 0);
  }
  void skip_requires() {
    do {
      if (eat("requires")) {
        if (peek() == "(") skip_balanced();
        skip_balanced();
      } else if (peek() == "(") {
        skip_balanced();
      } else {
        while (is_name(peek()) || peek() == "::") {
          ++at_;
          if (peek() == "<") skip_angles();
          if (is_name(peek(0)) && t_[at_ - 1] != "::") break;  // the declaration begins
        }
      }
    } while (eat("&&") || eat("||"));
  }
  void body_or_end() {  // after the parameters of a function, which is recorded before
    while (at_ < t_.size()) {
      if (eat(";")) return;
      if (peek() == "{") return skip_balanced();
      if (eat(":")) {  // member initialisers
        do {
          while (peek() != "(" && peek() != "{") {
            if (peek() == "<")
              skip_angles();
            else
              ++at_;
          }
          skip_balanced();
        } while (eat(","));
        continue;
      }
      if (eat("requires")) {
        skip_requires();
        continue;
      }
      if (peek() == "(")
        skip_balanced();
      else
        ++at_;
    }
  }

  // The members of a class, up to the closing brace.
  void members(const std::string& scope, bool open) {
    bool shown = open;
    while (at_ < t_.size() && !eat("}")) {
      if ((peek() == "public" || peek() == "private" || peek() == "protected") && peek(1) == ":") {
        shown = peek() == "public";
        at_ += 2;
        continue;
      }
      declaration(scope, shown);
    }
    eat(";");
  }

  void declaration(const std::string& scope, bool shown) {
    if (eat(";") || eat("}")) return;
    while (peek() == "[" && peek(1) == "[") skip_balanced();
    if (eat("template")) {
      skip_angles();
      if (eat("requires")) skip_requires();
      return declaration(scope, shown);
    }
    if (peek() == "namespace") {
      std::string name;
      for (++at_; peek() != "{" && !peek().empty(); ++at_) name += peek();
      if (name.find("detail") != std::string::npos) return skip_balanced();
      ++at_;
      return members("", true);
    }
    const bool friendly = eat("friend");
    if (peek() == "extern" || peek() == "using" || peek() == "static_assert" || peek() == "typedef" ||
        peek() == "concept")
      return skip_statement();
    if (peek() == "enum") return skip_statement();
    if (peek() == "class" || peek() == "struct") {
      const bool is_class = peek() == "class";
      const std::size_t start = at_;
      std::string name;
      ++at_;
      while (peek() == "[") skip_balanced();
      while (is_name(peek()) || peek() == "::") {
        if (peek() != "final") name += peek();
        ++at_;
        if (peek() == "<") skip_angles();
      }
      if (peek() == ":") {  // bases
        while (peek() != "{") ++at_;
      }
      if (eat("{")) {
        const std::string inner = scope.empty() ? name : scope + "::" + name;
        if (!shown) {
          --at_;
          skip_balanced();
          eat(";");
          return;
        }
        return members(inner, !is_class);
      }
      at_ = start + 1;  // a forward declaration, or the type of a member
    }
    // A variable or a function. The first bracket outside template lists decides which.
    std::string name;
    while (at_ < t_.size()) {
      const std::string t = peek();
      if (t == ";") {
        ++at_;
        return;
      }
      if (t == "=") return skip_statement();
      if (t == "{") return skip_statement();
      if (t == "[") {
        skip_balanced();
        continue;
      }
      if (t == "decltype") {
        ++at_;
        skip_balanced();
        continue;
      }
      if (t == "operator") {
        name = "operator";
        ++at_;
        if (peek() == "(") {
          name += "()";
          at_ += 2;
        }
        while (peek() != "(") {
          name += (is_name(peek()) ? " " : "") + peek();
          ++at_;
        }
      } else if (t == "<") {
        skip_angles();
        continue;
      } else if (t != "(") {
        name = t == "::" || (name.size() > 2 && name.ends_with("::")) ? name + t : name == "~" ? "~" + t : t;
        ++at_;
        continue;
      }
      if (peek() != "(") continue;
      if (peek(1) == "*" || peek(1) == "(") return skip_statement();  // a pointer to a function
      skip_balanced();
      const std::size_t behind = at_;
      body_or_end();
      std::string tail;
      for (std::size_t i = behind; i + 1 < at_ && i < behind + 6; ++i) tail += t_[i];
      const bool generated = tail.find("=delete") != std::string::npos || tail.find("=default") != std::string::npos;
      const bool macro =
          std::all_of(name.begin(), name.end(), [](char c) { return !std::islower(static_cast<unsigned char>(c)); }) &&
          !name.starts_with("operator") && name.size() > 1;
      if (shown && !generated && !macro && !name.starts_with("~") && name.find("::") == std::string::npos)
        record(scope.empty() || friendly ? name : scope + "::" + name);
      return;
    }
  }
  void skip_statement() {
    while (at_ < t_.size() && !eat(";")) {
      if (peek() == "{" || peek() == "(" || peek() == "[")
        skip_balanced();
      else
        ++at_;
    }
  }
  void record(std::string name) {
    if (std::find(found_.begin(), found_.end(), name) == found_.end()) found_.push_back(std::move(name));
  }

  std::vector<std::string> t_;
  std::size_t at_ = 0;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> public_functions(const std::string& header_text) {
  return Reader(tokens_of(header_text)).read();
}

}  // namespace rlx::test
