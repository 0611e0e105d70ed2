// FFT: one pass per axis, either over many lines in the lanes of vectors, or line by line in two steps.
#include "rlx/backends/cpu/fft/fft_kernels.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/ops/fft.h"

namespace rlx::cpu {
namespace {

// A place for the reals of a value: an address, or `offset` bytes in the common memory.
template <class T>
struct FftReals {
  T* at = nullptr;
  const Common* common = nullptr;
  std::size_t offset = 0;
  T* get() const { return common ? reinterpret_cast<T*>(common->base + offset) : at; }
};

// One axis of a transform.
struct FftPass {
  FftVariant form = FftVariant::Complex;
  bool inverse = false;
  double scale = 1;
  std::int64_t n = 1, lines = 0, inner = 1;

  bool even_real() const { return form == FftVariant::RealEven || form == FftVariant::ToRealEven; }
  std::int64_t half() const { return n / 2; }
  /// Points of the underlying complex transform.
  std::int64_t points() const { return even_real() ? half() : n; }
  bool to_real() const { return form == FftVariant::ToRealEven || form == FftVariant::ToRealOdd; }
  bool from_real() const { return form == FftVariant::RealEven || form == FftVariant::RealOdd; }
  std::int64_t x_points() const { return to_real() ? half() + 1 : n; }
  std::int64_t y_points() const { return from_real() ? half() + 1 : n; }
  std::int64_t x_parts() const { return from_real() ? 1 : 2; }
  std::int64_t y_parts() const { return to_real() ? 1 : 2; }
};

double pass_ns(const FftPass& p) {
  const double n = static_cast<double>(p.points());
  return static_cast<double>(p.lines) * n * (1.0 + 0.25 * std::log2(std::max(2.0, n)));
}

// -- many lines --

template <class T>
struct FftManyStep {
  FftManyLines<T> job;
  const FftTable<T>* table = nullptr;
  FftReals<const T> x;
  FftReals<T> y;
  const Scratch* scratch = nullptr;
  std::int64_t groups = 0, per_chunk = 1;

  static void run(const FftManyStep& s, std::int64_t chunk) {
    T* scratch = reinterpret_cast<T*>(s.scratch->mine());
    const std::int64_t end = std::min(s.groups, (chunk + 1) * s.per_chunk);
    for (std::int64_t g = chunk * s.per_chunk; g < end; ++g) s.table->many(s.job, s.x.get(), s.y.get(), g, scratch);
  }
};

std::int64_t fft_chunk(LowerContext& c, std::int64_t units, double ns) {
  const double each = std::max(1.0, ns / static_cast<double>(std::max<std::int64_t>(1, units)));
  return c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(20000 / each)));
}

template <class T>
void add_many(LowerContext& c, const FftTable<T>& table, const FftPass& p, FftReals<const T> x, FftReals<T> y,
              FftManyStep<T>& s) {
  s.job.plan = fft_lanes<T>(p.points());
  s.job.form = p.form;
  s.job.inverse = p.inverse;
  s.job.scale = static_cast<T>(p.scale);
  if (p.even_real()) s.job.turns = fft_twiddles<T>(p.n);
  s.job.n = p.n;
  s.job.x_points = p.x_points(), s.job.y_points = p.y_points();
  s.job.lines = p.lines, s.job.inner = p.inner;
  s.table = &table;
  if (x.common) s.x = x;
  if (y.common) s.y = y;
  s.scratch = c.scratch(static_cast<std::size_t>(fft_lane_scratch(p.points() + (p.even_real() ? 1 : 0), table.lanes)) *
                        sizeof(T));
  s.groups = fft_groups(s.job, table.lanes);
  const double ns = pass_ns(p);
  s.per_chunk = fft_chunk(c, s.groups, ns);
  c.step<FftManyStep<T>::run>(s, (s.groups + s.per_chunk - 1) / s.per_chunk, ns);
}

// -- line by line --

enum class FftPhase : std::uint8_t {
  Gather,
  Fold,
  Mirror,
  Line,
  Columns,
  Rows,
  ColumnsBack,
  RowsBack,
  Unfold,
  Scatter
};

