// The formulas by name, with their accuracy and cost, as expressions. A function of the tables of rlx/ir that is not
// here has no formula over lanes.
#pragma once

#include <string_view>

#include "rlx/elementwise/expression.h"
#include "rlx/elementwise/list.h"

namespace rlx::elementwise {

struct Function {
  std::string_view name;
  int operands;                           // 2: with a parameter
  double ulp_f32, ulp_f64, ulp_portable;  // largest errors on the cpu, and of the portable expression
  double cost_f32, cost_f64;              // ns per element on the cpu, roughly
  Expression (*portable)();               // in F32, of symbol.h's Portable
  Expression (*xla_f32)();
  Expression (*xla_f64)();
};

/// The function of this name; null if it has no formula.
const Function* find_function(std::string_view name);

}  // namespace rlx::elementwise
