// Transforms with NumPy's arguments, short-time transforms, spectra, windows: known values and identities.
#include <cmath>
#include <complex>
#include <numbers>

#include <doctest/doctest.h>

#include "rlx/functions/fft.h"
#include "rlx/functions/stft.h"
#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/visit.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/needs.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::doubles;
using test::expect_close;
using Complex = std::complex<double>;

std::vector<Complex> fourier_values(const Tensor& t) {
  std::vector<Complex> out;
  for (std::int64_t i = 0; i < t.num_elements(); ++i) out.push_back(load_element<Complex>(t.data(), t.dtype(), i));
  return out;
}
void expect_complex(const Tensor& got, const std::vector<Complex>& want, double tolerance = 1e-12) {
  const std::vector<Complex> v = fourier_values(got);
  REQUIRE(v.size() == want.size());
  for (std::size_t i = 0; i < v.size(); ++i) CHECK(std::abs(v[i] - want[i]) <= tolerance);
}
template <class F>
Tensor run_signal(const Tensor& x, F&& f) {
  Graph g;
  g.set_outputs({f(g, g.input("x", x.shape()))});
  return Session().compile(std::move(g)).run_typed({{"x", x}}).at(0);
}
Tensor noise(std::vector<std::int64_t> dims, DType t, std::uint64_t seed) {
  Tensor out = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), real_dtype(t)));
  std::uint64_t state = seed * 2654435761U + 1;
  for (std::int64_t i = 0; i < out.num_elements(); ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    out.set(i, static_cast<double>(state >> 40) / static_cast<double>(1 << 23) - 1);
  }
  return out;
}

TEST_CASE("fft functions: known values") {
  const Tensor x = doubles({4}, {1, 2, 3, 4});
  expect_complex(run_signal(x, [](Graph&, Expr v) { return fft::fft(v); }), {{10, 0}, {-2, 2}, {-2, 0}, {-2, -2}});
  expect_complex(run_signal(x, [](Graph&, Expr v) { return fft::rfft(v); }), {{10, 0}, {-2, 2}, {-2, 0}});
  expect_complex(run_signal(x, [](Graph&, Expr v) { return fft::ifft(v); }),
                 {{2.5, 0}, {-0.5, -0.5}, {-0.5, 0}, {-0.5, 0.5}});
  expect_close(run_signal(x, [](Graph&, Expr v) { return fft::irfft(fft::rfft(v)); }), {1, 2, 3, 4});
  // No length is rounded up to a power of two.
  const double s = std::sqrt(3.0) / 2;
  expect_complex(run_signal(x, [](Graph&, Expr v) { return fft::rfft(v, Dim(3)); }), {{6, 0}, {-1.5, s}});
  expect_close(run_signal(x, [](Graph&, Expr v) { return fft::irfft(fft::rfft(v, Dim(5)), Dim(5)); }), {1, 2, 3, 4, 0});
  expect_close(run_signal(x, [](Graph&, Expr v) { return fft::hfft(v); }), {15, -4, 0, -1, 0, -4});
  expect_complex(run_signal(x, [](Graph&, Expr v) { return fft::ihfft(v); }), {{2.5, 0}, {-0.5, -0.5}, {-0.5, 0}});
  const Tensor two = doubles({2, 2}, {1, 2, 3, 4});
  expect_complex(run_signal(two, [](Graph&, Expr v) { return fft::fft2(v, FftNorm::Ortho); }), {5, -1, -2, 0});
  expect_complex(run_signal(two,
                            [](Graph&, Expr v) {
                              return fft::fftn(v, {{0}, {}}, FftNorm::Forward);
                            }),
                 {2, 3, -1, -1});
  expect_close(run_signal(two, [](Graph&, Expr v) { return fft::irfft2(fft::rfft2(v)); }), {1, 2, 3, 4});
  expect_close(run_signal(two, [](Graph&, Expr v) { return fft::irfftn(fft::rfftn(v)); }), {1, 2, 3, 4});
  expect_complex(run_signal(two, [](Graph&, Expr v) { return fft::ifft2(fft::fft2(v)); }), {1, 2, 3, 4});
  expect_complex(run_signal(two, [](Graph&, Expr v) { return fft::ifftn(fft::fftn(v)); }), {1, 2, 3, 4});
}

