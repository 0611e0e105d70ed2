// Lookups in the function tables, by kind.
#include "rlx/ir/functions.h"

#include "rlx/ir/math/binary_table.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx {

const FunctionRow& function_row(ActivationKind fn) {
  const auto i = static_cast<std::size_t>(fn);
  if (i >= std::size(kFunctionTable)) detail::throw_no_enumerator("ActivationKind", static_cast<std::int64_t>(fn));
  return kFunctionTable[i];
}

const BinaryRow& binary_row(BinaryKind fn) {
  const auto i = static_cast<std::size_t>(fn);
  if (i >= std::size(kBinaryTable)) detail::throw_no_enumerator("BinaryKind", static_cast<std::int64_t>(fn));
  return kBinaryTable[i];
}

FunctionParams function_params(const ops::Activation& op) {
  const FunctionRow& row = function_row(op.fn);
  return {op.alpha.value_or(row.alpha.value_or(0)), op.beta.value_or(row.beta.value_or(0))};
}

bool has_own_params(const ops::Activation& op) {
  const FunctionRow& row = function_row(op.fn);
  return (!op.alpha || op.alpha == row.alpha) && (!op.beta || op.beta == row.beta);
}

std::string function_helpers_c() {
  std::string out;
  for (std::string_view text : kSpecialHelpers) out += concat_text(text, "\n");
  for (std::string_view text : kFunctionHelpers) out += concat_text(text, "\n");
  for (std::string_view text : kBinaryHelpers) out += concat_text(text, "\n");
  return out;
}

}  // namespace rlx
