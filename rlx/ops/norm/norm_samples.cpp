// Samples of LayerNorm, RmsNorm, LayerNormBackward and RmsNormBackward.
#include "rlx/ir/ops/norm.h"
#include "rlx/ops/rule_helpers.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

// The shape of x. The vectors have its dtype.
struct NormCase {
  const char* name;
  Shape x;
  std::vector<std::int64_t> axes;
  double eps;
};
std::vector<NormCase> norm_cases() {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  return {{"last", f32({2, 3, 4}), {2}, 1e-5},
          {"middle", f32({2, 3, 2}), {1}, 1e-3},
          {"first", f32({4, 2}), {0}, 1e-5},
          {"vector", f32({5}), {0}, 0.1},
          {"one element", f32({2, 1}), {1}, 0.5},
          {"no rows", f32({0, 3}), {1}, 1e-5},
          {"the last two axes", f32({2, 3, 2}), {1, 2}, 1e-5},
          {"all axes", f32({2, 3}), {0, 1}, 1e-5},
          {"axes apart", f32({3, 2, 2}), {0, 2}, 1e-3},
          {"f64", Shape({2, 3}, DType::F64), {1}, 1e-12},
          {"bf16", Shape({2, 4}, DType::BF16), {1}, 1e-5},
          {"f16", Shape({2, 4}, DType::F16), {1}, 1e-5}};
}

// The sample of an op with operands x, [dy] and the optional ones whose bits are set in `present`.
template <class Op>
void add_norm_sample(SampleSet& s, const NormCase& n, std::uint32_t present) {
  Op op;
  op.axes = n.axes, op.eps = n.eps, op.present.bits = present;
  const Shape stats(kept_dims(n.x, n.axes), accumulator_dtype(n.x.dtype()));
  Dims along;  // the axes: dims of gamma and beta
  for (std::int64_t axis : n.axes) along.push_back(n.x.dim(static_cast<int>(axis)));
  std::vector<SampleInput> in;
  std::string name = n.name;
  for (int place = 0; place < Op::def.inputs.count; ++place) {
    const std::string_view operand = Op::def.inputs.names[place];
    if (Op::def.inputs.is_optional(place)) {
      if (!op.present.has(place)) {
        name += concat_text(", no ", operand);
        continue;
      }
    }
    if (operand == "x" || operand == "dy")
      in.emplace_back(n.x);
    else if (operand == "rstd")
      in.emplace_back(stats, Fill::Positive);
    else
      in.emplace_back(operand == "mean" ? stats : Shape(along, n.x.dtype()));
  }
  s.add(name, std::move(in), std::move(op));
}

template <class Op>
void norm_samples(SampleSet& s) {
  for (const NormCase& n : norm_cases()) add_norm_sample<Op>(s, n, 0b110);
  const std::vector<NormCase> some = norm_cases();
  for (std::uint32_t present : {0U, 0b010U, 0b100U})
    for (std::size_t i : {std::size_t{0}, std::size_t{6}}) add_norm_sample<Op>(s, some[i], present);
}

template <class Op, bool Centered>
void norm_backward_samples(SampleSet& s) {
  constexpr std::uint32_t kAll = Centered ? 0b11100 : 0b1100;
  for (const NormCase& n : norm_cases()) add_norm_sample<Op>(s, n, 0b100);
  const std::vector<NormCase> some = norm_cases();
  for (std::size_t i : {std::size_t{0}, std::size_t{6}})
    for (std::uint32_t present : {0U, 0b1000U, kAll}) add_norm_sample<Op>(s, some[i], present);
}

}  // namespace

template <>
void samples<ops::LayerNorm>(SampleSet& s) {
  norm_samples<ops::LayerNorm>(s);
}

template <>
void samples<ops::RmsNorm>(SampleSet& s) {
  norm_samples<ops::RmsNorm>(s);
}

template <>
void samples<ops::LayerNormBackward>(SampleSet& s) {
  norm_backward_samples<ops::LayerNormBackward, true>(s);
}

template <>
void samples<ops::RmsNormBackward>(SampleSet& s) {
  norm_backward_samples<ops::RmsNormBackward, false>(s);
}

}  // namespace rlx::testing
