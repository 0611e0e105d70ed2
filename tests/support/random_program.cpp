// The generator: a pool of values that ops are put on at random.
#include "tests/support/random_program.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/ops/rope.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace rlx::test {
namespace {

constexpr DType kFloats[] = {DType::F32, DType::F32, DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16};
constexpr DType kWhole[] = {DType::I32, DType::I64, DType::I32, DType::I8, DType::U8,
                            DType::I16, DType::U16, DType::U32, DType::U64};

class Generator {
 public:
  Generator(std::uint64_t seed, const ProgramOptions& options) : options_(options), dice_(seed) {
    out_.seed = seed;
    out_.specials = options.specials;
  }

  RandomProgram make() {
    g_.set_name(concat_text("random", out_.seed));
    if (options_.symbols && dice_.chance(40)) {
      symbols_.push_back(g_.symbol("n", {.min = 1, .max = 12, .divisor = 1}));
      if (dice_.chance(40)) symbols_.push_back(g_.symbol("m", {.min = 1, .max = 6, .divisor = 1}));
    }
    for (std::int64_t i = 1 + dice_.below(3); i-- > 0;) keep(leaf(Shape(random_dims(), dice_.of(kFloats))));
    for (const Dim& s : symbols_) {  // each symbol can be solved from an input
      keep(g_.input(next("x"), Shape({s, Dim(1 + dice_.below(4))}, DType::F32)));
    }
    const std::int64_t ops = 1 + dice_.below(2 * options_.ops);
    for (std::int64_t i = 0; i < ops; ++i) {
      try {
        step();
      } catch (const Error& e) {
        if (e.code() == ErrorCode::Internal) throw;
      }
    }
    choose_outputs();
    out_.graph = std::move(g_);
    return std::move(out_);
  }

 private:
  std::string next(const char* kind) { return concat_text(kind, names_++); }

  Dim random_dim() {
    if (!symbols_.empty() && dice_.chance(30)) {
      const Dim s = dice_.any(symbols_);
      return dice_.chance(75) ? s : dice_.chance(50) ? s * 2 : s + 1;
    }
    if (dice_.chance(3)) return 0;
    static constexpr std::int64_t kExtents[] = {1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33};
    return dice_.of(kExtents);
  }
  Dims random_dims() {
    Dims dims;
    std::int64_t rank = dice_.below(10);
    rank = rank == 0 ? 0 : rank <= 2 ? 1 : rank <= 6 ? 2 : rank <= 8 ? 3 : 4;
    for (std::int64_t i = 0; i < rank; ++i) {
      dims.push_back(random_dim());
      if (elements(dims) > options_.max_elements) dims.back() = 1;
    }
    return dims;
  }
  std::int64_t elements(const Dims& dims) const {
    std::int64_t n = 1;
    for (const Dim& d : dims) {
      const std::int64_t extent = d.evaluate({{"n", 12}, {"m", 6}});
      if (extent < 0) return std::numeric_limits<std::int64_t>::max();
      if (extent > 0 && n > (std::int64_t{1} << 40) / extent) return std::numeric_limits<std::int64_t>::max();
      n *= extent;
    }
    return n;
  }

  Expr keep(Expr e) {
    if (elements(e.shape().dims()) <= options_.max_elements && !is_storage_only(e.dtype())) pool_.push_back(e);
    return e;
  }

  // A leaf of the shape: input, frozen or mutable param, constant, state.
  Expr leaf(const Shape& shape) {
    const std::int64_t kind = dice_.below(10);
    if (shape.is_static() && kind < 6) {
      if (kind <= 1) return g_.param(next("w"), shape, ParamMode::Frozen);
      if (kind == 2) return g_.param(next("w"), shape, ParamMode::Mutable);
      if (kind == 3) return g_.constant(constant(shape));
      if (kind == 4 && options_.states) {
        states_.push_back(g_.state(next("s"), constant(shape)));
        return states_.back();
      }
    }
    return g_.input(next("x"), shape);
  }
  Tensor constant(const Shape& shape) {
    Tensor t = Tensor::zeros(shape);
    for (std::int64_t i = 0; i < t.num_elements(); ++i)
      t.set(i, is_inexact(shape.dtype()) ? static_cast<double>(dice_.below(33) - 16) / 8
                                         : static_cast<double>(dice_.below(4)));
    return t;
  }
  Expr whole_leaf(const Shape& shape, std::int64_t low, std::int64_t high) {
    const std::string name = next("i");
    out_.whole[name] = {low, high};
    return g_.input(name, shape);
  }

  // -- choosing operands

