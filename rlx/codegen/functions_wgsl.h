// Elementwise ops as WGSL expressions, for whole kernels, ops of regions, and epilogues of matmuls and norms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/codegen/kernel_builder.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx::codegen {

/// An operand of an elementwise op: an expression of the compute type, a value of `dtype`.
struct Term {
  std::string text;
  DType dtype = DType::F32;
};

/// Null when `step_text` writes node `n` of `g` (a kind that regions hold), else the reason.
const char* step_refuses(const Graph& g, const Node& n);
/// The op on `in`, in the compute type of `out`. F16 and BF16 results are not rounded yet and narrow integers not
/// wrapped; a store or `settled` does that. Operands should be names or literals, as they may be used several times.
std::string step_text(KernelBuilder& k, const OpBox& op, const std::vector<Term>& in, DType out);
/// `value`, of the compute type, rounded or wrapped to dtype `t` and back.
std::string settled(KernelBuilder& k, DType t, std::string_view value);
/// True when the op is so expensive that a thread computes one element only.
bool is_long(const OpBox& op);

/// A number of a dtype that kernels compute with, as a literal of the compute type.
std::string literal(KernelBuilder& k, DType t, double value);
/// The literal of a one-element constant. None for other nodes and for dtypes that kernels do not compute with.
std::optional<std::string> literal_of(KernelBuilder& k, const Graph& g, Value v);

}  // namespace rlx::codegen