// The phases of a line. The units of a phase are independent and may run on any thread. Memory between phases: `input`,
// where a line is gathered or prepared; `between`, which only the two steps use; and `output`.
template <class T>
struct FftLineJob {
  FftPass pass;
  const FftTable<T>* table = nullptr;
  FftTwoSteps<T> plan;
  std::vector<T> turns, chirp, spectrum;
  std::vector<FftPhase> phases;
  FftReals<const T> x;
  FftReals<T> y;
  std::int64_t between_at = 0, output_at = 0, memory = 0;  // in reals

  std::int64_t units(FftPhase phase) const {
    const std::int64_t lanes = table->lanes;
    switch (phase) {
      case FftPhase::Gather: return pass.x_points();
      case FftPhase::Fold:
      case FftPhase::Unfold: return pass.half() / 2 + 1;
      case FftPhase::Mirror: return pass.half() + 1;
      case FftPhase::Line: return 1;
      case FftPhase::Columns:
      case FftPhase::ColumnsBack: return (plan.n2 + lanes - 1) / lanes;
      case FftPhase::Rows:
      case FftPhase::RowsBack: return (plan.n1 + lanes - 1) / lanes;
      case FftPhase::Scatter: return pass.y_points();
    }
    return 0;
  }

  void run(FftPhase phase, std::int64_t line, std::int64_t begin, std::int64_t end, T* memory_at, T* scratch) const {
    const FftPass& p = pass;
    const bool strided = p.inner > 1, by_convolution = !chirp.empty();
    T *input = memory_at, *between = memory_at + between_at, *output = memory_at + output_at;
    const std::int64_t group = line / p.inner, at = line % p.inner;
    const T* x_line = x.get() + (group * p.x_points() * p.inner + at) * p.x_parts();
    T* y_line = y.get() + (group * p.y_points() * p.inner + at) * p.y_parts();
    switch (phase) {
      case FftPhase::Gather: return copy(x_line, p.inner, input, 1, p.x_parts(), begin, end);
      case FftPhase::Scatter:
        return copy(p.form == FftVariant::RealEven ? output : input, 1, y_line, p.inner, p.y_parts(), begin, end);
      case FftPhase::Fold: return table->fold(strided ? input : x_line, turns.data(), p.half(), begin, end, input);
      case FftPhase::Mirror: return mirror(strided ? input : x_line, begin, end, input);
      case FftPhase::Line:
        if (begin < end)
          table->line(plan, strided || p.to_real() ? input : x_line, result(input, y_line, strided).y, p.inverse,
                      between, scratch);
        return;
      case FftPhase::Columns: {
        FftSource<T> from{strided || p.to_real() ? input : x_line, p.points(), p.form == FftVariant::RealOdd};
        if (by_convolution) from.times = chirp.data();
        for (std::int64_t b = begin; b < end; ++b) table->columns(plan, from, p.inverse, b, between, scratch);
        return;
      }
      case FftPhase::Rows: {
        FftTarget<T> to = result(input, y_line, strided);
        if (by_convolution) to = {output, plan.n, false, spectrum.data(), p.inverse};
        for (std::int64_t b = begin; b < end; ++b) table->rows(plan, to, p.inverse, b, between, scratch);
        return;
      }
      case FftPhase::ColumnsBack: {
        const FftSource<T> from{output, plan.n};
        for (std::int64_t b = begin; b < end; ++b) table->columns(plan, from, !p.inverse, b, between, scratch);
        return;
      }
      case FftPhase::RowsBack: {
        FftTarget<T> to = result(input, y_line, strided);
        to.times = chirp.data(), to.conjugate = p.inverse;
        for (std::int64_t b = begin; b < end; ++b) table->rows(plan, to, !p.inverse, b, between, scratch);
        return;
      }
      case FftPhase::Unfold: return table->unfold(input, turns.data(), p.half(), begin, end, strided ? output : y_line);
    }
  }