  using Wanted = std::function<bool(const Expr&)>;
  Expr pick(const Wanted& wanted) {
    for (int tries = 0; tries < 8; ++tries) {
      // The later half is preferred, so that programs grow deep.
      const auto n = static_cast<std::int64_t>(pool_.size());
      const Expr e =
          pool_[static_cast<std::size_t>(dice_.chance(60) ? n - 1 - dice_.below((n + 1) / 2) : dice_.below(n))];
      if (wanted(e)) return e;
    }
    return {};
  }
  Expr pick_float(int min_rank = 0) {
    Expr e = pick([&](const Expr& x) { return is_float(x.dtype()) && x.rank() >= min_rank; });
    if (e.valid()) return e;
    Dims dims = random_dims();
    while (static_cast<int>(dims.size()) < min_rank) dims.push_back(1 + dice_.below(5));
    return keep(leaf(Shape(dims, dice_.of(kFloats))));
  }
  Expr pick_any(int min_rank = 0) {
    if (dice_.chance(70)) return pick_float(min_rank);
    Expr e = pick([&](const Expr& x) { return x.rank() >= min_rank; });
    return e.valid() ? e : pick_float(min_rank);
  }
  // Something that broadcasts with x: a value of the pool, a leaf of a part of its shape, a number.
  Operand partner(const Expr& x, bool same_dtype = true) {
    if (dice_.chance(20)) return Operand(static_cast<double>(dice_.below(9) - 4) / 2);
    if (dice_.chance(50)) {
      Expr e = pick([&](const Expr& y) {
        return (!same_dtype || y.dtype() == x.dtype()) && broadcast_dims(x.shape().dims(), y.shape().dims());
      });
      if (e.valid()) return e;
    }
    Dims dims = x.shape().dims();
    for (Dim& d : dims)
      if (dice_.chance(25)) d = 1;
    if (dice_.chance(30) && !dims.empty()) dims.erase(dims.begin());
    return leaf(Shape(dims, x.dtype()));
  }
  std::int64_t axis_of(const Expr& x) { return dice_.below(x.rank()); }
  std::vector<std::int64_t> axes_of(const Expr& x) {
    std::vector<std::int64_t> axes;
    for (std::int64_t i = 0; i < x.rank(); ++i)
      if (dice_.chance(50)) axes.push_back(i);
    return axes;
  }

  ActivationKind function(std::int64_t first) { return static_cast<ActivationKind>(dice_.below(first)); }

  // -- one op

  void step() {
    switch (dice_.below(29)) {
      case 0:
      case 1:
      case 2: return activation();
      case 3:
      case 4:
      case 5: return binary();
      case 6: return compare();
      case 7: return convert();
      case 8:
      case 9: return reshape();
      case 10:
      case 11: return move();
      case 12: return join();
      case 13: return index();
      case 14: return window();
      case 15:
      case 16: return reduce();
      case 17: return scan();
      case 18:
      case 19:
      case 20: return product();
      case 21: return norm();
      case 22: return attention();
      case 23: return options_.blocks ? block() : norm();
      case 24: return state();
      case 25:
      case 26: return control();
      case 27: return quantised();
      default: return positions();
    }
  }

