// Random calls of any op: a sample of the op, possibly with another size or dtype, on values of the pool that are
// converted to the shape and range of the sample's operands.
#include <algorithm>
#include <vector>

#include "rlx/ir/op_def.h"
#include "tests/support/random_generator.h"
#include "tests/support/random_samples.h"

namespace rlx::test {
namespace {

// The samples of every op that a program may contain, in the order of the kinds.
const std::vector<std::vector<Sample>>& callable_samples() {
  static const std::vector<std::vector<Sample>> all = [] {
    std::vector<std::vector<Sample>> out;
    for (const OpDef* def : all_op_defs()) {
      if (def->is_leaf() || def->level == Level::Lir) continue;
      std::vector<Sample> samples = samples_of(*def);
      if (!samples.empty()) out.push_back(std::move(samples));
    }
    return out;
  }();
  return all;
}

bool has_named_dims(const Shape& shape) { return !shape.is_static(); }

}  // namespace

Expr Generator::drawn_leaf(const SampleInput& in) {
  const std::string name = next("x");
  out_.fills.emplace(name, in);
  return dice_.chance(25) ? g_.param(name, in.shape, dice_.chance(70) ? ParamMode::Frozen : ParamMode::Mutable)
                          : g_.input(name, in.shape);
}

Expr Generator::fitted(const Expr& x, const Shape& shape) {
  const std::int64_t wanted = shape.num_elements(), there = x.shape().num_elements();
  Expr e = x.dtype() == shape.dtype() ? x : g_.cast(x, shape.dtype());
  if (e.shape() == shape) return e;
  e = g_.reshape(e, {there});
  if (there > wanted) {
    e = g_.narrow(e, 0, there - wanted, wanted);
  } else if (there < wanted) {  // repeat the elements
    const std::int64_t copies = (wanted + there - 1) / there;
    e = g_.reshape(g_.expand(g_.unsqueeze(e, 0), {copies, there}), {copies * there});
    if (copies * there > wanted) e = g_.narrow(e, 0, 0, wanted);
  }
  return g_.reshape(e, shape.dims());
}

Expr Generator::operand(const SampleInput& in) {
  const DType t = in.shape.dtype();
  const bool real = is_float(t) && !is_storage_only(t), matrix = in.fill == Fill::Unit && in.bound > 1;
  const auto found = [&](const Wanted& wanted) {
    return pick([&](const Expr& e) { return !has_named_dims(e.shape()) && e.shape().num_elements() > 0 && wanted(e); });
  };
  if (in.shape.num_elements() == 0 || dice_.chance(35)) return drawn_leaf(in);
  if (in.fill == Fill::Index && (t == DType::I32 || t == DType::I64)) {
    const Expr x = found([&](const Expr& e) { return e.dtype() == t; });
    return x.valid() && in.bound > 0 ? g_.clamp(fitted(x, in.shape), 0, in.bound - 1) : drawn_leaf(in);
  }
  if (in.fill == Fill::Normal && is_complex(t)) {
    const Expr x = found([&](const Expr& e) { return e.dtype() == t; });
    return x.valid() ? fitted(x, in.shape) : drawn_leaf(in);
  }
  if (!real || in.fill == Fill::Index || in.fill == Fill::Boolean || in.fill == Fill::Small) return drawn_leaf(in);
  Expr x = found([&](const Expr& e) { return is_float(e.dtype()); });
  if (!x.valid()) return drawn_leaf(in);
  x = fitted(x, in.shape);
  if (in.fill == Fill::Normal) return x;
  // Functions whose results are in the range. NaN and infinities are replaced by a number.
  x = g_.where(g_.lt(g_.abs(x), 16.0), x, 0.5);
  if (matrix) {
    const std::int64_t rows = in.shape.dim(-2).value(), columns = in.shape.dim(-1).value();
    Tensor diagonal = Tensor::zeros(Shape({rows, columns}, t));
    for (std::int64_t i = 0; i < std::min(rows, columns); ++i)
      diagonal.set(i * columns + i, static_cast<double>(columns + 1));
    return g_.add(g_.mul(g_.tanh(x), 0.9), g_.constant(diagonal));
  }
  switch (in.fill) {
    case Fill::Positive: return g_.add(g_.mul(g_.sigmoid(x), 1.5), 0.5);
    case Fill::AboveOne: return g_.add(g_.mul(g_.sigmoid(x), 1.75), 1.25);
    default: return g_.mul(g_.tanh(x), 0.9);
  }
}

void Generator::call() {
  Sample s = dice_.any(dice_.any(callable_samples()));
  if (dice_.chance(35)) {
    const std::vector<Sample> others = dtype_samples(s);
    if (!others.empty()) s = dice_.any(others);
  }
  for (std::int64_t i = dice_.below(4); i-- > 0;) s = resized_sample(s, dice_, options_.max_elements);
  std::vector<Value> operands;
  // The factors of a matrix with repeated rows are not unique.
  const bool factors = s.op.kind() == OpKind::Lu || s.op.kind() == OpKind::Qr || s.op.kind() == OpKind::Eigh ||
                       s.op.kind() == OpKind::Svd;
  for (const SampleInput& in : s.inputs) operands.push_back(factors ? drawn_leaf(in) : operand(in));
  const Expr e = g_.add(s.op, operands);
  const std::size_t results = g_.node(e.value().node).num_results();
  for (std::uint32_t r = 0; r < results; ++r) keep(e.result(r));
}

}  // namespace rlx::test
