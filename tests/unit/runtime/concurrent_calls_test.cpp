// One CompiledGraph and many threads: runs have the bits of serial runs, whatever else is called meanwhile; programs
// that keep values from run to run take turns; a call that would wait for itself is an error.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "rlx/backends/cpu/custom_kernel.h"
#include "rlx/ir/custom_op.h"
#include "rlx/runtime/session.h"
#include "tests/support/build_kind.h"
#include "tests/support/custom_ops.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

#if defined(RLX_SLOW_BUILD)
constexpr int kRounds = 60;
#else
constexpr int kRounds = 300;
#endif
constexpr int kThreads = 4;

// x rows of 16 values, times w, through some steps. `keeps` adds a state that counts the runs.
Graph network(bool symbolic, bool keeps = false) {
  Graph g("network");
  const Dim rows = symbolic ? g.symbol("n", {.min = 1, .max = 64}) : Dim(8);
  const Expr x = g.input("x", Shape({rows, 16}, DType::F32));
  Expr y = g.softmax(g.gelu(g.matmul(x, g.param("w", {{16, 16}, DType::F32}))));
  std::vector<Expr> outputs{y, g.sum(y, {1})};
  if (keeps) {
    const Expr n = g.state("runs", Tensor::scalar(DType::F32, 0));
    const Expr next = g.add(n, 1.0F);
    g.set_state("runs", next);
    outputs.push_back(next);
  }
  g.set_outputs(outputs);
  return g;
}

std::vector<float> weights(float scale) {
  std::vector<float> w(16 * 16);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = scale * (0.01F * static_cast<float>(i % 37) - 0.1F);
  return w;
}

Tensor rows_of(std::int64_t rows, int kind) {
  Tensor t = Tensor::zeros(Shape({Dim(rows), Dim(16)}, DType::F32));
  std::size_t i = 0;
  for (float& v : t.mutable_values<float>())
    v = 0.02F * static_cast<float>((i++ * 7 + static_cast<std::size_t>(kind)) % 101);
  return t;
}

using Bytes = std::vector<std::vector<std::byte>>;
Bytes bytes_of(const std::vector<Tensor>& values) {
  Bytes out;
  for (const Tensor& t : values) out.emplace_back(t.data(), t.data() + t.size_bytes());
  return out;
}
Bytes bytes_of(const std::vector<std::vector<float>>& values) {
  Bytes out;
  for (const auto& v : values) {
    const auto* from = reinterpret_cast<const std::byte*>(v.data());
    out.emplace_back(from, from + v.size() * sizeof(float));
  }
  return out;
}

// Every kind of run, each with its results as bytes.
struct RunKind {
  const char* name;
  Bytes (*run)(CompiledGraph&, const Tensor&);
};
std::vector<float> floats(const Tensor& x) {
  const auto v = x.values<float>();
  return {v.begin(), v.end()};
}
const RunKind kRuns[] = {
    {"run",
     [](CompiledGraph& f, const Tensor& x) {
       return bytes_of(f.run({{"x", floats(x)}}));
     }},
    {"run_typed",
     [](CompiledGraph& f, const Tensor& x) {
       return bytes_of(f.run_typed({{"x", x}}));
     }},
    {"run_device",
     [](CompiledGraph& f, const Tensor& x) {
       return bytes_of(f.run_device(NamedTensors{{"x", x}}));
     }},
    {"run_pipelined",
     [](CompiledGraph& f, const Tensor& x) {
       return bytes_of(f.run_pipelined({{{"x", floats(x)}}})[0]);
     }},
    {"run_into",
     [](CompiledGraph& f, const Tensor& x) {
       const std::vector<std::int64_t> dims = x.dims();
       TensorView in = x.view();
       in.dims = dims;
       const auto rows = static_cast<std::size_t>(dims[0]);
       Bytes out{std::vector<std::byte>(rows * 64), std::vector<std::byte>(rows * 4)};
       if (f.outputs().size() == 3) out.emplace_back(4);
       std::vector<MutableTensorView> to(out.size());
       for (std::size_t i = 0; i < out.size(); ++i)
         to[i].data = out[i].data(), to[i].dtype = DType::F32, to[i].size_bytes = out[i].size();
       f.run_into({&in, 1}, to);
       return out;
     }},
};