  void activation() {
    const ActivationKind fn = function(kNumActivationKinds);
    Expr x = fn == ActivationKind::Not ? pick_any() : dice_.chance(90) ? pick_float() : pick_any();
    if (dice_.chance(15)) x = x * 0.25;
    keep(g_.activation(fn, x));
  }
  void binary() {
    const auto fn = static_cast<BinaryKind>(dice_.chance(70) ? dice_.below(6) : dice_.below(kNumBinaryKinds));
    const Expr x = fn >= BinaryKind::BitAnd ? pick([](const Expr& e) { return is_int(e.dtype()); }) : pick_any();
    if (!x.valid()) {
      keep(g_.cast(pick_any(), dice_.of(kWhole)));
      return;
    }
    const Operand y = partner(x);
    keep(dice_.chance(50) ? g_.binary(fn, x, y) : g_.binary(fn, y, x));
  }
  void compare() {
    const Expr x = pick_any();
    const Expr c = g_.compare(static_cast<CompareKind>(dice_.below(6)), x, partner(x));
    keep(c);
    const Expr a = pick([&](const Expr& e) { return broadcast_dims(e.shape().dims(), c.shape().dims()).has_value(); });
    if (a.valid()) keep(dice_.chance(50) ? g_.where(c, a, partner(a)) : g_.where(c, partner(a), a));
    if (dice_.chance(30)) keep(g_.clamp(pick_float(), -0.5, 1.5));
  }
  void convert() {
    const Expr x = pick_any();
    if (dice_.chance(15)) {  // through a storage type
      static constexpr DType kStored[] = {DType::F8E4M3, DType::F8E5M2, DType::F4E2M1, DType::I4, DType::U4};
      keep(g_.cast(g_.cast(x, dice_.of(kStored)), is_int(x.dtype()) ? DType::I32 : dice_.of(kFloats)));
    } else {
      keep(g_.cast(x, dice_.chance(60) ? dice_.of(kFloats) : dice_.chance(80) ? dice_.of(kWhole) : DType::Bool));
    }
  }
  void reshape() {
    const Expr x = pick_any();
    switch (dice_.below(6)) {
      case 0: keep(g_.reshape(x, {-1})); return;
      case 1: {  // two axes joined
        if (x.rank() < 2) return;
        Dims dims = x.shape().dims();
        const auto at = static_cast<std::size_t>(dice_.below(x.rank() - 1));
        dims[at] = dims[at] * dims[at + 1];
        dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        keep(g_.reshape(x, dims));
        return;
      }
      case 2: {  // one axis split
        Dims dims = x.shape().dims();
        if (dims.empty()) return;
        const auto at = static_cast<std::size_t>(axis_of(x));
        for (std::int64_t part : {2, 3, 7, 11}) {
          const auto rest = exact_div(dims[at], Dim(part));
          if (!rest) continue;
          dims[at] = *rest;
          dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at) + dice_.below(2), Dim(part));
          keep(g_.reshape(x, dims));
          return;
        }
        return;
      }
      case 3: keep(g_.unsqueeze(x, dice_.below(x.rank() + 1))); return;
      case 4: {
        for (std::int64_t a = 0; a < x.rank(); ++a)
          if (x.dim(static_cast<int>(a)).is_static(1)) {
            keep(g_.squeeze(x, a));
            return;
          }
        return;
      }
      default: {
        Dims dims = x.shape().dims();
        for (Dim& d : dims)
          if (d.is_static(1)) d = random_dim();
        if (dice_.chance(40)) dims.insert(dims.begin(), random_dim());
        if (elements(dims) <= options_.max_elements) keep(g_.expand(x, dims));
      }
    }
  }
  void move() {
    const Expr x = pick_any(1);
    const std::int64_t axis = axis_of(x);
    const Dim extent = x.dim(static_cast<int>(axis));
    switch (dice_.below(5)) {
      case 0: {
        std::vector<std::int64_t> perm(static_cast<std::size_t>(x.rank()));
        for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
        for (std::size_t i = perm.size(); i-- > 1;)
          std::swap(perm[i], perm[static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(i) + 1))]);
        keep(g_.transpose(x, perm));
        return;
      }
      case 1: keep(g_.reverse(x, axes_of(x))); return;
      case 2: {
        Dims starts, limits;
        std::vector<std::int64_t> strides;
        for (const Dim& d : x.shape().dims()) {
          const std::int64_t n = d.is_static() ? d.value() : 0;
          const std::int64_t start = n > 0 ? dice_.below(std::min<std::int64_t>(n, 3)) : 0;
          starts.emplace_back(start);
          limits.push_back(d.is_static() ? Dim(start + dice_.below(n - start + 1)) : d);
          strides.push_back(dice_.chance(60) ? 1 : 1 + dice_.below(4));
        }
        keep(g_.slice(x, starts, limits, strides));
        return;
      }
      case 3: {
        if (!extent.is_static()) return;
        const std::int64_t start = dice_.below(extent.value() + 1);
        keep(g_.narrow(x, axis, start, dice_.below(extent.value() - start + 1)));
        return;
      }
      default: {
        std::vector<std::int64_t> low, high, interior;
        for (int i = 0; i < x.rank(); ++i) {
          low.push_back(dice_.below(4) - 1), high.push_back(dice_.below(4) - 1), interior.push_back(dice_.below(4) / 2);
          // No more is cropped than there is; a symbol is 1 at least.
          const std::int64_t most = x.shape().dim(i).is_static() ? x.shape().dim(i).value() : 1;
          if (most < 1) high.back() = std::max<std::int64_t>(high.back(), 0);
          if (most < 1 || (most < 2 && high.back() < 0)) low.back() = std::max<std::int64_t>(low.back(), 0);
        }
        keep(g_.pad(x, low, high, static_cast<double>(dice_.below(5)) - 2, interior));
      }
    }
  }
  void join() {
    const Expr x = pick_any(1);
    std::vector<Expr> parts{x};
    for (std::int64_t i = dice_.below(3); i-- > 0;) {
      const Expr y = pick([&](const Expr& e) { return e.shape() == x.shape(); });
      parts.push_back(y.valid() ? y : leaf(x.shape()));
    }
    keep(g_.concat(parts, axis_of(x)));
  }
  Expr indices(const Dims& dims, const Dim& extent) {
    const std::int64_t n = extent.evaluate({{"n", 12}, {"m", 6}});
    return whole_leaf(Shape(dims, dice_.chance(70) ? DType::I32 : DType::I64), dice_.chance(80) ? 0 : -2,
                      std::max<std::int64_t>(n, 1) + (dice_.chance(80) ? 0 : 2));
  }
  void index() {
    const Expr x = pick_any(1);
    const std::int64_t axis = axis_of(x);
    const Dim extent = x.dim(static_cast<int>(axis));
    Dims dims;
    for (std::int64_t i = dice_.below(3); i-- > 0;) dims.emplace_back(1 + dice_.below(5));
    switch (dice_.below(7)) {
      case 0: keep(g_.gather(x, indices(dims, extent), axis)); return;
      case 4: {  // elements along two axes
        const std::int64_t other = axis_of(x);
        if (other == axis) return;
        ops::Gather op{{axis, other}};
        if (dice_.chance(50)) op.mode = IndexMode::Fill, op.fill = static_cast<double>(dice_.below(3));
        keep(g_.gather(x, {indices(dims, extent), indices(dims, x.dim(static_cast<int>(other)))}, op));
        return;
      }
      case 5: {  // set, least and largest: whatever the order, one result
        const std::int64_t other = axis_of(x);
        if (other == axis) return;
        const Dim second = x.dim(static_cast<int>(other));
        const ScatterKind fns[] = {ScatterKind::Set, ScatterKind::Min, ScatterKind::Max, ScatterKind::Add};
        const ops::Scatter op{fns[dice_.below(4)],
                              {std::min(axis, other), std::max(axis, other)},
                              dice_.chance(50) ? IndexMode::Drop : IndexMode::Clamp};
        const bool first = axis < other;
        const Expr a = indices(dims, extent), b = indices(dims, second);
        Dims shape(x.shape().dims().begin(), x.shape().dims().begin() + op.axes[0]);
        shape.insert(shape.end(), dims.begin(), dims.end());
        for (std::int64_t k = op.axes[0]; k < x.rank(); ++k)
          if (k != axis && k != other) shape.push_back(x.dim(static_cast<int>(k)));
        if (elements(shape) > options_.max_elements) return;
        keep(g_.scatter(x, {first ? a : b, first ? b : a}, leaf(Shape(shape, x.dtype())), op));
        return;
      }
      case 6: {
        const Expr places = g_.iota(x.shape().with_dtype(DType::I32), axis);
        const ExprList sorted = g_.sort(x, {places}, axis, dice_.chance(50));
        keep(sorted[0]);
        keep(sorted[1]);
        return;
      }
      case 1: {
        Dims updates(x.shape().dims().begin(), x.shape().dims().begin() + axis);
        updates.insert(updates.end(), dims.begin(), dims.end());
        updates.insert(updates.end(), x.shape().dims().begin() + axis + 1, x.shape().dims().end());
        if (elements(updates) > options_.max_elements) return;
        keep(g_.scatter_add(x, indices(dims, extent), leaf(Shape(updates, x.dtype())), axis));
        return;
      }
      case 2: {
        if (!x.dim(-1).is_static() || x.dim(-1).value() < 1) return;
        const auto top = g_.top_k(x, 1 + dice_.below(std::min<std::int64_t>(x.dim(-1).value(), 6)));
        keep(top.values);
        keep(top.indices);
        return;
      }
      default: keep(dice_.chance(50) ? g_.arg_max(x, axis, dice_.chance(50)) : g_.arg_min(x, axis, dice_.chance(50)));
    }
  }
  void window() {
    const Expr x = pick_any(1);
    Dims sizes;
    for (const Dim& d : x.shape().dims())
      sizes.push_back(d.is_static() ? Dim(d.value() > 0 ? 1 + dice_.below(d.value()) : 0) : d);
    const Expr starts = whole_leaf(Shape({Dim(x.rank())}, dice_.chance(70) ? DType::I32 : DType::I64), -1, 6);
    if (dice_.chance(50)) {
      keep(g_.dynamic_slice(x, starts, sizes));
    } else {
      keep(g_.dynamic_update_slice(x, leaf(Shape(sizes, x.dtype())), starts));
    }
  }
  void reduce() {
    const Expr x = pick_any(1);
    keep(g_.reduce(static_cast<ReduceKind>(dice_.below(5)), x, axes_of(x), dice_.chance(50)));
  }
  void scan() {
    const Expr x = pick_any(1);
    switch (dice_.below(4)) {
      case 0: keep(g_.softmax(pick_float(1), -1)); return;
      case 1: {
        const Expr y = pick_float(1);
        keep(dice_.chance(50) ? g_.log_softmax(y, axis_of(y)) : g_.softmax(y, axis_of(y)));
        return;
      }
      default:
        keep(g_.cumulative(static_cast<CumulativeKind>(dice_.below(4)), x, axis_of(x), dice_.chance(50),
                           dice_.chance(50)));
    }
  }
  void product() {
    const Expr x = pick_float(1);
    const Dim k = x.dim(-1);
    const Dim n = 1 + dice_.below(20);
    switch (dice_.below(5)) {
      case 0: {  // a weight, with an epilogue often
        Expr y = dice_.chance(70) ? g_.matmul(x, leaf(Shape({k, n}, x.dtype())))
                                  : g_.matmul(x, g_.t(leaf(Shape({n, k}, x.dtype()))));
        keep(y);
        if (dice_.chance(60)) y = keep(y + leaf(Shape({n}, x.dtype())));
        if (dice_.chance(60)) keep(g_.activation(function(6), y));
        return;
      }
      case 1: {
        const Expr y = pick([&](const Expr& e) {
          return e.rank() >= 2 && e.dtype() == x.dtype() && (e.dim(-2) == k || e.dim(-1) == k);
        });
        if (y.valid()) keep(g_.matmul(x, y.dim(-2) == k ? y : g_.t(y)));
        return;
      }
      case 2:
        if (x.rank() >= 2) keep(g_.matmul(x, g_.t(x)));
        return;
      case 3: {
        if (x.rank() >= 2) keep(g_.matmul(g_.t(x), x));
        return;
      }
      default: {  // any axes, any order
        Dims dims = x.shape().dims();
        const std::int64_t contract = axis_of(x);
        ops::DotGeneral op;
        op.lhs_contract = {contract};
        Dims other;
        if (x.rank() > 1 && dice_.chance(50)) {
          const std::int64_t batch = (contract + 1) % x.rank();
          op.lhs_batch = {batch};
          op.rhs_batch = {0};
          other.push_back(dims[static_cast<std::size_t>(batch)]);
        }
        const bool first = dice_.chance(50);
        if (!first) other.emplace_back(1 + dice_.below(6));
        op.rhs_contract = {static_cast<std::int64_t>(other.size())};
        other.push_back(dims[static_cast<std::size_t>(contract)]);
        if (first) other.emplace_back(1 + dice_.below(6));
        if (elements(other) <= options_.max_elements) keep(g_.dot_general(x, leaf(Shape(other, x.dtype())), op));
      }
    }
  }
  void norm() {
    const Expr x = pick_float(1);
    std::vector<std::int64_t> axes{dice_.chance(80) ? x.rank() - 1 : axis_of(x)};
    if (x.rank() > 1 && dice_.chance(20)) axes = {x.rank() - 2, x.rank() - 1};
    Shape along({}, x.dtype());
    for (std::int64_t axis : axes) {
      Dims dims = along.dims();
      dims.push_back(x.dim(static_cast<int>(axis)));
      along = Shape(dims, x.dtype());
    }
    std::optional<Operand> gamma, beta;
    if (dice_.chance(80)) gamma = leaf(along);
    if (dice_.chance(80)) beta = leaf(along);
    switch (dice_.below(4)) {
      case 0: {
        const Expr y = g_.layer_norm(x, gamma, beta, 1e-5, axes);
        keep(dice_.chance(20) ? y * y.result(2) : y);
        return;
      }
      case 1: keep(g_.rms_norm(x, gamma, beta, 1e-6, axes)); return;
      default: {  // of a sum, as the passes fuse it
        const Shape last({x.dim(-1)}, x.dtype());
        const Expr sum = x + leaf(x.shape());
        keep(dice_.chance(50) ? g_.layer_norm(sum, leaf(last), leaf(last)) : g_.rms_norm(sum, leaf(last), leaf(last)));
        if (dice_.chance(50)) keep(sum);
      }
    }
  }
  void attention() {
    ops::Attention op;
    static constexpr std::int64_t kHeadDims[] = {1, 2, 4, 8, 16, 5};
    op.kv_heads = 1 + dice_.below(2);
    op.num_heads = op.kv_heads * (1 + dice_.below(2));
    op.head_dim = dice_.of(kHeadDims);
    op.mask = static_cast<MaskKind>(dice_.below(5));
    op.window = op.mask == MaskKind::SlidingWindow ? dice_.below(4) : 0;
    op.layout = static_cast<HeadLayout>(dice_.below(3));
    if (dice_.chance(20)) op.scale = 0.3;
    if (dice_.chance(20)) op.softcap = 2.0;
    const DType t = dice_.chance(80) ? DType::F32 : dice_.of(kFloats);
    const Dim batch = 1 + dice_.below(3);
    const Dim queries = dice_.chance(30) && !symbols_.empty() ? symbols_[0] : Dim(1 + dice_.below(9));
    const Dim keys = dice_.chance(50) ? queries : Dim(1 + dice_.below(9));
    const auto heads = [&](const Dim& s, std::int64_t h) {
      return op.layout == HeadLayout::Merged       ? Dims{batch, s, h * op.head_dim}
             : op.layout == HeadLayout::HeadsFirst ? Dims{batch, h, s, op.head_dim}
                                                   : Dims{batch, s, h, op.head_dim};
    };
    const Dims q_dims = heads(queries, op.num_heads);
    if (elements(q_dims) > options_.max_elements) return;
    Expr q = pick([&](const Expr& e) { return e.dtype() == t && e.shape().dims() == q_dims; });
    if (!q.valid()) q = leaf(Shape(q_dims, t));
    const Expr k = leaf(Shape(heads(keys, op.kv_heads), t)), v = leaf(Shape(heads(keys, op.kv_heads), t));
    std::optional<Operand> mask;
    if (op.mask == MaskKind::Custom)
      mask = dice_.chance(50) ? leaf(Shape({batch, keys}, DType::Bool))
                              : leaf(Shape({batch, Dim(1), queries, keys}, DType::Bool));
    if (op.mask == MaskKind::Bias) mask = leaf(Shape({Dim(1), Dim(op.num_heads), queries, keys}, t));
    AttentionOptions options{mask, {}, {}, {}};
    const auto lengths = [&] {
      std::vector<std::int32_t> n(static_cast<std::size_t>(batch.value()));
      for (std::int32_t& e : n) e = static_cast<std::int32_t>(dice_.below(11));
      return g_.constant(Tensor::of<std::int32_t>({batch.value()}, n));
    };
    if (dice_.chance(20)) options.kv_len = lengths();
    if (dice_.chance(15)) options.q_len = lengths();
    if (dice_.chance(15)) options.sinks = leaf(Shape({Dim(op.num_heads)}, t));
    const Expr y = g_.attention(q, k, v, op, options);
    keep(y);
    if (dice_.chance(20)) keep(g_.exp(y.result(1)));  // the log itself may be -inf
  }
  void positions() {
    if (dice_.chance(50)) {
      const Expr x = pick_any(1);
      keep(dice_.chance(50) ? g_.dim_size(x, axis_of(x))
                            : g_.iota(Shape(x.shape().dims(), dice_.chance(50) ? DType::I32 : DType::F32), axis_of(x)));
      return;
    }
    ops::Rope op;
    op.head_dim = 2 * (1 + dice_.below(4));
    op.n_rot = 2 * (1 + dice_.below(op.head_dim / 2));
    op.pairing = static_cast<RopePairing>(dice_.below(2));
    op.inverse = dice_.chance(30);
    const Dim s = 1 + dice_.below(7);
    const Expr x = leaf(Shape({Dim(1 + dice_.below(2)), s, Dim(op.head_dim * (1 + dice_.below(3)))}, DType::F32));
    const Shape table({s, Dim(op.n_rot / 2)}, DType::F32);
    keep(g_.rope(x, leaf(table), leaf(table), op));
  }
  void block() {
    const Expr x = pick([](const Expr& e) { return e.dtype() == DType::F32 && e.rank() >= 2; });
    if (!x.valid()) return;
    const Dim k = x.dim(-1), n = 1 + dice_.below(12);
    const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
    const auto act = function(6);
    switch (dice_.below(7)) {
      case 0: keep(g_.linear(x, leaf(f32({k, n})), Operand(leaf(f32({n}))), act)); return;
      case 1: keep(g_.linear_fused(x, leaf(f32({k, n})), leaf(f32({n})), act)); return;
      case 2: {
        const auto [a, b] = g_.shared_linear_pair(x, leaf(f32({k, n})), leaf(f32({k, n})));
        keep(a);
        keep(b);
        return;
      }
      case 3: keep(g_.swiglu(x, leaf(f32({k, n})), leaf(f32({k, n})), leaf(f32({n, k})))); return;
      case 4: keep(g_.residual_rms_norm(x, leaf(x.shape()), leaf(f32({k})), leaf(f32({k})))); return;
      case 5: keep(g_.residual_layer_norm(x, leaf(x.shape()), leaf(f32({k})), leaf(f32({k})))); return;
      default: layer();
    }
  }
  // A few ops on `x`, a value of the body `b`, and on values of the graph around it; of the shape and dtype of x.
  Expr body_value(Graph& b, Expr x, int depth = 0) {
    for (std::int64_t i = 1 + dice_.below(3); i-- > 0;) {
      const DType t = x.dtype();
      switch (dice_.below(7)) {
        case 0: x = b.tanh(x); break;
        case 1: x = x * 0.5 + 0.25; break;
        case 2: x = b.cast(x + partner(x), t); break;
        case 3:
          if (x.rank() > 0) x = b.softmax(x, -1);
          break;
        case 4:
          if (x.rank() > 0) x = b.cast(b.matmul(b.tanh(x), leaf(Shape({x.dim(-1), x.dim(-1)}, t))), t);
          break;
        case 5:
          if (x.rank() > 0) x = x - b.mean(x, {x.rank() - 1}, true);
          break;
        default:
          if (depth == 0)
            x = b.cond(
                leaf(Shape({}, DType::Bool)), {x},
                [&](Graph& then, const ExprList& in) { return ExprList{body_value(then, in[0], 1)}; },
                [&](Graph& otherwise, const ExprList& in) { return ExprList{otherwise.neg(in[0])}; })[0];
      }
    }
    return x;
  }
  void control() {
    const Expr x = pick_float();
    const auto rows = [&](std::int64_t n) { return leaf(Shape(Dims{Dim(n)}, x.dtype())); };
    switch (dice_.below(5)) {
      case 0:
        keep(g_.cond(
            leaf(Shape({}, DType::Bool)), {x},
            [&](Graph& b, const ExprList& in) { return ExprList{body_value(b, in[0])}; },
            [&](Graph& b, const ExprList& in) { return ExprList{body_value(b, in[0])}; })[0]);
        return;
      case 1:
        keep(g_.checkpoint({x}, [&](Graph& b, const ExprList& in) { return ExprList{body_value(b, in[0])}; })[0]);
        return;
      case 2: {  // as long as a number says
        const Expr limit = whole_leaf(Shape({}, DType::I64), 0, 5);
        WhileOptions options;
        if (dice_.chance(60)) options.max_trips = dice_.below(5);
        const LoopResult r = g_.while_loop(
            {x, g_.constant(Tensor::scalar_i64(DType::I64, 0))},
            [&](Graph& b, const ExprList& carries) { return b.lt(carries[1], limit); },
            [&](Graph& b, const ExprList& carries) {
              const ExprList ys = options.max_trips ? ExprList{b.tanh(carries[0])} : ExprList();
              return LoopStep({body_value(b, carries[0]), carries[1] + 1}, ys);
            },
            options);
        keep(r.carries[0]);
        keep(r.carries[1]);
        if (!r.ys.empty()) keep(r.ys[0]);
        return;
      }
      default: {  // over rows, which the carry meets
        const std::int64_t length = dice_.below(5);
        ScanOptions options;
        options.reverse = dice_.chance(30), options.checkpoint = dice_.chance(30);
        const LoopResult r = g_.scan(
            {x}, {rows(length)},
            [&](Graph& b, const ExprList& carries, const ExprList& row) {
              return LoopStep(ExprList{body_value(b, carries[0] * 0.5 + row[0])}, ExprList{carries[0] * row[0]});
            },
            options);
        keep(r.carries[0]);
        keep(r.ys[0]);
      }
    }
  }
  // Products with weights that are codes.
  void quantised() {
    const Expr x =
        pick([](const Expr& e) { return e.dtype() == DType::F32 && e.rank() >= 1 && e.dim(-1).is_static(); });
    if (!x.valid()) return;
    const Dim k = x.dim(-1), n = 1 + dice_.below(20);
    static constexpr DType kCodes[] = {DType::I8, DType::U8, DType::I4, DType::U4};
    const auto codes = [&] {
      const Expr whole = leaf(Shape({k, n}, DType::I8));
      const DType t = dice_.of(kCodes);
      return t == DType::I8 ? whole : g_.cast(whole, t);
    };
    const bool by_column = dice_.chance(60);
    ops::Dequantize op;
    if (by_column) op.axis = 1;
    const Expr scale = leaf(by_column ? Shape({n}, DType::F32) : Shape({}, DType::F32));
    const Expr w = g_.dequantize(codes(), Operand(scale), op);
    keep(g_.matmul(x, w));
    if (dice_.chance(20)) keep(w);
    if (dice_.chance(40) && x.rank() == 2) {
      const std::int64_t groups = 1 + dice_.below(3);
      const Expr ids = whole_leaf(Shape({x.dim(0)}, DType::I32), -1, groups + 1);
      keep(g_.grouped_dot(x, leaf(Shape({Dim(groups), k, n}, DType::F32)), ids));
    }
  }
  void layer() {
    const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
    const Dim batch = 1 + dice_.below(2),
              seq = dice_.chance(40) && !symbols_.empty() ? symbols_[0] : Dim(1 + dice_.below(6));
    const std::int64_t heads = 1 + dice_.below(2), d = 2 * (1 + dice_.below(4)), e = heads * d,
                       inner = 1 + dice_.below(12);
    std::vector<Expr> x{g_.input(next("x"), f32({batch, seq, Dim(e)}))};
    const auto add = [&](Dims dims) { x.push_back(g_.param(next("w"), f32(std::move(dims)))); };
    const MaskKind mask = dice_.chance(30) ? MaskKind::Custom : dice_.chance(50) ? MaskKind::Causal : MaskKind::None;
    if (dice_.chance(60)) {
      for (int i = 0; i < 4; ++i) add({e, e}), add({e});
      add({e}), add({e}), add({e, inner}), add({inner}), add({inner, e}), add({e}), add({e}), add({e});
      ops::EncoderBlock op;
      op.num_heads = heads, op.head_dim = d, op.mask = mask, op.eps = 1e-5;
      op.activation = function(4);
      if (mask == MaskKind::Custom) x.push_back(leaf(Shape({batch, seq}, DType::Bool)));
      keep(g_.encoder_block(op, x));
    } else {
      const std::int64_t kv = heads % 2 == 0 && dice_.chance(50) ? heads / 2 : heads;
      add({e}), add({e, e}), add({e, kv * d}), add({e, kv * d}), add({e, e});
      add({e}), add({e, inner}), add({e, inner}), add({inner, e});
      x.push_back(g_.input(next("x"), f32({seq, Dim(d / 2)})));
      x.push_back(g_.input(next("x"), f32({seq, Dim(d / 2)})));
      ops::LlamaDecoderBlock op;
      op.num_heads = heads, op.kv_heads = kv, op.head_dim = d, op.mask = mask;
      if (mask == MaskKind::Custom) x.push_back(leaf(Shape({batch, seq}, DType::Bool)));
      keep(g_.llama_decoder_block(op, x));
    }
  }
  void state() {
    if (!options_.states) return;
    if (states_.empty()) {
      const Expr x = pick([](const Expr& e) { return e.shape().is_static(); });
      if (!x.valid()) return;
      states_.push_back(g_.state(next("s"), constant(x.shape())));
      keep(states_.back());
    }
    const Expr s = dice_.any(states_);
    const std::string name = g_.leaf_name(s.value().node);
    if (dice_.chance(40) && s.rank() > 0) {  // a row replaced, as a cache does
      Dims sizes = s.shape().dims();
      if (sizes[0].value() > 1) sizes[0] = 1;
      const Expr starts = whole_leaf(Shape({Dim(s.rank())}, DType::I32), 0, 4);
      const Expr next_value = g_.dynamic_update_slice(s, leaf(Shape(sizes, s.dtype())), starts);
      keep(next_value);
      g_.set_state(name, next_value);
      return;
    }
    const Expr v = pick([&](const Expr& e) { return e.shape() == s.shape() && !(e == s); });
    g_.set_state(name, v.valid() ? v.value() : (s + leaf(s.shape())).value());
  }

  void choose_outputs() {
    std::vector<bool> used(g_.num_nodes(), false);
    for (const Node& n : g_.nodes())
      for (Value v : n.inputs) used[v.node.index] = true;
    std::vector<Value> outputs;
    for (std::size_t i = pool_.size(); i-- > 0 && outputs.size() < 5;)
      if (!used[pool_[i].value().node.index] || dice_.chance(8)) outputs.push_back(pool_[i].value());
    if (outputs.empty()) outputs.push_back(pool_.back().value());
    g_.set_outputs(std::move(outputs));
  }

  const ProgramOptions options_;
  Dice dice_;
  Graph g_;
  RandomProgram out_;
  std::vector<Dim> symbols_;
  std::vector<Expr> pool_, states_;
  int names_ = 0;
};

