// Indexing as in NumPy: entries of an index become at most one slice, one reverse, one gather and one reshape.
#include <algorithm>
#include <variant>

#include "rlx/ir/build/building.h"
#include "rlx/ir/index.h"

namespace rlx {
using namespace building;
namespace {

// The positions low, low + step, .. below limit of an axis; `reversed`: the last one first.
struct Span {
  Dim low, limit;
  std::int64_t step = 1;
  bool reversed = false;
};

class Subscript {
 public:
  Subscript(Graph& g, Expr x, SourceLoc loc) : g_(g), x_(std::move(x)), loc_(loc) {}

  Expr take(const std::vector<Index>& entries) {
    place(entries);
    Expr v = sliced();
    const bool removes = selects_ && !is_mask();
    if (selects_) v = is_mask() ? g_.compress(At{loc_}(v), At{loc_}(*selects_), at_) : taken(v);
    return shaped(v, removes ? selects_->rank() : 1);
  }

 private:
  static constexpr int kNew = -1;  // in order_: an axis of extent 1
  static constexpr std::int64_t kLargestStep = std::int64_t{1} << 62;

  bool is_mask() const { return selects_->dtype() == DType::Bool; }
  [[noreturn]] void refuse(ErrorCode code, std::string message, std::string hint = {}) const {
    fail(loc_, code, "index: " + std::move(message), std::move(hint));
  }

  // Distributes the entries over the axes.
  void place(const std::vector<Index>& entries) {
    int used = 0, rests = 0;
    for (const Index& e : entries) {
      rests += std::holds_alternative<Rest>(e.entry());
      used += !std::holds_alternative<Rest>(e.entry()) && !std::holds_alternative<NewAxis>(e.entry());
    }
    const int rank = x_.rank();
    if (rests > 1) refuse(ErrorCode::InvalidArgument, "kRest is given twice", "keep one of them");
    if (used > rank)
      refuse(ErrorCode::InvalidArgument, concat_text(used, used == 1 ? " position for " : " positions for ", x_.shape(),
                                                     ", which has ", rank, rank == 1 ? " axis" : " axes"));
    spans_.resize(static_cast<std::size_t>(rank));
    int axis = 0;
    const auto keep = [&] {
      spans_[static_cast<std::size_t>(axis)] = {Dim(0), x_.dim(axis)};
      order_.push_back(axis++);
    };
    for (const Index& e : entries) {
      if (std::holds_alternative<NewAxis>(e.entry())) {
        order_.push_back(kNew);
      } else if (std::holds_alternative<Rest>(e.entry())) {
        for (int i = used; i < rank; ++i) keep();
      } else if (const auto* position = std::get_if<Dim>(&e.entry())) {
        const Dim from = counted_from_start(*position, axis);
        spans_[static_cast<std::size_t>(axis++)] = {from, from + Dim(1)};
      } else if (const auto* slice = std::get_if<Slice>(&e.entry())) {
        spans_[static_cast<std::size_t>(axis)] = span_of(*slice, x_.dim(axis));
        order_.push_back(axis++);
      } else {
        selected_by(std::get<Expr>(e.entry()), axis);
        keep();
      }
    }
    while (axis < rank) keep();
  }

  Dim counted_from_start(const Dim& position, int axis) const {
    const Dim& extent = x_.dim(axis);
    if (!position.is_static()) return position;
    const std::int64_t p = position.value();
    if (extent.is_static() ? p < -extent.value() || p >= extent.value() : p < -bounds_of(g_, extent).max)
      refuse(ErrorCode::InvalidArgument, concat_text("position ", p, " is outside axis ", axis, " of ", x_.shape()),
             "valid positions are from -extent to extent - 1");
    return p < 0 ? extent + position : position;
  }

  void selected_by(const Expr& tensor, int axis) {
    const Expr t = value_in(g_, tensor, {}, loc_);
    if (selects_)
      refuse(ErrorCode::InvalidArgument, "more than one tensor among the entries",
             "use g.gather with one index tensor for each axis, or index twice");
    const bool mask = t.dtype() == DType::Bool;
    if (!mask && !is_int(t.dtype()))
      refuse(ErrorCode::DTypeMismatch, concat_text("a tensor of ", dtype_name(t.dtype()), " among the entries"),
             "cast it to i32, or compare it for a mask");
    if (mask && t.rank() != 1)
      refuse(ErrorCode::ShapeMismatch, concat_text("the mask is ", t.shape(), ", expected one axis"),
             "use g.flatten on both, or g.where");
    selects_ = t;
    at_ = axis;
  }

  // A bound plus `shift`, counted from the start and clamped to [0, extent].
  Dim bound(const Dim& b, std::int64_t shift, const Dim& extent) const {
    const Dim from = (b.is_static() && b.value() < 0 ? extent + b : b) + Dim(shift);
    if (from.is_static() && extent.is_static()) return std::clamp<std::int64_t>(from.value(), 0, extent.value());
    const Dim above = bounds_of(g_, from).min < 0 ? max(from, Dim(0)) : from;
    return bounds_of(g_, extent - from).min < 0 ? min(above, extent) : above;
  }

