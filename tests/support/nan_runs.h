// Programs with one NaN, made by a known op from clean operands, in every place where a program can hold it.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/runtime/nan_check.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx::test {

/// An op that gives NaN for an element `bad`, and none for 0.5.
struct NanMaker {
  const char* op;
  float bad;
  std::function<Expr(Graph&, Expr)> make;
};
inline int& maker_line() {
  static int line = 0;
  return line;
}
/// The user's line of the ops that the makers build.
inline SourceLoc maker_loc() { return {"maker.cpp", maker_line()}; }

inline std::vector<NanMaker> nan_makers() {
  const auto unary = [](ActivationKind fn) {
    return [fn](Graph& g, Expr x) {
      ops::Activation op;
      op.fn = fn;
      return g.add(op, {x.value()}, maker_loc());
    };
  };
  const auto binary = [](BinaryKind fn, bool swapped, double other) {
    return [fn, swapped, other](Graph& g, Expr x) {
      const Expr y = other == 0 ? x : g.scalar(other);
      ops::Binary op;
      op.fn = fn;
      return g.add(op, swapped ? std::vector<Value>{y, x} : std::vector<Value>{x, y}, maker_loc());
    };
  };
  return {{"log", -1, unary(ActivationKind::Log)},
          {"sqrt", -1, unary(ActivationKind::Sqrt)},
          {"rsqrt", -4, unary(ActivationKind::Rsqrt)},
          {"asin", 2, unary(ActivationKind::Asin)},
          {"acos", -3, unary(ActivationKind::Acos)},
          {"atanh", 2, unary(ActivationKind::Atanh)},
          {"log1p", -3, unary(ActivationKind::Log1p)},
          {"log2", -1, unary(ActivationKind::Log2)},
          {"log10", -7, unary(ActivationKind::Log10)},
          {"erfinv", 2, unary(ActivationKind::Erfinv)},
          {"div", 0, binary(BinaryKind::Div, false, 0)},
          {"pow", -1, binary(BinaryKind::Pow, false, 0.5)},
          {"rem", 0, binary(BinaryKind::Rem, true, 1)},
          {"sub", 2, [](Graph& g, Expr x) {
             const Expr e = g.exp(x * 100.0);
             ops::Binary op;
             op.fn = BinaryKind::Sub;
             return g.add(op, {e.value(), e.value()}, maker_loc());
           }}};
}

/// A program, its values, and what the error must say.
struct NanRun {
  std::string place;
  Graph graph;
  NamedTensors inputs, params{};
  std::vector<std::int64_t> element{2}, iterations{};
  std::string reaches = "output 'out0'";
  bool clean = false;  // no result has a NaN
};

/// Values 0.5, and `bad` in element `at`.
inline Tensor with_bad(std::vector<std::int64_t> dims, std::int64_t at, float bad) {
  Dims shape(dims.begin(), dims.end());
  Tensor t = Tensor::full(f32(std::move(shape)), 0.5);
  t.set(at, bad);
  return t;
}

