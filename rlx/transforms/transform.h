// Types shared by all transforms and their callers: how leaves are named, and what a transform returns.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// A value to differentiate with respect to or to perturb: an Input, Param or State by name, or a value of the forward
/// graph.
class Wrt {
 public:
  Wrt(const char* name) : name_(name ? name : "") {}               // NOLINT(implicit)
  Wrt(std::string name) : name_(std::move(name)) {}                // NOLINT(implicit)
  Wrt(NodeId id) : value_(id) {}                                   // NOLINT(implicit)
  Wrt(Value value) : value_(value) {}                              // NOLINT(implicit)
  Wrt(const Expr& value) : value_(value.value()), expr_(value) {}  // NOLINT(implicit)
  /// Empty when a value was given instead of a name.
  const std::string& name() const { return name_; }
  Value value() const { return value_; }
  /// The Expr that was given. It must belong to the transformed graph.
  const std::optional<Expr>& expr() const { return expr_; }

 private:
  std::string name_;
  Value value_;
  std::optional<Expr> expr_;
};

/// A transformed graph. Every Input, Param and State of the forward graph is a leaf of `graph` with the same name, used
/// or not, so the same values bind both graphs.
struct TransformResult {
  Graph graph;
  /// Forward value -> the value of `graph` that carries it. Values that nothing needs any more are absent.
  std::map<Value, Value> ids;
  /// The names of the Inputs that the transform added, in the order that its function documents.
  std::vector<std::string> added_inputs;
};
using GradResult = TransformResult;

}  // namespace rlx
