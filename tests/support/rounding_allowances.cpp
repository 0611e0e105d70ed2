// The table of allowances: how exact a kernel must be.
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/reduce.h"
#include "tests/support/rounding_rules.h"

namespace rlx::test {
namespace {

using rounding::kFunctionPlaces;

struct ActivationAllowance {
  ActivationKind fn;
  double places;
};
constexpr ActivationAllowance kActivations[] = {
    {ActivationKind::Relu, 0},      {ActivationKind::Neg, 0},         {ActivationKind::Abs, 0},
    {ActivationKind::Round, 0},     {ActivationKind::Floor, 0},       {ActivationKind::Ceil, 0},
    {ActivationKind::Sign, 0},      {ActivationKind::Not, 0},         {ActivationKind::Sqrt, 1},
    {ActivationKind::Square, 1},    {ActivationKind::HardSigmoid, 3}, {ActivationKind::Trunc, 0},
    {ActivationKind::LeakyRelu, 2}, {ActivationKind::Popcount, 0},    {ActivationKind::Clz, 0},
};
struct BinaryAllowance {
  BinaryKind fn;
  double places;
};
constexpr BinaryAllowance kBinaries[] = {{BinaryKind::Add, 0.5}, {BinaryKind::Sub, 0.5}, {BinaryKind::Mul, 0.5},
                                         {BinaryKind::Div, 1},   {BinaryKind::Max, 0},   {BinaryKind::Min, 0}};

struct SumAllowance {
  OpKind kind;
  double terms;
};
// For sums of up to some thousand terms. The random error of n roundings is far below n. Where many terms are equal, a
// serial sum drifts by at most n / 2: add_terms allows that up to twice the number here.
constexpr SumAllowance kSums[] = {{OpKind::DotGeneral, 8},       {OpKind::Conv, 8},       {OpKind::Reduce, 8},
                                  {OpKind::Cumulative, 8},       {OpKind::Scatter, 8},    {OpKind::ReduceWindow, 8},
                                  {OpKind::SelectAndScatter, 8}, {OpKind::Interpolate, 8}};

}  // namespace

Allowance allowance_of(const OpBox& op) {
  if (const auto* a = op.get_if<ops::Activation>()) {
    for (const ActivationAllowance& row : kActivations)
      if (row.fn == a->fn) return {row.places, 0};
    return {kFunctionPlaces, 0};
  }
  if (const auto* b = op.get_if<ops::Binary>()) {
    for (const BinaryAllowance& row : kBinaries)
      if (row.fn == b->fn) return {row.places, 0};
    return {kFunctionPlaces, 0};
  }
  if (const auto* r = op.get_if<ops::Reduce>(); r && (r->fn == ReduceKind::Max || r->fn == ReduceKind::Min)) return {};
  if (const auto* c = op.get_if<ops::Cumulative>(); c && (c->fn == CumulativeKind::Max || c->fn == CumulativeKind::Min))
    return {};
  if (const auto* w = op.get_if<ops::ReduceWindow>(); w && (w->fn == ReduceKind::Max || w->fn == ReduceKind::Min))
    return {};
  for (const SumAllowance& row : kSums)
    if (row.kind == op.kind()) return {1, row.terms};
  if (op.kind() == OpKind::Custom) return {kFunctionPlaces, 0};
  return {};
}

}  // namespace rlx::test
