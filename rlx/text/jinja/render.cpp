// Execution of statements of chat templates.
#include "rlx/text/jinja/render.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx::jinja {

Renderer::Renderer(const Program& program, Heap& heap, std::time_t now) : program_(program), heap_(heap), now_(now) {
  constants_.resize(program.strings.size());
}

// Reference cycles between macros and their captured variables are broken here by clearing the variables.
Renderer::~Renderer() {
  for (const std::unique_ptr<Activation>& a : kept_) a->slots.clear();
}

Renderer::Call::Call(Renderer& r, const Function& function, Activation* parent)
    : r_(r), activation_(std::make_unique<Activation>()) {
  r.heap_.step(1 + function.slots.size());
  r.heap_.budget().take(function.slots.size() * sizeof(Value));
  activation_->parent = parent;
  activation_->slots.resize(function.slots.size());
}

Renderer::Call::~Call() {
  if (activation_->captured) {
    r_.kept_.push_back(std::move(activation_));
  } else {
    r_.heap_.budget().give(activation_->slots.size() * sizeof(Value));
  }
}

std::string Renderer::run(const Variables& variables) {
  try {
    globals_.resize(program_.globals.size());
    for (std::size_t i = 0; i < globals_.size(); ++i) {
      const std::string& name = program_.globals[i];
      const auto given =
          std::find_if(variables.rbegin(), variables.rend(), [&](const auto& v) { return v.first == name; });
      if (given != variables.rend()) {
        globals_[i] = given->second;
      } else if (is_function(name)) {
        auto object = std::make_unique<FunctionObject>();
        object->name = name;
        globals_[i] = heap_.adopt(Kind::Function, object.release(), sizeof(FunctionObject), 0);
      }
    }
    Capture output(*this);
    Call root(*this, program_.root, nullptr);
    enter(program_.frame, *root);
    exec(program_.body, *root);
    return output.take();
  } catch (Raised& raised) {
    if (raised.at.line == 0) raised.at = at_;
    throw;
  }
}

void Renderer::Capture::append(std::string_view text) {
  Budget& budget = r_.heap_.budget();
  budget.copy(text.size());
  Budget::require_string(text_.size() + text.size());
  budget.take(text.size());
  counted_ += text.size();
  text_.append(text);
}

std::string Renderer::Capture::take() {
  end();
  if (!foreign_.empty()) raise(kTypeError, concat_text("sequence item 0: expected str instance, ", foreign_, " found"));
  return std::move(text_);
}

void Renderer::write(std::string_view text) { out_->append(text); }

void Renderer::write(const Value& v) {
  if (v.is_string())
    write(v.text());
  else
    write(to_text(heap_, v));
}

void Renderer::write_result(const Value& v) {
  if (v.is_string())
    write(v.text());
  else
    out_->note_foreign(type_name(v));
}

// -- variables --

Value& Renderer::variable(const Ref& ref, Activation& a) {
  Activation* at = &a;
  for (int i = 0; i < ref.hops; ++i) at = at->parent;
  return at->slots[static_cast<std::size_t>(ref.slot)];
}

void Renderer::enter(const Frame& frame, Activation& a) {
  heap_.step(1 + frame.size());
  for (const Load& load : frame) {
    Value& slot = a.slots[static_cast<std::size_t>(load.slot)];
    switch (load.action) {
      case Load::Action::Parameter: break;
      case Load::Action::Resolve: slot = globals_[load.global]; break;
      case Load::Action::Alias: slot = Value(variable(load.from, a)); break;
      case Load::Action::Undefined: slot = Value(); break;
    }
  }
}

void Renderer::leave(const Frame& frame, Activation& a) {
  for (const Load& load : frame) a.slots[static_cast<std::size_t>(load.slot)] = Value();
}

void Renderer::assign(const Expr& target, Value value, Activation& a) {
  if (target.type == Expr::Type::Tuple) return unpack(target, value, a);
  if (target.type == Expr::Type::Name) {
    variable(target.ref, a) = std::move(value);
    return;
  }
  NamespaceObject& space = variable(target.parts[0]->ref, a).get<NamespaceObject>();
  heap_.step(1 + space.attributes.size() / 8);
  if (Value* held = space.find(target.text)) {
    *held = std::move(value);
    return;
  }
  heap_.budget().take(sizeof(DictObject::Entry));
  space.bytes += sizeof(DictObject::Entry);
  space.attributes.emplace_back(heap_.string(target.text), std::move(value));
}