TEST_CASE("fft functions: frequencies are negative from n / 2 on, as NumPy's are") {
  expect_close(fft::fftfreq(4, 1, DType::F64), {0, 0.25, -0.5, -0.25});
  expect_close(fft::fftfreq(5, 0.1, DType::F64), {0, 2, 4, -4, -2});
  expect_close(fft::fftfreq(1, 1, DType::F64), {0});
  expect_close(fft::rfftfreq(4, 1, DType::F64), {0, 0.25, 0.5});
  expect_close(fft::rfftfreq(2, 1, DType::F64), {0, 0.5});
  expect_close(fft::rfftfreq(1, 1, DType::F64), {0});
  const Tensor x = doubles({5}, {0, 1, 2, -2, -1});
  expect_close(run_signal(x, [](Graph&, Expr v) { return fft::fftshift(v); }), {-2, -1, 0, 1, 2});
  expect_close(run_signal(x, [](Graph&, Expr v) { return fft::ifftshift(fft::fftshift(v)); }), {0, 1, 2, -2, -1});
}

TEST_CASE("fft functions: lengths of every kind against the evaluator") {
  test::Share share(3);
  for (const DType t : {DType::F32, DType::F64}) {
    const double eps = t == DType::F32 ? 0x1p-23 : 0x1p-52;
    for (const std::int64_t n : {1,   2,   3,   4,   5,   7,   9,    16,   31,   37,   60,   64,   97,   127,
                                 131, 210, 256, 257, 360, 512, 1000, 1009, 1024, 1262, 2048, 3001, 4096, 8192}) {
      if (!share.next()) continue;
      const Tensor x = noise({2, n}, t, static_cast<std::uint64_t>(n));
      Graph g;
      const Expr v = g.input("x", x.shape());
      const Expr z = fft::fft(v), half = fft::rfft(v);
      g.set_outputs({z, half, fft::irfft(half, Dim(n)), fft::ifft(z)});
      const std::vector<Tensor> want = evaluate(g, {{"x", x}});
      const std::vector<Tensor> got = Session().compile(std::move(g)).run_typed({{"x", x}});
      const bool by_convolution = n == 131 || n == 257 || n == 1009 || n == 1262 || n == 3001;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::vector<Complex> a = fourier_values(got[i]), b = fourier_values(want[i]);
        double error = 0, size = 0;
        for (std::size_t k = 0; k < a.size(); ++k) error += std::norm(a[k] - b[k]), size += std::norm(b[k]);
        INFO("n = ", n, ", output ", i);
        CHECK(std::sqrt(error / size) <=
              (by_convolution ? 2.0 : 0.8) * eps * std::sqrt(1 + std::log2(static_cast<double>(n))));
      }
    }
  }
}

TEST_CASE("fft functions: a gradient through a half spectrum is that of the whole one") {
  Graph g;
  const Expr x = g.input("x", Shape({7}, DType::F64));
  const Expr spectrum = fft::rfft(x);
  g.set_outputs({g.sum(fft::complex_norm_sq(spectrum))});
  const Tensor v = doubles({7}, {1, -2, 3, 0.5, 2, -1, 4});
  const Tensor d = evaluate(grad(g, {"x"}).graph, {{"x", v}, {"d_output", doubles({}, {1})}}).at(0);
  // d/dx of sum over k <= 3 of |X_k|^2 by differences of the quadratic form, which are exact.
  const auto loss = [&](const std::vector<double>& at) {
    double sum = 0;
    for (int k = 0; k <= 3; ++k) {
      Complex y;
      for (int j = 0; j < 7; ++j)
        y += at[static_cast<std::size_t>(j)] * std::polar(1.0, -2 * std::numbers::pi * j * k / 7);
      sum += std::norm(y);
    }
    return sum;
  };
  std::vector<double> want, at = v.to_f64();
  for (double& e : at) {
    const double keep = e;
    e = keep + 0.5;
    const double up = loss(at);
    e = keep - 0.5;
    want.push_back(up - loss(at));
    e = keep;
  }
  expect_close(d, want, 1e-9);
}

