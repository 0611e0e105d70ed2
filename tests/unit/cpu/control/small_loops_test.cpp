// Loops whose iterations run as straight-line code, beside the same loops with one more carry, too large for that,
// which run step by step. Every bit is equal, whatever the dtypes, ops, extents and numbers of iterations.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include "rlx/base/stop_request.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/visit.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/needs.h"

using namespace rlx;

namespace {

constexpr DType kSmallLoopTypes[] = {DType::F32, DType::F64, DType::I32, DType::I64,  DType::Bool, DType::F32,
                                     DType::F32, DType::I32, DType::U8,  DType::I8,   DType::U32,  DType::I16,
                                     DType::U16, DType::U64, DType::F16, DType::BF16, DType::F32,  DType::F64};

/// What a random loop is made of. Two of them with one seed differ only in the large carry.
class RandomLoop {
 public:
  RandomLoop(std::uint32_t seed, bool large) : random_(seed), seed_(seed), large_(large) {}

  Graph graph() {
    Graph g("loop");
    const int carries = 1 + below(4);
    ExprList start;
    for (int i = 0; i < carries; ++i) start.push_back(input(g, few(), type()));
    if (below(3) == 0) start.push_back(input(g, {Dim(7)}, type()));  // updated at indices
    table_ = input(g, {Dim(9)}, type());
    given_ = {input(g, {}, DType::I32), input(g, {}, type()), input(g, {}, type())};
    if (large_) start.push_back(g.input("large", {{1100}, DType::F32}));
    const int kind = below(4);
    if (kind == 0) {
      while_loop(g, start);
      return g;
    }
    const std::int64_t lengths[] = {0, 1, 2, 3, 17, 300};
    const std::int64_t length = lengths[below(6)];
    ExprList xs;
    for (int i = below(3); i > 0; --i)
      xs.push_back(input(g, below(4) == 0 ? Dims{Dim(length), Dim(3)} : Dims{Dim(length)}, type()));
    ScanOptions options;
    options.length = length, options.reverse = below(3) == 0;
    const int ys = below(3);
    const LoopResult r = g.scan(
        start, xs, [&](Graph& b, const ExprList& c, const ExprList& rows) { return body(b, c, rows, ys); }, options);
    std::vector<Value> outputs(r.carries.begin(), r.carries.end() - (large_ ? 1 : 0));
    outputs.insert(outputs.end(), r.ys.begin(), r.ys.end());
    if (large_) outputs.push_back(r.carries.back());
    g.set_outputs(outputs);
    return g;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  DType type() { return kSmallLoopTypes[below(static_cast<int>(std::size(kSmallLoopTypes)))]; }
  /// No axes, or those that all vectors of the loop have, so that ops join them.
  Dims few() {
    if (common_.empty())
      common_ = below(3) == 0 ? Dims{Dim(2), Dim(1 + below(3))} : Dims{Dim(1 + below(below(3) == 0 ? 70 : 9))};
    return below(5) < 2 ? common_ : Dims{};
  }
  Expr input(Graph& g, const Dims& dims, DType t) { return g.input(concat_text("in", inputs_++), Shape(dims, t)); }

  void while_loop(Graph& g, ExprList start) {
    start.insert(start.begin(), g.scalar(0, DType::I32));
    const bool bounded = below(2) == 0;
    const std::int64_t trips[] = {0, 1, 2, 40};
    WhileOptions options;
    if (bounded) options.max_iterations = trips[below(4)];
    const int ys = bounded ? below(3) : 0, most = below(3) == 0 ? 0 : 1 + below(60);
    const bool by_value = below(2) == 0;
    const LoopResult r = g.while_loop(
        start,
        [&](Graph& b, const ExprList& c) {
          const Expr again = b.lt(c[0], b.scalar(most, DType::I32));
          return by_value ? b.bit_or(again, b.lt(c[0], b.min(given_[0], b.scalar(50, DType::I32)))) : again;
        },
        [&](Graph& b, const ExprList& c) {
          LoopStep step = body(b, ExprList(std::vector<Expr>(c.begin() + 1, c.end())), {}, ys);
          step.carries.insert(step.carries.begin(), c[0] + 1);
          return step;
        },
        options);
    std::vector<Value> outputs(r.carries.begin(), r.carries.end() - (large_ ? 1 : 0));
    outputs.insert(outputs.end(), r.ys.begin(), r.ys.end());
    outputs.push_back(r.iterations);
    if (large_) outputs.push_back(r.carries.back());
    g.set_outputs(outputs);
  }

  LoopStep body(Graph& b, const ExprList& all, const ExprList& rows, int ys) {
    ExprList carries(std::vector<Expr>(all.begin(), all.end() - (large_ ? 1 : 0))), values = carries, next;
    values.insert(values.end(), rows.begin(), rows.end());
    values.insert(values.end(), given_.begin(), given_.end());
    random_.seed(seed_);  // an op that is refused may have drawn more or fewer numbers
    for (int n = 2 + below(20); n > 0; --n) {
      random_.seed(seed_ * 32 + static_cast<std::uint32_t>(n));
      try {
        values.push_back(op(b, values));
      } catch (const Error&) {  // the op does not take the dtype
      }
    }
    for (const Expr& c : carries) next.push_back(fitting(b, values, c.shape()));
    if (below(4) == 0 && carries.size() > 1 && carries[0].shape() == carries[1].shape())  // a swap
      next[0] = carries[1], next[1] = carries[0];
    ExprList stacked;
    for (int i = 0; i < ys; ++i)
      stacked.push_back(values[values.size() - 1 - static_cast<std::size_t>(below(5)) % values.size()]);
    if (large_) next.push_back(all.back() + 1.0);
    return {next, stacked};
  }
  Expr pick(const ExprList& values) { return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))]; }
  /// A late value of that shape, cast.
  Expr fitting(Graph& b, const ExprList& values, const Shape& s) {
    for (int tries = 0; tries < 12; ++tries) {
      Expr v = values[values.size() - 1 - static_cast<std::size_t>(below(static_cast<int>(values.size())) / 2)];
      if (v.shape().dims() == s.dims() && (v.dtype() == s.dtype() || below(3) == 0)) return b.cast(v, s.dtype());
    }
    for (std::size_t i = values.size(); i-- > 0;)
      if (values[i].shape() == s) return values[i];
    return b.expand(b.scalar(1, s.dtype()), s.dims());
  }

  Expr scalar(Graph& b, const ExprList& values) {
    for (int tries = 0; tries < 12; ++tries)
      if (const Expr v = pick(values); v.rank() == 0) return v;
    return b.scalar(2, DType::I32);
  }

  /// A value of the shape of a row of x.
  Expr scalar_like(Graph& b, const Expr& x, const ExprList& values) {
    return x.rank() == 1 ? scalar(b, values) : b.narrow(x, 0, 0, 1);
  }

  Expr put_row(Graph& b, const Expr& x, const ExprList& values) {
    const Expr index = b.cast(scalar(b, values), DType::I32), row = b.cast(scalar_like(b, x, values), x.dtype());
    return b.scatter(ScatterKind::Set, x, index, row);
  }

  Expr op(Graph& b, const ExprList& values) {
    const Expr x = pick(values);
    const auto partner = [&](DType t) {
      for (int tries = 0; tries < 8; ++tries) {
        const Expr v = pick(values);
        if (v.shape().dims() == x.shape().dims() || v.rank() == 0) return b.cast(v, t);
      }
      return b.scalar(below(7) - 3, t);
    };
    switch (below(14)) {
      case 0:
      case 1:
      case 2: {
        const Expr y = partner(x.dtype());
        return b.add(ops::Binary{static_cast<BinaryKind>(below(17))}, {x, y});
      }
      case 3:
      case 4: {
        constexpr int kFunctions = 1 + static_cast<int>(ActivationKind::Popcount);
        return b.add(ops::Activation{.fn = static_cast<ActivationKind>(below(kFunctions))}, {x});
      }
      case 5: {
        const Expr y = partner(x.dtype());
        return b.add(ops::Compare{.fn = static_cast<CompareKind>(below(6))}, {x, y});
      }
      case 6: {
        const Expr y = partner(x.dtype()), flag = b.lt(partner(DType::F32), 0.5);
        return b.where(flag, x, y);
      }
      case 7: return b.cast(x, type());
      case 8: {
        const Expr low = partner(x.dtype()), high = partner(x.dtype());
        return b.clamp(x, low, high);
      }
      case 9: return b.gather(table_, b.cast(scalar(b, values), DType::I32));
      default: break;
    }
    switch (below(9)) {
      case 5:
        if (x.rank() == 0) break;
        return put_row(b, x, values);
      case 6:
        if (x.rank() == 0) break;
        return b.gather(x, b.cast(scalar(b, values), DType::I64));
      case 7: {
        const Expr y = partner(x.dtype());
        if (x.dtype() == DType::Bool || y.shape().dims() != x.shape().dims()) break;
        const ExprList operands{x, y};
        const Expr taken = b.cast(scalar(b, values), DType::Bool);
        const ExprList results = b.cond(
            taken, operands, [](Graph&, const ExprList& in) { return ExprList(in[0] + in[1]); },
            [](Graph&, const ExprList& in) { return ExprList(in[0]); });
        return results[0];
      }
      case 8: return b.reshape(x, {Dim(x.rank() == 0 ? 1 : x.shape().num_elements())});
      case 0: return x * b.scalar(0.75, x.dtype());
      case 1: return x + b.scalar(1, x.dtype());
      case 2: return b.sum(x);
      case 3:
        return b.bitcast(x, x.dtype() == DType::F32 ? DType::I32 : x.dtype() == DType::I64 ? DType::F64 : DType::I8);
      default: {
        if (x.dtype() == DType::Bool) break;
        ScanOptions options;
        options.length = 3;
        const LoopResult r = b.scan(
            x, ExprList(), [](Graph&, const ExprList& c, const ExprList&) { return LoopStep(c[0] * c[0]); }, options);
        return r.carries[0];
      }
    }
    return x;
  }

  std::mt19937 random_;
  std::uint32_t seed_;
  bool large_;
  int inputs_ = 0;
  Dims common_;
  Expr table_;
  ExprList given_;
};

