// Elementwise ops as WGSL expressions: of whole kernels, of steps of regions, and of what products and norms end with.
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

/// Null when `step_text` writes node `n` of `g` (a kind that regions hold), else why not.
const char* step_refuses(const Graph& g, const Node& n);
/// The op on `in`, in the compute type of `out`. F16 and BF16 results are not rounded and narrow integers not wrapped
/// yet: a store does that, or `settled`. Operands should be names or literals, as they may be used several times.
std::string step_text(KernelBuilder& k, const OpBox& op, const std::vector<Term>& in, DType out);
/// `value`, of the compute type, as it will be read again from a value of dtype `t`.
std::string settled(KernelBuilder& k, DType t, std::string_view value);
/// An activation of an f32 expression.
std::string activation_text(KernelBuilder& k, const ops::Activation& op, std::string_view x);
/// True when the op is so long that one element is work enough for a thread.
bool is_long(const OpBox& op);

/// A number of a dtype that kernels compute with, as a literal of the compute type.
std::string literal(KernelBuilder& k, DType t, double value);
/// The element of a constant of one element; none for other nodes, and dtypes that kernels do not compute with.
std::optional<std::string> literal_of(KernelBuilder& k, const Graph& g, Value v);

}  // namespace rlx::codegen
