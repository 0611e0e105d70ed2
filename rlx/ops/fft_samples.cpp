// Samples of Fft.
#include "rlx/ir/ops/fft.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Fft>(SampleSet& s) {
  const auto c64 = [](Dims d) { return Shape(std::move(d), DType::C64); };
  const auto c128 = [](Dims d) { return Shape(std::move(d), DType::C128); };
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  const auto complex = [](std::vector<std::int64_t> axes, bool inverse = false, FftNorm norm = FftNorm::Backward) {
    return ops::Fft{FftKind::Complex, std::move(axes), inverse, norm, {}};
  };
  const auto real = [](std::vector<std::int64_t> axes, FftNorm norm = FftNorm::Backward) {
    return ops::Fft{FftKind::Real, std::move(axes), false, norm, {}};
  };
  const auto to_real = [](std::vector<std::int64_t> axes, std::int64_t n, FftNorm norm = FftNorm::Backward) {
    return ops::Fft{FftKind::RealInverse, std::move(axes), true, norm, {n}};
  };
  s.add("vector", {c64({8})}, complex({0}));
  s.add("inverse", {c128({6})}, complex({0}, true));
  s.add("prime", {c64({2, 7})}, complex({1}));
  s.add("larger prime", {c128({37})}, complex({0}, false, FftNorm::Ortho));
  s.add("columns", {c64({5, 3})}, complex({0}, true, FftNorm::Ortho));
  s.add("middle axis", {c64({2, 4, 3})}, complex({1}, false, FftNorm::Forward));
  s.add("two axes", {c64({4, 3})}, complex({0, 1}, true));
  s.add("three axes", {c128({2, 3, 2})}, complex({2, 0, 1}, false, FftNorm::None));
  s.add("no axes", {c64({3})}, complex({}));
  s.add("one", {c64({3, 1})}, complex({1}));
  s.add("real", {f32({2, 8})}, real({1}));
  s.add("real odd", {f32({2, 9})}, real({1}, FftNorm::Ortho));
  s.add("real one", {f32({2, 1})}, real({1}));
  s.add("real two", {Shape({2}, DType::F64)}, real({0}));
  s.add("real columns", {f32({6, 3})}, real({0}, FftNorm::Forward));
  s.add("real axes", {Shape({4, 2, 6}, DType::F64)}, real({2, 0}));
  s.add("real axes odd", {f32({4, 5})}, real({0, 1}));
  s.add("to real", {c64({2, 5})}, to_real({1}, 8));
  s.add("to real odd", {c64({2, 5})}, to_real({1}, 9, FftNorm::Ortho));
  s.add("to real one", {c64({2, 1})}, to_real({1}, 1));
  s.add("to real columns", {c128({4, 3})}, to_real({0}, 6, FftNorm::Forward));
  s.add("to real axes", {c64({4, 2, 4})}, to_real({0, 2}, 6, FftNorm::None));
  s.add_discrete("long lines", {c64({3, 360})}, complex({1}));
  s.add_discrete("many lines", {c64({40, 12})}, complex({1}));
  s.add_discrete("many columns", {c64({12, 40})}, complex({0}));
  s.add_discrete("long real lines", {f32({3, 512})}, real({1}));
  s.add_discrete("long prime", {c64({2, 1009})}, complex({1}));
  s.add_discrete("long to real", {c64({3, 301})}, to_real({1}, 600));
  s.add_discrete("no lines", {c64({0, 4})}, complex({1}));
  s.add_discrete("no real lines", {f32({0, 4})}, real({1}));
  s.add_discrete("to no real lines", {c64({0, 3})}, to_real({1}, 5));
}

}  // namespace rlx::testing
