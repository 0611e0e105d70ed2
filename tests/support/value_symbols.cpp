// Random programs over integers.
#include "tests/support/value_symbols.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/text.h"
#include "tests/support/random_program.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

constexpr double kModulus = 97;  // numbers stay below it, so that products and sums are small integers

class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : dice_(seed), program_{Graph("values"), 0, 0}, g_(program_.graph) {
    program_.n = n_ = 3 + dice_.below(6);
    const Shape vector({n_}, DType::F64), scalar({}, DType::I64);
    vectors_ = {g_.input("x", vector), g_.param("w", vector), g_.state("total", Tensor::zeros(vector))};
    integers_ = {g_.input("k", scalar), g_.param("p", scalar, ParamMode::Mutable),
                 g_.state("count", Tensor::scalar_i64(DType::I64, 0))};
  }

  ValueProgram draw() {
    for (std::int64_t i = 4 + dice_.below(8); i > 0; --i) {
      if (dice_.chance(35))
        cut();
      else
        combine();
    }
    // The results of a run: the last vectors, a sum of each, and states from random values.
    std::vector<Value> outputs;
    for (std::size_t i = vectors_.size() - std::min<std::size_t>(vectors_.size(), 3); i < vectors_.size(); ++i) {
      outputs.push_back(vectors_[i]);
      outputs.push_back(g_.sum(vectors_[i]));
    }
    outputs.push_back(dice_.any(integers_));
    if (dice_.chance(70)) {
      const Expr s = g_.sum(dice_.any(vectors_));
      g_.set_state("total", small(vectors_[2] + s));
    }
    if (dice_.chance(70)) g_.set_state("count", g_.mod(dice_.any(integers_) + 1, n_ + 1));
    g_.set_outputs(std::move(outputs));
    return std::move(program_);
  }

 private:
  Expr small(const Expr& x) { return g_.mod(x, kModulus); }

  // An integer from 0 to `most`.
  Expr value(std::int64_t most) {
    switch (dice_.below(4)) {
      case 0: return g_.clamp(dice_.any(integers_), 0, most);
      case 1: return g_.mod(dice_.any(integers_) + dice_.below(3), most + 1);
      case 2: {
        const Expr v = dice_.any(vectors_);
        return g_.clamp(g_.sum(g_.cast(g_.gt(v, static_cast<double>(dice_.below(97))), DType::I64)), 0, most);
      }
      default: return g_.mod(g_.cast(g_.sum(dice_.any(vectors_)), DType::I64), most + 1);
    }
  }

  void cut() {
    const Expr v = dice_.any(vectors_);
    ++program_.symbols;
    const bool fixed = v.dim(0).is_static();
    switch (dice_.below(fixed ? 6 : 2)) {
      case 0: {  // of the largest extent: a slice of a longer value
        const Dim d = g_.value_dim(value(n_), n_);
        vectors_.push_back(small(g_.cast(g_.iota(Shape({d}, DType::I64), 0), DType::F64) * g_.sum(v)));
        break;
      }
      case 1: vectors_.push_back(g_.compress(v, g_.gt(v, static_cast<double>(dice_.below(60))))); break;
      case 2: {
        const std::int64_t extent = v.dim(0).value();
        vectors_.push_back(g_.first(v, value(extent)));
        break;
      }
      case 3: {
        const std::int64_t extent = v.dim(0).value();
        const Dim d = g_.value_dim(value(extent), extent);
        vectors_.push_back(g_.slice(v, {d}, {Dim(extent)}));
        break;
      }
      case 4: {
        const Expr limit = value(n_);
        const LoopResult loop = g_.while_loop(
            g_.constant(Tensor::scalar_i64(DType::I64, 0)),
            [&](Graph& b, const ExprList& c) { return b.lt(c[0], limit); },
            [&](Graph& b, const ExprList& c) {
              return LoopStep{{b.add(c[0], 1)}, {b.mul(b.cast(c[0], DType::F64), b.sum(v))}};
            },
            {.max_iterations = n_, .truncate_ys = true});
        vectors_.push_back(small(loop.ys[0]));
        integers_.push_back(loop.iterations);
        break;
      }
      default: {
        if (most(v) > 32) break;
        const ExprList out = g_.cond_ragged(
            g_.gt(dice_.any(integers_), 1), {v},
            [](Graph& b, const ExprList& x) {
              return ExprList{b.concat({x[0], x[0]}, 0)};
            },
            [](Graph& b, const ExprList& x) { return ExprList{b.mul(b.narrow(x[0], 0, 0, 1), 2)}; });
        vectors_.push_back(small(out[0]));
        break;
      }
    }
  }

  std::int64_t most(const Expr& v) const { return v.dim(0).range(symbol_ranges(g_)).max; }

  void combine() {
    const Expr a = dice_.any(vectors_), b = dice_.any(vectors_);
    if (most(a) + most(b) > 64) {  // extents stay small
      integers_.push_back(g_.mod(g_.cast(g_.sum(a), DType::I64), 7));
      return;
    }
    switch (dice_.below(6)) {
      case 0: vectors_.push_back(small(a * 2.0 + 3.0)); break;
      case 1: vectors_.push_back(g_.concat({a, b}, 0)); break;
      case 2: {  // an outer product, summed
        const Expr table = g_.reshape(a, {a.dim(0), Dim(1)}) * g_.reshape(b, {Dim(1), b.dim(0)});
        vectors_.push_back(small(g_.sum(table, {dice_.below(2)})));
        break;
      }
      case 3: vectors_.push_back(g_.reverse(a, {0})); break;
      case 4: integers_.push_back(g_.mod(g_.cast(g_.sum(a), DType::I64), 11)); break;
      default: vectors_.push_back(small(a + g_.sum(b))); break;
    }
  }

  Dice dice_;
  ValueProgram program_;
  Graph& g_;
  std::int64_t n_ = 0;
  std::vector<Expr> vectors_, integers_;
};

