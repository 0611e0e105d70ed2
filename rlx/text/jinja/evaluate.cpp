// Evaluation of expressions of chat templates.
#include "rlx/error.h"
#include "rlx/text/jinja/render.h"

namespace rlx::jinja {

Value Renderer::constant(std::size_t index) {
  Value& v = constants_[index];
  if (v.missing()) v = heap_.string(program_.strings[index]);
  return v;
}

Value Renderer::eval(const Expr& e, Activation& a) {
  using Type = Expr::Type;
  heap_.step();
  switch (e.type) {
    case Type::Name: {
      const Value& v = variable(e.ref, a);
      return v.missing() ? heap_.undefined_variable(e.text) : v;
    }
    case Type::None: return Value::none();
    case Type::Bool: return Value::boolean(e.integer != 0);
    case Type::Int:
      if (e.text.empty()) return Value::integer(e.integer);
      heap_.step(e.text.size());
      return heap_.integer(*BigInteger::parse(e.text, 10));
    case Type::Float: return Value::real(e.real);
    case Type::String: return constant(e.constant);
    default: break;
  }
  const Deeper deeper(*this);
  switch (e.type) {
    case Type::List:
    case Type::Tuple:
    case Type::Dict: return eval_container(e, a);
    case Type::Compare: return eval_compare(e, a);
    case Type::Concat: return eval_concat(e, a);
    case Type::Attribute: {
      const Value v = eval(*e.parts[0], a);
      at_ = e.at;
      return get_attribute(*this, v, constant(e.constant));
    }
    case Type::Item: return eval_item(e, a);
    case Type::Call: return eval_call(e, a, Value());
    case Type::Filter: return eval_filter(e, a);
    case Type::Test: return eval_test(e, a);
    case Type::Conditional: return eval_conditional(e, a);
    default: return eval_operator(e, a);
  }
}

Value Renderer::eval_operator(const Expr& e, Activation& a) {
  using Type = Expr::Type;
  Value left = eval(*e.parts[0], a);
  switch (e.type) {
    case Type::And: return truth(left) ? eval(*e.parts[1], a) : left;
    case Type::Or: return truth(left) ? left : eval(*e.parts[1], a);
    case Type::Not: return Value::boolean(!truth(left));
    case Type::Neg:
    case Type::Pos: at_ = e.at; return e.type == Type::Neg ? negate(heap_, left) : positive(left);
    default: break;
  }
  const Value right = eval(*e.parts[1], a);
  at_ = e.at;
  return arithmetic(heap_, e.type, left, right);
}

Value Renderer::eval_container(const Expr& e, Activation& a) {
  if (e.type == Expr::Type::Dict) {
    std::vector<DictObject::Entry> entries;
    for (std::size_t i = 0; i < e.parts.size(); i += 2) {
      Value key = eval(*e.parts[i], a);
      entries.emplace_back(std::move(key), eval(*e.parts[i + 1], a));
    }
    at_ = e.at;
    return heap_.dict(std::move(entries));
  }
  std::vector<Value> items;
  items.reserve(e.parts.size());
  for (const ExprPtr& part : e.parts) items.push_back(eval(*part, a));
  return heap_.list(std::move(items), e.type == Expr::Type::List ? Kind::List : Kind::Tuple);
}

Value Renderer::eval_compare(const Expr& e, Activation& a) {
  Value left = eval(*e.parts[0], a);
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    Value right = eval(*e.parts[i + 1], a);
    at_ = e.at;
    const std::string& op = e.operators[i];
    const bool holds = op == "in"       ? contains(heap_, right, left)
                       : op == "not in" ? !contains(heap_, right, left)
                                        : compare(heap_, op, left, right);
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Renderer::eval_concat(const Expr& e, Activation& a) {
  std::vector<Value> parts;
  for (const ExprPtr& part : e.parts) parts.push_back(eval(*part, a));
  at_ = e.at;
  std::string text;
  for (const Value& v : parts) {
    if (v.is_string())
      text += v.text();
    else
      text += to_text(heap_, v);
    Budget::require_string(text.size());
  }
  return heap_.string(std::move(text));
}

Value Renderer::eval_item(const Expr& e, Activation& a) {
  const Value v = eval(*e.parts[0], a);
  const Expr& index = *e.parts[1];
  if (index.type == Expr::Type::Slice) {
    Value ends[3];
    for (int i = 0; i < 3; ++i)
      ends[i] =
          index.parts[static_cast<std::size_t>(i)] ? eval(*index.parts[static_cast<std::size_t>(i)], a) : Value::none();
    at_ = e.at;
    return slice(heap_, v, ends[0], ends[1], ends[2]);
  }
  const Value key = eval(index, a);
  at_ = e.at;
  return get_item(*this, v, key);
}

void Renderer::arguments(const Expr& e, std::size_t first, Activation& a, Arguments& out) {
  for (std::size_t i = first; i < e.parts.size(); ++i) out.positional.push_back(eval(*e.parts[i], a));
  if (e.spread) {
    const Value more = eval(*e.spread, a);
    at_ = e.at;
    if (!iterable(more)) raise(kTypeError, concat_text("argument after * must be an iterable, not ", type_name(more)));
    for (Value& v : collect(heap_, more)) out.positional.push_back(std::move(v));
  }
  for (const Keyword& k : e.keywords) out.named.emplace_back(k.name, eval(*k.value, a));
  if (!e.spread_keywords) return;
  const Value more = eval(*e.spread_keywords, a);
  at_ = e.at;
  if (!more.is(Kind::Dict))
    raise(kTypeError, concat_text("argument after ** must be a mapping, not ", type_name(more)));
  for (const auto& [key, value] : more.get<DictObject>().entries) {
    if (!key.is_string()) raise(kTypeError, "keywords must be strings");
    heap_.step(1 + out.named.size() / 4);
    for (const auto& [name, other] : out.named)
      if (name == key.text()) raise(kTypeError, concat_text("got multiple values for keyword argument '", name, "'"));
    out.named.emplace_back(std::string(key.text()), value);
  }
}

Value Renderer::eval_call(const Expr& e, Activation& a, const Value& caller) {
  const Value callee = eval(*e.parts[0], a);
  Arguments args;
  arguments(e, 1, a, args);
  if (!caller.missing()) args.named.emplace_back("caller", caller);
  at_ = e.at;
  return call(callee, args);
}

Value Renderer::eval_filter(const Expr& e, Activation& a) {
  const Value subject = e.parts[0] ? eval(*e.parts[0], a) : std::exchange(block_text_, Value());
  Arguments args;
  arguments(e, 1, a, args);
  at_ = e.at;
  if (!is_filter(e.text)) raise(kRuntimeError, concat_text("No filter named ", repr_of_string(e.text), " found."));
  return call_filter(*this, e.text, subject, args);
}

Value Renderer::eval_test(const Expr& e, Activation& a) {
  const Value subject = eval(*e.parts[0], a);
  Arguments args;
  arguments(e, 1, a, args);
  at_ = e.at;
  if (!is_test(e.text)) raise(kRuntimeError, concat_text("No test named ", repr_of_string(e.text), " found."));
  return Value::boolean(call_test(*this, e.text, subject, args));
}

Value Renderer::eval_conditional(const Expr& e, Activation& a) {
  if (truth(eval(*e.parts[0], a))) return eval(*e.parts[1], a);
  if (e.parts[2]) return eval(*e.parts[2], a);
  return heap_.undefined_hint(concat_text("the inline if-expression on line ", e.at.line,
                                          " evaluated to false and no else section was defined."));
}

}  // namespace rlx::jinja
