// Name resolution. jinja2 compiles a template to Python functions whose local variables are determined statically: a
// name that a frame sets belongs to that frame from its start, with the value it has outside at that time.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "rlx/error.h"
#include "rlx/text/jinja/builtins.h"
#include "rlx/text/jinja/parser.h"

namespace rlx::jinja {
namespace {

using Names = std::unordered_set<std::string>;

// -- names that are read before they are set, in text order --

class Undeclared {
 public:
  explicit Undeclared(std::set<std::string> names) : names_(std::move(names)) {}
  bool found(const std::string& name) const { return found_.contains(name); }

  void visit(const ExprPtr& e) {
    if (!e || e->type == Expr::Type::NamespaceRef) return;
    if (e->type == Expr::Type::Name) return visit_name(*e);
    for (const ExprPtr& part : e->parts) visit(part);
    for (const Keyword& k : e->keywords) visit(k.value);
    visit(e->spread);
    visit(e->spread_keywords);
  }
  void visit(const Block& block) {
    for (const StmtPtr& stmt : block) visit(*stmt);
  }

 private:
  void visit_name(const Expr& e) {
    if (!e.stored && names_.contains(e.text))
      found_.insert(e.text);
    else
      names_.erase(e.text);
  }
  void visit(const std::vector<ExprPtr>& exprs) {
    for (const ExprPtr& e : exprs) visit(e);
  }
  void visit(const Stmt& s) {
    using Type = Stmt::Type;
    switch (s.type) {
      case Type::For:
      case Type::With:
        visit(s.targets);
        visit(s.exprs);
        break;
      case Type::Set:
      case Type::SetBlock: visit(s.targets); break;
      default: visit(s.exprs);
    }
    if (s.type == Type::Macro || s.type == Type::Call) {
      visit(s.targets);
      visit(s.defaults);
    }
    if (s.type == Type::Set) visit(s.exprs);
    if (s.type == Type::SetBlock) visit(s.filter);
    visit(s.body);
    for (const StmtPtr& elif : s.elifs) visit(*elif);
    visit(s.otherwise);
    visit(s.test);
    if (s.type == Type::FilterBlock) visit(s.filter);
  }
  std::set<std::string> names_, found_;
};

// -- frames --

struct Target {
  const Function* function = nullptr;
  int slot = -1;
};

// The variables of one frame. A branch of an if is a scope on top of `base` and is merged into it afterwards.
struct Scope {
  Scope* base = nullptr;
  const Scope* parent = nullptr;
  int level = 0;
  Function* function = nullptr;
  std::unordered_map<std::string, int> refs;
  std::map<int, Load> loads;
  Names stores;

  const int* own(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->base)
      if (const auto it = s->refs.find(name); it != s->refs.end()) return &it->second;
    return nullptr;
  }
  bool stored(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->base)
      if (s->stores.contains(name)) return true;
    return false;
  }
  std::optional<Target> find(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->parent)
      if (const int* slot = s->own(name)) return Target{s->function, *slot};
    return std::nullopt;
  }
};

class Binder {
 public:
  explicit Binder(Program& program) : program_(program) {}

  void run() {
    Scope root;
    root.function = &program_.root;
    for (const StmtPtr& s : program_.body) analyze(*s, &root);
    bind(program_.body, root, {});
    program_.frame = frame_of(root);
    for (const std::optional<Raised>& fault : {duplicate_, fault_})
      if (fault) throw *fault;
  }

 private:
  struct Where {
    bool soft = false;     // inside an if: unknown filters and tests fail only when evaluated
    bool in_loop = false;  // inside a loop: break and continue are allowed
    int loops = 0;         // nesting depth of loops
  };

  // -- variables --

