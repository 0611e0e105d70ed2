// Frames of signals, for stft and Welch's method.
#pragma once

#include "rlx/ir/graph.h"

namespace rlx::fft {

/// The frames [.., frames, n] of x [.., T], `hop` samples apart. ShapeMismatch if x is shorter than one frame.
Expr frames_of(const Expr& x, std::int64_t n, std::int64_t hop, SourceLoc loc, const char* what);
/// The overlap-add of frames [.., frames, n] that are `hop` samples apart: [.., (frames - 1) hop + n].
Expr overlapped(const Expr& frames, std::int64_t hop, SourceLoc loc);

}  // namespace rlx::fft
