// The operands of a call of rlx/functions.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "python/bindings/common.h"
#include "python/bindings/tracing.h"
#include "rlx/ir/builder.h"

namespace rlx::python {

/// The operands of a call, as values of the graph under trace or else of the graph of the first value among them. None
/// is an operand that is left out.
class CallOperands {
 public:
  explicit CallOperands(nb::sequence operands) {
    const std::size_t n = nb::len(operands);
    graph_ = traced_graph();
    for (std::size_t i = 0; i < n && !graph_; ++i) {
      const nb::object o = operands[i];
      if (nb::isinstance<PyValue>(o)) graph_ = &graph_of(nb::cast<const PyValue&>(o));
    }
    if (!graph_)
      raise(ErrorCode::InvalidArgument, "there is no graph to add to",
            "call it on values of a graph, or in a function under rlx.jit");
    for (std::size_t i = 0; i < n; ++i) {
      const nb::object o = operands[i];
      values_.push_back(o.is_none() ? std::nullopt : std::optional(operand(o)));
    }
  }
  std::size_t size() const { return values_.size(); }
  /// Operand `i`; None is refused.
  Operand operator[](std::size_t i) const {
    const std::optional<Operand>& v = values_.at(i);
    return v ? *v : operand(nb::none());
  }
  std::optional<Operand> maybe(std::size_t i) const { return i < values_.size() ? values_[i] : std::nullopt; }
  SourceLoc loc() const { return call_.loc(); }
  nb::object one(Expr e) const { return value_object(std::move(e), loc()); }
  nb::tuple two(Expr a, Expr b) const { return nb::make_tuple(one(std::move(a)), one(std::move(b))); }

 private:
  Operand operand(nb::handle o) const { return {operand_from(*graph_, o, loc()), loc()}; }

  UserCall call_;
  Graph* graph_ = nullptr;
  std::vector<std::optional<Operand>> values_;
};

}  // namespace rlx::python
