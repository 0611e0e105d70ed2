// Shared rules of SelectiveScan, Mamba2 and GatedDeltaNet.
#include "rlx/ops/sequence/state_space.h"

#include <limits>

#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// Bool [n, n], true where f(row, column) is.
template <class F>
Expr square_mask(Graph& g, std::int64_t n, F f) {
  Tensor mask = Tensor::zeros(Shape({n, n}, DType::Bool));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      if (f(i, j)) mask.set(i * n + j, 1);
  return g.constant(std::move(mask));
}

}  // namespace

Result<Shapes> infer_scan(const InferContext& c, std::initializer_list<ScanOperand> operands, const Shape& y,
                          const Shape& state) {
  const DType own = c.input(0).dtype();
  for (const auto& [name, dims, or_state] : operands) {
    if (!c.has(name)) continue;
    const Shape& x = c.input(name);
    if (x.dtype() != own && !(or_state && x.dtype() == state.dtype()))
      return c.dtype_error(
          name, " must be ", dtype_name(own),
          or_state && state.dtype() != own ? concat_text(" or ", dtype_name(state.dtype())) : std::string(), ", got ",
          x);
    if (x.dims() != dims) return c.error(name, " must be ", dims_text(dims), ", got ", x);
  }
  if (c.has("state") && !(c.input("state") == state))
    return c.error("state must be ", state, ", got ", c.input("state"));
  return make_shapes(y, state);
}

std::vector<double> scan_values(const RefArgs& args, std::string_view name) {
  return args.has(name) ? load_all<double>(args.in(name)) : std::vector<double>{};
}

Expr scan_operand(const DecomposeContext& c, std::string_view name) {
  return c.graph().cast(c.input(name), accumulator_dtype(c.input(0).dtype()));
}

bool decompose_narrow_scan(DecomposeContext& c) {
  const DType own = c.input(0).dtype(), state = accumulator_dtype(own);
  if (own == state) return false;
  Graph& g = c.graph();
  std::vector<Value> operands;
  for (Expr e : c.inputs()) operands.push_back(g.cast(e, state).value());
  const Expr first = g.add(c.box(), std::move(operands));
  for (int r = 0; r < c.num_results(); ++r)
    c.set_result(r, g.cast(first.result(static_cast<std::uint32_t>(r)), c.result_shape(r).dtype()));
  return true;
}

Expr time_step(const DecomposeContext& c, std::string_view name, std::string_view bias, bool softplus, Dims bias_dims) {
  Graph& g = c.graph();
  Expr x = scan_operand(c, name);
  if (c.has(bias)) x = x + g.reshape(scan_operand(c, bias), std::move(bias_dims));
  return softplus ? g.softplus(x) : x;
}

std::optional<Chunks> chunks_of(const Dim& steps, std::int64_t chunk) {
  if (!steps.is_static() || chunk <= 1 || steps.value() <= 1) return std::nullopt;
  Chunks p;
  while (p.length < chunk && p.length < steps.value()) p.length *= 2;
  p.count = (steps.value() + p.length - 1) / p.length;
  p.padding = p.count * p.length - steps.value();
  return p;
}

Expr in_chunks(Graph& g, Expr x, const Chunks& p) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (p.padding != 0) {
    std::vector<std::int64_t> low(rank, 0), high(rank, 0);
    high[1] = p.padding;
    x = g.pad(x, low, high);
  }
  std::vector<std::int64_t> perm = identity_perm(x.rank());
  std::swap(perm[1], perm[2]);
  const Dims& dims = x.shape().dims();
  Dims to{dims[0] * dims[2], Dim(p.count), Dim(p.length)};
  to.insert(to.end(), dims.begin() + 3, dims.end());
  return g.reshape(g.transpose(x, std::move(perm)), std::move(to));
}

Expr lower_mask(Graph& g, std::int64_t length, bool diagonal) {
  return square_mask(g, length, [&](std::int64_t i, std::int64_t j) { return j < i || (diagonal && i == j); });
}

Expr decay_of(Graph& g, Expr sums, const Expr& mask) {
  const Expr between = g.unsqueeze(sums, -1) - g.unsqueeze(sums, -2);
  return g.exp(g.where(mask, between, -std::numeric_limits<double>::infinity()));
}

// [[X, 0], [C, Y]] has the inverse [[X', 0], [-Y' C X', Y']]. Applying it to two blocks at a time forms no powers of
// `a`.
Expr inverse_of_unit_lower(Graph& g, Expr a) {
  const std::int64_t n = a.dim(-1).value();
  Tensor one = Tensor::zeros(Shape({n, n}, a.dtype()));
  for (std::int64_t i = 0; i < n; ++i) one.set(i * n + i, 1);
  Expr inverse = g.constant(std::move(one));
  for (std::int64_t block = 1; block < n; block *= 2) {
    const Expr between = square_mask(g, n, [&](std::int64_t i, std::int64_t j) {
      return i / (2 * block) == j / (2 * block) && i / block % 2 == 1 && j / block % 2 == 0;
    });
    const Expr lower = g.where(between, a, 0);
    inverse = inverse - (block == 1 ? lower : g.matmul(inverse, g.matmul(lower, inverse)));
  }
  return inverse;
}

}  // namespace rlx
