// The parser of expressions, with jinja2's precedences: ~ is between + and *, and - before a number binds tighter than
// **.
#include <algorithm>

#include "rlx/error.h"
#include "rlx/text/jinja/parser.h"

namespace rlx::jinja {
namespace {

enum Level { kOr = 1, kAnd, kNot, kCompare, kSum, kConcat, kProduct, kPower };

using ExprType = Expr::Type;

bool is_compare(std::string_view op) {
  return op == "==" || op == "!=" || op == "<" || op == "<=" || op == ">" || op == ">=";
}

}  // namespace

ExprPtr Parser::make(Expr::Type type, Position at, std::vector<ExprPtr> parts) const {
  auto e = std::make_unique<Expr>();
  e->type = type;
  e->at = at;
  e->parts = std::move(parts);
  measure(*e);
  return e;
}

// Chains are built without recursion but evaluated with it, so the limit applies to the depth of the tree.
void Parser::measure(Expr& e) const {
  int depth = 0;
  const auto see = [&](const ExprPtr& part) {
    if (part) depth = std::max(depth, part->depth);
  };
  for (const ExprPtr& part : e.parts) see(part);
  for (const Keyword& k : e.keywords) see(k.value);
  see(e.spread);
  see(e.spread_keywords);
  e.depth = depth + 1;
  if (e.depth > kMaxDepth) throw Raised{std::string(kLimit), "an expression is nested too deeply", e.at};
}

ExprPtr Parser::string_constant(std::string text, Position at) {
  ExprPtr e = make(ExprType::String, at);
  e->constant = program_.strings.size();
  e->text = text;
  program_.strings.push_back(std::move(text));
  return e;
}

ExprPtr Parser::expression(bool conditional) {
  const Nested nested(depth_, 2 * kMaxDepth, current().at);
  ExprPtr e = operators(kOr);
  if (!conditional) return e;
  while (is_name("if")) {
    const Position at = current().at;
    advance();
    std::vector<ExprPtr> parts(3);
    parts[0] = operators(kOr);
    parts[1] = std::move(e);
    if (skip_name("else")) parts[2] = expression();
    e = make(ExprType::Conditional, at, std::move(parts));
  }
  return e;
}

namespace {

struct Operator {
  int level = 0;
  ExprType type = ExprType::None;
};

Operator operator_of(const Token& token) {
  const std::string& text = token.text;
  if (token.kind == TokenKind::Name) {
    if (text == "or") return {kOr, ExprType::Or};
    if (text == "and") return {kAnd, ExprType::And};
    if (text == "in" || text == "not") return {kCompare, ExprType::Compare};
    return {};
  }
  if (token.kind != TokenKind::Operator) return {};
  if (is_compare(text)) return {kCompare, ExprType::Compare};
  if (text == "+") return {kSum, ExprType::Add};
  if (text == "-") return {kSum, ExprType::Sub};
  if (text == "~") return {kConcat, ExprType::Concat};
  if (text == "*") return {kProduct, ExprType::Mul};
  if (text == "/") return {kProduct, ExprType::Div};
  if (text == "//") return {kProduct, ExprType::FloorDiv};
  if (text == "%") return {kProduct, ExprType::Mod};
  if (text == "**") return {kPower, ExprType::Pow};
  return {};
}

}  // namespace

ExprPtr Parser::operators(int least) {
  ExprPtr e;
  if (least <= kNot && is_name("not")) {
    const Nested nested(depth_, 2 * kMaxDepth, current().at);
    const Position at = current().at;
    advance();
    std::vector<ExprPtr> parts;
    parts.push_back(operators(kNot));
    e = make(ExprType::Not, at, std::move(parts));
  } else {
    e = unary(true);
  }
  while (true) {
    const Operator op = operator_of(current());
    if (op.level == 0 || op.level < least) return e;
    const Position at = current().at;
    std::vector<ExprPtr> parts;
    parts.push_back(std::move(e));
    if (op.type == ExprType::Compare) {
      std::vector<std::string> names;
      while (operator_of(current()).type == ExprType::Compare) {
        std::string name = current().text;
        if (name == "not") {
          const Token& next = look();
          if (next.kind != TokenKind::Name || next.text != "in") break;
          advance();
          name = "not in";
        }
        advance();
        names.push_back(std::move(name));
        parts.push_back(operators(kSum));
      }
      if (names.empty()) return std::move(parts[0]);  // a `not` that is not part of a comparison
      e = make(ExprType::Compare, at, std::move(parts));
      e->operators = std::move(names);
    } else if (op.type == ExprType::Concat) {
      while (skip_op("~")) parts.push_back(operators(kProduct));
      e = make(ExprType::Concat, at, std::move(parts));
    } else {
      advance();
      parts.push_back(op.type == ExprType::Pow ? unary(true) : operators(op.level + 1));
      e = make(op.type, at, std::move(parts));
    }
  }
}

ExprPtr Parser::unary(bool with_filters) {
  ExprPtr e;
  if (is_op("-") || is_op("+")) {
    const Nested nested(depth_, 2 * kMaxDepth, current().at);
    const ExprType type = is_op("-") ? ExprType::Neg : ExprType::Pos;
    const Position at = current().at;
    advance();
    std::vector<ExprPtr> parts;
    parts.push_back(unary(false));
    e = make(type, at, std::move(parts));
  } else {
    e = primary();
  }
  e = postfix(std::move(e));
  return with_filters ? filters_and_tests(std::move(e)) : std::move(e);
}

ExprPtr Parser::primary(bool with_namespace) {
  const Nested nested(depth_, 2 * kMaxDepth, current().at);
  const Token token = current();
  ExprPtr e;
  switch (token.kind) {
    case TokenKind::Name:
      advance();
      if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
        e = make(ExprType::Bool, token.at);
        e->integer = token.text[0] == 't' || token.text[0] == 'T';
      } else if (token.text == "none" || token.text == "None") {
        e = make(ExprType::None, token.at);
      } else if (with_namespace && skip_op(".")) {
        const Token attribute = expect(TokenKind::Name, "name");
        std::vector<ExprPtr> parts;
        parts.push_back(make(ExprType::Name, token.at));
        parts[0]->text = token.text;
        e = make(ExprType::NamespaceRef, token.at, std::move(parts));
        e->text = attribute.text;
      } else {
        e = make(ExprType::Name, token.at);
        e->text = token.text;
      }
      return e;
    case TokenKind::String: {
      std::string text;
      for (; is_kind(TokenKind::String); advance()) text += current().text;
      return string_constant(std::move(text), token.at);
    }
    case TokenKind::Integer:
      advance();
      e = make(ExprType::Int, token.at);
      e->integer = token.integer;
      e->text = token.large;
      return e;
    case TokenKind::Float:
      advance();
      e = make(ExprType::Float, token.at);
      e->real = token.real;
      return e;
    default: break;
  }
  if (skip_op("(")) {
    TupleRules rules;
    rules.parentheses = true;
    e = tuple(rules);
    expect_op(")");
    return e;
  }
  if (skip_op("[")) {
    std::vector<ExprPtr> items;
    while (!is_op("]")) {
      if (!items.empty()) expect_op(",");
      if (is_op("]")) break;
      items.push_back(expression());
    }
    expect_op("]");
    return make(ExprType::List, token.at, std::move(items));
  }
  if (skip_op("{")) {
    std::vector<ExprPtr> items;
    while (!is_op("}")) {
      if (!items.empty()) expect_op(",");
      if (is_op("}")) break;
      items.push_back(expression());
      expect_op(":");
      items.push_back(expression());
    }
    expect_op("}");
    return make(ExprType::Dict, token.at, std::move(items));
  }
  fail(concat_text("unexpected ", repr_of_string(describe(token))), token.at);
}

