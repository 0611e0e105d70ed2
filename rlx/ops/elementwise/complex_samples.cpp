// Samples of Complex and ComplexPart.
#include "rlx/ir/ops/elementwise.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Complex>(SampleSet& s) {
  const auto pair = [](Dims re, Dims im, DType t) {
    return std::vector<SampleInput>{Shape(std::move(re), t), Shape(std::move(im), t)};
  };
  s.add("f32", pair({2, 3}, {2, 3}, DType::F32), ops::Complex{});
  s.add("f64", pair({5}, {5}, DType::F64), ops::Complex{});
  s.add("row", pair({2, 3}, {3}, DType::F32), ops::Complex{});
  s.add("column", pair({2, 1}, {2, 5}, DType::F64), ops::Complex{});
  s.add("scalars", pair({}, {}, DType::F32), ops::Complex{});
  s.add("many", pair({3, 67}, {3, 67}, DType::F32), ops::Complex{});
  s.add_discrete("empty", pair({0, 2}, {2}, DType::F32), ops::Complex{});
}

template <>
void samples<ops::ComplexPart>(SampleSet& s) {
  for (const bool imag : {false, true}) {
    const std::string name = imag ? "imaginary " : "real ";
    const ops::ComplexPart op{imag};
    s.add(name + "c64", {Shape({2, 3}, DType::C64)}, op);
    s.add(name + "c128", {Shape({5}, DType::C128)}, op);
    s.add(name + "scalar", {Shape({}, DType::C64)}, op);
    s.add(name + "many", {Shape({3, 67}, DType::C64)}, op);
    s.add_discrete(name + "empty", {Shape({0, 2}, DType::C128)}, op);
  }
}

}  // namespace rlx::testing