double special(Dice& dice) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kSpecial[] = {
      kInf, -kInf, std::numeric_limits<double>::quiet_NaN(), -0.0, 1e-40, -3e-39, 3e38, -3e38, 1e5, -60, 90, 1e-20};
  return dice.of(kSpecial);
}

}  // namespace

SymbolBinding RandomProgram::binding(std::uint64_t variant) const {
  Dice dice(seed * 31 + variant * 0x9e3779b9u + 1);
  SymbolBinding out;
  for (const auto& [name, info] : graph.symbols()) out.emplace(name, info.min + dice.below(info.max - info.min + 1));
  return out;
}

NamedTensors RandomProgram::values(const SymbolBinding& binding, std::uint64_t variant) const {
  NamedTensors out;
  for (OpKind kind : {OpKind::Input, OpKind::Param})
    for (NodeId id : graph.leaves(kind)) {
      const std::string& name = graph.leaf_name(id);
      std::uint64_t mixed = seed * 0x2545f4914f6cdd1dull + variant + 77;
      for (const char c : name) mixed = mixed * 31 + static_cast<unsigned char>(c);  // the other leaves do not matter
      Dice dice(mixed);
      Tensor t = Tensor::zeros(graph.shape(id).bind(binding));
      const auto range = whole.find(name);
      const DType d = t.dtype();
      for (std::int64_t i = 0; i < t.num_elements(); ++i) {
        if (range != whole.end()) {
          t.set_i64(i, range->second.low + dice.below(range->second.high - range->second.low));
        } else if (d == DType::Bool) {
          t.set_i64(i, dice.below(4) != 0);
        } else if (!is_inexact(d)) {
          t.set_i64(i, is_unsigned_int(d) ? dice.below(7) : dice.below(9) - 4);
        } else if (specials && dice.chance(4)) {
          t.set(i, special(dice));
        } else {
          const double normal =
              std::sqrt(-2 * std::log(dice.uniform())) * std::cos(6.28318530717958648 * dice.uniform());
          t.set(i, normal);
        }
      }
      out.emplace(name, std::move(t));
    }
  return out;
}

RandomProgram random_program(std::uint64_t seed, const ProgramOptions& options) {
  return Generator(seed, options).make();
}

}  // namespace rlx::test
