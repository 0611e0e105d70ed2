// The parser of chat templates: statements in parser.cpp, expressions in expressions.cpp.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/jinja/lexer.h"
#include "rlx/text/jinja/program.h"

namespace rlx::jinja {

class Parser {
 public:
  Parser(Tokens tokens, Program& program) : tokens_(std::move(tokens)), program_(program) {}
  void parse() { program_.body = statements({}); }

 private:
  static constexpr int kMaxNesting = 100;  // nested statements, the limit of Python's compiler
  static constexpr int kMaxDepth = 200;    // nested expressions, the limit of Python's parser
  using Words = std::vector<std::string_view>;

  // -- tokens --
  const Token& current() const { return tokens_.tokens[at_]; }
  const Token& look();
  void advance();
  void meet(std::size_t index) const;  // throws the lexer's error when it is at `index`
  bool is_kind(TokenKind kind) const { return current().kind == kind; }
  bool is_op(std::string_view op) const { return is_kind(TokenKind::Operator) && current().text == op; }
  bool is_name(std::string_view word) const { return is_kind(TokenKind::Name) && current().text == word; }
  bool is_any(const Words& words) const;
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view word);
  Token expect(TokenKind kind, std::string_view description);
  Position expect_op(std::string_view op);
  Position expect_name(std::string_view word);
  [[noreturn]] void fail(std::string message, Position at, std::string_view type = "TemplateSyntaxError") const;
  [[noreturn]] void fail_expected(std::string_view description) const;
  [[noreturn]] void fail_unknown(std::string_view tag, Position at);

  // -- statements --
  Block statements(const Words& ends);
  Block body_until(const Words& ends, bool drop_end);
  StmtPtr statement();
  StmtPtr make(Stmt::Type type, Position at) const;
  StmtPtr parse_for();
  StmtPtr parse_if();
  StmtPtr parse_macro();
  StmtPtr parse_call();
  StmtPtr parse_generation();
  StmtPtr parse_filter_block();
  StmtPtr parse_with();
  StmtPtr parse_set();
  StmtPtr parse_block();
  void parse_print(Block& out);
  void parse_parameters(Stmt& stmt);

  // -- expressions --
  ExprPtr make(Expr::Type type, Position at, std::vector<ExprPtr> parts = {}) const;
  void measure(Expr& e) const;
  ExprPtr string_constant(std::string text, Position at);
  ExprPtr expression(bool conditional = true);
  ExprPtr operators(int least);
  ExprPtr unary(bool with_filters);
  ExprPtr primary(bool with_namespace = false);
  ExprPtr postfix(ExprPtr e);
  ExprPtr filters_and_tests(ExprPtr e);
  ExprPtr filters(ExprPtr e, bool inline_start = false);
  ExprPtr test(ExprPtr e);
  ExprPtr subscript(ExprPtr e);
  ExprPtr subscribed();
  ExprPtr call(ExprPtr e);
  void arguments(Expr& e);
  struct TupleRules {
    bool simplified = false, conditional = true, parentheses = false, with_namespace = false;
    std::string_view end_word = {};
  };
  ExprPtr tuple(const TupleRules& rules);
  ExprPtr target(std::string_view end_word, bool with_namespace);
  ExprPtr name_target();
  void store(Expr& e) const;

  struct Nested {  // counts nesting
    Nested(int& depth, int limit, Position at) : depth_(depth) {
      if (++depth_ > limit) throw Raised{std::string(kLimit), "the template is nested too deeply", at};
    }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --depth_; }
    int& depth_;
  };

  Tokens tokens_;
  Program& program_;
  std::size_t at_ = 0;
  int nesting_ = 0, depth_ = 0;
  std::vector<std::string> open_tags_;
  std::set<std::string> blocks_;
  std::vector<Words> awaited_;
};

/// Resolves every variable: which frame a name belongs to, and its value when the frame begins.
void bind_variables(Program& program);

}  // namespace rlx::jinja
