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
    Graph* g = traced_graph();
    for (std::size_t i = 0; i < n && !g; ++i) {
      const nb::object o = operands[i];
      if (nb::isinstance<PyValue>(o)) g = &graph_of(nb::cast<const PyValue&>(o));
    }
    if (!g)
      raise(ErrorCode::InvalidArgument, "there is no graph to add to",
            "call it on values of a graph, or in a function under rlx.jit");
    for (std::size_t i = 0; i < n; ++i) {
      const nb::object o = operands[i];
      values_.push_back(o.is_none() ? std::nullopt
                                    : std::optional(Operand(operand_from(*g, o, call_.loc()), call_.loc())));
    }
  }
  Operand at(std::size_t i) const {
    if (i >= values_.size() || !values_[i]) raise(ErrorCode::InvalidArgument, "an operand is missing");
    return *values_[i];
  }
  std::optional<Operand> maybe(std::size_t i) const { return i < values_.size() ? values_[i] : std::nullopt; }
  nb::object one(Expr e) const { return value_object(std::move(e), call_.loc()); }
  nb::tuple two(Expr a, Expr b) const { return nb::make_tuple(one(std::move(a)), one(std::move(b))); }

 private:
  UserCall call_;
  std::vector<std::optional<Operand>> values_;
};

}  // namespace rlx::python