  int slot_of(Scope& scope, const std::string& name) {
    const auto [it, fresh] =
        slots_.try_emplace({scope.function, scope.level, name}, static_cast<int>(scope.function->slots.size()));
    if (fresh) scope.function->slots.emplace_back(scope.level, name);
    return it->second;
  }
  int define(Scope& scope, const std::string& name, Load load) {
    load.slot = slot_of(scope, name);
    scope.refs[name] = load.slot;
    scope.loads[load.slot] = load;
    return load.slot;
  }
  static Ref ref_from(const Function* function, const Target& target) {
    Ref ref;
    ref.slot = target.slot;
    for (const Function* f = function; f != target.function; f = f->parent) ++ref.hops;
    return ref;
  }
  Load resolve(const std::string& name) {
    Load load;
    load.action = Load::Action::Resolve;
    const auto [it, fresh] = globals_.try_emplace(name, program_.globals.size());
    if (fresh) program_.globals.push_back(name);
    load.global = it->second;
    return load;
  }
  Load outer(const Scope& scope, const Target& target) {
    Load load;
    load.action = Load::Action::Alias;
    load.from = ref_from(scope.function, target);
    return load;
  }
  int parameter(Scope& scope, const std::string& name) {
    scope.stores.insert(name);
    Load load;
    load.action = Load::Action::Parameter;
    return define(scope, name, load);
  }
  void load(Scope& scope, const std::string& name) {
    if (!scope.find(name)) define(scope, name, resolve(name));
  }
  void store(Scope& scope, const std::string& name) {
    scope.stores.insert(name);
    if (scope.own(name) != nullptr) return;
    std::optional<Target> around;
    if (scope.parent != nullptr) around = scope.parent->find(name);
    define(scope, name, around ? outer(scope, *around) : Load{});
  }

  // -- names that a frame reads and sets --

  void analyze(const ExprPtr& e, Scope* scope, bool as_parameter = false) {
    if (!e) return;
    if (e->type == Expr::Type::Name) {
      if (as_parameter)
        parameter(*scope, e->text);
      else if (e->stored)
        store(*scope, e->text);
      else
        load(*scope, e->text);
      return;
    }
    for (const ExprPtr& part : e->parts) analyze(part, scope, as_parameter);
    for (const Keyword& k : e->keywords) analyze(k.value, scope);
    analyze(e->spread, scope);
    analyze(e->spread_keywords, scope);
  }
  void analyze(const std::vector<ExprPtr>& exprs, Scope* scope, bool as_parameter = false) {
    for (const ExprPtr& e : exprs) analyze(e, scope, as_parameter);
  }
  void analyze(const Block& block, Scope* scope) {
    for (const StmtPtr& s : block) analyze(*s, scope);
  }
  void analyze(const Stmt& s, Scope* scope) {
    using Type = Stmt::Type;
    switch (s.type) {
      case Type::Data:
      case Type::Break:
      case Type::Continue: break;
      case Type::Print:
      case Type::For:
      case Type::Call:
      case Type::With: analyze(s.exprs, scope); break;
      case Type::Set:
        analyze(s.exprs, scope);
        analyze(s.targets, scope);
        break;
      case Type::SetBlock: analyze(s.targets, scope); break;
      case Type::FilterBlock: analyze(s.filter, scope); break;
      case Type::Macro: store(*scope, s.text); break;
      case Type::If: analyze_if(s, scope); break;
    }
  }
  void analyze_if(const Stmt& s, Scope* scope) {
    analyze(s.exprs, scope);
    Scope branches[3];
    for (Scope& branch : branches) {
      branch.base = scope;
      branch.parent = scope->parent;
      branch.level = scope->level;
      branch.function = scope->function;
    }
    analyze(s.body, &branches[0]);
    for (const StmtPtr& elif : s.elifs) analyze(*elif, &branches[1]);
    analyze(s.otherwise, &branches[2]);
    // Names that a branch sets have the outer value before it.
    Names stores;
    for (const Scope& branch : branches)
      for (const std::string& name : branch.stores)
        if (!scope->stored(name)) stores.insert(name);
    for (Scope& branch : branches) {
      for (const auto& [name, slot] : branch.refs) scope->refs[name] = slot;
      for (const auto& [slot, load] : branch.loads) scope->loads[slot] = load;
      scope->stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const std::string& name : stores) {
      const int slot = scope->find(name)->slot;
      std::optional<Target> around;
      if (scope->parent != nullptr) around = scope->parent->find(name);
      Load load = around ? outer(*scope, *around) : resolve(name);
      load.slot = slot;
      scope->loads[slot] = load;
    }
  }

  // -- binding --

  // Records an error that Python's compiler raises after jinja2: the first one of a kind.
  static void note(std::optional<Raised>& fault, std::string message, Position at) {
    if (!fault) fault = Raised{"SyntaxError", std::move(message), at};
  }

