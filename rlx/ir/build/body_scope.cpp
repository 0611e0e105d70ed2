// Lifts values into bodies.
#include "rlx/ir/build/body_scope.h"

#include "rlx/ir/rewrite/bodies.h"

namespace rlx {

BodyScope::BodyScope(Graph& body, Graph& parent, SourceLoc loc)
    : life_(body.life_.of(body)), parent_(parent.life_.of(parent)), name_(body.name()) {
  if (parent_->scope) depth_ = parent_->scope->depth_ + 1;
  if (depth_ > kMaxBodyDepth)
    throw Error(Diagnostic{
        ErrorCode::InvalidArgument, concat_text(name_, ": sub-graphs are nested more than ", kMaxBodyDepth, " deep"),
        built_at(loc), "a body function that calls itself has no end; loops are scan and while_loop"});
  life_->scope = this;
}
BodyScope::~BodyScope() { life_->scope = nullptr; }

void BodyScope::require_alive(SourceLoc loc) const {
  if (life_->graph && parent_->graph) return;
  throw Error(
      Diagnostic{ErrorCode::InvalidArgument,
                 concat_text(name_, ": the body function moved, assigned to or destroyed ",
                             life_->graph ? "the graph that the body is built in" : "the graph that it was given"),
                 built_at(loc), "build the body in the graph that the function gets, and leave both graphs there"});
}

namespace {
std::uint64_t key_of(const Expr& e) { return std::uint64_t{e.value().node.index} << 32 | e.value().result; }
}  // namespace

void BodyScope::stand_for(Graph& g, const Expr& outer, const Expr& input) {
  of(g)->stands_.insert_or_assign(key_of(outer), input);
}

bool BodyScope::encloses(const Graph& outer, Graph& inner) {
  for (const BodyScope* s = of(inner); s; s = s->parent_->scope)
    if (s->parent_->graph == &outer) return true;
  return false;
}

Expr BodyScope::lift(Graph& g, const Expr& e) {
  if (e.belongs_to(g)) return e;
  BodyScope* scope = of(g);
  if (!scope || !scope->parent_->graph) return {};
  const Expr outer = lift(*scope->parent_->graph, e);
  if (!outer.valid()) return {};
  const std::uint64_t key = key_of(outer);
  if (const auto stands = scope->stands_.find(key); stands != scope->stands_.end()) return stands->second;
  auto [it, fresh] = scope->known_.try_emplace(key, scope->captured_.size());
  if (fresh) {
    const Expr input = g.input(concat_text("captured", it->second), outer.shape());
    scope->captured_.push_back(outer);
    scope->inputs_.push_back(input.value().node);
  }
  return g.expr(scope->inputs_[it->second]);
}

Expr value_in(Graph& g, const Expr& e, std::string_view what, SourceLoc loc) {
  Graph& from = e.graph();  // throws for an empty or dead one
  if (&from == &g) return e;
  if (Expr lifted = BodyScope::lift(g, e); lifted.valid()) return lifted;
  const bool inside = BodyScope::encloses(g, from);
  throw Error(Diagnostic{
      ErrorCode::InvalidArgument,
      concat_text(
          what, what.empty() ? "value " : ": value ", e.value(),
          inside ? concat_text(" belongs to the body '", from.name(), "', which is built inside graph '", g.name(), "'")
                 : concat_text(" belongs to graph '", from.name(), "', not to '", g.name(), "'")),
      built_at(loc),
      inside ? "inside of a body, use the graph that the body function gets, and return the values that the outer "
               "graph needs"
             : "values cannot be mixed between graphs; pass them as inputs"});
}

}  // namespace rlx
