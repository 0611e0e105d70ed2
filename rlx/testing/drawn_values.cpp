// Draws the values of samples.
#include "rlx/testing/drawn_values.h"

#include <cmath>
#include <complex>

#include "rlx/tensor/visit.h"

namespace rlx::testing {
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
  // With a bound, the extent is added to the diagonals of the matrices, which keeps them far from singular.
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

}  // namespace rlx::testing