// Runs `work(thread)` on several threads and returns what they had to complain about. `first_done` is set at the end of
// the first one.
std::string on_threads(int count, const std::function<void(int)>& work, std::atomic<bool>* first_done = nullptr) {
  std::vector<std::string> said(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      try {
        work(t);
      } catch (const std::exception& e) {
        said[static_cast<std::size_t>(t)] = e.what();
      }
      if (t == 0 && first_done) *first_done = true;
    });
  for (std::thread& t : threads) t.join();
  std::string all;
  for (const std::string& s : said) all += s;
  return all;
}

struct Expected {
  std::vector<Tensor> inputs;
  std::vector<Bytes> results;
};
// The results of a serial run, the first two of each.
Expected expected_of(CompiledGraph& f, bool symbolic) {
  Expected e;
  for (int k = 0; k < 6; ++k) {
    e.inputs.push_back(rows_of(symbolic ? 1 + 11 * k : 8, k));
    Bytes all = bytes_of(f.run_typed({{"x", e.inputs.back()}}));
    all.resize(2);
    e.results.push_back(std::move(all));
  }
  return e;
}
bool matches(Bytes got, const Bytes& want) {
  got.resize(2);
  return got == want;
}

struct Mode {
  const char* name;
  bool symbolic;
  std::optional<SymbolMode> mode;
};
const Mode kModes[] = {{"static", false, {}},
                       {"specialise", true, SymbolMode::specialise()},
                       {"bucket", true, SymbolMode::bucket({16, 64})},
                       {"runtime", true, SymbolMode::runtime()}};

CompiledGraph compiled(const Mode& m, int threads, bool keeps = false) {
  CompileOptions options;
  if (m.mode) options.symbol_modes.emplace("n", *m.mode);
  CompiledGraph f = Session().with_threads(threads).compile_with(network(m.symbolic, keeps), options);
  f.set_param("w", weights(1));
  return f;
}

}  // namespace

TEST_CASE("concurrent calls: every kind of run has the bits of serial runs, in every symbol mode") {
  for (const Mode& m : kModes)
    for (const int threads : {1, 2}) {
      CAPTURE(m.name);
      CAPTURE(threads);
      CompiledGraph serial = compiled(m, threads), f = compiled(m, threads);
      const Expected want = expected_of(serial, m.symbolic);
      std::atomic<int> wrong{0};
      const std::string said = on_threads(kThreads, [&](int t) {
        std::mt19937 draw(static_cast<unsigned>(t));
        for (int i = 0; i < kRounds; ++i) {
          const std::size_t k = draw() % want.inputs.size();
          if (!matches(kRuns[draw() % std::size(kRuns)].run(f, want.inputs[k]), want.results[k])) ++wrong;
        }
      });
      CHECK_MESSAGE(said.empty(), said);
      CHECK(wrong.load() == 0);
    }
}

