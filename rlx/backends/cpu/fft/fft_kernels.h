// Kernels of Fourier transforms: of many lines side by side in the lanes of vectors, and of one long line in two steps
// whose columns and rows are such transforms.
//
// A complex number is two neighbouring reals. Plans are made when a program is bound (fft_plan.cpp), with roots of
// unity that are exact to half a unit of the last place or a little more; kernels only read them.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// A transform of n complex points in each lane: passes of the radices, each with (radix - 1) roots for every place but
/// where the last pass needs none.
template <class T>
struct FftLanes {
  std::int64_t n = 1;
  std::vector<std::int32_t> radices;
  std::vector<T> roots;
};
/// n = n1 n2 points of one line as n2 columns of n1 and n1 rows of n2 points (Bailey's four steps). Between them
/// element (k1, j2) is turned by exp(-2 pi i k1 j2 / n): by a root for its lane and one for its block of lanes.
/// Numbers where vectors of any instruction set may lie.
template <class T>
struct alignas(64) FftBlock {
  T at[64 / sizeof(T)];
};
template <class T>
struct FftTwoSteps {
  std::int64_t n = 1, n1 = 1, n2 = 1;
  FftLanes<T> columns, rows;
  std::vector<T> lane_roots;       // [n1][2][lanes]
  std::vector<T> block_roots;      // [blocks of columns][n1][2], scaled
  std::vector<FftBlock<T>> turns;  // of fft_is_short_line: their products, [blocks of columns][n1][2][lanes]
};
/// Reals between the steps: [blocks of columns][n1, padded to lanes][2][lanes].
template <class T>
std::int64_t fft_between(const FftTwoSteps<T>& plan, std::int64_t lanes) {
  return (plan.n2 + lanes - 1) / lanes * ((plan.n1 + lanes - 1) / lanes * lanes) * 2 * lanes;
}

/// What transforms of many lines read and write, and how lines become lanes.
enum class FftForm : std::uint8_t { Complex, RealEven, RealOdd, ToRealEven, ToRealOdd };
template <class T>
struct FftManyLines {
  FftLanes<T> plan;  // of n points, n / 2 for even real lines
  FftForm form = FftForm::Complex;
  bool inverse = false;
  T scale = 1;
  std::vector<T> turns;                     // fft_turns, of even real lines
  std::int64_t n = 1;                       // points of a whole line
  std::int64_t x_points = 1, y_points = 1;  // elements that lines have there
  // Line l begins at l / inner * points * inner + l % inner; its elements are `inner` apart.
  std::int64_t lines = 0, inner = 1;
};
/// Groups of lines that become lanes together: neighbours along `inner` where those fill the lanes.
template <class T>
std::int64_t fft_groups(const FftManyLines<T>& job, std::int64_t lanes) {
  if (job.inner < lanes) return (job.lines + lanes - 1) / lanes;
  return job.lines / job.inner * ((job.inner + lanes - 1) / lanes);
}

/// True for even real lines whose buffers would leave the first cache and whose first pass, of 8 or 4, parts them into
/// smaller ones. (Complex lines, with fewer passes over memory, gain nothing by it.)
template <class T>
bool fft_by_blocks(const FftManyLines<T>& job) {
  constexpr std::int64_t kFewest = 256;
  const auto& radices = job.plan.radices;
  return job.plan.n >= kFewest && radices.size() > 1 && (radices[0] == 8 || radices[0] == 4) &&
         (job.form == FftForm::RealEven || job.form == FftForm::ToRealEven);
}

/// What the first step reads: `count` elements, zeros behind them; `real`: without imaginary parts.
template <class T>
struct FftSource {
  const T* x = nullptr;
  std::int64_t count = 0;
  bool real = false;
  const T* times = nullptr;  // or [count][2]: what each is multiplied with, its conjugate where inverse
};
/// Where the second step writes its first `count` elements; `real`: their real parts.
template <class T>
struct FftTarget {
  T* y = nullptr;
  std::int64_t count = 0;
  bool real = false;
  const T* times = nullptr;
  bool conjugate = false;  // multiplied with the conjugate of `times`
};

template <class T>
struct FftTable {
  std::int64_t lanes = 0;
  /// Transforms the lines of a group; x may be y. Scratch: fft_lane_scratch reals.
  void (*many)(const FftManyLines<T>& job, const T* x, T* y, std::int64_t group, T* scratch);
  /// Columns [block * lanes, ..) of one line; scratch as above, for the longer of both steps.
  void (*columns)(const FftTwoSteps<T>& plan, const FftSource<T>& from, bool inverse, std::int64_t block, T* between,
                  T* scratch);
  /// Rows [block * lanes, ..).
  void (*rows)(const FftTwoSteps<T>& plan, const FftTarget<T>& to, bool inverse, std::int64_t block, const T* between,
               T* scratch);
  /// Both steps of a line of fft_is_short_line; y may be x. Memory as above.
  void (*line)(const FftTwoSteps<T>& plan, const T* x, T* y, bool inverse, T* between, T* scratch);
  /// The half spectrum y [h + 1] of 2 h reals from the spectrum z [h] of their pairs: places k and h - k for k in
  /// [begin, end), of 0 to h / 2.
  void (*unfold)(const T* z, const T* turns, std::int64_t h, std::int64_t begin, std::int64_t end, T* y);
  /// And back, but for the scale; z may be y.
  void (*fold)(const T* y, const T* turns, std::int64_t h, std::int64_t begin, std::int64_t end, T* z);
};
/// Reals of scratch for transforms of n points in lanes.
constexpr std::int64_t fft_lane_scratch(std::int64_t n, std::int64_t lanes) { return 2 * (2 * n + 10 + n / 4) * lanes; }

struct FftKernels {
  FftTable<float> f32;
  FftTable<double> f64;
};
const FftKernels& fft_kernels(Isa isa);

// -- plans --

/// Largest factor that passes take; lengths with larger ones go by convolution (Bluestein).
inline constexpr std::int64_t kFftLargestRadix = 127;
/// True when n has no prime factor above that.
bool fft_has_small_factors(std::int64_t n);
/// Work of a transform of n points in lanes, in about the operations on vectors.
double fft_lane_work(std::int64_t n);
/// How much longer that takes when the buffers leave the first caches.
double fft_reach(std::int64_t n, std::int64_t lanes);
template <class T>
FftLanes<T> fft_lanes(std::int64_t n);
/// True when both steps of n points have 16, 32 or 64 points and one function does them in the first cache.
constexpr bool fft_is_short_line(std::int64_t n) { return n == 256 || n == 512 || n == 1024 || n == 2048 || n == 4096; }
/// The split of n into columns and rows that is the least work; its results are multiplied with `scale`.
template <class T>
FftTwoSteps<T> fft_two_steps(std::int64_t n, std::int64_t lanes, double scale);
/// Work of it.
double fft_two_step_work(std::int64_t n, std::int64_t lanes);
/// i/2 exp(-2 pi i k / n) for k in [0, n / 4].
template <class T>
std::vector<T> fft_turns(std::int64_t n);
/// Bluestein's convolution for n points: of what length, exp(-pi i j^2 / n) for j in [0, n), and the spectrum of its
/// conjugate, times 1 / length and `scale`.
std::int64_t fft_convolution_length(std::int64_t n);
template <class T>
std::vector<T> fft_chirp(std::int64_t n);
template <class T>
std::vector<T> fft_chirp_spectrum(const FftKernels& kernels, std::int64_t n, std::int64_t length, double scale);

}  // namespace rlx::cpu