 private:
  FftTarget<T> result(T* input, T* y_line, bool strided) const {
    FftTarget<T> to;
    to.y = strided || pass.form == FftVariant::RealEven ? input : y_line;
    to.count = pass.form == FftVariant::RealOdd ? pass.half() + 1 : pass.points();
    to.real = pass.form == FftVariant::ToRealOdd;
    return to;
  }
  static void copy(const T* from, std::int64_t x_step, T* to, std::int64_t y_step, std::int64_t parts,
                   std::int64_t begin, std::int64_t end) {
    if (parts == 1) {
      for (std::int64_t i = begin; i < end; ++i) to[i * y_step] = from[i * x_step];
      return;
    }
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t part = 0; part < 2; ++part) to[2 * i * y_step + part] = from[2 * i * x_step + part];
  }
  // Completes an odd-length spectrum from its half.
  void mirror(const T* half, std::int64_t begin, std::int64_t end, T* whole) const {
    for (std::int64_t k = begin; k < end; ++k) {
      const T re = half[2 * k], im = k == 0 ? T{0} : half[2 * k + 1];
      whole[2 * k] = re, whole[2 * k + 1] = im;
      if (k > 0) whole[2 * (pass.n - k)] = re, whole[2 * (pass.n - k) + 1] = -im;
    }
  }
};

// Several lines, one after the other, in memory of the thread.
template <class T>
struct FftLinesStep {
  FftLineJob<T> job;
  const Scratch* scratch = nullptr;
  std::int64_t per_chunk = 1;

  static void run(const FftLinesStep& s, std::int64_t chunk) {
    T *memory = reinterpret_cast<T*>(s.scratch->mine()), *scratch = memory + s.job.memory;
    const std::int64_t end = std::min(s.job.pass.lines, (chunk + 1) * s.per_chunk);
    for (std::int64_t line = chunk * s.per_chunk; line < end; ++line)
      for (const FftPhase phase : s.job.phases) s.job.run(phase, line, 0, s.job.units(phase), memory, scratch);
  }
};
// One phase of one line, on all threads.
template <class T>
struct FftPhaseStep {
  const FftLineJob<T>* job = nullptr;
  FftPhase phase = FftPhase::Columns;
  std::int64_t line = 0, per_chunk = 1;
  FftReals<T> memory;
  const Scratch* scratch = nullptr;

  static void run(const FftPhaseStep& s, std::int64_t chunk) {
    s.job->run(s.phase, s.line, chunk * s.per_chunk, std::min(s.job->units(s.phase), (chunk + 1) * s.per_chunk),
               s.memory.get(), reinterpret_cast<T*>(s.scratch->mine()));
  }
};

constexpr std::int64_t fft_round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
// Lines of at least this many points are worth synchronising threads between phases.
constexpr std::int64_t kSharedLine = 1 << 14;

template <class T>
void plan_line(const FftTable<T>& table, const FftKernels& kernels, const FftPass& p, FftLineJob<T>& job) {
  job.pass = p;
  job.table = &table;
  const bool strided = p.inner > 1, by_convolution = !fft_has_small_factors(p.points());
  if (p.even_real()) job.turns = fft_twiddles<T>(p.n);
  if (by_convolution) {
    const std::int64_t length = fft_convolution_length(p.points());
    job.plan = fft_two_steps<T>(length, table.lanes, 1);
    job.chirp = fft_chirp<T>(p.points());
    job.spectrum = fft_chirp_spectrum<T>(kernels, p.points(), length, p.scale);
  } else {
    job.plan = fft_two_steps<T>(p.points(), table.lanes, p.scale);
  }
  if (strided) job.phases.push_back(FftPhase::Gather);
  if (p.form == FftVariant::ToRealEven) job.phases.push_back(FftPhase::Fold);
  if (p.form == FftVariant::ToRealOdd) job.phases.push_back(FftPhase::Mirror);
  if (!by_convolution && fft_is_short_line(job.plan.n))
    job.phases.push_back(FftPhase::Line);
  else
    job.phases.insert(job.phases.end(), {FftPhase::Columns, FftPhase::Rows});
  if (by_convolution) job.phases.insert(job.phases.end(), {FftPhase::ColumnsBack, FftPhase::RowsBack});
  if (p.form == FftVariant::RealEven) job.phases.push_back(FftPhase::Unfold);
  if (strided) job.phases.push_back(FftPhase::Scatter);
  const std::int64_t input = strided || p.form != FftVariant::Complex ? 2 * (p.n + 2) : 0;
  const std::int64_t output = by_convolution ? 2 * job.plan.n : strided ? 2 * (p.n + 2) : 0;
  job.between_at = fft_round_up(input, 16);
  job.output_at = job.between_at + fft_round_up(fft_between(job.plan, table.lanes), 16);
  job.memory = job.output_at + fft_round_up(output, 16);
}

