// Frames of a signal, their Fourier transforms, and the inverse (overlap-add).
#include "rlx/functions/stft.h"

#include "rlx/functions/signal/framing.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::fft {

using namespace building;

namespace {

// The most blocks of `hop` samples per frame for which frames are concatenated from shifted blocks. With smaller hops
// frames are gathered by index, because a hop of 1 would need a node for each element of a frame.
constexpr std::int64_t kMostParts = 64;

struct FrameLengths {
  std::int64_t n = 0, hop = 0, window = 0;
};
FrameLengths lengths_of(const StftOptions& o, SourceLoc loc, const char* what) {
  const FrameLengths f{o.n_fft, o.hop == 0 ? o.n_fft / 4 : o.hop, o.win_length == 0 ? o.n_fft : o.win_length};
  if (f.n < 1 || f.hop < 1 || f.window < 1)
    fail(loc, ErrorCode::InvalidArgument,
         concat_text(what, ": n_fft ", f.n, ", hop ", f.hop, ", win_length ", f.window), "each must be at least 1");
  if (f.window > f.n)
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": win_length ", f.window, " is larger than n_fft ", f.n));
  return f;
}

// The window [n] in `dtype`: win_length values, centred between zeros.
Expr window_in(Graph& g, const StftOptions& o, const FrameLengths& f, DType dtype, SourceLoc loc, const char* what) {
  const At at{loc};
  Expr w = o.window ? cast_at(g, own_at(g, *o.window, loc), dtype, loc)
                    : g.constant(Tensor::full(Shape({f.window}, dtype), 1), loc);
  if (w.rank() != 1 || !w.dim(0).is_static(f.window))
    fail(loc, ErrorCode::ShapeMismatch,
         concat_text(what, ": the window must be [win_length] = [", f.window, "], got ", w.shape()));
  const std::int64_t low = (f.n - f.window) / 2;
  if (f.window == f.n) return w;
  return g.pad(at(w), {low}, {f.n - f.window - low}, at(g.constant(Tensor::zeros(Shape({}, dtype)), loc)));
}

Expr with_borders(Expr x, std::int64_t border, StftPad mode, SourceLoc loc, const char* what) {
  Graph& g = x.graph();
  const At at{loc};
  if (border == 0) return x;
  if (mode == StftPad::Zeros) {
    std::vector<std::int64_t> around(static_cast<std::size_t>(x.rank()), 0);
    around.back() = border;
    return g.pad(at(x), around, around, at(g.constant(Tensor::zeros(Shape({}, x.dtype())), loc)));
  }
  const Dim n = x.dim(-1);
  const std::int64_t least = mode == StftPad::Reflect ? border + 1 : 1;
  if (n.is_static() && n.value() < least)
    fail(loc, ErrorCode::ShapeMismatch,
         concat_text(what, ": the signal ", x.shape(), " is too short for padding by ", border, " mirrored samples"),
         "use center = false, padding with zeros, or a smaller n_fft");
  if (mode == StftPad::Edge) {
    Dims dims = x.shape().dims();
    dims.back() = border;
    return g.concat(
        {g.expand(at(g.narrow(at(x), -1, 0, 1)), dims), x, g.expand(at(g.narrow(at(x), -1, n - 1, 1)), dims)}, -1, {},
        loc);
  }
  const std::vector<std::int64_t> last{x.rank() - 1};
  return g.concat({g.reverse(at(g.narrow(at(x), -1, 1, border)), last), x,
                   g.reverse(at(g.narrow(at(x), -1, n - 1 - border, border)), last)},
                  -1, {}, loc);
}

Expr last_two_exchanged(const Expr& x, SourceLoc loc) {
  std::vector<std::int64_t> perm(static_cast<std::size_t>(x.rank()));
  for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return x.graph().transpose(At{loc}(x), perm);
}

// The index in the signal of each sample of each frame: [frames, n].
Expr places_of_frames(Graph& g, const Dim& frames, std::int64_t n, std::int64_t hop, SourceLoc loc) {
  const At at{loc};
  const DType t = count_dtype(g, {{frames * hop + n}});
  const Expr begin = g.mul(at(positions(g, frames, 0, 2, t, loc)), at(hop));
  return g.add(at(begin), at(positions(g, n, 1, 2, t, loc)));
}

}  // namespace

Expr frames_of(const Expr& x, std::int64_t n, std::int64_t hop, SourceLoc loc, const char* what) {
  Graph& g = x.graph();
  const At at{loc};
  const Dim extent = x.dim(-1);
  if (extent.is_static() && extent.value() < n)
    fail(loc, ErrorCode::ShapeMismatch,
         concat_text(what, ": the signal ", x.shape(), " is shorter than a frame of ", n),
         "use a smaller n_fft, or pad the signal");
  const Dim frames = floordiv(extent - n, hop) + 1;
  if (n % hop != 0 || n / hop > kMostParts) {
    ops::Gather op;
    op.axes = {x.rank() - 1};
    return g.gather(at(x), {places_of_frames(g, frames, n, hop, loc)}, op);
  }
  // The signal is split into blocks of `hop` samples. Part q of frame t is block t + q.
  const std::int64_t parts = n / hop;
  const Dim blocks = frames + (parts - 1);
  Dims dims = x.shape().dims();
  dims.back() = blocks;
  dims.push_back(hop);
  const Expr used = blocks * hop == extent ? x : g.narrow(at(x), -1, 0, blocks * hop);
  const Expr rows = g.reshape(at(used), dims);
  std::vector<Expr> shifted;
  for (std::int64_t q = 0; q < parts; ++q) shifted.push_back(parts == 1 ? rows : g.narrow(at(rows), -2, q, frames));
  return parts == 1 ? rows : g.concat(shifted, -1, {}, loc);
}

