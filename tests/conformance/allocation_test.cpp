// run_into and run_slots allocate nothing on any thread from the second run of a shape on. A counting operator new
// proves it.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "rlx/functions/sequence.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/runtime/session.h"
#include "tests/support/build_kind.h"
#include "tests/support/decode_loop.h"

// With the thread sanitizer, g++ mistakes the inlined operator new for malloc.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {
// Clang's thread sanitizer calls its own operators, so nothing is counted.
#if defined(RLX_THREAD_SANITIZER)
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
#endif
std::atomic<long> allocations{0};  // of all threads, including kernel workers
void* counted(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
void* counted(std::size_t size, std::align_val_t align) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  auto a = static_cast<std::size_t>(align);
  if (void* p = std::aligned_alloc(a, (size + a) / a * a)) return p;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // std::stable_sort's buffer
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size ? size : 1);
}
void* operator new(std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto a = static_cast<std::size_t>(align);
  return std::aligned_alloc(a, (size + a) / a * a);
}
void* operator new(std::size_t size, std::align_val_t align) { return counted(size, align); }
void* operator new[](std::size_t size, std::align_val_t align) { return counted(size, align); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace rlx {
namespace {

// One of each kernel family that a transformer uses: gather, packed and strided matmuls, attention, norms, elementwise
// tapes, reductions, copies.
Graph small_encoder(Dim seq) {
  Graph g("small");
  if (!seq.is_static()) g.symbol("seq", {.min = 1, .max = 64});
  Expr ids = g.input("ids", {{2, seq}, DType::I32});
  Expr x = g.gather(g.param("table", {{50, 32}, DType::F32}), ids);
  ops::EncoderBlock block;
  block.num_heads = 2, block.head_dim = 16;
  std::vector<Expr> operands{x};
  auto add = [&](const char* name, Dims dims) { operands.push_back(g.param(name, {std::move(dims), DType::F32})); };
  for (const char* n : {"q", "k", "v", "o"}) {
    add(n, {32, 32});
    add(concat_text(n, "_bias").c_str(), {32});
  }
  add("g1", {32}), add("b1", {32}), add("up", {32, 64}), add("up_bias", {64}), add("down", {64, 32}),
      add("down_bias", {32});
  add("g2", {32}), add("b2", {32});
  Expr y = g.encoder_block(block, operands);
  Expr scores = g.softmax(g.matmul(y, g.t(y)), -1);  // a matmul of two run-time values
  g.set_outputs(
      {g.mean(y, {1}), g.cumsum(g.tanh(g.transpose(scores, {0, 2, 1})), 1), g.top_k(g.sum(y, {2}), 1).indices});
  return g;
}

TEST_CASE("run_into and run_slots allocate nothing, at one thread and at several") {
  enum Extent { Fixed, Specialised, Bucket, Runtime };
  for (int threads : {1, 2, 4}) {
    for (Extent extent : {Fixed, Specialised, Bucket, Runtime}) {
      CAPTURE(threads);
      CAPTURE(extent);
      CompileOptions options;
      if (extent == Bucket) options.symbol_modes.emplace("seq", SymbolMode::bucket({16, 32}));
      if (extent == Runtime) options.symbol_modes.emplace("seq", SymbolMode::runtime());
      CompiledGraph f = Session().with_threads(threads).compile_with(
          small_encoder(extent == Fixed ? Dim(24) : Dim::symbol("seq")), options);
      for (const IoInfo& p : f.params())
        f.set_param(p.name, std::vector<float>(static_cast<std::size_t>(p.shape.num_elements()), 0.03f));
      std::vector<std::int32_t> ids(48, 3);
      const std::int64_t dims[] = {2, 24};
      TensorView in{ids.data(), DType::I32, dims, ids.size() * 4};
      std::vector<float> pooled(64), running(2 * 24 * 24);
      std::vector<std::int32_t> best(2);
      MutableTensorView out[] = {{pooled.data(), DType::F32, {}, pooled.size() * 4},
                                 {running.data(), DType::F32, {}, running.size() * 4},
                                 {best.data(), DType::I32, {}, best.size() * 4}};
      f.run_into({&in, 1}, out);
      f.run_slots({&in, 1});
      const long before = allocations.load();
      for (int i = 0; i < 50; ++i) {
        f.run_into({&in, 1}, out);
        f.run_slots({&in, 1});
      }
      CHECK(allocations.load() == before);
      // Checks the counter itself: a run that returns vectors must change it.
      NamedTensors named{{"ids", Tensor::of<std::int32_t>({2, 24}, ids)}};
      const long typed = allocations.load();
      (void)f.run_typed(named);
      CHECK((allocations.load() > typed) == kCounts);
    }
  }
}

TEST_CASE("states, donated buffers, handles and an active extent allocate nothing either") {
  Graph g("append");
  Dim rows = g.symbol("rows", {.min = 1, .max = 8, .divisor = 1});
  Expr cache = g.input("cache", {{16, 4}, DType::F32}), x = g.input("x", {{rows, 4}, DType::F32});
  Expr at = g.input("at", {{2}, DType::I32});
  Expr total = g.state("total", Tensor::zeros(Shape({4}, DType::F32))) + g.sum(x, {0});
  g.set_state("total", total);
  g.set_outputs({g.dynamic_update_slice(cache, g.reshape(total, {1, 4}), at), g.exp(x)});
  CompileOptions options;
  options.donate = {{"cache", 0}};
  options.must_alias = true;
  CompiledGraph f = Session().with_threads(2).compile_with(std::move(g), options);
  CHECK(f.set_active_extent(ActiveExtent{2, 8}));
  f.bind_handle("out1", Tensor::zeros(Shape({2, 4}, DType::F32)));
  std::vector<float> memory(64), in(32, 0.5F), out(32);
  const std::int32_t where[] = {3, 0};
  const TensorView views[] = {
      {memory.data(), DType::F32, {}, 256}, {in.data(), DType::F32, {}, 128}, {where, DType::I32, {}, 8}};
  const MutableTensorView rooms[] = {{memory.data(), DType::F32, {}, 256}, {out.data(), DType::F32, {}, 128}};
  f.run_into(views, rooms);
  f.run_slots(views);
  const long before = allocations.load();
  for (int i = 0; i < 20; ++i) {
    f.run_into(views, rooms);
    f.run_slots(views);
  }
  CHECK(allocations.load() == before);
  CHECK(f.read_state("total").to_f32() == std::vector<float>(4, 42.0F));
  CHECK(memory[12] == 41.0F);  // from the last run_into; run_slots did not touch the caller's memory
}

TEST_CASE("decoding over a cache of full extent by kv_len: one compile, no copy of a state, and no allocation") {
  using test::DecodeLoop;
  CompileOptions options;
  options.must_alias = true;  // copying the cache is an error
  for (int threads : {1, 2}) {
    CompiledGraph f = Session().with_threads(threads).compile_with(DecodeLoop::graph(), options);
    CHECK(f.compile_result().lir.plan.state_copies.empty());
    std::vector<std::vector<float>> tokens;
    constexpr int kSteps = 1000;
    for (int i = 0; i <= kSteps; ++i) tokens.push_back(DecodeLoop::token(i));
    std::vector<std::vector<float>> ys(
        tokens.size(), std::vector<float>(DecodeLoop::kBatch * DecodeLoop::kHeads * DecodeLoop::kDepth));
    const auto step = [&](std::int32_t at) {
      std::vector<float>&token = tokens[static_cast<std::size_t>(at)], &y = ys[static_cast<std::size_t>(at)];
      const TensorView in[] = {{token.data(), DType::F32, {}, token.size() * 4}, {&at, DType::I32, {}, 4}};
      const MutableTensorView out[] = {{y.data(), DType::F32, {}, y.size() * 4}};
      f.run_into(in, out);
    };
    step(0);
    const long before = allocations.load();
    for (int i = 1; i <= kSteps; ++i) step(i);
    CHECK(allocations.load() == before);  // nothing is rebound either, as that allocates
    for (int i : {0, 1, 63, 64, 500, kSteps}) {
      const std::vector<double> expected = DecodeLoop::expected(i);
      for (std::size_t e = 0; e < expected.size(); ++e)
        CHECK(ys[static_cast<std::size_t>(i)][e] == doctest::Approx(expected[e]).epsilon(1e-5));
    }
  }
}

TEST_CASE("branches and loops allocate nothing in their bodies") {
  Graph g("loops");
  const Expr x = g.input("x", {{4, 96}, DType::F32}), w = g.param("w", {{96, 96}, DType::F32});
  const Expr n = g.input("n", {{}, DType::I32});
  const LoopResult scan = g.scan(x, g.reshape(w, {24, 4, 96}), [&](Graph& b, const ExprList& c, const ExprList& row) {
    return LoopStep{b.tanh(b.matmul(c[0], w) + row[0]), row[0]};
  });
  const LoopResult loop = g.while_loop(
      {g.scalar(0.0, DType::I32), scan.carries[0]}, [&](Graph& b, const ExprList& c) { return b.lt(c[0], n); },
      [&](Graph& b, const ExprList& c) {
        const ExprList y = b.cond(
            b.eq(c[0], 1), [&](Graph& t) { return ExprList{t.exp(c[1])}; },
            [&](Graph& t) { return ExprList{t.matmul(c[1], w)}; });
        return LoopStep{{c[0] + 1, y[0]}, {}};
      });
  g.set_outputs({loop.carries[1], scan.ys[0]});
  for (int threads : {1, 2, 4}) {
    CompiledGraph f = Session().with_threads(threads).compile(Graph(g));
    f.set_param("w", std::vector<float>(96 * 96, 0.01F));
    REQUIRE(f.compile_result().lir.plan.bodies.size() == 2);
    std::vector<float> in(4 * 96, 0.5F);
    const std::int32_t trips = 3;
    const TensorView views[] = {{in.data(), DType::F32, {}, in.size() * 4}, {&trips, DType::I32, {}, 4}};
    f.run_slots(views);
    const long before = allocations.load();
    for (int i = 0; i < 20; ++i) f.run_slots(views);
    CHECK(allocations.load() == before);
  }
}

TEST_CASE("recurrences allocate nothing, whether threads share rows or steps") {
  for (std::int64_t batch : {1, 9}) {
    Graph g("recurrences");
    const Expr x = g.input("x", {{12, batch, 40}, DType::F32});
    const auto weight = [&](const char* name, Dims dims) { return g.param(name, Shape(std::move(dims), DType::F32)); };
    const nn::RecurrentResult y = nn::lstm(x, {{weight("w", {1024, 40}), weight("r", {1024, 256}), {}, {}}});
    const nn::RecurrentResult z = nn::gru(x, {{weight("u", {48, 40}), weight("v", {48, 16}), {}, {}}});
    const nn::ScanResult s = nn::selective_scan(x, x, weight("a", {40, 8}), g.narrow(x, 2, 0, 8), g.narrow(x, 2, 8, 8));
    g.set_outputs({y.y, z.h, s.y});
    for (int threads : {1, 2, 4}) {
      CompiledGraph f = Session().with_threads(threads).compile(Graph(g));
      const std::pair<const char*, std::size_t> sizes[] = {
          {"w", 1024 * 40}, {"r", 1024 * 256}, {"u", 48 * 40}, {"v", 48 * 16}, {"a", 40 * 8}};
      for (const auto& size : sizes) f.set_param(size.first, std::vector<float>(size.second, -0.01F));
      std::vector<float> in(static_cast<std::size_t>(12 * batch * 40), 0.5F);
      const TensorView views[] = {{in.data(), DType::F32, {}, in.size() * 4}};
      f.run_slots(views);
      const long before = allocations.load();
      for (int i = 0; i < 5; ++i) f.run_slots(views);
      CHECK(allocations.load() == before);
    }
  }
}

TEST_CASE("values of a runtime symbol stay bound: a repeated one allocates nothing, in a clone too") {
  CompileOptions options;
  options.symbol_modes.emplace("seq", SymbolMode::runtime());
  CompiledGraph f = Session().compile_with(small_encoder(Dim::symbol("seq")), options);
  for (const IoInfo& p : f.params())
    f.set_param(p.name, std::vector<float>(static_cast<std::size_t>(p.shape.num_elements()), 0.03f));
  CompiledGraph twin = f.clone();
  std::vector<std::int32_t> ids(2 * 64, 3);
  auto run = [&](CompiledGraph& g, std::int64_t seq) {
    const std::int64_t dims[] = {2, seq};
    TensorView in{ids.data(), DType::I32, dims, static_cast<std::size_t>(2 * seq) * 4};
    g.run_slots({&in, 1});
  };
  for (CompiledGraph* g : {&f, &twin})
    for (std::int64_t seq : {64, 5, 17, 40, 1}) run(*g, seq);
  const long before = allocations.load();
  for (int i = 0; i < 10; ++i)
    for (CompiledGraph* g : {&f, &twin})
      for (std::int64_t seq : {17, 64, 1, 5, 40}) run(*g, seq);
  CHECK(allocations.load() == before);
  run(f, 6);  // checks the counter itself: a new value must change it
  CHECK((allocations.load() > before) == kCounts);
}

TEST_CASE("values that runs compute stay bound: a repeated one allocates nothing") {
  for (int threads : {1, 2}) {
    Graph g("counted");
    const Expr x = g.input("x", Shape({64}, DType::F32)), w = g.param("w", Shape({64}, DType::F32));
    const Expr head = g.first(x, g.cast(g.sum(x * w), DType::I64));
    g.set_outputs({g.exp(head), g.first(head * 2.0, g.sum(g.cast(g.gt(g.exp(head), 1.5), DType::I64)))});
    CompiledGraph f = Session().with_threads(threads).compile(std::move(g));
    f.set_param("w", std::vector<float>(64, 1.0F));
    std::vector<float> in(64, 0);
    const TensorView view{in.data(), DType::F32, {}, in.size() * 4};
    const auto run = [&](std::size_t set) {
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = i < set ? 1.0F : 0.0F;
      const auto slots = f.run_slots({&view, 1});
      CHECK(slots[1].count == static_cast<std::int64_t>(set));
    };
    for (int warm = 0; warm < 2; ++warm)
      for (std::size_t set : {64U, 5U, 0U, 17U}) run(set);
    const long before = allocations.load();
    for (int i = 0; i < 10; ++i)
      for (std::size_t set : {17U, 64U, 0U, 5U}) run(set);
    CHECK(allocations.load() == before);
    run(6);  // checks the counter itself: a new value must change it
    CHECK((allocations.load() > before) == kCounts);
  }
}

}  // namespace
}  // namespace rlx