TEST_CASE("concurrent calls: runs see all of a change or nothing of it, whatever is asked of the object meanwhile") {
  for (const Mode& m : kModes) {
    CAPTURE(m.name);
    CompiledGraph f = compiled(m, 2), source = compiled(m, 1);
    CompiledGraph serial = compiled(m, 1);
    const Expected first = expected_of(serial, m.symbolic);
    serial.set_param("w", weights(-3));
    const Expected second = expected_of(serial, m.symbolic);
    f.set_input("x", first.inputs[0]);
    (void)f.run_typed({});
    std::atomic<int> wrong{0};
    std::atomic<bool> done{false};
    const auto right = [&](CompiledGraph& g, std::mt19937& draw) {
      const std::size_t k = draw() % first.inputs.size();
      const Bytes got = kRuns[draw() % std::size(kRuns)].run(g, first.inputs[k]);
      return matches(got, first.results[k]) || matches(got, second.results[k]);
    };
    const std::string said = on_threads(
        kThreads,
        [&](int t) {
          std::mt19937 draw(static_cast<unsigned>(100 + t));
          if (t == 0) {  // changes
            for (int i = 0; i < kRounds / 2; ++i) {
              switch (draw() % 6) {
                case 0: f.set_param("w", weights(1)); break;
                case 1: f.set_param("w", Tensor::of<float>({16, 16}, weights(-3))); break;
                case 2: f.share_weights_from(source); break;
                case 3: f.set_input("x", first.inputs[draw() % 2]); break;
                case 4: f.finalize(); break;
                default: (void)f.set_active_extent(std::nullopt); break;
              }
            }
            return;
          }
          if (t == 1) {  // questions
            while (!done) {
              CompiledGraph copy = f.clone();
              if (!right(copy, draw)) ++wrong;
              if (!f.unset_params().empty() || f.prepared_bytes() == 0) ++wrong;
              if (f.compile_result().lir.graph.outputs().size() != 2 || f.arena_bytes() == 0) ++wrong;
              (void)f.code();
              if (f.read_handle("x").size_bytes() == 0) ++wrong;
              if (m.symbolic) {
                const std::vector<std::int64_t> dims[] = {{static_cast<std::int64_t>(1 + draw() % 64), 16}};
                f.prepare_shape(dims);
              }
              const CompiledGraph moved = std::move(copy);
            }
            return;
          }
          while (!done)
            if (!right(f, draw)) ++wrong;
        },
        &done);
    CHECK_MESSAGE(said.empty(), said);
    CHECK(wrong.load() == 0);
  }
}

TEST_CASE("concurrent calls: runs with states take turns, and each counts once") {
  for (const Mode& m : kModes) {
    CAPTURE(m.name);
    CompiledGraph serial = compiled(m, 1), f = compiled(m, 2, true);
    const Expected want = expected_of(serial, m.symbolic);
    CompiledGraph other = compiled(m, 1, true);
    CHECK(other.share_state_from(f) == 1);  // objects that share the state take turns too
    std::atomic<int> wrong{0};
    const std::string said = on_threads(kThreads, [&](int t) {
      std::mt19937 draw(static_cast<unsigned>(t));
      for (int i = 0; i < kRounds; ++i) {
        const std::size_t k = draw() % want.inputs.size();
        Bytes got = bytes_of((t % 2 ? f : other).run_typed({{"x", want.inputs[k]}}));
        if (!matches(got, want.results[k])) ++wrong;
        if (i % 16 == 0 && f.read_state("runs").at(0) < i) ++wrong;
        if (i % 32 == 5) (void)f.clone();
      }
    });
    CHECK_MESSAGE(said.empty(), said);
    CHECK(wrong.load() == 0);
    CHECK(f.read_state("runs").at(0) == kThreads * kRounds);
    CHECK(other.read_state("runs").at(0) == kThreads * kRounds);
  }
}

TEST_CASE("concurrent calls: states are set, shared and copied while runs take turns") {
  const Mode& m = kModes[3];
  CompiledGraph serial = compiled(m, 1), f = compiled(m, 2, true), other = compiled(m, 1, true);
  const Expected want = expected_of(serial, true);
  std::atomic<int> wrong{0};
  std::atomic<bool> done{false};
  const Tensor hundred = Tensor::scalar(DType::F32, 100);
  const std::string said = on_threads(
      kThreads + 1,
      [&](int t) {
        std::mt19937 draw(static_cast<unsigned>(t));
        for (int i = 0; t == 0 ? i < kRounds : !done.load(); ++i) {
          CompiledGraph& one = draw() % 2 ? f : other;
          CompiledGraph& two = &one == &f ? other : f;
          if (t > 1) {
            const std::size_t k = draw() % want.inputs.size();
            if (!matches(kRuns[draw() % std::size(kRuns)].run(one, want.inputs[k]), want.results[k])) ++wrong;
            continue;
          }
          switch (draw() % 6) {
            case 0: one.reset(); break;
            case 1: one.write_state("runs", hundred); break;
            case 2: (void)one.share_state_from(two); break;
            case 3: (void)one.share_state_from(one); break;
            case 4: (void)one.clone().read_state("runs"); break;
            default: one.set_param("w", weights(1)); break;
          }
        }
      },
      &done);
  CHECK_MESSAGE(said.empty(), said);
  CHECK(wrong.load() == 0);
}

