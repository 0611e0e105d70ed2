// Binds elementwise functions of rlx/functions: rlx.special(name, operands), with operands of one dtype.
#include <map>

#include "python/bindings/tracing.h"
#include "rlx/functions/activations.h"
#include "rlx/functions/floats.h"
#include "rlx/functions/special.h"

namespace rlx::python {
namespace {

using One = Expr (*)(const Expr&);
using Two = Expr (*)(const Expr&, const Expr&);
using Three = Expr (*)(const Expr&, const Expr&, const Expr&);

struct SpecialFunction {
  One one = nullptr;
  Two two = nullptr;
  Three three = nullptr;
  std::size_t operands() const { return one ? 1 : two ? 2 : 3; }
};

const std::map<std::string, SpecialFunction>& functions() {
  static const std::map<std::string, SpecialFunction> table = {
      {"betainc", {.three = special::betainc}},
      {"betaln", {.two = special::betaln}},
      {"copysign", {.two = floats::copysign}},
      {"entr", {.one = special::entr}},
      {"gamma", {.one = special::gamma}},
      {"kl_div", {.two = special::kl_div}},
      {"ldexp", {.two = floats::ldexp}},
      {"log_ndtr", {.one = special::log_ndtr}},
      {"logaddexp2", {.two = special::logaddexp2}},
      {"logit", {.one = special::logit}},
      {"ndtr", {.one = special::ndtr}},
      {"ndtri", {.one = special::ndtri}},
      {"nextafter", {.two = floats::nextafter}},
      {"prelu", {.two = nn::prelu}},
      {"rel_entr", {.two = special::rel_entr}},
      {"signbit", {.one = floats::signbit}},
      {"tanh_shrink", {.one = nn::tanh_shrink}},
      {"xlog1py", {.two = special::xlog1py}},
      {"xlogy", {.two = special::xlogy}},
  };
  return table;
}

std::vector<Expr> operands_of(nb::args operands, SourceLoc loc) {
  std::vector<Expr> out;
  for (nb::handle h : operands) out.push_back(operand_from(graph_of(nb::cast<const PyValue&>(operands[0])), h, loc));
  return out;
}

nb::object call(const std::string& name, nb::args operands) {
  const auto found = functions().find(name);
  if (found == functions().end()) raise(ErrorCode::NotFound, concat_text("there is no function '", name, "'"));
  const SpecialFunction& f = found->second;
  if (nb::len(operands) != f.operands())
    raise(ErrorCode::InvalidArgument, concat_text(name, " takes ", f.operands(), " operands, got ", nb::len(operands)));
  const UserCall line;
  const SourceLoc loc = line.loc();
  const std::vector<Expr> x = operands_of(operands, loc);
  return value_object(f.one ? f.one(x[0]) : f.two ? f.two(x[0], x[1]) : f.three(x[0], x[1], x[2]), loc);
}

}  // namespace

void bind_special(nb::module_& m) {
  m.def("special", &call, nb::arg("name"), nb::arg("operands"));
  m.def("frexp", [](const PyValue& x) {
    const UserCall line;
    const floats::Frexp r = floats::frexp(x.expr);
    return nb::make_tuple(value_object(r.mantissa, line.loc()), value_object(r.exponent, line.loc()));
  });
  m.def("thresholded_relu", [](const PyValue& x, double alpha) {
    const UserCall line;
    return value_object(nn::thresholded_relu(x.expr, alpha), line.loc());
  });
  m.def("squareplus", [](const PyValue& x, double b) {
    const UserCall line;
    return value_object(nn::squareplus(x.expr, b), line.loc());
  });
  m.def("shrink", [](const PyValue& x, double lambda, double bias) {
    const UserCall line;
    return value_object(nn::shrink(x.expr, lambda, bias), line.loc());
  });
}

}  // namespace rlx::python