ExprPtr Parser::tuple(const TupleRules& rules) {
  const Position at = current().at;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_op(",");
    if (is_kind(TokenKind::VariableEnd) || is_kind(TokenKind::BlockEnd) || is_op(")") ||
        (!rules.end_word.empty() && is_name(rules.end_word)))
      break;
    items.push_back(rules.simplified ? primary(rules.with_namespace) : expression(rules.conditional));
    if (!is_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items[0]);
    if (!rules.parentheses)
      fail(concat_text("Expected an expression, got ", repr_of_string(describe(current()))), current().at);
  }
  return make(ExprType::Tuple, at, std::move(items));
}

ExprPtr Parser::postfix(ExprPtr e) {
  while (true) {
    if (is_op(".") || is_op("[")) {
      e = subscript(std::move(e));
    } else if (is_op("(")) {
      e = call(std::move(e));
    } else {
      return e;
    }
  }
}

ExprPtr Parser::filters_and_tests(ExprPtr e) {
  while (true) {
    if (is_op("|")) {
      e = filters(std::move(e));
    } else if (is_name("is")) {
      e = test(std::move(e));
    } else if (is_op("(")) {
      e = call(std::move(e));
    } else {
      return e;
    }
  }
}

ExprPtr Parser::subscript(ExprPtr e) {
  const Position at = current().at;
  std::vector<ExprPtr> parts;
  parts.push_back(std::move(e));
  if (skip_op(".")) {
    const Token token = current();
    advance();
    if (token.kind == TokenKind::Name) {
      ExprPtr out = make(ExprType::Attribute, at, std::move(parts));
      out->text = token.text;
      out->constant = program_.strings.size();
      program_.strings.push_back(token.text);
      return out;
    }
    if (token.kind != TokenKind::Integer) fail("expected name or number", token.at);
    parts.push_back(make(ExprType::Int, token.at));
    parts[1]->integer = token.integer;
    return make(ExprType::Item, at, std::move(parts));
  }
  advance();
  std::vector<ExprPtr> items;
  while (!is_op("]")) {
    if (!items.empty()) expect_op(",");
    items.push_back(subscribed());
  }
  expect_op("]");
  if (items.size() == 1) {
    parts.push_back(std::move(items[0]));
  } else {
    for (const ExprPtr& item : items)
      if (item->type == ExprType::Slice) fail("invalid syntax", item->at, "SyntaxError");
    parts.push_back(make(ExprType::Tuple, at, std::move(items)));
  }
  return make(ExprType::Item, at, std::move(parts));
}

