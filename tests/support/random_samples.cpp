// Values of op samples, and samples in other sizes and dtypes.
#include "tests/support/random_samples.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>

#include "rlx/tensor/visit.h"

namespace rlx::test {
namespace {

// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
struct SampleNumbers {
  std::uint64_t state;
  std::uint64_t bits() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979323846 * uniform()); }
};

double sample_value(SampleNumbers& r, Fill fill, std::int64_t bound) {
  switch (fill) {
    case Fill::Normal: return r.normal();
    case Fill::Positive: return 0.5 + 1.5 * r.uniform();
    case Fill::Unit: return 1.8 * r.uniform() - 0.9;
    case Fill::AboveOne: return 1.75 * r.uniform() + 1.25;
    case Fill::Index: return static_cast<double>(r.bits() % static_cast<std::uint64_t>(bound < 1 ? 1 : bound));
    case Fill::Boolean: return static_cast<double>(r.bits() & 1);
    case Fill::Small: return static_cast<double>(r.bits() % 7) - 3;
  }
  return 0;
}

std::complex<double> sample_element(const Tensor& t, std::int64_t i) {
  return load_element<std::complex<double>>(t.data(), t.dtype(), i);
}

}  // namespace

Tensor draw(const Shape& shape, Fill fill, std::int64_t bound, std::uint64_t seed) {
  Tensor t = Tensor::zeros(shape);
  SampleNumbers r{seed * 0x2545f4914f6cdd1dull + 88172645463325252ull};
  for (std::int64_t i = 0; i < t.num_elements(); ++i) {
    double re = sample_value(r, fill, bound);
    if (is_complex(shape.dtype()))
      store_element(t.mutable_data(), shape.dtype(), i, std::complex<double>(re, sample_value(r, fill, bound)));
    else
      store_element(t.mutable_data(), shape.dtype(), i, re);
  }
  // With a bound, matrices whose diagonals have their extent besides: far from singular.
  if (fill == Fill::Unit && bound > 1 && shape.rank() >= 2) {
    const std::int64_t columns = t.dim(-1), rows = t.dim(-2);
    for (std::int64_t i = 0; i < t.num_elements(); ++i)
      if (i / columns % rows == i % columns)
        store_element(t.mutable_data(), shape.dtype(), i, sample_element(t, i) + static_cast<double>(columns + 1));
  }
  return t;
}

std::vector<Tensor> draw_operands(const Sample& sample, std::uint64_t variant) {
  std::vector<Tensor> out;
  for (const SampleInput& in : sample.inputs) {
    std::uint64_t seed = 1000 * variant + out.size() + 1;
    for (char c : sample.name) seed = seed * 31 + static_cast<unsigned char>(c);
    out.push_back(draw(in.shape, in.fill, in.bound, seed));
  }
  return out;
}

std::vector<Sample> samples_of(const OpDef& def) {
  SampleSet set;
  def.samples(set);
  return set.all();
}

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

// The same of a sample: of its op and its operands, whose indices stay inside.
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

// `op` with `t` where it states a dtype.
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

// Operations and elements of a sample, or none when its op refuses it.
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