  static Frame frame_of(const Scope& scope) {
    Frame frame;
    for (const auto& [slot, load] : scope.loads) frame.push_back(load);
    return frame;
  }
  static Scope inner(const Scope& scope, Function* function) {
    Scope out;
    out.parent = &scope;
    out.level = scope.level + 1;
    out.function = function;
    return out;
  }
  static std::unique_ptr<Function> function_in(const Scope& scope) {
    auto function = std::make_unique<Function>();
    function->parent = scope.function;
    return function;
  }

  void bind(const ExprPtr& e, const Scope& scope, Where where) {
    if (!e) return;
    if (e->type == Expr::Type::Name) {
      if (e->stored && where.loops > 0 && e->text == "loop")
        throw Raised{"TemplateAssertionError", "Can't assign to special loop variable in for-loop target", e->at};
      const std::optional<Target> target = scope.find(e->text);
      check(target.has_value(), "a name of a template has no frame");
      e->ref = ref_from(scope.function, *target);
      return;
    }
    if (e->type == Expr::Type::Conditional) where.soft = true;
    if (e->type == Expr::Type::Filter || e->type == Expr::Type::Test) require_known(*e, where.soft);
    if (e->type == Expr::Type::Conditional) bind(e->parts[1], scope, where);  // jinja2's compiler visits in this order
    for (const ExprPtr& part : e->parts) bind(part, scope, where);
    Names keywords;
    for (const Keyword& k : e->keywords) {
      if (!keywords.insert(k.name).second) note(fault_, concat_text("keyword argument repeated: ", k.name), e->at);
      bind(k.value, scope, where);
    }
    bind(e->spread, scope, where);
    bind(e->spread_keywords, scope, where);
  }
  void bind(const std::vector<ExprPtr>& exprs, const Scope& scope, Where where) {
    for (const ExprPtr& e : exprs) bind(e, scope, where);
  }
  static void require_known(const Expr& e, bool soft) {
    const bool filter = e.type == Expr::Type::Filter;
    const std::string_view kind = filter ? "filter" : "test";
    if (filter ? is_filter(e.text) : is_test(e.text)) return;
    if (filter && is_unsupported_filter(e.text))
      throw Raised{std::string(kUnsupported), concat_text("the filter '", e.text, "' is not supported"), e.at};
    if (!soft)
      throw Raised{"TemplateAssertionError", concat_text("No ", kind, " named ", repr_of_string(e.text), "."), e.at};
  }

  void bind(const Block& block, Scope& scope, Where where) {
    for (const StmtPtr& s : block) bind(*s, scope, where);
  }
  void bind(Stmt& s, Scope& scope, Where where) {
    using Type = Stmt::Type;
    switch (s.type) {
      case Type::Data: break;
      case Type::Break:
        if (!where.in_loop) note(fault_, "'break' outside loop", s.at);
        break;
      case Type::Continue:
        if (!where.in_loop) note(fault_, "'continue' not properly in loop", s.at);
        break;
      case Type::Print: bind(s.exprs, scope, where); break;
      case Type::Set:
        bind(s.targets, scope, where);
        bind(s.exprs, scope, where);
        break;
      case Type::If:
        where.soft = true;
        bind(s.exprs, scope, where);
        bind(s.body, scope, where);
        for (const StmtPtr& elif : s.elifs) bind(*elif, scope, where);
        bind(s.otherwise, scope, where);
        break;
      case Type::For: bind_for(s, scope, where); break;
      case Type::Macro:
        bind_macro(s, scope, where);
        s.ref = ref_from(scope.function, *scope.find(s.text));
        break;
      case Type::Call:
        bind_macro(s, scope, where);
        bind(s.exprs, scope, where);
        if (!s.generation)
          for (const Keyword& k : s.exprs[0]->keywords)
            if (k.name == "caller") note(fault_, "keyword argument repeated: caller", s.at);
        break;
      case Type::SetBlock:
      case Type::FilterBlock: {
        Scope block = inner(scope, scope.function);
        analyze(s.body, &block);
        analyze(s.filter, &block);
        Where inside = where;
        inside.soft = false;
        bind(s.body, block, inside);
        bind(s.filter, block, inside);
        if (s.type == Type::SetBlock) bind(s.targets, scope, where);
        s.frame = frame_of(block);
        break;
      }
      case Type::With: {
        Scope block = inner(scope, scope.function);
        analyze(s.targets, &block, true);
        analyze(s.body, &block);
        bind(s.exprs, scope, where);
        where.soft = false;
        bind(s.targets, block, where);
        bind(s.body, block, where);
        s.frame = frame_of(block);
        break;
      }
    }
  }