Tensor small_loop_values(const Shape& s, std::mt19937& random) {
  Tensor t = Tensor::zeros(s);
  const double inf = std::numeric_limits<double>::infinity();
  const double special[] = {0,
                            -0.0,
                            1,
                            -1,
                            2,
                            0.5,
                            -0.25,
                            3,
                            1e30,
                            -1e-30,
                            1e-40,
                            inf,
                            -inf,
                            std::nan(""),
                            7,
                            -8,
                            2147483647.0,
                            -2147483648.0,
                            255,
                            127,
                            -128,
                            4294967295.0,
                            1e18};
  for (std::int64_t i = 0; i < s.num_elements(); ++i) {
    const bool plain = random() % 3 != 0;
    const double v = plain ? static_cast<double>(static_cast<int>(random() % 2001) - 1000) / 250.0
                           : special[random() % std::size(special)];
    store_element(t.mutable_data(), s.dtype(), i, s.dtype() == DType::Bool ? static_cast<double>(random() % 2) : v);
  }
  return t;
}

std::string kernels_of(CompiledGraph& f, const std::vector<TensorView>& in) {
  std::string out;
  for (const NodeTime& t : f.profile(in))
    if (t.op == "scan" || t.op == "while") out += t.kernel + " ";
  return out;
}

/// Equal bits, or NaN on both sides.
bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0) return true;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    const std::size_t n = size_bytes(a.dtype());
    const auto at = static_cast<std::size_t>(i) * n;
    if (std::memcmp(a.data() + at, b.data() + at, n) == 0) continue;
    if (!is_float(a.dtype()) || !std::isnan(a.at(i)) || !std::isnan(b.at(i))) return false;
  }
  return true;
}