  Span span_of(const Slice& s, const Dim& extent) const {
    if (s.step == 0) refuse(ErrorCode::InvalidArgument, "a slice has a step of 0", "use 1, or -1 to go backwards");
    if (s.step < -kLargestStep || s.step > kLargestStep)
      refuse(ErrorCode::InvalidArgument, concat_text("a slice has a step of ", s.step), "steps have at most 62 bits");
    if (s.step > 0) {
      const Dim low = s.start ? bound(*s.start, 0, extent) : Dim(0), high = s.stop ? bound(*s.stop, 0, extent) : extent;
      return {low, at_least(low, high), s.step};
    }
    // The positions from `start` down to above `stop` are those of [floor, top) that are a multiple of the step below
    // top - 1: a slice in ascending order, then reversed.
    const Dim top = s.start ? bound(*s.start, 1, extent) : extent, step(-s.step);
    const Dim floor = s.stop ? bound(*s.stop, 1, extent) : Dim(0);
    const Dim limit = at_least(floor, top), skipped = mod(limit - floor + step - Dim(1), step);
    return {skipped.is_static(0) ? floor : min(floor + skipped, limit), limit, -s.step, true};
  }

  Dim at_least(const Dim& low, const Dim& high) const {
    if (low.is_static() && high.is_static()) return std::max(low.value(), high.value());
    return bounds_of(g_, high - low).min < 0 ? max(high, low) : high;
  }

  Expr sliced() {
    Dims starts, limits;
    std::vector<std::int64_t> steps, reversed;
    bool whole = true;
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      const Span& s = spans_[i];
      starts.push_back(s.low);
      limits.push_back(s.limit);
      steps.push_back(s.step);
      if (s.reversed) reversed.push_back(static_cast<std::int64_t>(i));
      whole = whole && s.low.is_static(0) && s.limit == x_.dim(static_cast<int>(i)) && s.step == 1;
    }
    Expr v = whole ? x_ : g_.slice(At{loc_}(x_), std::move(starts), std::move(limits), std::move(steps));
    return reversed.empty() ? v : g_.reverse(At{loc_}(v), std::move(reversed));
  }

  Expr taken(const Expr& v) { return g_.take(At{loc_}(v), At{loc_}(*selects_), at_); }

  // Drops the axes of positions and adds the new ones. The selected axis of v is now `axes` axes.
  Expr shaped(const Expr& v, int axes) {
    Dims dims;
    for (const int axis : order_) {
      if (axis == kNew) {
        dims.push_back(Dim(1));
      } else {
        const int shift = selects_ && axis > at_ ? axes - 1 : 0, count = selects_ && axis == at_ ? axes : 1;
        for (int i = 0; i < count; ++i) dims.push_back(v.dim(axis + shift + i));
      }
    }
    return dims == v.shape().dims() ? v : g_.reshape(At{loc_}(v), std::move(dims));
  }

  Graph& g_;
  Expr x_;
  SourceLoc loc_;
  std::vector<Span> spans_;  // one for each axis of x
  std::vector<int> order_;   // the axes of the result
  std::optional<Expr> selects_{};
  int at_ = 0;  // the axis that the tensor selects from
};

}  // namespace

Expr Builder::index(Operand x, const std::vector<Index>& entries) {
  return Subscript(graph(), own(graph(), x), x.loc()).take(entries);
}

Expr Builder::flatten(Operand x, std::int64_t first, std::int64_t last) {
  const Expr v = own(graph(), x);
  if (v.rank() == 0 && (first == 0 || first == -1) && (last == 0 || last == -1)) return reshape(x, {Dim(1)});
  const std::int64_t from = normalize_axis_at(x.loc(), first, v.rank(), "flatten"),
                     to = normalize_axis_at(x.loc(), last, v.rank(), "flatten");
  if (from > to)
    fail(x.loc(), ErrorCode::InvalidArgument, concat_text("flatten: axis ", first, " comes after axis ", last));
  Dims dims;
  Dim joined(1);
  for (int i = 0; i < v.rank(); ++i) {
    if (i < from || i > to)
      dims.push_back(v.dim(i));
    else if (joined = joined * v.dim(i); i == to)
      dims.push_back(joined);
  }
  return reshape(Operand(v, x.loc()), std::move(dims));
}

namespace {
// Indexes on the graph of x, or on the body under construction that a tensor among the entries belongs to.
Expr indexed(const Expr& x, const std::vector<Index>& entries) {
  Graph* g = &x.graph();
  for (const Index& e : entries)
    if (const auto* tensor = std::get_if<Expr>(&e.entry()); tensor && BodyScope::encloses(*g, tensor->graph()))
      g = &tensor->graph();
  return g->index(entries.empty() ? Operand(x) : Operand(x, entries[0].loc()), entries);
}
}  // namespace

Expr Expr::operator[](const Index& entry) const { return indexed(*this, {entry}); }
Expr Expr::operator[](std::initializer_list<Index> entries) const { return indexed(*this, entries); }

}  // namespace rlx