void Renderer::unpack(const Expr& target, const Value& value, Activation& a) {
  const std::size_t wanted = target.parts.size();
  if (!iterable(value)) raise(kTypeError, concat_text("cannot unpack non-iterable ", type_name(value), " object"));
  std::vector<Value> items;
  Cursor cursor(heap_, value);
  Value item;
  while (items.size() < wanted && cursor.next(item)) items.push_back(std::move(item));
  if (items.size() < wanted)
    raise(kValueError, concat_text("not enough values to unpack (expected ", wanted, ", got ", items.size(), ")"));
  if (cursor.next(item)) raise(kValueError, concat_text("too many values to unpack (expected ", wanted, ")"));
  for (std::size_t i = 0; i < wanted; ++i) assign(*target.parts[i], std::move(items[i]), a);
}

void Renderer::require_namespaces(const Expr& target, Activation& a) {
  if (target.type == Expr::Type::NamespaceRef && !variable(target.parts[0]->ref, a).is(Kind::Namespace))
    raise(kRuntimeError, "cannot assign attribute on non-namespace object");
  if (target.type == Expr::Type::Tuple)
    for (const ExprPtr& part : target.parts) require_namespaces(*part, a);
}

// -- statements --

Renderer::Flow Renderer::exec(const Block& block, Activation& a) {
  const Deeper deeper(*this);
  for (const StmtPtr& s : block) {
    heap_.step();
    if (s->type == Stmt::Type::Data) {
      write(s->text);
    } else if (const Flow flow = exec(*s, a); flow != Flow::Normal) {
      return flow;
    }
  }
  return Flow::Normal;
}

Renderer::Flow Renderer::exec(const Stmt& s, Activation& a) {
  using Type = Stmt::Type;
  at_ = s.at;
  switch (s.type) {
    case Type::Data: break;
    case Type::Print: {
      const Value v = eval(*s.exprs[0], a);
      at_ = s.exprs[0]->at;
      write(v);
      break;
    }
    case Type::If: return exec_if(s, a);
    case Type::For: {
      Flow after = Flow::Normal;
      exec_for(s, a, after);
      return after;
    }
    case Type::Macro: variable(s.ref, a) = macro(s, a); break;
    case Type::Call: exec_call(s, a); break;
    case Type::Set: exec_set(s, a); break;
    case Type::SetBlock:
    case Type::FilterBlock: return exec_block(s, a);
    case Type::With: return exec_with(s, a);
    case Type::Break: return Flow::Break;
    case Type::Continue: return Flow::Continue;
  }
  return Flow::Normal;
}

Renderer::Flow Renderer::exec_if(const Stmt& s, Activation& a) {
  if (truth(eval(*s.exprs[0], a))) return exec(s.body, a);
  for (const StmtPtr& elif : s.elifs)
    if (truth(eval(*elif->exprs[0], a))) return exec(elif->body, a);
  return s.otherwise.empty() ? Flow::Normal : exec(s.otherwise, a);
}

void Renderer::exec_set(const Stmt& s, Activation& a) {
  require_namespaces(*s.targets[0], a);
  Value v = eval(*s.exprs[0], a);
  at_ = s.at;
  assign(*s.targets[0], std::move(v), a);
}

Renderer::Flow Renderer::exec_block(const Stmt& s, Activation& a) {
  enter(s.frame, a);
  std::string text;
  {
    Capture capture(*this);
    if (const Flow flow = exec(s.body, a); flow != Flow::Normal) return flow;
    text = capture.take();
  }
  Value v = heap_.string(std::move(text));
  if (s.filter) {
    block_text_ = std::move(v);
    v = eval(*s.filter, a);
  }
  at_ = s.at;
  if (s.type == Stmt::Type::FilterBlock) {
    write_result(v);
  } else {
    require_namespaces(*s.targets[0], a);
    assign(*s.targets[0], std::move(v), a);
  }
  leave(s.frame, a);
  return Flow::Normal;
}

Renderer::Flow Renderer::exec_with(const Stmt& s, Activation& a) {
  enter(s.frame, a);
  for (std::size_t i = 0; i < s.targets.size(); ++i) assign(*s.targets[i], eval(*s.exprs[i], a), a);
  const Flow flow = exec(s.body, a);
  if (flow == Flow::Normal) leave(s.frame, a);
  return flow;
}

// -- loops --

