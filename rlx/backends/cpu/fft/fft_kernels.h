// FFT kernels: many lines at once, one per vector lane, and one long line in two steps whose columns and rows are such
// transforms.
//
// A complex number is two adjacent reals. Plans are made when a program is bound (fft_plan.cpp). Their twiddle factors
// are exact to half a unit in the last place or slightly more. Kernels only read plans.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// A transform of n complex points in each lane: one pass per radix. Each pass has (radix - 1) twiddle factors per
/// position; the last pass needs none.
template <class T>
struct FftLanes {
  std::int64_t n = 1;
  std::vector<std::int32_t> radices;
  std::vector<T> roots;
};
/// Numbers aligned for the vectors of every instruction set.
template <class T>
struct alignas(64) FftBlock {
  T at[64 / sizeof(T)];
};
/// n = n1 n2 points of one line as n2 columns of n1 points and n1 rows of n2 points (Bailey's four-step FFT). Between
/// the steps, element (k1, j2) is multiplied by exp(-2 pi i k1 j2 / n), as a factor of its lane times a factor of its
/// block of lanes.
template <class T>
struct FftTwoSteps {
  std::int64_t n = 1, n1 = 1, n2 = 1;
  FftLanes<T> columns, rows;
  std::vector<T> lane_roots;       // [n1][2][lanes]
  std::vector<T> block_roots;      // [blocks of columns][n1][2], scaled
  std::vector<FftBlock<T>> turns;  // for fft_is_short_line: products of both factors, [blocks of columns][n1][2][lanes]
};
/// Reals of the intermediate buffer: [blocks of columns][n1, padded to lanes][2][lanes].
template <class T>
std::int64_t fft_between(const FftTwoSteps<T>& plan, std::int64_t lanes) {
  return (plan.n2 + lanes - 1) / lanes * ((plan.n1 + lanes - 1) / lanes * lanes) * 2 * lanes;
}

/// Input and output types of multi-line transforms, and the mapping of lines to lanes.
enum class FftVariant : std::uint8_t { Complex, RealEven, RealOdd, ToRealEven, ToRealOdd };
template <class T>
struct FftManyLines {
  FftLanes<T> plan;  // of n points; n / 2 for even real lines
  FftVariant form = FftVariant::Complex;
  bool inverse = false;
  T scale = 1;
  std::vector<T> turns;                     // fft_twiddles, for even real lines
  std::int64_t n = 1;                       // points of a whole line
  std::int64_t x_points = 1, y_points = 1;  // elements of a line in x and in y
  // Line l starts at l / inner * points * inner + l % inner. Its elements are `inner` apart.
  std::int64_t lines = 0, inner = 1;
};
/// Number of groups. The lines of a group share the lanes: neighbours along `inner` where those fill the lanes.
template <class T>
std::int64_t fft_groups(const FftManyLines<T>& job, std::int64_t lanes) {
  if (job.inner < lanes) return (job.lines + lanes - 1) / lanes;
  return job.lines / job.inner * ((job.inner + lanes - 1) / lanes);
}

/// True for even real lines whose buffers exceed the L1 cache and whose first pass, of radix 8 or 4, splits them into
/// smaller blocks. Complex lines, with fewer passes over memory, gain nothing from it.
template <class T>
bool fft_by_blocks(const FftManyLines<T>& job) {
  constexpr std::int64_t kFewest = 256;
  const auto& radices = job.plan.radices;
  return job.plan.n >= kFewest && radices.size() > 1 && (radices[0] == 8 || radices[0] == 4) &&
         (job.form == FftVariant::RealEven || job.form == FftVariant::ToRealEven);
}

/// Input of the first step: `count` elements, then zeros. `real`: without imaginary parts.
template <class T>
struct FftSource {
  const T* x = nullptr;
  std::int64_t count = 0;
  bool real = false;
  const T* times = nullptr;  // optional [count][2]: factors of the elements, conjugated for the inverse
};
/// Output of the second step: its first `count` elements. `real`: real parts only.
template <class T>
struct FftTarget {
  T* y = nullptr;
  std::int64_t count = 0;
  bool real = false;
  const T* times = nullptr;
  bool conjugate = false;  // multiply by the conjugate of `times`
};

template <class T>
struct FftTable {
  std::int64_t lanes = 0;
  /// Transforms the lines of a group. x may alias y. Scratch: fft_lane_scratch reals.
  void (*many)(const FftManyLines<T>& job, const T* x, T* y, std::int64_t group, T* scratch);
  /// Columns [block * lanes, ..) of one line. The same scratch, for the longer of both steps.
  void (*columns)(const FftTwoSteps<T>& plan, const FftSource<T>& from, bool inverse, std::int64_t block, T* between,
                  T* scratch);
  /// Rows [block * lanes, ..).
  void (*rows)(const FftTwoSteps<T>& plan, const FftTarget<T>& to, bool inverse, std::int64_t block, const T* between,
               T* scratch);
  /// Both steps of a line of fft_is_short_line. y may alias x. The same memory.
  void (*line)(const FftTwoSteps<T>& plan, const T* x, T* y, bool inverse, T* between, T* scratch);
  /// Computes the half spectrum y [h + 1] of 2 h reals from the spectrum z [h] of their pairs: positions k and h - k
  /// for k in [begin, end), a range in 0 to h / 2.
  void (*unfold)(const T* z, const T* turns, std::int64_t h, std::int64_t begin, std::int64_t end, T* y);
  /// The inverse of `unfold`, without the scale. z may alias y.
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

/// Largest radix of a pass. Lengths with larger prime factors use Bluestein's convolution.
inline constexpr std::int64_t kFftLargestRadix = 127;
/// True when n has no prime factor above kFftLargestRadix.
bool fft_has_small_factors(std::int64_t n);
/// Approximate number of vector operations of a transform of n points in lanes.
double fft_lane_work(std::int64_t n);
/// The factor by which that time grows when the buffers exceed the L1 and L2 caches.
double fft_reach(std::int64_t n, std::int64_t lanes);
template <class T>
FftLanes<T> fft_lanes(std::int64_t n);
/// True when both steps have 16, 32 or 64 points and one function runs them in the L1 cache.
constexpr bool fft_is_short_line(std::int64_t n) { return n == 256 || n == 512 || n == 1024 || n == 2048 || n == 4096; }
/// The split of n into columns and rows with the least work. Results are multiplied by `scale`.
template <class T>
FftTwoSteps<T> fft_two_steps(std::int64_t n, std::int64_t lanes, double scale);
/// The work of that split.
double fft_two_step_work(std::int64_t n, std::int64_t lanes);
/// i/2 exp(-2 pi i k / n) for k in [0, n / 4].
template <class T>
std::vector<T> fft_twiddles(std::int64_t n);
/// Bluestein's convolution for n points: its length; exp(-pi i j^2 / n) for j in [0, n); and the spectrum of the
/// conjugate, times 1 / length and `scale`.
std::int64_t fft_convolution_length(std::int64_t n);
template <class T>
std::vector<T> fft_chirp(std::int64_t n);
template <class T>
std::vector<T> fft_chirp_spectrum(const FftKernels& kernels, std::int64_t n, std::int64_t length, double scale);

}  // namespace rlx::cpu