  static ExprPtr copy_of_target(const Expr& e) {
    auto out = std::make_unique<Expr>();
    out->type = e.type;
    out->at = e.at;
    out->text = e.text;
    out->stored = e.stored;
    for (const ExprPtr& part : e.parts) out->parts.push_back(copy_of_target(*part));
    return out;
  }

  void bind_for(Stmt& s, Scope& scope, Where where) {
    Where inside = where;
    ++inside.loops;
    inside.soft = false;
    if (s.recursive) s.function = function_in(scope);
    Function* function = s.recursive ? s.function.get() : scope.function;
    Undeclared undeclared({"loop"});
    undeclared.visit(s.body);
    s.extended = s.recursive || undeclared.found("loop");
    if (s.test) {
      s.targets.push_back(copy_of_target(*s.targets[0]));
      s.test_function = function_in(scope);
      Scope test = inner(scope, s.test_function.get());
      analyze(s.targets[1], &test, true);
      analyze(s.test, &test);
      Where there = inside;
      there.in_loop = false;
      bind(s.targets[1], test, there);
      bind(s.test, test, there);
      s.test_frame = frame_of(test);
    }
    if (!s.recursive) bind(s.exprs, scope, where);
    Scope body = inner(scope, function);
    if (s.extended) s.loop_slot = parameter(body, "loop");
    analyze(s.targets[0], &body, true);
    analyze(s.body, &body);
    Where there = inside;
    there.in_loop = true;
    bind(s.targets[0], body, there);
    bind(s.body, body, there);
    s.frame = frame_of(body);
    Scope otherwise = inner(scope, function);
    analyze(s.otherwise, &otherwise);
    if (s.recursive) inside.in_loop = false;
    bind(s.otherwise, otherwise, inside);
    s.else_frame = frame_of(otherwise);
    if (s.recursive) bind(s.exprs, scope, where);
  }

  void bind_macro(Stmt& s, Scope& scope, Where where) {
    where.soft = false;
    where.in_loop = false;
    s.function = function_in(scope);
    Scope body = inner(scope, s.function.get());
    const auto analyze_all = [&] {
      analyze(s.targets, &body, true);
      analyze(s.defaults, &body);
      analyze(s.body, &body);
    };
    analyze_all();
    bool explicit_caller = false;
    Names seen;
    for (std::size_t i = 0; i < s.targets.size(); ++i) {
      const std::string& name = s.targets[i]->text;
      if (!seen.insert(name).second)
        note(duplicate_, concat_text("duplicate argument 'l_", body.level, "_", name, "' in function definition"),
             s.targets[i]->at);
      if (name == "caller") explicit_caller = true;
      if (name == "caller" && i + s.defaults.size() < s.targets.size()) explicit_without_default_ = true;
    }
    Undeclared undeclared({"caller", "kwargs", "varargs"});
    undeclared.visit(s.body);
    if (undeclared.found("caller")) {
      if (explicit_caller && std::exchange(explicit_without_default_, false))
        throw Raised{
            "TemplateAssertionError",
            "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a "
            "default.",
            s.at};
      if (!explicit_caller) s.caller_slot = parameter(body, "caller");
      s.takes_caller = true;
    }
    explicit_without_default_ = false;
    if (undeclared.found("kwargs") && !seen.contains("kwargs")) {
      s.kwargs_slot = parameter(body, "kwargs");
      s.takes_kwargs = true;
    }
    if (undeclared.found("varargs") && !seen.contains("varargs")) {
      s.varargs_slot = parameter(body, "varargs");
      s.takes_varargs = true;
    }
    analyze_all();
    // jinja2 refuses `loop` as an assignment target inside a loop, but not as a parameter of a macro.
    Where parameters = where;
    parameters.loops = 0;
    bind(s.targets, body, parameters);
    bind(s.defaults, body, where);
    bind(s.body, body, where);
    for (const ExprPtr& target : s.targets) s.parameter_slots.push_back(target->ref.slot);
    s.frame = frame_of(body);
  }

  Program& program_;
  std::map<std::tuple<const Function*, int, std::string>, int> slots_;
  std::unordered_map<std::string, std::size_t> globals_;
  bool explicit_without_default_ = false;
  std::optional<Raised> duplicate_, fault_;
};

}  // namespace

void bind_variables(Program& program) { Binder(program).run(); }

}  // namespace rlx::jinja
