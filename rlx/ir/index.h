// Entries of an index, as in NumPy: x[0], x[Slice{1, 4}], x[{0, kRest, Slice{.step = -1}}], x[ids].
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "rlx/ir/value.h"
#include "rlx/tensor/dim.h"

namespace rlx {

/// The positions start, start + step, .. of an axis, before stop. Negative bounds count from the end, and bounds
/// outside the axis are clamped, as in Python. Without bounds it is the whole axis, backwards for a negative step.
struct Slice {
  std::optional<Dim> start{}, stop{};
  std::int64_t step = 1;
};
/// A new axis of extent 1; numpy.newaxis.
struct NewAxis {};
inline constexpr NewAxis kNewAxis{};
/// All axes that no other entry selects from; Python's `...`.
struct Rest {};
inline constexpr Rest kRest{};

/// One entry of an index. A position drops its axis; a negative one counts from the end. A Bool tensor [extent] keeps
/// the positions where it is true (Builder::compress). An integer tensor selects positions, and its axes replace the
/// axis (Builder::take: negative positions count from the end, and others are clamped). Each entry acts on its own axis
/// only. Records the user's line.
class Index {
 public:
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Index(T position, SourceLoc loc = SourceLoc::current()) : entry_(Dim(position)), loc_(loc) {}  // NOLINT(implicit)
  Index(Dim position, SourceLoc loc = SourceLoc::current())
      : entry_(std::move(position)), loc_(loc) {}                                                    // NOLINT(implicit)
  Index(Slice slice, SourceLoc loc = SourceLoc::current()) : entry_(std::move(slice)), loc_(loc) {}  // NOLINT(implicit)
  Index(NewAxis entry, SourceLoc loc = SourceLoc::current()) : entry_(entry), loc_(loc) {}           // NOLINT(implicit)
  Index(Rest entry, SourceLoc loc = SourceLoc::current()) : entry_(entry), loc_(loc) {}              // NOLINT(implicit)
  Index(Expr positions, SourceLoc loc = SourceLoc::current())
      : entry_(std::move(positions)), loc_(loc) {}  // NOLINT(implicit)
  const std::variant<Dim, Slice, NewAxis, Rest, Expr>& entry() const { return entry_; }
  SourceLoc loc() const { return loc_; }

 private:
  std::variant<Dim, Slice, NewAxis, Rest, Expr> entry_;
  SourceLoc loc_;
};

}  // namespace rlx
