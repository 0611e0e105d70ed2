// What short-time transforms and Welch's method share.
#pragma once

#include "rlx/ir/graph.h"

namespace rlx::fft {

/// Frames [.., frames, n] of x [.., T], `hop` samples from one to the next; ShapeMismatch where there is not one.
Expr frames_of(const Expr& x, std::int64_t n, std::int64_t hop, SourceLoc loc, const char* what);
/// The sum [.., (frames - 1) hop + n] of frames [.., frames, n] that lie `hop` samples apart.
Expr overlapped(const Expr& frames, std::int64_t hop, SourceLoc loc);

}  // namespace rlx::fft
