// ModelFunction: when graphs are built and compiled, what programs share, and threads that request the same program.
#include "rlx/runtime/model_function.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "rlx/formats/safetensors.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

int times_built = 0;  // how often the model below was built

// relu(x w + 1), of x [n, 3].
const ModelFunction small_net("small net", [](Graph& g) {
  ++times_built;
  const Dim n = g.symbol("n", SymbolInfo{.min = 1, .max = 16});
  const Expr x = g.input("x", Shape({n, 3}, DType::F32)), w = g.param("w", Shape({3, 2}, DType::BF16));
  return std::vector<Expr>{g.relu(g.matmul(x, g.cast(w, DType::F32)) + 1.0)};
});

Tensor ones(std::int64_t rows) { return Tensor::full(Shape({rows, 3}, DType::F32), 1); }

}  // namespace

TEST_CASE("model function: a graph is built once for each device, precision and size") {
  const ModelFunction& net = small_net;
  CHECK(times_built == 0);  // not before the first call
  CHECK(net.num_programs() == 0);
  net.set_param("w", Tensor::of<float>({3, 2}, {1, -2, 3, -4, 5, -6}));
  CHECK(times_built == 0);
  std::vector<Tensor> y = net({{"x", ones(2)}});
  REQUIRE(y.size() == 1);
  CHECK(y[0].identical(Tensor::of<float>({2, 2}, {10, 0, 10, 0})));
  CHECK(times_built == 1);
  CHECK(net({{"x", ones(1)}})[0].identical(Tensor::of<float>({1, 2}, {10, 0})));  // another n uses the same program
  CHECK(times_built == 1);
  const ModelKey half{.precision = Precision::BF16};
  CHECK(net({{"x", ones(2)}}, half)[0].identical(y[0]));
  CHECK(times_built == 2);
  const ModelKey bound{.dims = {{"n", 2}}};
  CHECK(net({{"x", ones(2)}}, bound)[0].identical(y[0]));
  CHECK(net.compiled(bound)->inputs()[0].shape == Shape({2, 3}, DType::F32));
  CHECK(times_built == 3);
  CHECK(net.num_programs() == 3);
  // Sets weights of all programs, existing and later ones.
  net.set_param("w", Tensor::of<float>({3, 2}, {1, 1, 1, 1, 1, 1}));
  for (const ModelKey& key : {ModelKey{}, half, bound, ModelKey{.dims = {{"n", 1}}}})
    CHECK(net({{"x", ones(key.dims.contains("n") ? key.dims.at("n") : 2)}}, key)[0].at(0) == 4);
  CHECK(times_built == 4);
  Graph g = net.build_graph();
  CHECK(g.name() == "small net");
  CHECK(times_built == 5);
  net.forget_programs();
  CHECK(net.num_programs() == 0);
  CHECK(net({{"x", ones(1)}})[0].at(1) == 4);  // whose weights stay
}

TEST_CASE("model function: weights of a file keep their dtype, the last value counts") {
  const test::TempDir dir;
  const std::vector<NamedTensor> file{{"w", Tensor::of<float>({3, 2}, {2, 2, 2, 2, 2, 2}).cast(DType::BF16)},
                                      {"other", Tensor::of<float>({1}, {0})}};
  write_safetensors(dir.file("w.safetensors"), file);
  const ModelFunction net("typed", [](Graph& g) {
    const Expr w = g.param("w", Shape({3, 2}, DType::BF16));
    return std::vector<Expr>{g.matmul(g.input("x", Shape({1, 3}, DType::F32)), g.cast(w, DType::F32)), w};
  });
  net.load_params(SafetensorsFile::open(dir.file("w.safetensors")), LoadMode::Subset);
  std::vector<Tensor> y = net({{"x", ones(1)}});
  CHECK(y[0].at(0) == 6);
  CHECK(y[1].identical(file[0].tensor));
  net.set_param("w", Tensor::of<float>({3, 2}, {1, 1, 1, 1, 1, 1}));
  net.set_param("w", Tensor::of<float>({3, 2}, {3, 3, 3, 3, 3, 3}));
  CHECK(net({{"x", ones(1)}})[0].at(0) == 9);
  net.load_params(SafetensorsFile::open(dir.file("w.safetensors")), LoadMode::Subset);
  CHECK(net({{"x", ones(1)}})[0].at(0) == 6);
}