namespace {

// The items of a for loop that pass its filter.
struct LoopFilter final : IteratorObject {
  LoopFilter(Renderer& r, const Stmt& s, Activation& around, const Value& over)
      : renderer(&r), loop(&s), cursor(r.heap(), over) {
    test.parent = &around;
    test.slots.resize(s.test_function->slots.size());
  }
  bool next(Heap& heap, Value& out) override {
    if (!std::exchange(entered, true)) renderer->enter_test(*loop, test);
    for (Value item; cursor.next(item);) {
      heap.step();
      if (!renderer->loop_filter(*loop, test, item)) continue;
      out = std::move(item);
      return true;
    }
    return false;
  }
  Renderer* renderer;
  const Stmt* loop;
  Cursor cursor;
  Activation test;
  bool entered = false;
};

}  // namespace

bool Renderer::loop_filter(const Stmt& loop, Activation& test, Value& item) {
  const Deeper deeper(*this);
  const Expr& target = *loop.targets[1];
  assign(target, item, test);
  if (!truth(eval(*loop.test, test))) return false;
  if (target.type == Expr::Type::Tuple) {  // Python makes a new tuple of the variables
    std::vector<Value> items;
    for (const ExprPtr& part : target.parts)
      items.push_back(part->type == Expr::Type::Name ? variable(part->ref, test) : Value::none());
    const bool plain = std::all_of(target.parts.begin(), target.parts.end(),
                                   [](const ExprPtr& p) { return p->type == Expr::Type::Name; });
    if (plain) item = heap_.tuple(std::move(items));
  }
  return true;
}

void Renderer::exec_for(const Stmt& s, Activation& a, Flow& after) {
  const Value over = eval(*s.exprs[0], a);
  at_ = s.at;
  if (!s.recursive) {
    after = run_loop(s, a, a, over, 0);
    return;
  }
  std::string text;
  {
    Capture capture(*this);
    Call call(*this, *s.function, &a);
    run_loop(s, *call, a, over, 0);
    text = capture.take();
  }
  write(text);
}

// `a` holds the variables of the body, `around` those outside a recursive loop.
Renderer::Flow Renderer::run_loop(const Stmt& s, Activation& a, Activation& around, const Value& over,
                                  std::int64_t depth0) {
  Value source = over;
  if (s.test) {
    const std::size_t bytes = sizeof(LoopFilter) + s.test_function->slots.size() * sizeof(Value);
    source = heap_.adopt(Kind::Iterator, new LoopFilter(*this, s, around, over), bytes,
                         (over.has_object() ? over.object()->depth : 0) + 1);
  }
  Value loop;
  std::optional<Cursor> cursor;
  if (s.extended) {
    auto object = std::make_unique<LoopObject>(heap_, source);
    object->depth0 = depth0;
    object->body = s.recursive ? &s : nullptr;
    object->frame = &around;
    if (s.recursive || s.test)  // a variable may keep the loop, and so its iterable
      for (Activation* at = &around; at != nullptr && !at->captured; at = at->parent) at->captured = true;
    loop = heap_.adopt(Kind::Loop, object.release(), sizeof(LoopObject),
                       (source.has_object() ? source.object()->depth : 0) + 1);
    a.slots[static_cast<std::size_t>(s.loop_slot)] = Value();
  } else {
    cursor.emplace(heap_, source);
  }
  bool nothing = true;
  Flow after = Flow::Normal;
  while (true) {
    Value item;
    if (s.extended) {
      LoopObject& object = loop.get<LoopObject>();
      if (!object.advance(heap_)) break;
      item = object.current;
    } else if (!cursor->next(item)) {
      break;
    }
    at_ = s.at;
    assign(*s.targets[0], std::move(item), a);
    if (s.extended) a.slots[static_cast<std::size_t>(s.loop_slot)] = loop;
    enter(s.frame, a);
    const Flow flow = exec(s.body, a);
    if (flow == Flow::Break) break;
    if (flow == Flow::Normal) nothing = false;  // jinja2 counts an iteration only at its end
  }
  leave(s.frame, a);
  if (nothing && !s.otherwise.empty()) {
    enter(s.else_frame, a);
    after = exec(s.otherwise, a);
    if (after == Flow::Normal) leave(s.else_frame, a);
  }
  return after;
}

Value Renderer::call_loop(const Value& loop, Arguments& args) {
  const Parameters p(args, "LoopContext.__call__", {"iterable"}, 1);
  const LoopObject& object = loop.get<LoopObject>();
  if (object.body == nullptr) raise(kTypeError, "The loop must have the 'recursive' marker to be called recursively.");
  const Deeper deeper(*this);
  if (++calls_ > kMaxCalls) raise(kLimit, "the template calls itself too deeply");
  const Stmt& s = *static_cast<const Stmt*>(object.body);
  Activation& around = *static_cast<Activation*>(object.frame);
  Capture capture(*this);
  Call call(*this, *s.function, &around);
  run_loop(s, *call, around, p[0], object.depth0 + 1);
  --calls_;
  return heap_.string(capture.take());
}