TEST_CASE("concurrent calls: handles of outputs carry every run, donated inputs keep their bits") {
  {
    Graph g("counts");
    const Expr n = g.input("out0", {{4}, DType::F32});
    g.set_outputs({g.add(n, 1.0F)});
    CompiledGraph f = Session().compile(std::move(g));
    f.bind_handle("out0", {0, 10, 20, 30});
    const std::string said = on_threads(kThreads, [&](int) {
      for (int i = 0; i < kRounds; ++i) (void)f.run();
    });
    CHECK_MESSAGE(said.empty(), said);
    CHECK(f.read_handle("out0").at(2) == 20 + kThreads * kRounds);
  }
  Graph g("over");
  const Expr x = g.input("x", {{256}, DType::F32});
  g.set_outputs({g.add(g.mul(x, x), 1.0F)});
  CompileOptions options;
  options.donate = {{"x", 0}};
  CompiledGraph f = Session().compile_with(std::move(g), options);
  std::atomic<int> wrong{0};
  const std::string said = on_threads(kThreads, [&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      std::vector<float> v(256, static_cast<float>(t + 1));
      const TensorView in{v.data(), DType::F32, {}, v.size() * 4};
      MutableTensorView out;
      out.data = v.data(), out.dtype = DType::F32, out.size_bytes = v.size() * 4;
      f.run_into({&in, 1}, {&out, 1});
      const auto want = static_cast<float>((t + 1) * (t + 1) + 1);
      if (std::count(v.begin(), v.end(), want) != 256) ++wrong;
    }
  });
  CHECK_MESSAGE(said.empty(), said);
  CHECK(wrong.load() == 0);
}

TEST_CASE("concurrent calls: results of run_slots stay while other threads run") {
  const Mode& m = kModes[3];
  CompiledGraph serial = compiled(m, 1), f = compiled(m, 1);
  const Expected want = expected_of(serial, true);
  std::atomic<int> wrong{0};
  std::atomic<bool> done{false};
  const std::string said = on_threads(
      3,
      [&](int t) {
        std::mt19937 draw(static_cast<unsigned>(t));
        for (int i = 0; t == 0 ? i < kRounds : !done.load(); ++i) {
          const std::size_t k = draw() % want.inputs.size();
          if (t != 0) {
            if (!matches(kRuns[draw() % std::size(kRuns)].run(f, want.inputs[k]), want.results[k])) ++wrong;
            continue;
          }
          const std::vector<std::int64_t> dims = want.inputs[k].dims();
          TensorView in = want.inputs[k].view();
          in.dims = dims;
          const std::span<const Slot> slots = f.run_slots({&in, 1});
          std::this_thread::yield();
          for (std::size_t o = 0; o < 2; ++o) {
            const std::vector<std::byte>& right = want.results[k][o];
            if (std::memcmp(f.arena_ptr() + slots[o].offset, right.data(), right.size()) != 0) ++wrong;
          }
        }
      },
      &done);
  CHECK_MESSAGE(said.empty(), said);
  CHECK(wrong.load() == 0);
}

