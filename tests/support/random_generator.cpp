// The generator: a pool of values to which random ops are applied.
#include <limits>

#include "tests/support/random_generator.h"

namespace rlx::test {

RandomProgram Generator::make() {
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

std::string Generator::next(const char* kind) { return concat_text(kind, names_++); }

Dim Generator::random_dim() {
  if (!symbols_.empty() && dice_.chance(30)) {
    const Dim s = dice_.any(symbols_);
    return dice_.chance(75) ? s : dice_.chance(50) ? s * 2 : s + 1;
  }
  if (dice_.chance(3)) return 0;
  static constexpr std::int64_t kExtents[] = {1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33};
  return dice_.of(kExtents);
}
Dims Generator::random_dims() {
  Dims dims;
  std::int64_t rank = dice_.below(10);
  rank = rank == 0 ? 0 : rank <= 2 ? 1 : rank <= 6 ? 2 : rank <= 8 ? 3 : 4;
  for (std::int64_t i = 0; i < rank; ++i) {
    dims.push_back(random_dim());
    if (elements(dims) > options_.max_elements) dims.back() = 1;
  }
  return dims;
}
std::int64_t Generator::elements(const Dims& dims) const {
  std::int64_t n = 1;
  for (const Dim& d : dims) {
    const std::int64_t extent = d.evaluate({{"n", 12}, {"m", 6}});
    if (extent < 0) return std::numeric_limits<std::int64_t>::max();
    if (extent > 0 && n > (std::int64_t{1} << 40) / extent) return std::numeric_limits<std::int64_t>::max();
    n *= extent;
  }
  return n;
}

Expr Generator::keep(Expr e) {
  if (elements(e.shape().dims()) <= options_.max_elements && !is_storage_only(e.dtype())) pool_.push_back(e);
  return e;
}

Expr Generator::leaf(const Shape& shape) {
  if (!pool_.empty() && dice_.chance(15)) {  // an existing value, perhaps an operand of the same op
    const Expr e = pick([&](const Expr& x) { return x.shape() == shape; });
    if (e.valid()) return e;
  }
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
Tensor Generator::constant(const Shape& shape) {
  Tensor t = Tensor::zeros(shape);
  for (std::int64_t i = 0; i < t.num_elements(); ++i)
    t.set(i, is_inexact(shape.dtype()) ? static_cast<double>(dice_.below(33) - 16) / 8
                                       : static_cast<double>(dice_.below(4)));
  return t;
}
Expr Generator::whole_leaf(const Shape& shape, std::int64_t low, std::int64_t high) {
  const std::string name = next("i");
  out_.whole[name] = {low, high};
  return g_.input(name, shape);
}

Expr Generator::pick(const Wanted& wanted) {
  for (int tries = 0; tries < 8; ++tries) {
    // The later half of the pool is preferred, so that programs grow deep.
    const auto n = static_cast<std::int64_t>(pool_.size());
    const Expr e =
        pool_[static_cast<std::size_t>(dice_.chance(60) ? n - 1 - dice_.below((n + 1) / 2) : dice_.below(n))];
    if (wanted(e)) return e;
  }
  return {};
}
Expr Generator::pick_float(int min_rank) {
  Expr e = pick([&](const Expr& x) { return is_float(x.dtype()) && x.rank() >= min_rank; });
  if (e.valid()) return e;
  Dims dims = random_dims();
  while (static_cast<int>(dims.size()) < min_rank) dims.push_back(1 + dice_.below(5));
  return keep(leaf(Shape(dims, dice_.of(kFloats))));
}
Expr Generator::pick_any(int min_rank) {
  if (dice_.chance(70)) return pick_float(min_rank);
  Expr e = pick([&](const Expr& x) { return x.rank() >= min_rank; });
  return e.valid() ? e : pick_float(min_rank);
}
Operand Generator::partner(const Expr& x, bool same_dtype) {
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
std::int64_t Generator::axis_of(const Expr& x) { return dice_.below(x.rank()); }
std::vector<std::int64_t> Generator::axes_of(const Expr& x) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (dice_.chance(50)) axes.push_back(i);
  return axes;
}

ActivationKind Generator::function(std::int64_t first) { return static_cast<ActivationKind>(dice_.below(first)); }

void Generator::step() {
  // No random number is drawn without calls, so the programs of existing seeds do not change.
  if (options_.calls > 0 && dice_.chance(options_.calls)) return dice_.chance(60) ? call() : function_call();
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

void Generator::state() {
  if (!options_.states) return;
  if (states_.empty()) {
    const Expr x = pick([](const Expr& e) { return e.shape().is_static(); });
    if (!x.valid()) return;
    states_.push_back(g_.state(next("s"), constant(x.shape())));
    keep(states_.back());
  }
  const Expr s = dice_.any(states_);
  const std::string name = g_.leaf_name(s.value().node);
  if (dice_.chance(40) && s.rank() > 0) {  // a row is replaced, as in a cache
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

void Generator::choose_outputs() {
  std::vector<bool> used(g_.num_nodes(), false);
  for (const Node& n : g_.nodes())
    for (Value v : n.inputs) used[v.node.index] = true;
  std::vector<Value> outputs;
  for (std::size_t i = pool_.size(); i-- > 0 && outputs.size() < 5;)
    if (!used[pool_[i].value().node.index] || dice_.chance(8)) outputs.push_back(pool_[i].value());
  if (outputs.empty()) outputs.push_back(pool_.back().value());
  g_.set_outputs(std::move(outputs));
}

}  // namespace rlx::test
