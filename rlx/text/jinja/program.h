// The syntax tree of a chat template: expressions, statements and the variables of each frame.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rlx/text/jinja/value.h"

namespace rlx::jinja {

/// A function of the compiled template: the root, a macro, a call block, the body of a recursive loop.
struct Function {
  const Function* parent = nullptr;
  std::vector<std::pair<int, std::string>> slots;  // level and name of each variable
};

/// The location of a variable: the number of functions outward, and its slot there.
struct Ref {
  int hops = 0;
  int slot = -1;
};

/// The initial value of a variable when its frame begins.
struct Load {
  enum class Action : std::uint8_t { Parameter, Resolve, Alias, Undefined };
  int slot = -1;
  Action action = Action::Undefined;
  Ref from;                // Alias
  std::size_t global = 0;  // Resolve: index into Program::globals
};
using Frame = std::vector<Load>;

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Keyword {
  std::string name;
  ExprPtr value;
};

struct Expr {
  enum class Type : std::uint8_t {
    Name,
    NamespaceRef,
    None,
    Bool,
    Int,
    Float,
    String,
    List,
    Tuple,
    Dict,
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Neg,
    Pos,
    Not,
    And,
    Or,
    Concat,
    Compare,
    Attribute,
    Item,
    Slice,
    Call,
    Filter,
    Test,
    Conditional
  };
  Type type = Type::None;
  Position at;
  int depth = 1;
  std::string text;          // name, attribute, string, filter, test, digits of an integer beyond 64 bits
  std::int64_t integer = 0;  // Int, Bool
  double real = 0;
  std::size_t constant = 0;            // String: index among the constants of a render
  std::vector<ExprPtr> parts;          // operands; null where a slice or a conditional has none
  std::vector<std::string> operators;  // Compare
  std::vector<Keyword> keywords;
  ExprPtr spread, spread_keywords;  // *x and **x of a call
  bool stored = false;              // Name: a target
  Ref ref;
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Block = std::vector<StmtPtr>;

struct Stmt {
  enum class Type : std::uint8_t {
    Data,
    Print,
    For,
    If,
    Macro,
    Call,
    FilterBlock,
    With,
    Set,
    SetBlock,
    Break,
    Continue
  };
  Type type = Type::Data;
  Position at;
  std::string text;               // data, the name of a macro
  std::vector<ExprPtr> exprs;     // Print: one; With: values; For: iter; If: test; Call: call; Set: value
  std::vector<ExprPtr> targets;   // For, Set, SetBlock: one; With: each; Macro, Call: parameters
  std::vector<ExprPtr> defaults;  // defaults of the last parameters
  ExprPtr test;                   // For: the filter
  ExprPtr filter;                 // SetBlock, FilterBlock: a chain whose innermost operand is null
  Block body, otherwise;
  std::vector<StmtPtr> elifs;
  bool recursive = false, extended = false;                                // For
  bool generation = false;                                                 // Call: {% generation %}
  bool takes_caller = false, takes_kwargs = false, takes_varargs = false;  // Macro, Call
  int caller_slot = -1, kwargs_slot = -1, varargs_slot = -1, loop_slot = -1;
  std::vector<int> parameter_slots;
  Ref ref;  // Macro: where it is stored
  Frame frame, test_frame, else_frame;
  std::unique_ptr<Function> function, test_function;  // Macro, Call, recursive For; the filter of a For
};

/// A parsed template. Immutable, so any number of threads may render it.
struct Program {
  std::string name, source;
  Block body;
  Function root;
  Frame frame;
  std::vector<std::string> globals;  // names that the template reads from outside
  std::vector<std::string> strings;  // constants
};

/// Variables of one call of a function.
struct Activation {
  Activation* parent = nullptr;
  std::vector<Value> slots;
  bool captured = false;  // a macro may still refer to it
};

struct MacroObject final : Object {
  const Stmt* definition = nullptr;
  Activation* closure = nullptr;
  std::string_view name() const { return definition->text; }
};

/// Lexes, parses and binds a template. Errors: Raised of type TemplateSyntaxError, TemplateAssertionError or
/// SyntaxError with the position; limit for templates of more than 1 MiB or too deeply nested.
std::unique_ptr<Program> compile(std::string_view source, std::string name);

}  // namespace rlx::jinja
