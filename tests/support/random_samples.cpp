// Values of op samples, and samples with other sizes and dtypes.
#include "tests/support/random_samples.h"

#include <algorithm>
#include <optional>

namespace rlx::test {

std::vector<Sample> samples_of(const OpDef& def) { return testing::op_samples(def); }

namespace {

// A copy of `op` with every extent `from` in its dims (and, when asked, its lists of integers) replaced.
OpBox with_extent(const OpBox& op, std::int64_t from, std::int64_t to, bool lists) {
  auto copy = make_default_op(op.kind());
  for (const AttrField& f : op_def(op.kind()).attrs) {
    AttrValue value = f.get(op.data());
    if (auto* dims = std::get_if<Dims>(&value))
      for (Dim& d : *dims)
        if (d.is_static(from)) d = to;
    if (auto* list = std::get_if<std::vector<std::int64_t>>(&value); list && lists)
      for (std::int64_t& x : *list)
        if (x == from) x = to;
    f.set(copy.get(), std::move(value));
  }
  return OpBox(op.kind(), std::shared_ptr<const void>(std::move(copy)));
}

// The same for a sample's op and operands. Indices stay in range.
Sample with_extents(const Sample& sample, std::int64_t from, std::int64_t to, bool lists) {
  Sample other = sample;
  other.op = with_extent(sample.op, from, to, lists);
  for (SampleInput& in : other.inputs) {
    for (int a = 0; a < in.shape.rank(); ++a)
      if (in.shape.dim(a).is_static(from)) in.shape = in.shape.with_dim(a, to);
    if (in.bound == from) in.bound = to;
  }
  return other;
}

// `op` with its dtype attribute set to `t`.
OpBox with_dtype(const OpBox& op, DType t) {
  auto copy = make_default_op(op.kind());
  for (const AttrField& f : op_def(op.kind()).attrs)
    f.set(copy.get(), f.type == AttrType::DType ? AttrValue(t) : f.get(op.data()));
  return OpBox(op.kind(), std::shared_ptr<const void>(std::move(copy)));
}

std::vector<Shape> shapes_of(const Sample& s) {
  std::vector<Shape> shapes;
  for (const SampleInput& in : s.inputs) shapes.push_back(in.shape);
  return shapes;
}

// The operations and elements of a sample; none when its op refuses it.
std::optional<double> work_of(const Sample& s) {
  const auto in = shapes_of(s);
  const auto out = infer_shapes(s.op, in);
  if (!out.ok()) return std::nullopt;
  double work = 0;
  for (const auto& list : {in, out.value()})
    for (const Shape& shape : list) work += static_cast<double>(shape.num_elements());
  const OpDef& def = op_def(s.op);
  if (def.cost.has()) work += def.cost(CostContext{s.op, in, out.value()}).flops / 20;
  return work;
}

}  // namespace

std::vector<Sample> large_samples(const Sample& sample, std::int64_t elements) {
  std::vector<std::int64_t> extents;
  for (const SampleInput& in : sample.inputs)
    for (const std::int64_t d : in.shape.static_dims())
      if (d > 0 && std::find(extents.begin(), extents.end(), d) == extents.end()) extents.push_back(d);
  std::sort(extents.rbegin(), extents.rend());  // an extent of 1 often means "broadcast": last
  std::vector<Sample> out;
  for (const std::int64_t from : extents) {
    for (const bool odd : {true, false}) {
      const std::size_t before = out.size();
      for (std::int64_t factor = elements; factor > 4 && out.size() == before; factor = factor * 2 / 3) {
        for (const bool lists : {false, true}) {
          const std::int64_t to = odd ? from * factor | 1 : from * factor;
          Sample large = with_extents(sample, from, to, lists);
          const auto work = work_of(large);
          if (!work || *work > static_cast<double>(elements) * 3) continue;
          large.name = concat_text(sample.name, " with ", from, " as ", to);
          out.push_back(std::move(large));
          break;
        }
      }
      if (out.size() > before) break;
    }
    if (out.size() == 3) break;
  }
  return out;
}

std::vector<Sample> dtype_samples(const Sample& sample) {
  const auto is_data = [](const SampleInput& in, DType t) { return in.shape.dtype() == t && in.fill != Fill::Index; };
  const auto uses = [&](DType t) {
    return std::any_of(sample.inputs.begin(), sample.inputs.end(), [&](auto& in) { return is_data(in, t); });
  };
  const DType from = uses(DType::F32) ? DType::F32 : DType::I32;
  std::vector<Sample> out;
  if (!uses(from) && !sample.inputs.empty()) return out;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto to = static_cast<DType>(i);
    if (to == from) continue;
    Sample other = sample;
    if (sample.inputs.empty()) other.op = with_dtype(sample.op, to);
    for (SampleInput& in : other.inputs) {
      if (!is_data(in, from)) continue;
      in.shape = in.shape.with_dtype(to);
      if (to == DType::Bool) in.fill = Fill::Boolean;
      if (is_int(to) && !is_int(from)) in.fill = Fill::Small;
    }
    if (!work_of(other)) continue;
    other.name = concat_text(sample.name, " in ", dtype_name(to));
    out.push_back(std::move(other));
  }
  return out;
}

Sample resized_sample(const Sample& sample, Dice& dice, std::int64_t elements) {
  std::vector<std::int64_t> extents;
  for (const SampleInput& in : sample.inputs)
    for (const std::int64_t d : in.shape.static_dims())
      if (std::find(extents.begin(), extents.end(), d) == extents.end()) extents.push_back(d);
  if (extents.empty()) return sample;
  for (int tries = 0; tries < 4; ++tries) {
    const std::int64_t from = dice.any(extents), to = dice.chance(4) ? 0 : 1 + dice.below(dice.chance(30) ? 70 : 18);
    Sample other = with_extents(sample, from, to, dice.chance(50));
    const auto work = work_of(other);
    if (work && *work <= static_cast<double>(elements) * 8) return other;
  }
  return sample;
}

}  // namespace rlx::test