ExprPtr Parser::subscribed() {
  const Position at = current().at;
  std::vector<ExprPtr> parts(3);
  if (!is_op(":")) {
    ExprPtr e = expression();
    if (!is_op(":")) return e;
    parts[0] = std::move(e);
  }
  advance();
  const auto at_end = [&] { return is_op("]") || is_op(","); };
  if (!is_op(":") && !at_end()) parts[1] = expression();
  if (skip_op(":") && !at_end()) parts[2] = expression();
  return make(ExprType::Slice, at, std::move(parts));
}

void Parser::arguments(Expr& e) {
  const Position at = expect_op("(");
  const auto ensure = [&](bool good) {
    if (!good) fail("invalid syntax for function call expression", at);
  };
  bool comma = false;
  while (!is_op(")")) {
    if (comma) {
      expect_op(",");
      if (is_op(")")) break;
    }
    comma = true;
    if (is_op("*")) {
      ensure(!e.spread && !e.spread_keywords);
      advance();
      e.spread = expression();
    } else if (is_op("**")) {
      ensure(!e.spread_keywords);
      advance();
      e.spread_keywords = expression();
    } else if (is_kind(TokenKind::Name) && look().kind == TokenKind::Operator && look().text == "=") {
      ensure(!e.spread_keywords);
      Keyword keyword;
      keyword.name = current().text;
      advance();
      advance();
      keyword.value = expression();
      e.keywords.push_back(std::move(keyword));
    } else {
      ensure(!e.spread && !e.spread_keywords && e.keywords.empty());
      e.parts.push_back(expression());
    }
  }
  expect_op(")");
  measure(e);
}

ExprPtr Parser::call(ExprPtr e) {
  std::vector<ExprPtr> parts;
  const Position at = current().at;
  parts.push_back(std::move(e));
  ExprPtr out = make(ExprType::Call, at, std::move(parts));
  arguments(*out);
  return out;
}