TEST_CASE("fft functions: the documented helpers") {
  const Tensor x = doubles({3}, {1, 2, 3});
  expect_close(run_signal(x, [](Graph&, Expr v) { return fft::pad_last_axis_to_pow2(v); }), {1, 2, 3, 0});
  const Tensor blocks = run_signal(x, [](Graph&, Expr v) { return fft::to_real_blocks(fft::fft_real(v)); });
  const double s = std::sqrt(3.0) / 2;
  expect_close(blocks, {6, -1.5, -1.5, 0, s, -s});
  expect_complex(run_signal(blocks, [](Graph&, Expr v) { return fft::ifft(fft::from_real_blocks(v)); }), {1, 2, 3});
  expect_complex(run_signal(x,
                            [](Graph&, Expr v) {
                              const auto parts = fft::split_spectrum(fft::fft(v));
                              return fft::ifft_spectrum(parts.first, parts.second);
                            }),
                 {1, 2, 3});
  expect_complex(run_signal(x, [](Graph&, Expr v) { return fft::fft_axis(fft::fft_axis(v, 0), 0, true); }), {1, 2, 3});
  expect_complex(run_signal(x, [](Graph&, Expr v) { return fft::fft_norm(v, FftNorm::None, true); }),
                 {6, {-1.5, -s}, {-1.5, s}});
  expect_complex(run_signal(doubles({1, 2}, {1, 2}), [](Graph&, Expr v) { return fft::fft_batch_real(v); }), {3, -1});
  expect_close(run_signal(x, [](Graph&, Expr v) { return fft::psd(v); }), {12, 1, 1});
  expect_close(run_signal(x, [](Graph&, Expr v) { return fft::psd_real(v); }), {12, 1});
  expect_close(run_signal(x, [](Graph&, Expr v) { return fft::complex_norm_sq(v); }), {1, 4, 9});
}

TEST_CASE("fft functions: convolution and windows") {
  const Tensor x = doubles({4}, {1, 2, 3, 4}), w = doubles({3}, {1, 0, -1});
  const auto convolved = [&](fft::ConvolutionPart part) {
    Graph g;
    g.set_outputs({fft::fft_conv1d(g.input("x", x.shape()), g.input("w", w.shape()), part)});
    return Session().compile(std::move(g)).run_typed({{"x", x}, {"w", w}}).at(0);
  };
  expect_close(convolved(fft::ConvolutionPart::Full), {1, 2, 2, 2, -3, -4});
  expect_close(convolved(fft::ConvolutionPart::Same), {2, 2, 2, -3});
  expect_close(convolved(fft::ConvolutionPart::Valid), {2, 2});
  CHECK(fft::next_fast_len(1) == 1);
  CHECK(fft::next_fast_len(11) == 12);
  CHECK(fft::next_fast_len(1021) == 1024);
  expect_close(fft::hann_window(4), {0, 0.5, 1, 0.5});
  expect_close(fft::hann_window(3, true), {0, 1, 0});
  expect_close(fft::hamming_window(4), {0.08, 0.54, 1, 0.54});
  expect_close(fft::blackman_window(4), {0, 0.34, 1, 0.34});
  // I0(5) is 27.239871823604442, I0(5 sqrt(3) / 2) 14.1396... by its series at 4.330127018922193.
  expect_close(fft::kaiser_window(3, 0, true), {1, 1, 1});
  const std::vector<double> kaiser = fft::kaiser_window(4, 5.0).to_f64();
  CHECK(std::fabs(kaiser[0] - 1 / 27.239871823604442) < 1e-12);
  CHECK(kaiser[2] == 1.0);
  CHECK(kaiser[1] == kaiser[3]);
}