/// The places of the NaN of one maker.
inline std::vector<NanRun> nan_places(const NanMaker& m) {
  std::vector<NanRun> out;
  const auto place = [&](std::string name, const std::function<void(NanRun&, Graph&)>& build) {
    NanRun run{name, Graph("place"), {}};
    build(run, run.graph);
    out.push_back(std::move(run));
  };
  const auto x_of = [&](NanRun& r, Graph& g, float bad) {
    r.inputs.emplace("x", with_bad({4}, 2, bad));
    return g.input("x", f32({4}));
  };
  // log(x - 100) is NaN everywhere, and `where` selects x.
  const auto hidden = [](Graph& g, Expr x) { return g.where(g.gt(x, -50.0), x, g.log(x - 100.0)); };
  place("a chain that is fused", [&](NanRun& r, Graph& g) {
    const Expr x = x_of(r, g, m.bad), z = g.input("z", f32({4}));
    r.inputs.emplace("z", Tensor::zeros(f32({4})));
    g.set_outputs({m.make(g, x + z) * 2.0 + 1.0});
  });
  place("behind a NaN that where hides",
        [&](NanRun& r, Graph& g) { g.set_outputs({m.make(g, hidden(g, x_of(r, g, m.bad)))}); });
  place("a NaN that where hides", [&](NanRun& r, Graph& g) {
    r.clean = true;
    g.set_outputs({hidden(g, x_of(r, g, m.bad))});
  });
  place("behind NaNs that are sliced away", [&](NanRun& r, Graph& g) {
    const Expr x = x_of(r, g, m.bad);
    g.set_outputs({g.narrow(g.concat({g.log(x - 100.0), g.reverse(m.make(g, x), {0})}, 0), 0, 4, 4)});
  });
  place("before a product", [&](NanRun& r, Graph& g) {
    const Expr x = x_of(r, g, m.bad), w = g.param("w", f32({4, 3}));
    r.params.emplace("w", Tensor::full(f32({4, 3}), 1));
    g.set_outputs({g.matmul(g.reshape(m.make(g, x), {1, 4}), w)});
  });
  place("of a weight", [&](NanRun& r, Graph& g) {
    r.inputs.emplace("x", Tensor::full(f32({4}), 1));
    r.params.emplace("w", with_bad({4}, 2, m.bad));
    g.set_outputs({m.make(g, g.input("x", f32({4})) * g.param("w", f32({4}))) + 1.0});
  });
  for (bool reverse : {false, true})
    place(reverse ? "a scan, backwards" : "a scan", [&, reverse](NanRun& r, Graph& g) {
      const Expr xs = g.input("xs", f32({5, 4}));
      r.inputs.emplace("xs", with_bad({5, 4}, 3 * 4 + 2, m.bad));
      r.iterations = {3};
      const LoopResult loop = g.scan({g.input("c", f32({4}))}, {xs},
                                     [&](Graph& b, const ExprList& c, const ExprList& row) {
                                       const Expr next = c[0] * 0.5 + m.make(b, row[0]);
                                       return LoopStep{{next}, {next}};
                                     },
                                     {.reverse = reverse});
      r.inputs.emplace("c", Tensor::zeros(f32({4})));
      g.set_outputs({loop.carries[0], loop.ys[0]});
    });
  place("a while loop", [&](NanRun& r, Graph& g) {
    const Expr bad = g.input("bad", f32({4})), x = g.input("x", f32({4})), n = g.input("n", f32({}));
    r.inputs.emplace("bad", with_bad({4}, 2, m.bad));
    r.inputs.emplace("x", Tensor::full(f32({4}), 0.5));
    r.inputs.emplace("n", Tensor::scalar(DType::F32, 4));
    r.iterations = {2};
    const LoopResult loop = g.while_loop(
        {g.scalar(0.0), x}, [&](Graph& b, const ExprList& c) { return b.lt(c[0], n); },
        [&](Graph& b, const ExprList& c) {
          const Expr row = b.where(b.eq(c[0], 2.0), bad, x);
          return LoopStep{{c[0] + 1.0, m.make(b, row) + c[1] * 0.0}};
        });
    g.set_outputs({loop.carries[1]});
  });
  place("loops in loops", [&](NanRun& r, Graph& g) {
    const Expr xs = g.input("xs", f32({2, 3, 4}));
    r.inputs.emplace("xs", with_bad({2, 3, 4}, (1 * 3 + 2) * 4 + 1, m.bad));
    r.inputs.emplace("c", Tensor::zeros(f32({4})));
    r.element = {1};
    r.iterations = {1, 2};
    const LoopResult loop =
        g.scan({g.input("c", f32({4}))}, {xs}, [&](Graph& b, const ExprList& c, const ExprList& rows) {
          const LoopResult inner = b.scan({c[0]}, {rows[0]}, [&](Graph& s, const ExprList& d, const ExprList& row) {
            return LoopStep{d[0] + m.make(s, row[0])};
          });
          return LoopStep{inner.carries[0]};
        });
    g.set_outputs({loop.carries[0]});
  });
  place("a branch", [&](NanRun& r, Graph& g) {
    const Expr x = x_of(r, g, m.bad), p = g.input("p", Shape({}, DType::Bool));
    r.inputs.emplace("p", Tensor::full(Shape({}, DType::Bool), 0));
    g.set_outputs({g.cond(
        p, {x}, [](Graph& b, const ExprList& v) { return ExprList{b.log(v[0] - 100.0)}; },
        [&](Graph& b, const ExprList& v) { return ExprList{m.make(b, v[0]) * 3.0}; })[0]});
  });
  place("a call", [&](NanRun& r, Graph& g) {
    const Expr x = x_of(r, g, m.bad);
    g.set_outputs(
        {g.call("layer", {x}, [&](Graph& b, const ExprList& v) { return ExprList{m.make(b, v[0]) * 3.0}; })[0]});
  });
  place("the new value of a state", [&](NanRun& r, Graph& g) {
    const Expr x = x_of(r, g, m.bad), s = g.state("s", Tensor::full(f32({4}), 7));
    g.set_state("s", s + m.make(g, x));
    g.set_outputs({x * 2.0});
    r.reaches = "state 's'";
  });
  place("extents that a run knows", [&](NanRun& r, Graph& g) {
    const Dim n = g.symbol("n", {.min = 1, .max = 64});
    r.inputs.emplace("x", with_bad({4}, 2, m.bad));
    g.set_outputs({m.make(g, g.input("x", f32({n})) * 1.0) + 1.0});
  });
  return out;
}