namespace {

// A custom op whose kernel does what a test wants.
std::function<void()>& in_kernel() {
  static std::function<void()> f;
  return f;
}
void copy_and_call(const RefArgs& a) { a.out() = a.in(0); }
std::optional<Diagnostic> call_and_copy(const KernelCall& call) {
  if (in_kernel()) try {
      in_kernel()();
    } catch (const Error& e) {
      return e.diagnostic();
    }
  std::memcpy(call.outputs[0].data(), call.inputs[0].data(), call.inputs[0].as<float>()->size_bytes());
  return std::nullopt;
}
CompiledGraph with_callback(bool keeps, int threads = 2) {
  static const bool once = [] {
    OpDef def = plain_record("test.calls_back");
    def.what = "x, after a call of the test.";
    def.reference = copy_and_call;
    register_op(def);
    register_cpu_kernel("test.calls_back", {call_and_copy, nullptr});
    return true;
  }();
  (void)once;
  Graph g("calls back");
  const Expr x = g.input("x", {{8}, DType::F32});
  std::vector<Expr> outputs{g.add(g.add(custom_op("test.calls_back"), {g.mul(x, 2.0F)}), 1.0F)};
  if (keeps) {
    const Expr n = g.state("runs", Tensor::scalar(DType::F32, 0));
    g.set_state("runs", g.add(n, 1.0F));
    outputs.push_back(n);
  }
  g.set_outputs(outputs);
  return Session().with_threads(threads).compile(std::move(g));
}
const NamedTensors kEight{{"x", Tensor::full({{8}, DType::F32}, 3)}};

}  // namespace

TEST_CASE("concurrent calls: a kernel may run its own program, unless it would wait for itself") {
  for (const int threads : {1, 2}) {
    CompiledGraph f = with_callback(false, threads), g = with_callback(true, threads);
    std::atomic<int> depth{0};
    in_kernel() = [&] {
      if (depth.fetch_add(1) < 3) CHECK(f.run_typed(kEight)[0].at(0) == 7);
    };
    CHECK(f.run_typed(kEight)[0].at(0) == 7);
    CHECK(depth.load() == 4);
    const auto refused = [&](CompiledGraph& of, const std::function<void()>& call) {
      depth = 0;
      if (!of.states().empty()) of.reset();
      in_kernel() = [&] {
        if (depth.fetch_add(1) == 0) call();
      };
      return error_text([&] { (void)of.run_typed(kEight); });
    };
    const std::string inside = "is called from inside its own run";
    CHECK(refused(g, [&] { (void)g.run_typed(kEight); }).find(inside) != std::string::npos);
    CHECK(refused(g, [&] { (void)g.read_state("runs"); }).find(inside) != std::string::npos);
    CHECK(refused(f, [&] { f.set_input("x", Tensor::full({{8}, DType::F32}, 1)); }).find(inside) != std::string::npos);
    const TensorView in = kEight.begin()->second.view();
    CHECK(refused(f, [&] { (void)f.run_slots({&in, 1}); }).find(inside) != std::string::npos);
    in_kernel() = [&] { (void)f.run_typed(kEight); };
    CHECK(contains(error_text([&] { (void)f.run_typed(kEight); }), "64 of its runs are inside each other"));
    g.reset();
    in_kernel() = {};
    CHECK(g.run_typed(kEight)[0].at(0) == 7);
    CHECK(f.run_typed(kEight)[0].at(0) == 7);
  }
}

TEST_CASE("concurrent calls: a run goes on when its object is moved, and its end is awaited when it is destroyed") {
  for (const bool keeps : {false, true}) {
    std::atomic<bool> inside{false}, go{false};
    in_kernel() = [&] {
      inside = true;
      while (!go) std::this_thread::yield();
    };
    auto f = std::make_unique<CompiledGraph>(with_callback(keeps));
    std::vector<Tensor> result;
    std::thread runs([&] { result = f->run_typed(kEight); });
    while (!inside) std::this_thread::yield();
    auto moved = std::make_unique<CompiledGraph>(std::move(*f));
    std::atomic<bool> gone{false};
    std::thread destroys([&] {
      moved.reset();
      gone = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(gone.load());
    go = true;
    runs.join();
    destroys.join();
    REQUIRE(!result.empty());
    CHECK(result[0].at(0) == 7);
    in_kernel() = {};
  }
}

}  // namespace rlx::test