/// Runs both loops twice; returns the kernels of the small one, or an empty text for a graph without a loop.
std::string compare_small_loop(Graph small, Graph large, std::uint32_t seed) {
  const std::string text = print_text(small);
  CompiledGraph f = Session().with_threads(1).compile(std::move(small));
  CompiledGraph g = Session().with_threads(1).compile(std::move(large));
  std::string kernels;
  for (std::uint32_t round = 0; round < 2; ++round) {
    std::mt19937 random(seed * 2 + round);
    NamedTensors in;
    for (const IoInfo& i : f.inputs()) in.emplace(i.name, small_loop_values(i.shape, random));
    NamedTensors more = in;
    for (const IoInfo& i : g.inputs())
      if (!more.contains(i.name)) more.emplace(i.name, Tensor::zeros(i.shape));
    const auto a = f.run_typed(in), b = g.run_typed(more);
    for (std::size_t o = 0; o < a.size(); ++o)
      if (!same_bits(a[o], b[o])) {
        INFO("seed ", seed, ", output ", o, "\n", text);
        CHECK(false);
        return kernels;
      }
    if (round == 0) {
      std::vector<TensorView> views;
      for (const IoInfo& i : f.inputs()) views.push_back(in.at(i.name).view());
      kernels = kernels_of(f, views);
    }
  }
  return kernels;
}

}  // namespace