/// Checks the error of one run. Returns false, and checks nothing, where this device does not give NaN for the maker.
inline bool check_nan_run(const Session& session, const NanMaker& m, const NanRun& run, int repeats) {
  INFO(m.op, " in ", run.place);
  CompileOptions options;
  options.nan_check = NanCheck::Off;
  const auto compiled = [&] {
    CompiledGraph f = session.compile_with(Graph(run.graph), options);
    for (const auto& [name, value] : run.params) f.set_param(name, value);
    return f;
  };
  CompiledGraph plain = compiled();
  const std::vector<Tensor> results = plain.run_typed(run.inputs);
  bool nan = false;
  const auto look = [&](const Tensor& t) {
    for (std::int64_t i = 0; i < t.num_elements(); ++i) nan = nan || t.at(i) != t.at(i);
  };
  for (const Tensor& t : results) look(t);
  for (const IoInfo& s : plain.states()) look(plain.read_state(s.name));
  CHECK((!nan || !run.clean));
  if (!nan && !run.clean) return false;
  options.nan_check = NanCheck::Nan;
  CompiledGraph f = compiled();
  if (run.clean) {
    CHECK(f.run_typed(run.inputs)[0].identical(results[0]));
    return true;
  }
  for (int repeat = 0; repeat < repeats; ++repeat) try {
      (void)f.run_typed(run.inputs);
      FAIL_CHECK("no error");
    } catch (const NotFinite& e) {
      const NanOrigin& o = e.origin();
      INFO(std::string(e.what()));
      CHECK(o.op == m.op);
      CHECK(o.element == run.element);
      CHECK(o.iterations == run.iterations);
      CHECK(o.reaches == run.reaches);
      CHECK(o.file == "maker.cpp");
      CHECK(o.line == maker_line());
      CHECK(o.value == "nan");
      CHECK(contains(e.what(), "built at maker.cpp:"));
      for (const IoInfo& s : f.states()) CHECK(f.read_state(s.name).at(2) == 7);  // as before the run
    }
  return true;
}

/// With `all` every maker in every place, each run twice; else one maker in each place, and every fourth maker in the
/// first. Returns the number of errors checked.
inline int check_nan_runs(const Session& session, bool all) {
  int checked = 0, skipped = 0;
  const std::vector<NanMaker> makers = nan_makers();
  maker_line() = 100;
  for (std::size_t i = 0; i < makers.size(); ++i) {
    ++maker_line();
    const std::vector<NanRun> places = nan_places(makers[i]);
    for (std::size_t p = 0; p < places.size(); ++p)
      if (all || (p == 0 && i % 4 == 0) || p % makers.size() == i)
        ++(check_nan_run(session, makers[i], places[p], all ? 2 : 1) ? checked : skipped);
  }
  CHECK(checked > 2 * skipped);
  return checked;
}

}  // namespace rlx::test
