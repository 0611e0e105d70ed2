// Op samples as test material.
#include "tests/support/samples.h"

#include <cmath>
#include <complex>
#include <limits>

#include "rlx/tensor/visit.h"

namespace rlx::test {
namespace {

using C = std::complex<double>;

// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
struct Random {
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

double value(Random& r, Fill fill, std::int64_t bound) {
  switch (fill) {
    case Fill::Normal: return r.normal();
    case Fill::Positive: return 0.5 + 1.5 * r.uniform();
    case Fill::Unit: return 1.8 * r.uniform() - 0.9;
    case Fill::Index: return static_cast<double>(r.bits() % static_cast<std::uint64_t>(bound < 1 ? 1 : bound));
    case Fill::Boolean: return static_cast<double>(r.bits() & 1);
    case Fill::Small: return static_cast<double>(r.bits() % 7) - 3;
  }
  return 0;
}

C element(const Tensor& t, std::int64_t i) { return load_element<C>(t.data(), t.dtype(), i); }

}  // namespace

Tensor draw(const Shape& shape, Fill fill, std::int64_t bound, std::uint64_t seed) {
  Tensor t = Tensor::zeros(shape);
  Random r{seed * 0x2545f4914f6cdd1dull + 88172645463325252ull};
  for (std::int64_t i = 0; i < t.num_elements(); ++i) {
    double re = value(r, fill, bound);
    if (is_complex(shape.dtype()))
      store_element(t.mutable_data(), shape.dtype(), i, C(re, value(r, fill, bound)));
    else
      store_element(t.mutable_data(), shape.dtype(), i, re);
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

Graph sample_graph(const Sample& sample) {
  Graph g("sample");
  std::vector<Value> operands;
  for (const SampleInput& in : sample.inputs)
    operands.push_back(g.input("x" + std::to_string(operands.size()), in.shape));
  Expr e = g.add(sample.op, operands);
  std::vector<Value> outputs;
  for (std::uint32_t r = 0; r < g.node(e.value().node).num_results(); ++r) outputs.push_back(e.result(r));
  g.set_outputs(std::move(outputs));
  return g;
}

NamedTensors bind_operands(const std::vector<Tensor>& operands) {
  NamedTensors out;
  for (std::size_t i = 0; i < operands.size(); ++i) out.emplace("x" + std::to_string(i), operands[i]);
  return out;
}

Tensor widened(const Tensor& t) {
  return is_complex(t.dtype()) ? t.cast(DType::C128) : is_float(t.dtype()) ? t.cast(DType::F64) : t;
}

std::vector<Sample> samples_of(const OpDef& def) {
  SampleSet set;
  def.samples(set);
  return set.all();
}

double tolerance_of(DType t) {
  switch (t) {
    case DType::BF16: return 4e-2;
    case DType::F16: return 6e-3;
    case DType::F32:
    case DType::C64: return 2e-5;
    case DType::F64:
    case DType::C128: return 1e-11;
    default: return is_storage_only(t) && t != DType::I4 && t != DType::U4 ? 0.3 : 0;
  }
}

double distance(const Tensor& a, const Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(a.shape() == b.shape())) return kInfinity;
  double worst = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    if (is_int(a.dtype()) || a.dtype() == DType::Bool) {
      if (a.at_i64(i) != b.at_i64(i)) return kInfinity;
      continue;
    }
    C x = element(a, i), y = element(b, i);
    for (auto [p, q] : {std::pair{x.real(), y.real()}, std::pair{x.imag(), y.imag()}}) {
      if (p == q || (std::isnan(p) && std::isnan(q))) continue;
      double d = std::fabs(p - q) / std::fmax(1, std::abs(y));
      if (!(d < kInfinity)) return kInfinity;
      worst = std::fmax(worst, d);
    }
  }
  return worst;
}

double dot(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "dot of unequal shapes");
  C sum = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) sum += element(a, i) * element(b, i);
  return sum.real();
}

Tensor add_scaled(const Tensor& a, double factor, const Tensor& b) {
  Tensor out = Tensor::zeros(a.shape());
  for (std::int64_t i = 0; i < a.num_elements(); ++i)
    store_element(out.mutable_data(), a.dtype(), i, element(a, i) + factor * element(b, i));
  return out;
}

}  // namespace rlx::test