TEST_CASE("fft functions: frames, their transforms, and the signal again") {
  const Tensor x = noise({2, 50}, DType::F64, 3);
  for (const std::int64_t hop : {2, 3, 4})  // hops that divide the frame, and others
    for (const bool center : {true, false})
      for (const bool normalized : {true, false}) {
        Graph g;
        fft::StftOptions o;
        o.n_fft = 8, o.hop = hop, o.win_length = 7, o.center = center, o.normalized = normalized;
        o.window = g.constant(fft::hamming_window(7));
        const Expr z = fft::stft(g.input("x", x.shape()), o);
        const std::int64_t frames = 1 + ((center ? 58 : 50) - 8) / hop;
        CHECK(z.shape() == Shape({2, 5, frames}, DType::C128));
        // Without centred frames the first and the last sample are multiplied by 0 of the window.
        const Expr y = fft::istft(z, o);
        g.set_outputs({y});
        const Tensor got = Session().compile(std::move(g)).run_typed({{"x", x}}).at(0);
        const std::int64_t reach = got.dim(1);
        CHECK(reach == (center ? (frames - 1) * hop : (frames - 1) * hop + 8));
        for (std::int64_t b = 0; b < 2; ++b)
          for (std::int64_t i = center ? 0 : 1; i < reach - (center ? 0 : 1); ++i)
            CHECK(std::fabs(got.at(b * reach + i) - x.at(b * 50 + i)) < 1e-12);
      }
}

TEST_CASE("fft functions: Welch's method finds a tone, and noise has its power") {
  Tensor x = noise({1024}, DType::F64, 7);
  for (std::int64_t i = 0; i < 1024; ++i)
    x.set(i, 0.1 * x.at(i) + std::cos(2 * std::numbers::pi * 0.125 * static_cast<double>(i)));
  Graph g;
  fft::WelchOptions o;
  o.nperseg = 64, o.fs = 2;
  const Expr v = g.input("x", x.shape());
  const fft::WelchPeaksResult peaks = fft::welch_peaks(v, 1, o);
  fft::WelchOptions spectrum = o;
  spectrum.scaling = fft::WelchScaling::Spectrum;
  g.set_outputs({fft::welch(v, o), peaks.frequencies, peaks.powers, fft::welch(v, spectrum)});
  const std::vector<Tensor> out = Session().compile(std::move(g)).run_typed({{"x", x}});
  CHECK(out[0].shape() == Shape({33}, DType::F64));
  CHECK(out[1].at(0) == 0.25);
  double power = 0, whole = 0;  // Parseval: the density sums to the mean square, except for the effect of the windows
  for (std::int64_t k = 0; k < 33; ++k) power += out[0].at(k) * 2 / 64;
  for (std::int64_t i = 0; i < 1024; ++i) whole += x.at(i) * x.at(i) / 1024;
  CHECK(std::fabs(power / whole - 1) < 0.05);
  CHECK(std::fabs(out[3].at(8) / 0.5 - 1) < 0.1);  // a cosine has the power 1 / 2
}

TEST_CASE("fft functions: mel filters and log-mel spectra") {
  const Tensor slaney = fft::mel_filterbank({.sample_rate = 16000, .n_fft = 512, .n_mels = 40});
  CHECK(slaney.shape() == Shape({40, 257}, DType::F64));
  const Tensor flat =
      fft::mel_filterbank({.sample_rate = 16000, .n_fft = 4096, .n_mels = 10, .htk = true, .slaney_norm = false});
  for (std::int64_t m = 0; m < 10; ++m) {
    double top = 0;
    for (std::int64_t k = 0; k < 2049; ++k) top = std::max(top, flat.at(m * 2049 + k));
    CHECK(top > 0.95);
    CHECK(top <= 1);
  }
  // The triangles overlap and sum to 1 between the first and the last peak.
  double middle = 0;
  for (std::int64_t m = 0; m < 10; ++m) middle += flat.at(m * 2049 + 512);
  CHECK(std::fabs(middle - 1) < 1e-12);
  const Tensor x = noise({4000}, DType::F32, 9);
  const Tensor y = run_signal(x, [](Graph&, Expr v) {
    fft::LogMelOptions o;
    o.mel = {.sample_rate = 16000, .n_fft = 512, .n_mels = 40};
    o.stft.hop = 160;
    return fft::log_mel(v, o);
  });
  CHECK(y.shape() == Shape({40, 26}, DType::F32));
  double top = -1e9, bottom = 1e9;
  for (double v : y.to_f64()) top = std::max(top, v), bottom = std::min(bottom, v);
  CHECK(top - bottom <= 80.001);
}

}  // namespace
}  // namespace rlx