template <class T>
void add_lines(LowerContext& c, const FftPass& p, FftLinesStep<T>& s, std::size_t common_used) {
  FftLineJob<T>& job = s.job;
  const std::int64_t lane_scratch = fft_lane_scratch(std::max(job.plan.n1, job.plan.n2), job.table->lanes);
  const double ns = pass_ns(p) * (job.chirp.empty() ? 1.0 : 6.0);
  if (!c.finest() && (p.points() < kSharedLine || p.lines >= 4 * c.threads() || c.threads() == 1)) {
    s.scratch = c.scratch(static_cast<std::size_t>(job.memory + lane_scratch) * sizeof(T));
    s.per_chunk = fft_chunk(c, p.lines, ns);
    c.step<FftLinesStep<T>::run>(s, (p.lines + s.per_chunk - 1) / s.per_chunk, ns);
    return;
  }
  const Common* common = c.common(common_used + static_cast<std::size_t>(job.memory) * sizeof(T));
  for (std::int64_t line = 0; line < p.lines; ++line)
    for (const FftPhase phase : job.phases) {
      auto& step = c.keep<FftPhaseStep<T>>();
      step.job = &job;
      step.phase = phase;
      step.line = line;
      step.memory = {nullptr, common, common_used};
      step.scratch = c.scratch(static_cast<std::size_t>(lane_scratch) * sizeof(T));
      const std::int64_t units = job.units(phase);
      const double part = ns / static_cast<double>(p.lines * static_cast<std::int64_t>(job.phases.size()));
      step.per_chunk = fft_chunk(c, units, part);
      // Even with kFinestTiling a copy does not have a chunk per element.
      if (c.finest()) step.per_chunk = std::max<std::int64_t>(1, units / 5);
      c.step<FftPhaseStep<T>::run>(step, (units + step.per_chunk - 1) / step.per_chunk, part);
    }
}

// -- selection of the algorithm --

// By shape and instruction set alone, because the algorithms round differently.
bool goes_in_lanes(const FftPass& p, std::int64_t lanes) {
  const std::int64_t m = p.points();
  if (!fft_has_small_factors(m)) return false;
  if (p.inner == 1 && fft_is_short_line(m)) return false;
  constexpr std::int64_t kMostPoints = 1 << 15;  // limit of the buffers of a thread
  if (m > kMostPoints) return false;
  const double points = static_cast<double>(m), width = static_cast<double>(lanes);
  const bool columns = p.inner >= lanes;
  const std::int64_t groups =
      columns ? p.lines / p.inner * ((p.inner + lanes - 1) / lanes) : (p.lines + lanes - 1) / lanes;
  const double moves = columns ? 8 : p.inner == 1 ? 18 : 4 * width;
  const double in_lanes = static_cast<double>(groups) * points * (fft_lane_work(m) * fft_reach(m, lanes) + moves);
  double by_line = fft_two_step_work(m, lanes) + 200;
  if (p.even_real()) by_line += 20 * points / width;
  if (p.inner > 1) by_line += 8 * points;
  return in_lanes <= by_line * static_cast<double>(p.lines);
}

template <class T>
struct FftPlaces {
  View x_view, y_view;
  FftReals<const T> x;
  FftReals<T> y;
};

template <class T>
void add_pass(LowerContext& c, const FftPass& p, const FftPlaces<T>& at, std::size_t common_used) {
  const FftKernels& kernels = fft_kernels(c.kernels().isa);
  const FftTable<T>* table = nullptr;
  if constexpr (std::is_same_v<T, float>)
    table = &kernels.f32;
  else
    table = &kernels.f64;
  const auto place = [&](FftReals<const T>& x, FftReals<T>& y) {
    x = at.x, y = at.y;
    if (!x.common) c.point(x.at, at.x_view);
    if (!y.common) c.point(y.at, at.y_view);
  };
  if (goes_in_lanes(p, table->lanes)) {
    auto& s = c.keep<FftManyStep<T>>();
    place(s.x, s.y);
    add_many<T>(c, *table, p, at.x, at.y, s);
    return;
  }
  auto& s = c.keep<FftLinesStep<T>>();
  plan_line<T>(*table, kernels, p, s.job);
  place(s.job.x, s.job.y);
  add_lines<T>(c, p, s, common_used);
}

