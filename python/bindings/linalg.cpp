// Binds rlx/functions/linalg.h: _rlx.linalg(name, operands, number) returns a list of results.
#include <map>

#include "python/bindings/tracing.h"
#include "rlx/functions/linalg.h"

namespace rlx::python {
namespace {

using Operands = std::vector<Expr>;
/// `number` is a tolerance, a variant or an exponent; none: the default of the function.
using LinalgFunction = ExprList (*)(const Operands& x, std::optional<double> number);

linalg::Transposed transposed_of(std::optional<double> number) {
  return static_cast<linalg::Transposed>(static_cast<int>(number.value_or(0)));
}
linalg::MatrixNorm norm_of(std::optional<double> number) {
  return static_cast<linalg::MatrixNorm>(static_cast<int>(number.value_or(0)));
}

struct LinalgEntry {
  std::size_t operands;
  LinalgFunction call;
};

const std::map<std::string, LinalgEntry>& linalg_functions() {
  using Number = std::optional<double>;
  static const std::map<std::string, LinalgEntry> table = {
      {"solve", {2, [](const Operands& x, Number) { return ExprList{linalg::solve(x[0], x[1])}; }}},
      {"batched_solve",
       {2, [](const Operands& x, Number) { return ExprList{linalg::batched_dense_solve(x[0], x[1])}; }}},
      {"inv", {1, [](const Operands& x, Number) { return ExprList{linalg::inv(x[0])}; }}},
      {"lu_solve",
       {3,
        [](const Operands& x, Number t) {
          return ExprList{linalg::lu_solve({x[0], x[1]}, x[2], transposed_of(t))};
        }}},
      {"cholesky_solve",
       {2,
        [](const Operands& x, Number t) { return ExprList{linalg::cholesky_solve(x[0], x[1], t.value_or(1) != 0)}; }}},
      {"lstsq",
       {2,
        [](const Operands& x, Number t) {
          const auto r = linalg::lstsq(x[0], x[1], t);
          return ExprList{r.x, r.residuals, r.rank, r.singular_values};
        }}},
      {"pinv", {1, [](const Operands& x, Number t) { return ExprList{linalg::pinv(x[0], t)}; }}},
      {"det", {1, [](const Operands& x, Number) { return ExprList{linalg::det(x[0])}; }}},
      {"slogdet",
       {1,
        [](const Operands& x, Number) {
          const auto r = linalg::slogdet(x[0]);
          return ExprList{r.sign, r.logabsdet};
        }}},
      {"matrix_rank", {1, [](const Operands& x, Number t) { return ExprList{linalg::matrix_rank(x[0], t)}; }}},
      {"matrix_norm", {1, [](const Operands& x, Number t) { return ExprList{linalg::matrix_norm(x[0], norm_of(t))}; }}},
      {"cond", {1, [](const Operands& x, Number t) { return ExprList{linalg::cond(x[0], norm_of(t))}; }}},
      {"expm",
       {1, [](const Operands& x,
              Number t) { return ExprList{linalg::expm(x[0], static_cast<std::int64_t>(t.value_or(16)))}; }}},
      {"householder_product",
       {2, [](const Operands& x, Number) { return ExprList{linalg::householder_product(x[0], x[1])}; }}},
  };
  return table;
}

}  // namespace

void bind_linalg(nb::module_& m) {
  m.def(
      "linalg",
      [](const std::string& name, nb::sequence operands, std::optional<double> number) {
        const auto found = linalg_functions().find(name);
        if (found == linalg_functions().end())
          raise(ErrorCode::NotFound, concat_text("there is no function '", name, "' of linear algebra"));
        if (nb::len(operands) != found->second.operands)
          raise(ErrorCode::InvalidArgument,
                concat_text(name, " takes ", found->second.operands, " operands, got ", nb::len(operands)));
        const UserCall line;
        const SourceLoc loc = line.loc();
        Graph* traced = traced_graph();
        const nb::object first = operands[0];
        Graph& g = traced ? *traced : graph_of(nb::cast<const PyValue&>(first));
        Operands own;
        for (std::size_t i = 0; i < nb::len(operands); ++i) own.push_back(operand_from(g, operands[i], loc));
        return value_list(found->second.call(own, number), loc);
      },
      nb::arg("name"), nb::arg("operands"), nb::arg("number").none() = nb::none());
}

}  // namespace rlx::python
