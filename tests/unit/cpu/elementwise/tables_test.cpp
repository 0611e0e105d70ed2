// The kernels of formulas on every instruction set of this machine, F32 and F64, against tables of exact values.
#include <algorithm>

#include "rlx/backends/cpu/elementwise/functions_f64_kernels.h"
#include "rlx/elementwise/functions.h"
#include "rlx/ir/functions.h"
#include "tests/support/function_tables.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

using rlx::test::ExactPoint;
using rlx::test::FunctionTable;
using rlx::test::ulps_from;

struct Case {
  ActivationKind fn;
  TapeOp op;
};
constexpr Case kCases[] = {
#define RLX_CASE(Kind, ...) {ActivationKind::Kind, TapeOp::Kind},
    RLX_FOR_EACH_FORMULA(RLX_CASE) RLX_FOR_EACH_FORMULA_WITH_PARAMETER(RLX_CASE)
#undef RLX_CASE
};

TEST_CASE("tables: kernels of floats are within their ulp of exact values") {
  for (const Case& c : kCases) {
    CAPTURE(enum_name(c.fn));
    const std::vector<ExactPoint> points = rlx::test::function_table(enum_name(c.fn)).floats;
    const auto n = static_cast<std::int64_t>(points.size());
    Buffer x(n), y(n);
    for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(points[static_cast<std::size_t>(i)].x);
    for (const KernelTable* t : tables()) {
      CAPTURE(isa_name(t->isa));
      Tape tape;
      tape.rank = 1, tape.dims[0] = n, tape.num_inputs = 1, tape.inputs[0].strides[0] = 1;
      const TapeInstr instr{.op = c.op, .dst = 1, .a = 0, .imm = 1.0F};
      tape.instrs = &instr, tape.num_instrs = 1, tape.num_outputs = 1, tape.outputs[0].reg = 1;
      tape_prepare(tape);
      const void* inputs[] = {x.data()};
      void* outputs[] = {y.data()};
      t->tape_run(tape, inputs, outputs, 0, n);
      double worst = -1, at = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const double e = ulps_from(DType::F32, static_cast<double>(y[i]), points[static_cast<std::size_t>(i)].value);
        if (!(e <= worst)) worst = e, at = static_cast<double>(x[i]);
      }
      CAPTURE(at);
      CHECK(worst >= 0);
      CHECK(worst <= elementwise::find_function(enum_name(c.fn))->ulp_f32);
    }
  }
}

TEST_CASE("tables: kernels of doubles are within their ulp of exact values") {
  for (const Case& c : kCases) {
    CAPTURE(enum_name(c.fn));
    const std::vector<ExactPoint> points = rlx::test::function_table(enum_name(c.fn)).points;
    std::vector<double> x(points.size()), y(points.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = points[i].x;
    for (const KernelTable* t : tables()) {
      CAPTURE(isa_name(t->isa));
      BlockArgs args;
      args.fn = static_cast<int>(c.fn);
      args.params = {1, 0};
      f64_kernels(t->isa).unary(x.data(), nullptr, nullptr, y.data(), static_cast<int>(x.size()), args);
      double worst = -1, at = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double free = rlx::test::rounding_of_definition(enum_name(c.fn), x[i]);
        const double e = std::max(0.0, ulps_from(DType::F64, y[i], points[i].value) - free);
        if (!(e <= worst)) worst = e, at = x[i];
      }
      CAPTURE(at);
      CHECK(worst >= 0);
      CHECK(worst <= elementwise::find_function(enum_name(c.fn))->ulp_f64);
    }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