struct FftCopyStep {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::size_t bytes = 0;
};
constexpr std::size_t kFftCopyChunk = std::size_t{1} << 18;
void run_fft_copy(const FftCopyStep& s, std::int64_t chunk) {
  const std::size_t begin = static_cast<std::size_t>(chunk) * kFftCopyChunk;
  std::memmove(s.y + begin, s.x + begin, std::min(kFftCopyChunk, s.bytes - begin));
}

template <class T>
void lower_passes(LowerContext& c) {
  const auto& op = c.op<ops::Fft>();
  const View x = c.in(0), y = c.out();
  const bool real = op.fn == FftKind::Real, to_real = op.fn == FftKind::RealInverse;
  double n = 1;
  for (std::int64_t a : op.axes) n *= static_cast<double>((to_real ? y : x).dim(static_cast<int>(a)));
  double scale = 1;
  if (op.norm == FftNorm::Ortho) scale = 1 / std::sqrt(n);
  if (op.norm == (op.inverse ? FftNorm::Backward : FftNorm::Forward)) scale = 1 / n;
  // For real input the axis of the half spectrum is first; for real output it is last.
  std::vector<std::int64_t> order = op.axes;
  if (real) std::reverse(order.begin(), order.end());
  if (order.empty()) {
    auto& s = c.keep<FftCopyStep>();
    s.bytes = static_cast<std::size_t>(y.elements()) * static_cast<std::size_t>(dtype_bits(y.dtype) / 8);
    c.point(s.x, x);
    c.point(s.y, y);
    c.step<run_fft_copy>(s, static_cast<std::int64_t>((s.bytes + kFftCopyChunk - 1) / kFftCopyChunk),
                         static_cast<double>(s.bytes) / 16);
    return;
  }
  // Before real output, complex intermediate values have the shape of x and lie in the common memory.
  const bool detour = to_real && order.size() > 1;
  const std::size_t detour_bytes = detour ? (static_cast<std::size_t>(x.elements()) * 2 * sizeof(T) + 63) / 64 * 64 : 0;
  const Common* common = detour ? c.common(detour_bytes) : nullptr;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool first = i == 0, last = i + 1 == order.size(), halves = (real && first) || (to_real && last);
    FftPass p;
    const AxisView around_x = around(real && !first ? y : x, order[i]),
                   around_y = around(to_real && !last ? x : y, order[i]);
    p.n = real && first ? around_x.extent : around_y.extent;
    p.lines = around_y.outer * around_y.inner;
    p.inner = around_y.inner;
    p.inverse = op.inverse;
    if (last) p.scale = scale;
    if (halves && real) p.form = p.n % 2 == 0 ? FftVariant::RealEven : FftVariant::RealOdd;
    if (halves && to_real) p.form = p.n % 2 == 0 ? FftVariant::ToRealEven : FftVariant::ToRealOdd;
    FftPlaces<T> at{first ? x : y, y, {}, {}};
    if (detour && !first) at.x = {nullptr, common, 0};
    if (detour && !last) at.y = {nullptr, common, 0};
    add_pass<T>(c, p, at, detour_bytes);
  }
}

void lower_fft(LowerContext& c) {
  if (c.out().elements() == 0) return;
  if (real_dtype(c.in(0).dtype) == DType::F32)
    lower_passes<float>(c);
  else
    lower_passes<double>(c);
}

// Every line is read before it is written.
bool fft_in_place(const Graph& g, NodeId id, int, int) { return g.node(id).op.as<ops::Fft>().fn == FftKind::Complex; }

constexpr KernelEntry kFftEntries[] = {
    {.kind = OpKind::Fft, .kernel = "fft", .refuses = never_refuses, .lower = lower_fft, .in_place = fft_in_place}};

}  // namespace

std::span<const KernelEntry> fft_entries() { return kFftEntries; }

}  // namespace rlx::cpu
