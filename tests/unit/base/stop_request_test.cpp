// Requests to stop a run. A loop stops between two iterations, a program without loops before its next chunk; later
// runs are not affected.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "rlx/base/stop_request.h"
#include "rlx/runtime/session.h"

using namespace rlx;

namespace {

// A loop that counts forever, or `trips` times.
CompiledGraph endless_loop() {
  Graph g("endless");
  const Expr start = g.input("start", {{}, DType::I64});
  const LoopResult r = g.while_loop(
      start, [](Graph& b, const ExprList& c) { return b.ge(c[0], 0); },
      [](Graph& b, const ExprList& c) { return LoopStep(b.add(c[0], 1)); });
  g.set_outputs({r.carries[0]});
  return Session().compile(std::move(g));
}

ErrorCode stopped(CompiledGraph& f, const NamedTensors& inputs) {
  try {
    f.run_typed(inputs);
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::Internal;
}

}  // namespace

TEST_CASE("stop request: another thread ends an endless loop") {
  CompiledGraph f = endless_loop();
  std::atomic<bool> stop{false};
  const NamedTensors in{{"start", Tensor::scalar_i64(DType::I64, 0)}};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  {
    const StopRequest request(stop);
    CHECK(stopped(f, in) == ErrorCode::Interrupted);
  }
  other.join();
  // Outside the scope the flag has no effect, and the loop runs to its end.
  const auto y = f.run_typed({{"start", Tensor::scalar_i64(DType::I64, -1)}});
  CHECK(y[0].at_i64(0) == -1);
}

TEST_CASE("stop request: scans end too, and the inner of two requests counts") {
  Graph g("scan");
  const Expr x = g.input("x", {{1000}, DType::F32});
  const LoopResult r =
      g.scan(g.constant(Tensor::scalar(DType::F32, 0)), x,
             [](Graph& b, const ExprList& c, const ExprList& xs) { return LoopStep(b.add(c[0], xs[0])); });
  g.set_outputs({r.carries[0]});
  CompiledGraph f = Session().compile(std::move(g));
  const NamedTensors in{{"x", Tensor::full({{1000}, DType::F32}, 1)}};
  const std::atomic<bool> yes{true}, no{false};
  const StopRequest outer(yes);
  CHECK(stopped(f, in) == ErrorCode::Interrupted);
  {
    const StopRequest inner(no);
    CHECK(f.run_typed(in)[0].at(0) == 1000);
  }
  {  // the callback asks for no stop and clears the flag
    static std::atomic<bool> asked{true};
    const StopRequest inner(asked, [] { return !asked.exchange(false); });
    CHECK(f.run_typed(in)[0].at(0) == 1000);
    CHECK_FALSE(asked.load());
  }
  {
    const StopRequest inner(yes, [] { return true; });
    CHECK(stopped(f, in) == ErrorCode::Interrupted);
  }
  CHECK(stopped(f, in) == ErrorCode::Interrupted);
}

namespace {

// Many matmuls in a row, each of many chunks. They are no loop.
CompiledGraph straight_line(int threads, int steps) {
  Graph g("straight");
  Expr x = g.input("x", {{384, 384}, DType::F32});
  for (int i = 0; i < steps; ++i) x = g.tanh(g.matmul(x, x));
  g.set_outputs({x});
  return Session().with_threads(threads).compile(std::move(g));
}

}  // namespace

TEST_CASE("stop request: a program without loops ends before its next chunk, and works again") {
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    CompiledGraph f = straight_line(threads, 4);
    const NamedTensors in{{"x", Tensor::full({{384, 384}, DType::F32}, 0.01)}};
    const Tensor want = f.run_typed(in)[0];
    const std::atomic<bool> yes{true};
    {
      const StopRequest request(yes);
      CHECK(stopped(f, in) == ErrorCode::Interrupted);
    }
    const Tensor again = f.run_typed(in)[0];
    CHECK(std::memcmp(again.data(), want.data(), want.size_bytes()) == 0);
  }
}

TEST_CASE("stop request: another thread ends a long program without loops in the middle") {
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    CompiledGraph f = straight_line(threads, 300);
    const NamedTensors in{{"x", Tensor::full({{384, 384}, DType::F32}, 0.01)}};
    std::atomic<bool> stop{false};
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stop = true;
    });
    const auto begin = std::chrono::steady_clock::now();
    {
      const StopRequest request(stop);
      CHECK(stopped(f, in) == ErrorCode::Interrupted);
    }
    other.join();
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  }
}

TEST_CASE("stop request: a loop on a worker thread ends with the run of its caller") {
  // Two endless loops beside each other: each thread of the run is in one of them.
  Graph g("two endless");
  const Expr start = g.input("start", {{}, DType::I64});
  std::vector<Expr> ends;
  for (int k = 1; k <= 2; ++k)
    ends.push_back(g.while_loop(
                        g.add(start, k), [](Graph& b, const ExprList& c) { return b.ge(c[0], 0); },
                        [](Graph& b, const ExprList& c) { return LoopStep(b.add(c[0], 1)); })
                       .carries[0]);
  g.set_outputs(ends);
  CompiledGraph f = Session().with_threads(2).compile(std::move(g));
  std::atomic<bool> stop{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  {
    const StopRequest request(stop);
    CHECK(stopped(f, {{"start", Tensor::scalar_i64(DType::I64, 0)}}) == ErrorCode::Interrupted);
  }
  other.join();
}