TEST_CASE("model function: states are those of a program, and stay between its runs") {
  const ModelFunction counter("counter", [](Graph& g) {
    const Expr n = g.state("n", Tensor::of<float>({1}, {0})) + 1.0;
    g.set_state("n", n);
    return std::vector<Expr>{n};
  });
  for (int i = 1; i < 4; ++i) CHECK(counter({})[0].at(0) == i);
  CHECK(counter({}, {.precision = Precision::BF16})[0].at(0) == 1);
  counter.forget_programs();
  CHECK(counter({})[0].at(0) == 1);
}

TEST_CASE("model function: threads that want one program wait for each other, and compile it once") {
  std::atomic<int> built = 0, inside = 0;
  std::atomic<bool> alone = true;
  const ModelFunction net("shared", [&](Graph& g) {
    ++built;
    const Expr n = g.state("n", Tensor::of<float>({1}, {0})) + 1.0;
    g.set_state("n", n);
    return std::vector<Expr>{n};
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const ModelFunction::Program program = net.compiled();
        if (++inside != 1) alone = false;
        (void)program->run_typed({});
        --inside;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(built == 1);
  CHECK(alone);
  CHECK(net({})[0].at(0) == 81);
}

TEST_CASE("model function: what is wrong is said, and the next call tries again") {
  CHECK(contains(error_text([] { ModelFunction("", [](Graph&) { return std::vector<Expr>(); }); }), "has no name"));
  CHECK(contains(error_text([] { ModelFunction("m", nullptr); }), "'m' has no function that builds its graph"));
  int calls = 0;
  const ModelFunction net("fails first", [&](Graph& g) {
    if (++calls == 1) return std::vector<Expr>();
    if (calls == 2)
      return std::vector<Expr>{
          g.matmul(g.input("a", Shape({2, 3}, DType::F32)), g.input("b", Shape({2, 3}, DType::F32)))};
    return std::vector<Expr>{g.input("x", Shape({1}, DType::F32)) * g.param("k", Shape({1}, DType::F32))};
  });
  CHECK(contains(error_text([&] { (void)net.compiled(); }),
                 "the function of the model 'fails first' returns no outputs"));
  CHECK(contains(error_text([&] { (void)net.compiled(); }), "shape mismatch"));
  CHECK(net.num_programs() == 0);
  CHECK(contains(error_text([&] { net.load_params(nullptr); }), "no loader was given"));
  const NamedTensors x{{"x", Tensor::of<float>({1}, {3})}};
  net.set_param("q", Tensor::of<float>({1}, {2}));
  CHECK(contains(error_text([&] { (void)net.compiled(); }), "'q'"));
  net.set_param("k", Tensor::of<float>({1}, {2}));  // the wrong weight is not kept
  CHECK(net(x)[0].at(0) == 6);
  const ModelFunction::Program held = net.compiled();
  CHECK(contains(error_text([&] { (void)net.compiled(); }), "this thread already holds the program of the model"));
  CHECK(contains(error_text([&] { (void)net.compiled({.device = Device::Mlx}); }), "not available"));
  ModelFunction::Program first = net.compiled({.precision = Precision::BF16});
  const ModelFunction::Program second = std::move(first);
  CHECK(second->inputs().size() == 1);
  CHECK(contains(error_text([&] { (void)(*first).inputs(); }),
                 "after it was moved from"));  // NOLINT(bugprone-use-after-move)
}

}  // namespace rlx