// -- macros --

Value Renderer::macro(const Stmt& s, Activation& a) {
  for (Activation* at = &a; at != nullptr && !at->captured; at = at->parent) at->captured = true;
  auto object = std::make_unique<MacroObject>();
  object->definition = &s;
  object->closure = &a;
  return heap_.adopt(Kind::Macro, object.release(), sizeof(MacroObject), 0);
}

void Renderer::exec_call(const Stmt& s, Activation& a) {
  const Value caller = macro(s, a);
  if (s.generation) {
    Arguments none;
    write(call_macro(caller.get<MacroObject>(), none));
    return;
  }
  write_result(eval_call(*s.exprs[0], a, caller));
}

Value Renderer::call_macro(const MacroObject& macro, Arguments& args) {
  const Deeper deeper(*this);
  if (++calls_ > kMaxCalls) raise(kLimit, "the template calls itself too deeply");
  const Stmt& s = *macro.definition;
  const std::string name = s.text.empty() ? "None" : repr_of_string(s.text);
  const std::size_t count = s.targets.size();
  Call call(*this, *s.function, macro.closure);
  Activation& a = *call;
  const auto slot = [&](int i) -> Value& { return a.slots[static_cast<std::size_t>(i)]; };
  bool found_caller = false;
  for (std::size_t i = 0; i < count; ++i) {
    const bool by_position = i < args.positional.size();
    heap_.step(args.named.size() / 4);
    slot(s.parameter_slots[i]) = by_position ? args.positional[i] : args.take(s.targets[i]->text);
    if (s.targets[i]->text == "caller") found_caller = true;
  }
  if (s.takes_caller && !found_caller) {
    Value caller = args.take("caller");
    if (caller.missing() || caller.is(Kind::None)) caller = heap_.undefined_hint("No caller defined", "caller");
    slot(s.caller_slot) = std::move(caller);
  }
  if (s.takes_kwargs) {
    std::vector<DictObject::Entry> entries;
    for (auto& [key, value] : args.named) entries.emplace_back(heap_.string(key), std::move(value));
    slot(s.kwargs_slot) = heap_.dict(std::move(entries));
  } else if (!args.named.empty()) {
    for (const auto& [key, value] : args.named)
      if (key == "caller")
        raise(kTypeError, concat_text("macro ", name,
                                      " was invoked with two values for the special caller argument. This is most "
                                      "likely a bug."));
    raise(kTypeError, concat_text("macro ", name, " takes no keyword argument ", repr_of_string(args.named[0].first)));
  }
  if (s.takes_varargs) {
    std::vector<Value> rest;
    for (std::size_t i = count; i < args.positional.size(); ++i) rest.push_back(args.positional[i]);
    slot(s.varargs_slot) = heap_.tuple(std::move(rest));
  } else if (args.positional.size() > count) {
    raise(kTypeError, concat_text("macro ", name, " takes not more than ", count, " argument(s)"));
  }
  enter(s.frame, a);
  for (std::size_t i = 0; i < count; ++i) {
    Value& parameter = slot(s.parameter_slots[i]);
    if (!parameter.missing()) continue;
    const std::size_t last = count - i;
    if (last <= s.defaults.size()) {
      Value v = eval(*s.defaults[s.defaults.size() - last], a);
      slot(s.parameter_slots[i]) = std::move(v);
    } else {
      const std::string& parameter_name = s.targets[i]->text;
      parameter = heap_.undefined_hint(concat_text("parameter ", repr_of_string(parameter_name), " was not provided"),
                                       parameter_name);
    }
  }
  Capture capture(*this);
  exec(s.body, a);
  --calls_;
  return heap_.string(capture.take());
}

Value Renderer::call(const Value& callee, Arguments& args) {
  heap_.step();
  switch (callee.kind()) {
    case Kind::Macro: return call_macro(callee.get<MacroObject>(), args);
    case Kind::Function: return call_function(*this, callee.get<FunctionObject>().name, args);
    case Kind::Method: return call_method(*this, callee.get<MethodObject>(), args);
    case Kind::Loop: return call_loop(callee, args);
    case Kind::Joiner: {
      const Parameters none(args, "Joiner.__call__", {});
      JoinerObject& joiner = callee.get<JoinerObject>();
      return std::exchange(joiner.used, true) ? joiner.separator : heap_.string({});
    }
    case Kind::Undefined: raise_undefined(callee);
    default: raise(kTypeError, concat_text("'", type_name(callee), "' object is not callable"));
  }
}

}  // namespace rlx::jinja