TEST_CASE("small loops: random bodies have the same bits as loops that run step by step") {
  int straight = 0, others = 0;
  const std::vector<std::uint64_t> seeds = test::seeds(600);
  for (const std::uint64_t number : seeds) {
    const auto seed = static_cast<std::uint32_t>(number);
    const std::string kernels =
        compare_small_loop(RandomLoop(seed, false).graph(), RandomLoop(seed, true).graph(), seed);
    if (kernels.find("straight_line") != std::string::npos)
      ++straight;
    else if (!kernels.empty())  // else the loop was folded
      ++others;
  }
  CHECK(straight > 8 * others);
  CHECK(straight > static_cast<int>(seeds.size()) / 2);
}

namespace {

// sum over t of y_t, where y_t and c_t come from a step of several functions; with the large carry it runs step by
// step.
Graph recurrence(DType t, bool large, bool as_while) {
  Graph g("recurrence");
  const Expr x = g.input("x", Shape({}, t)), w = g.input("w", Shape({}, t)), rows = g.input("rows", Shape({40}, t));
  ExprList start{x, g.scalar(0, t)};
  if (large) start.push_back(g.input("large", {{1100}, DType::F32}));
  const auto step = [&](Graph& b, const ExprList& c, const Expr& row) {
    const Expr next = b.tanh(c[0] * w + row) * 0.9 + b.exp(-c[0] * c[0]);
    ExprList carries{b.where(b.gt(next, 0.25), next, next * 0.5 - 0.1), c[1] + next};
    if (large) carries.push_back(c[2] + 1.0);
    return LoopStep{carries, {next * w}};
  };
  LoopResult r;
  if (as_while) {
    start.insert(start.begin(), g.scalar(0, DType::I32));
    r = g.while_loop(
        start, [](Graph& b, const ExprList& c) { return b.lt(c[0], 29); },
        [&](Graph& b, const ExprList& c) {
          LoopStep s = step(b, ExprList(std::vector<Expr>(c.begin() + 1, c.end())), b.gather(rows, c[0]));
          s.carries.insert(s.carries.begin(), c[0] + 1);
          return s;
        },
        {.max_iterations = 40});
  } else {
    r = g.scan(start, rows, [&](Graph& b, const ExprList& c, const ExprList& row) { return step(b, c, row[0]); });
  }
  ExprList outputs{g.sum(r.ys[0]) + r.carries[as_while ? 2 : 1]};
  if (large) outputs.push_back(r.carries.back());
  g.set_outputs(outputs);
  return g;
}

}  // namespace

TEST_CASE("small loops: derivatives, which read and write stacked rows, have the same bits too") {
  for (const DType t : {DType::F32, DType::F64})
    for (const bool as_while : {false, true}) {
      const auto derived = [&](bool large) {
        GradResult first = value_and_grad(recurrence(t, large, as_while), {"x", "w", "rows"});
        return std::move(first.graph);
      };
      const std::string kernels = compare_small_loop(derived(false), derived(true), 3);
      CHECK_MESSAGE(kernels.find("scan_straight_line") != std::string::npos, kernels);
      CHECK_MESSAGE(kernels.find("step by step") == std::string::npos, kernels);
    }
}

