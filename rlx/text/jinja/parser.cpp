// The parser of statements.
#include "rlx/text/jinja/parser.h"

#include <algorithm>

#include "rlx/base/utf8.h"
#include "rlx/error.h"

namespace rlx::jinja {

// -- tokens --

void Parser::meet(std::size_t index) const {
  if (tokens_.fault && index + 1 == tokens_.tokens.size()) throw *tokens_.fault;
}

const Token& Parser::look() {
  if (at_ + 1 >= tokens_.tokens.size()) return tokens_.tokens.back();
  meet(at_ + 1);
  return tokens_.tokens[at_ + 1];
}

void Parser::advance() {
  if (at_ + 1 < tokens_.tokens.size()) ++at_;
  meet(at_);
}

bool Parser::is_any(const Words& words) const {
  return is_kind(TokenKind::Name) && std::find(words.begin(), words.end(), current().text) != words.end();
}

bool Parser::skip_op(std::string_view op) {
  const bool found = is_op(op);
  if (found) advance();
  return found;
}

bool Parser::skip_name(std::string_view word) {
  const bool found = is_name(word);
  if (found) advance();
  return found;
}

Token Parser::expect(TokenKind kind, std::string_view description) {
  if (!is_kind(kind)) fail_expected(description);
  Token token = current();
  advance();
  return token;
}

Position Parser::expect_op(std::string_view op) {
  if (!is_op(op)) fail_expected(op);
  const Position at = current().at;
  advance();
  return at;
}

Position Parser::expect_name(std::string_view word) {
  if (!is_name(word)) fail_expected(word);
  const Position at = current().at;
  advance();
  return at;
}

void Parser::fail(std::string message, Position at, std::string_view type) const {
  throw Raised{std::string(type), std::move(message), at};
}

void Parser::fail_expected(std::string_view description) const {
  const std::string expected = repr_of_string(description);
  if (is_kind(TokenKind::End)) fail(concat_text("unexpected end of template, expected ", expected, "."), current().at);
  fail(concat_text("expected token ", expected, ", got ", repr_of_string(describe(current()))), current().at);
}

// With an empty `tag`: the template ends inside an open block.
void Parser::fail_unknown(std::string_view tag, Position at) {
  std::string message =
      tag.empty() ? "Unexpected end of template." : concat_text("Encountered unknown tag ", repr_of_string(tag), ".");
  if (!awaited_.empty()) {
    std::string wanted;
    for (const std::string_view word : awaited_.back()) {
      if (!wanted.empty()) wanted += " or ";
      wanted += repr_of_string(word);
    }
    bool elsewhere = false;
    for (const Words& words : awaited_) elsewhere |= std::find(words.begin(), words.end(), tag) != words.end();
    message += elsewhere ? concat_text(
                               " You probably made a nesting mistake. Jinja is expecting this tag, but currently "
                               "looking for ",
                               wanted, ".")
                         : concat_text(" Jinja was looking for the following tags: ", wanted, ".");
  }
  if (!open_tags_.empty())
    message += concat_text(" The innermost block that needs to be closed is ", repr_of_string(open_tags_.back()), ".");
  fail(std::move(message), at);
}

// -- statements --

StmtPtr Parser::make(Stmt::Type type, Position at) const {
  auto stmt = std::make_unique<Stmt>();
  stmt->type = type;
  stmt->at = at;
  return stmt;
}

Block Parser::statements(const Words& ends) {
  const Nested nested(nesting_, kMaxNesting, current().at);
  Block out;
  meet(at_);
  if (!ends.empty()) awaited_.push_back(ends);
  while (!is_kind(TokenKind::End)) {
    const Position at = current().at;
    if (is_kind(TokenKind::Data)) {
      out.push_back(make(Stmt::Type::Data, at));
      out.back()->text = current().text;
      advance();
    } else if (is_kind(TokenKind::VariableBegin)) {
      advance();
      out.push_back(make(Stmt::Type::Print, at));
      out.back()->exprs.push_back(tuple({}));
      expect(TokenKind::VariableEnd, "end of print statement");
    } else {
      advance();
      if (!ends.empty() && is_any(ends)) break;
      if (is_name("print")) {
        parse_print(out);
      } else {
        out.push_back(statement());
      }
      expect(TokenKind::BlockEnd, "end of statement block");
    }
  }
  if (!ends.empty()) awaited_.pop_back();
  return out;
}

Block Parser::body_until(const Words& ends, bool drop_end) {
  skip_op(":");
  expect(TokenKind::BlockEnd, "end of statement block");
  Block out = statements(ends);
  if (is_kind(TokenKind::End)) {
    awaited_.push_back(ends);
    fail_unknown({}, current().at);
  }
  if (drop_end) advance();
  return out;
}

StmtPtr Parser::statement() {
  if (!is_kind(TokenKind::Name)) fail("tag name expected", current().at);
  const std::string tag = current().text;
  const Position at = current().at;
  using Parse = StmtPtr (Parser::*)();
  static constexpr std::pair<std::string_view, Parse> kTags[] = {{"for", &Parser::parse_for},
                                                                 {"if", &Parser::parse_if},
                                                                 {"macro", &Parser::parse_macro},
                                                                 {"call", &Parser::parse_call},
                                                                 {"filter", &Parser::parse_filter_block},
                                                                 {"with", &Parser::parse_with},
                                                                 {"set", &Parser::parse_set},
                                                                 {"block", &Parser::parse_block},
                                                                 {"generation", &Parser::parse_generation}};
  for (const auto& [word, parse] : kTags) {
    if (tag != word) continue;
    open_tags_.push_back(tag);
    StmtPtr out = (this->*parse)();
    open_tags_.pop_back();
    return out;
  }
  if (tag == "break" || tag == "continue") {
    advance();
    return make(tag == "break" ? Stmt::Type::Break : Stmt::Type::Continue, at);
  }
  for (const std::string_view other : {"extends", "include", "import", "from", "autoescape"})
    if (tag == other)
      fail(concat_text("{% ", tag, " %} is not supported: a chat template is one file of plain text"), at,
           kUnsupported);
  fail_unknown(tag, at);
}

StmtPtr Parser::parse_for() {
  StmtPtr out = make(Stmt::Type::For, current().at);
  advance();
  out->targets.push_back(target("in", false));
  expect_name("in");
  TupleRules rules;
  rules.conditional = false;
  rules.end_word = "recursive";
  out->exprs.push_back(tuple(rules));
  if (skip_name("if")) out->test = expression();
  out->recursive = skip_name("recursive");
  out->body = body_until({"endfor", "else"}, false);
  const bool otherwise = !is_name("endfor");
  advance();
  if (otherwise) out->otherwise = body_until({"endfor"}, true);
  return out;
}

StmtPtr Parser::parse_if() {
  StmtPtr out = make(Stmt::Type::If, current().at);
  advance();
  Stmt* branch = out.get();
  TupleRules rules;
  rules.conditional = false;
  while (true) {
    branch->exprs.push_back(tuple(rules));
    branch->body = body_until({"elif", "else", "endif"}, false);
    if (skip_name("elif")) {
      out->elifs.push_back(make(Stmt::Type::If, current().at));
      branch = out->elifs.back().get();
      continue;
    }
    const bool otherwise = is_name("else");
    advance();
    if (otherwise) out->otherwise = body_until({"endif"}, true);
    return out;
  }
}

void Parser::parse_parameters(Stmt& stmt) {
  expect_op("(");
  while (!is_op(")")) {
    if (!stmt.targets.empty()) expect_op(",");
    stmt.targets.push_back(name_target());
    if (skip_op("=")) {
      stmt.defaults.push_back(expression());
    } else if (!stmt.defaults.empty()) {
      fail("non-default argument follows default argument", current().at);
    }
  }
  expect_op(")");
}

StmtPtr Parser::parse_macro() {
  StmtPtr out = make(Stmt::Type::Macro, current().at);
  advance();
  out->text = name_target()->text;
  parse_parameters(*out);
  out->body = body_until({"endmacro"}, true);
  return out;
}

StmtPtr Parser::parse_call() {
  StmtPtr out = make(Stmt::Type::Call, current().at);
  advance();
  if (is_op("(")) parse_parameters(*out);
  out->exprs.push_back(expression());
  if (out->exprs[0]->type != Expr::Type::Call) fail("expected call", out->at);
  out->body = body_until({"endcall"}, true);
  return out;
}

StmtPtr Parser::parse_generation() {
  StmtPtr out = make(Stmt::Type::Call, current().at);
  advance();
  out->generation = true;
  out->body = body_until({"endgeneration"}, true);
  return out;
}

StmtPtr Parser::parse_filter_block() {
  StmtPtr out = make(Stmt::Type::FilterBlock, current().at);
  advance();
  out->filter = filters(nullptr, true);
  out->body = body_until({"endfilter"}, true);
  return out;
}

StmtPtr Parser::parse_with() {
  StmtPtr out = make(Stmt::Type::With, current().at);
  advance();
  while (!is_kind(TokenKind::BlockEnd)) {
    if (!out->targets.empty()) expect_op(",");
    out->targets.push_back(target({}, false));
    expect_op("=");
    out->exprs.push_back(expression());
  }
  out->body = body_until({"endwith"}, true);
  return out;
}

// A block of a template that no other extends: its text with a frame of its own. Unless it is scoped, it sees the
// variables of the whole template only, so it must stand where these are all that there are.
StmtPtr Parser::parse_block() {
  StmtPtr out = make(Stmt::Type::With, current().at);
  advance();
  const std::string name = expect(TokenKind::Name, "name").text;
  const bool scoped = skip_name("scoped");
  if (is_name("required"))
    fail("{% block ... required %} is not supported: a chat template is one file", current().at, kUnsupported);
  if (is_op("-"))
    fail(
        "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an underscore "
        "instead.",
        current().at);
  if (!blocks_.insert(name).second)
    fail(concat_text("block ", repr_of_string(name), " defined twice"), out->at, "TemplateAssertionError");
  const auto inside = std::find_if(open_tags_.begin(), open_tags_.end() - 1, [](auto& tag) { return tag != "if"; });
  if (!scoped && inside != open_tags_.end() - 1)
    fail(concat_text("{% block %} inside of {% ", *inside, " %} is not supported; write {% block ", name,
                     " scoped %}, which sees the variables there"),
         out->at, kUnsupported);
  out->body = body_until({"endblock"}, true);
  (void)skip_name(name);
  return out;
}

StmtPtr Parser::parse_set() {
  StmtPtr out = make(Stmt::Type::Set, current().at);
  advance();
  out->targets.push_back(target({}, true));
  if (skip_op("=")) {
    out->exprs.push_back(tuple({}));
    return out;
  }
  out->type = Stmt::Type::SetBlock;
  out->filter = filters(nullptr);
  out->body = body_until({"endset"}, true);
  return out;
}

void Parser::parse_print(Block& out) {
  const Position at = current().at;
  advance();
  for (bool first = true; !is_kind(TokenKind::BlockEnd); first = false) {
    if (!first) expect_op(",");
    out.push_back(make(Stmt::Type::Print, at));
    out.back()->exprs.push_back(expression());
  }
}

std::unique_ptr<Program> compile(std::string_view source, std::string name) {
  constexpr std::size_t kMaxSource = std::size_t{1} << 20;
  auto program = std::make_unique<Program>();
  program->name = std::move(name);
  if (source.size() > kMaxSource) throw Raised{std::string(kLimit), "a chat template has at most 1 MiB", {}};
  if (const std::optional<std::size_t> bad = find_invalid_utf8(source))
    throw Raised{"TemplateSyntaxError", concat_text("byte ", *bad, " is not valid UTF-8"), {}};
  program->source = normalise_source(source);
  Parser(tokenize(program->source), *program).parse();
  bind_variables(*program);
  return program;
}

}  // namespace rlx::jinja