Tensor whole_numbers(Dice& dice, std::int64_t n, std::int64_t below) {
  Tensor t = Tensor::zeros(Shape({n}, DType::F64));
  for (std::int64_t i = 0; i < n; ++i) t.set(i, static_cast<double>(dice.below(below)));
  return t;
}

}  // namespace

ValueProgram random_value_program(std::uint64_t seed) { return Drawer(seed).draw(); }

NamedTensors random_value_inputs(const ValueProgram& program, std::uint64_t seed) {
  Dice dice(seed * 2 + 1);
  NamedTensors out;
  out.emplace("x", whole_numbers(dice, program.n, 97));
  out.emplace("w", whole_numbers(dice, program.n, 97));
  out.emplace("k", Tensor::scalar_i64(DType::I64, dice.below(program.n + 1)));
  out.emplace("p", Tensor::scalar_i64(DType::I64, dice.below(program.n + 1)));
  return out;
}

void check_value_program(const ValueProgram& program, CompiledGraph f, std::uint64_t seed, int runs) {
  Dice dice(seed);
  NamedTensors leaves = random_value_inputs(program, seed);
  leaves.emplace("total", Tensor::zeros(Shape({program.n}, DType::F64)));
  leaves.emplace("count", Tensor::scalar_i64(DType::I64, 0));
  for (const char* param : {"w", "p"}) f.set_param(param, leaves.at(param));
  for (int run = 0; run < runs; ++run) {
    const NamedTensors fresh = random_value_inputs(program, dice.bits() % 7);  // some values repeat
    for (const char* input : {"x", "k"}) leaves.insert_or_assign(input, fresh.at(input));
    if (dice.chance(30))
      for (const char* param : {"w", "p"}) {
        leaves.insert_or_assign(param, fresh.at(param));
        f.set_param(param, fresh.at(param));
      }
    if (dice.chance(10)) f = f.clone();
    if (dice.chance(10)) {
      leaves.insert_or_assign("count", fresh.at("k"));
      f.write_state("count", fresh.at("k"));
    }
    const EvaluateResult want = evaluate_with_states(program.graph, leaves);
    const NamedTensors inputs{{"x", leaves.at("x")}, {"k", leaves.at("k")}};
    const bool on_device = dice.chance(30);
    std::vector<Tensor> got = on_device ? f.run_device(inputs) : f.run_typed(inputs);
    for (Tensor& t : got) t = t.to_host();
    INFO("run ", run, " of seed ", seed, "\n", print_text(program.graph));
    REQUIRE(got.size() == want.outputs.size());
    for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], want.outputs[i], 0);
    for (const auto& [name, value] : want.states) {
      expect_close(f.read_state(name), value, 0);
      leaves.insert_or_assign(name, value);
    }
  }
}

}  // namespace rlx::test