ExprPtr Parser::filters(ExprPtr e, bool inline_start) {
  while (inline_start || is_op("|")) {
    if (!inline_start) advance();
    inline_start = false;
    const Token token = expect(TokenKind::Name, "name");
    std::vector<ExprPtr> parts;
    parts.push_back(std::move(e));
    ExprPtr out = make(ExprType::Filter, token.at, std::move(parts));
    out->text = token.text;
    while (skip_op(".")) out->text += "." + expect(TokenKind::Name, "name").text;
    if (is_op("(")) arguments(*out);
    e = std::move(out);
  }
  return e;
}

ExprPtr Parser::test(ExprPtr e) {
  const Position at = current().at;
  advance();
  const bool negated = skip_name("not");
  std::vector<ExprPtr> parts;
  parts.push_back(std::move(e));
  ExprPtr out = make(ExprType::Test, at, std::move(parts));
  out->text = expect(TokenKind::Name, "name").text;
  while (skip_op(".")) out->text += "." + expect(TokenKind::Name, "name").text;
  const bool starts_operand = is_kind(TokenKind::Name) || is_kind(TokenKind::String) || is_kind(TokenKind::Integer) ||
                              is_kind(TokenKind::Float) || is_op("[") || is_op("{");
  if (is_op("(")) {
    arguments(*out);
  } else if (starts_operand && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) fail("You cannot chain multiple tests with is", current().at);
    out->parts.push_back(postfix(primary()));
    measure(*out);
  }
  if (!negated) return out;
  parts.clear();
  parts.push_back(std::move(out));
  return make(ExprType::Not, at, std::move(parts));
}

// -- targets --

namespace {

std::string_view class_of(const Expr& e) {
  switch (e.type) {
    case ExprType::Name: return "name";
    case ExprType::None:
    case ExprType::Bool:
    case ExprType::Int:
    case ExprType::Float:
    case ExprType::String: return "const";
    case ExprType::List: return "list";
    case ExprType::Tuple: return "tuple";
    case ExprType::Dict: return "dict";
    case ExprType::Add: return "add";
    case ExprType::Sub: return "sub";
    case ExprType::Mul: return "mul";
    case ExprType::Div: return "div";
    case ExprType::FloorDiv: return "floordiv";
    case ExprType::Mod: return "mod";
    case ExprType::Pow: return "pow";
    case ExprType::Neg: return "neg";
    case ExprType::Pos: return "pos";
    case ExprType::Not: return "not";
    case ExprType::And: return "and";
    case ExprType::Or: return "or";
    case ExprType::Concat: return "concat";
    case ExprType::Compare: return "compare";
    case ExprType::Attribute: return "getattr";
    case ExprType::Item: return "getitem";
    case ExprType::Call: return "call";
    case ExprType::Filter: return "filter";
    case ExprType::Test: return "test";
    case ExprType::Conditional: return "condexpr";
    case ExprType::NamespaceRef: return "nsref";
    case ExprType::Slice: return "slice";
  }
  return {};
}

bool can_assign(const Expr& e) {
  if (e.type == ExprType::Tuple)
    return std::all_of(e.parts.begin(), e.parts.end(), [](const ExprPtr& p) { return can_assign(*p); });
  return e.type == ExprType::Name || e.type == ExprType::NamespaceRef;
}

}  // namespace

void Parser::store(Expr& e) const {
  if (e.type == ExprType::Name) e.stored = true;
  if (e.type == ExprType::Tuple)
    for (const ExprPtr& part : e.parts) store(*part);
}

ExprPtr Parser::target(std::string_view end_word, bool with_namespace) {
  TupleRules rules;
  rules.simplified = true;
  rules.with_namespace = with_namespace;
  rules.end_word = end_word;
  ExprPtr e = tuple(rules);
  if (!can_assign(*e)) fail(concat_text("can't assign to ", repr_of_string(class_of(*e))), e->at);
  store(*e);
  return e;
}

ExprPtr Parser::name_target() {
  const Token token = expect(TokenKind::Name, "name");
  for (const std::string_view word : {"true", "false", "none", "True", "False", "None"})
    if (token.text == word) fail("can't assign to 'name'", token.at);
  ExprPtr e = make(ExprType::Name, token.at);
  e->text = token.text;
  e->stored = true;
  return e;
}

}  // namespace rlx::jinja