TEST_CASE("small loops: a long scan of scalar steps is not run step by step, and ends on a stop request") {
  Graph g("steps");
  const Expr x = g.input("x", {{}, DType::F32});
  ScanOptions options;
  options.length = std::int64_t{4'000'000'000};
  const LoopResult r = g.scan(
      x, ExprList{}, [](Graph&, const ExprList& c, const ExprList&) { return LoopStep{c[0] * 0.999 + 0.1}; }, options);
  g.set_outputs({r.carries[0]});
  CompiledGraph f = Session().with_threads(1).compile(std::move(g));
  std::atomic<bool> stop{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  ErrorCode code = ErrorCode::Internal;
  {
    const StopRequest request(stop);
    try {
      f.run_typed({{"x", Tensor::full({{}, DType::F32}, 1)}});
    } catch (const Error& e) {
      code = e.code();
    }
  }
  other.join();
  CHECK(code == ErrorCode::Interrupted);
}

TEST_CASE("small loops: a carry is updated at an index in place") {
  constexpr std::int64_t kLength = 20000;  // a copy of it in each iteration would take seconds
  Graph g("updates");
  const Expr x = g.input("x", {{kLength}, DType::F32});
  const LoopResult r = g.while_loop(
      {g.scalar(0, DType::I32), x}, [](Graph& b, const ExprList& c) { return b.lt(c[0], kLength); },
      [](Graph& b, const ExprList& c) {
        return LoopStep{{c[0] + 1, b.scatter(ScatterKind::Set, c[1], c[0], b.gather(c[1], c[0] - 1) + 1.0)}, {}};
      });
  g.set_outputs({r.carries[1]});
  CompiledGraph f = Session().with_threads(1).compile(std::move(g));
  const Tensor in = Tensor::zeros({{kLength}, DType::F32});
  const Tensor y = f.run_typed({{"x", in}})[0];
  CHECK(y.at(0) == 1);
  CHECK(y.at(kLength - 1) == kLength);
  const std::vector<TensorView> views{in.view()};
  const std::string kernels = kernels_of(f, views);
  CHECK_MESSAGE(kernels.find("while_straight_line") != std::string::npos, kernels);
}

TEST_CASE("small loops: the kernel of a loop says why it runs step by step") {
  CompiledGraph f = Session().with_threads(1).compile(recurrence(DType::F32, true, false));
  std::vector<Tensor> in;
  for (const IoInfo& i : f.inputs()) in.push_back(Tensor::zeros(i.shape));
  std::vector<TensorView> views;
  for (const Tensor& t : in) views.push_back(t.view());
  const std::string kernels = kernels_of(f, views);
  CHECK_MESSAGE(kernels.find(", step by step: a body reads more than 4 KB at a time") != std::string::npos, kernels);
}

TEST_CASE("small loops: outputs that are strided views of operands and of values") {
  Graph g("views");
  const Expr x = g.input("x", {{2, 3}, DType::F32}), rows = g.input("rows", {{4, 2, 3}, DType::F32});
  const LoopResult r = g.scan(x, rows, [](Graph& b, const ExprList& c, const ExprList& row) {
    const Expr next = c[0] * 0.5 + row[0];
    return LoopStep{next, {b.transpose(c[0], {1, 0}), b.transpose(next, {1, 0}), b.narrow(row[0], 1, 1, 2)}};
  });
  g.set_outputs({r.carries[0], r.ys[0], r.ys[1], r.ys[2]});
  std::mt19937 random(7);
  const Tensor start = small_loop_values({{2, 3}, DType::F32}, random);
  const NamedTensors in{{"x", start}, {"rows", small_loop_values({{4, 2, 3}, DType::F32}, random)}};
  const auto want = evaluate(g, in);
  CompiledGraph f = Session().with_threads(1).compile(std::move(g));
  for (int round = 0; round < 3; ++round) {
    const auto got = f.run_typed(in);
    for (std::size_t o = 0; o < got.size(); ++o) CHECK(same_bits(got[o], want[o]));
  }
}