Expr overlapped(const Expr& frames, std::int64_t hop, SourceLoc loc) {
  Graph& g = frames.graph();
  const At at{loc};
  const Dim count = frames.dim(-2);
  const std::int64_t n = frames.dim(-1).value();
  const int rank = frames.rank();
  Dims dims = frames.shape().dims();
  dims.pop_back();
  if (n % hop != 0 || n / hop > kMostParts) {
    dims.back() = (count - 1) * hop + n;
    ops::Scatter op;
    op.fn = ScatterKind::Add;
    op.axes = {rank - 2};
    const Expr zeros = g.expand(at(g.constant(Tensor::zeros(Shape({}, frames.dtype())), loc)), dims);
    return g.scatter(at(zeros), {places_of_frames(g, count, n, hop, loc)}, at(frames), op);
  }
  const std::int64_t parts = n / hop;
  const Expr zero = g.constant(Tensor::zeros(Shape({}, frames.dtype())), loc);
  Expr sum;
  for (std::int64_t q = 0; q < parts; ++q) {
    std::vector<std::int64_t> low(static_cast<std::size_t>(rank), 0), high = low;
    low[low.size() - 2] = q, high[high.size() - 2] = parts - 1 - q;
    const Expr part = g.pad(at(g.narrow(at(frames), -1, q * hop, hop)), low, high, at(zero));
    sum = q == 0 ? part : g.add(at(sum), at(part));
  }
  dims.back() = (count + (parts - 1)) * hop;
  return g.reshape(at(sum), dims);
}

Expr stft(Operand signal, const StftOptions& options) {
  constexpr const char* kName = "stft";
  const SourceLoc loc = signal.loc();
  if (signal.is_scalar() || signal.expr().rank() < 1)
    fail(loc, ErrorCode::ShapeMismatch, "stft: the signal must have at least one axis", "give a signal [.., T]");
  Graph& g = signal.expr().graph();
  const At at{loc};
  const FrameLengths f = lengths_of(options, loc, kName);
  Expr x = own_at(g, signal, loc);
  const bool complex = is_complex(x.dtype()), half = options.onesided && !complex;
  const bool wide = real_dtype(x.dtype()) == DType::F64;
  const DType real = wide ? DType::F64 : DType::F32;
  if (!complex) x = cast_at(g, x, real, loc);
  if (options.center) x = with_borders(x, f.n / 2, options.pad, loc, kName);
  x = frames_of(x, f.n, f.hop, loc, kName);
  if (options.window || f.window < f.n) x = g.mul(at(x), at(window_in(g, options, f, real, loc, kName)));
  const FftNorm norm = options.normalized ? FftNorm::Ortho : FftNorm::Backward;
  return last_two_exchanged(half ? rfft(at(x), {}, -1, norm) : fft(at(x), {}, -1, norm), loc);
}

Expr istft(Operand spectrum, const StftOptions& options, std::optional<std::int64_t> length) {
  constexpr const char* kName = "istft";
  const SourceLoc loc = spectrum.loc();
  if (spectrum.is_scalar() || spectrum.expr().rank() < 2 || !is_complex(spectrum.expr().dtype()))
    fail(loc, ErrorCode::ShapeMismatch, "istft: the spectrum must be complex [.., frequencies, frames]");
  Graph& g = spectrum.expr().graph();
  const At at{loc};
  const FrameLengths f = lengths_of(options, loc, kName);
  const Expr x = last_two_exchanged(own_at(g, spectrum, loc), loc);
  const std::int64_t frequencies = options.onesided ? f.n / 2 + 1 : f.n;
  if (!x.dim(-1).is_static(frequencies))
    fail(loc, ErrorCode::ShapeMismatch,
         concat_text(kName, ": the spectrum ", spectrum.expr().shape(), " must have ", frequencies,
                     " frequencies for n_fft ", f.n));
  if (x.dim(-2).is_static(0)) fail(loc, ErrorCode::ShapeMismatch, concat_text(kName, ": the spectrum has no frames"));
  if (length && *length < 1)
    fail(loc, ErrorCode::InvalidArgument, concat_text(kName, ": the length must be at least 1, got ", *length));
  const FftNorm norm = options.normalized ? FftNorm::Ortho : FftNorm::Backward;
  const Expr frames = options.onesided ? irfft(at(x), Dim(f.n), -1, norm) : ifft(at(x), {}, -1, norm);
  const Expr window = window_in(g, options, f, real_dtype(x.dtype()), loc, kName);
  const Expr sum = overlapped(g.mul(at(frames), at(window)), f.hop, loc);
  const Expr squares = g.expand(at(g.mul(at(window), at(window))), {x.dim(-2), f.n});
  Expr weight = overlapped(squares, f.hop, loc);
  weight = g.where(at(g.gt(at(weight), at(1e-11))), at(weight), at(1.0));
  Expr y =
      is_complex(sum.dtype()) ? g.div(at(sum), at(cast_at(g, weight, sum.dtype(), loc))) : g.div(at(sum), at(weight));
  const std::int64_t border = options.center ? f.n / 2 : 0;
  const Dim whole = y.dim(-1) - border;
  if (!length) return g.narrow(at(y), -1, border, whole - border);
  if (!whole.is_static() || whole.value() >= *length) return g.narrow(at(y), -1, border, *length);
  y = g.narrow(at(y), -1, border, whole);
  std::vector<std::int64_t> low(static_cast<std::size_t>(y.rank()), 0), high = low;
  high.back() = *length - whole.value();
  return g.pad(at(y), low, high, at(g.constant(Tensor::zeros(Shape({}, y.dtype())), loc)));
}

}  // namespace rlx::fft
