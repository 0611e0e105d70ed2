// Values that are kept between runs: shared, reset and invalid states; handles and sticky inputs; donated buffers; runs
// that return their own memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "rlx/device/registry.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/hooked_backend.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

using test::f32;
Tensor vec(std::vector<float> v) { return Tensor::of<float>({static_cast<std::int64_t>(v.size())}, v); }

// cache[at] = x; the output is the sum of the cache over rows.
Graph append(std::int64_t rows, const char* name) {
  Graph g(name);
  Expr x = g.input("x", f32({1, 4})), at = g.input("at", {{2}, DType::I32});
  Expr cache = g.dynamic_update_slice(g.state("cache", Tensor::zeros(f32({rows, 4}))), x, at);
  g.set_state("cache", cache);
  g.set_outputs({g.sum(cache, {0})});
  return g;
}

NamedTensors step(std::vector<float> x, std::int32_t row) {
  return {{"x", Tensor::of<float>({1, 4}, x)},
          {"at", Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{row, 0})}};
}

TEST_CASE("two programs share a state; a clone has its own again") {
  CompiledGraph prefill = Session().compile(append(8, "prefill")), decode = Session().compile(append(8, "decode"));
  prefill.run_typed(step({1, 2, 3, 4}, 0));
  decode.run_typed(step({9, 9, 9, 9}, 5));  // bound before the state is shared
  CHECK(decode.share_state_from(prefill) == 1);
  CHECK(decode.run_typed(step({1, 1, 1, 1}, 1))[0].to_f32() == std::vector<float>{2, 3, 4, 5});
  CHECK(prefill.run_typed(step({0, 0, 0, 1}, 2))[0].to_f32() == std::vector<float>{2, 3, 4, 6});
  CompiledGraph apart = decode.clone();
  apart.run_typed(step({7, 7, 7, 7}, 3));
  CHECK(prefill.read_state("cache").identical(decode.read_state("cache")));
  CHECK(!prefill.read_state("cache").identical(apart.read_state("cache")));
  decode.reset();
  CHECK(prefill.run_typed(step({1, 0, 0, 0}, 0))[0].to_f32() == std::vector<float>{1, 0, 0, 0});

  CompiledGraph longer = Session().compile(append(9, "longer"));
  CHECK(contains(error_text([&] { longer.share_state_from(prefill); }),
                 "state 'cache' is [9, 4] f32 in graph 'longer' and [8, 4] f32 in graph 'prefill'"));
}

TEST_CASE("sharing without a state of that name says what is near") {
  CompiledGraph a = Session().compile(append(8, "a"));
  Graph g("b");
  Expr cash = g.state("cachet", Tensor::zeros(f32({2})));
  g.set_state("cachet", cash + 1.0);
  g.set_outputs({cash});
  CompiledGraph b = Session().compile(std::move(g));
  CHECK(contains(error_text([&] { b.share_state_from(a); }), "graph 'a' has no state 'cachet'"));
  CHECK(contains(error_text([&] { b.share_state_from(a); }), "did you mean 'cache'?"));
  // Two backends of one device have separate memory.
  CompiledGraph oracle = Session::on_backend("reference").compile(append(8, "oracle"));
  const std::string apart = error_text([&] { oracle.share_state_from(a); });
  CHECK_MESSAGE(contains(apart,
                         "graph 'oracle' runs on cpu (backend 'reference'), graph 'a' on cpu (backend "
                         "'cpu'): they cannot share states"),
                apart);
  CHECK_MESSAGE(contains(apart, "copy the states with read_state and write_state"), apart);
  CHECK(contains(error_text([&] {
                   a.write_state("cache", Tensor::zeros(f32({8, 5})));
                 }),
                 "state 'cache' is [8, 4] f32, got [8, 5] f32"));
  CHECK(contains(error_text([&] {
                   a.write_state("cache", Tensor::zeros(Shape({8, 4}, DType::F64)));
                 }),
                 "pass the declared dtype"));
}

TEST_CASE("a failed run leaves its states invalid until they are reset or written") {
  // The reference backend, whose runs fail after their work on request.
  bool fail_next_run = false;
  register_backend(Device::OpenGl,
                   std::make_shared<test::HookedBackend>(
                       backend_by_name("reference"),
                       [&](Instance& inner, std::size_t, const RunArguments& arguments, Stream& stream) {
                         Event done = inner.submit(arguments, stream);
                         if (std::exchange(fail_next_run, false))
                           throw Error(ErrorCode::OutOfMemory, "the device is lost");
                         return done;
                       }));
  Graph g("failing");
  Expr x = g.input("x", f32({2}));
  Expr total = g.state("total", vec({5, 6})), count = g.state("count", vec({0}));
  g.set_state("count", count + 1.0);
  g.set_state("total", total + x);
  g.set_outputs({total});
  CompiledGraph f = Session(Device::OpenGl).compile(std::move(g));
  register_backend(Device::OpenGl, nullptr);
  auto run = [](CompiledGraph& h) { return h.run({{"x", {1, 2}}})[0]; };
  CHECK(run(f) == std::vector<float>{5, 6});
  CHECK(contains(error_text([&] { f.run({{"x", {1, 2, 3}}}); }), "pass 2 values"));
  CHECK(f.read_state("count").to_f32() == std::vector<float>{1});  // refused before it began: nothing changed
  fail_next_run = true;
  CHECK(contains(error_text([&] { run(f); }), "the device is lost"));
  CHECK(contains(error_text([&] { f.read_state("total"); }), "state 'total' is invalid after a failed run"));
  CHECK(contains(error_text([&] { run(f); }), "a failed run left state 'total' invalid"));
  CompiledGraph c = f.clone();
  CHECK(contains(error_text([&] { run(c); }), "invalid"));
  c.reset();
  CHECK(run(c) == std::vector<float>{5, 6});
  f.write_state("total", vec({1, 1}));
  CHECK(contains(error_text([&] { run(f); }), "state 'count' invalid"));
  f.write_state("count", vec({41}));
  CHECK(run(f) == std::vector<float>{1, 1});
  CHECK(f.read_state("total").to_f32() == std::vector<float>{2, 3});
  CHECK(f.read_state("count").to_f32() == std::vector<float>{42});
}

TEST_CASE("handles carry values from outputs to inputs of their name") {
  Graph g("carry");
  Expr acc = g.input("out0", f32({3})), x = g.input("x", f32({3}));
  g.set_outputs({acc + x, x * 2.0});
  CompiledGraph f = Session().compile(std::move(g));
  f.bind_handle("out0", vec({1, 1, 1}));
  f.bind_handle("out1", std::vector<float>(3));
  f.run({{"x", {1, 2, 3}}});
  CHECK(f.read_handle("out0").to_f32() == std::vector<float>{2, 3, 4});
  CHECK(f.run({{"x", {1, 2, 3}}})[0] == std::vector<float>{3, 5, 7});
  CHECK(f.read_handle("out1").to_f32() == std::vector<float>{2, 4, 6});
  CompiledGraph c = f.clone();
  c.run({{"x", {0, 0, 1}}});
  CHECK(c.read_handle("out0").to_f32() == std::vector<float>{3, 5, 8});
  CHECK(f.read_handle("out0").to_f32() == std::vector<float>{3, 5, 7});
  CHECK(f.run({{"out0", {0, 0, 0}}, {"x", {1, 1, 1}}})[0] == std::vector<float>{1, 1, 1});  // a given value is used

  CHECK(contains(error_text([&] { f.bind_handle("out2", std::vector<float>(3)); }), "no input or output 'out2'"));
  CHECK(contains(error_text([&] { f.bind_handle("out1", std::vector<float>(2)); }),
                 "output 'out1' is [3] f32, got 2 values"));
  CHECK(contains(error_text([&] { f.bind_handle("x", Tensor::zeros(Shape({3}, DType::I32))); }), "got i32 values"));
  CHECK(contains(error_text([&] { f.read_handle("out"); }), "did you mean 'out0'?"));
}

TEST_CASE("sticky inputs of every dtype, with their dims where those are needed") {
  Graph g("lookup");
  Dim n = g.symbol("n", {.min = 1, .max = 8, .divisor = 1}), m = g.symbol("m", {.min = 1, .max = 8, .divisor = 1});
  Expr ids = g.input("ids", {{n, m}, DType::I32}), x = g.input("x", f32({n}));
  g.set_outputs({g.sum(g.cast(ids, DType::F32), {1}) + x});
  CompiledGraph f = Session().compile(std::move(g));
  const std::vector<std::int32_t> values{1, 2, 3, 4, 5, 6};
  f.set_input("ids", Tensor::of<std::int32_t>({3, 2}, values));
  CHECK(f.run({{"x", {0, 10, 20}}})[0] == std::vector<float>{3, 17, 31});
  f.set_input("ids", Tensor::of<std::int32_t>({2, 3}, values));
  CHECK(f.run({{"x", {0, 10}}})[0] == std::vector<float>{6, 25});
  f.set_input_typed("ids", values.data(), 16, DType::I32);
  CHECK(contains(error_text([&] {
                   f.run({{"x", {0, 10}}});
                 }),
                 "input 'ids' [n, m] i32 has more than one unknown dimension"));
  CHECK(contains(error_text([&] { f.set_input("ids", std::vector<float>(6)); }),
                 "input 'ids' is [n, m] i32, got f32 values"));
  CHECK(contains(error_text([&] { f.set_input("ids", vec({1, 2})); }), "got f32 values"));
  CHECK(contains(error_text([&] { f.set_input("idx", vec({1})); }), "did you mean 'ids'?"));
}

TEST_CASE("run_raw, run_pipelined and commits agree with run") {
  Graph g("double");
  Dim n = g.symbol("n", {.min = 1, .max = 8, .divisor = 1});
  Expr x = g.input("x", f32({n, 2}));
  Expr sum = g.state("sum", vec({0, 0})) + g.sum(x, {0});
  g.set_state("sum", sum);
  g.set_outputs({x * 2.0, g.cast(sum, DType::I32)});
  CompiledGraph f = Session().compile(std::move(g));
  const std::vector<TensorView> views = f.run_raw({{"x", {1, 2, 3, 4}}});
  REQUIRE(views.size() == 2);
  CHECK(std::vector<std::int64_t>(views[0].dims.begin(), views[0].dims.end()) == std::vector<std::int64_t>{2, 2});
  CHECK(static_cast<const float*>(views[0].data)[3] == 8);
  CHECK(views[1].dtype == DType::I32);
  CHECK(static_cast<const std::int32_t*>(views[1].data)[1] == 6);

  CHECK(f.sync_pending().size() == 2);  // run_raw leaves its outputs in the same memory
  CHECK(f.sync_pending().empty());
  f.commit_no_wait({{"x", {1, 1}}});
  f.commit_no_wait(NamedTensors{{"x", Tensor::of<float>({1, 2}, std::vector<float>{5, 6})}});
  const std::span<const Slot> slots = f.sync_pending();
  REQUIRE(slots.size() == 2);
  CHECK(reinterpret_cast<const float*>(f.arena_ptr() + slots[0].offset)[1] == 12);
  CHECK(f.read_state("sum").to_f32() == std::vector<float>{10, 13});
  CHECK(f.output_index("out1") == 1);
  CHECK(contains(error_text([&] { f.output_index("out7"); }), "graph 'double' has no output 'out7'"));
  CHECK(contains(error_text([&] {
                   f.run_pipelined({{{"x", {1, 2}}}});
                 }),
                 "output 'out1' is [2] i32, but run returns f32"));
}

TEST_CASE("an active extent computes the first rows of a padded batch, or says that it cannot") {
  Graph g("rows");
  Dim n = g.symbol("n", {.min = 1, .max = 8, .divisor = 1});
  Expr x = g.input("x", f32({n, 2}));
  g.set_outputs({x * 2.0, g.sum(x, {0})});
  CompiledGraph f = Session().compile(std::move(g));
  CHECK(f.set_active_extent(ActiveExtent{2, 4}));
  const std::vector<float> padded{1, 2, 3, 4, 9, 9, 9, 9};
  auto out = f.run({{"x", padded}});
  CHECK(out[0] == std::vector<float>{2, 4, 6, 8});
  CHECK(out[1] == std::vector<float>{4, 6});  // rows past the extent do not count
  CHECK(f.run_typed({{"x", Tensor::of<float>({4, 2}, padded)}})[0].dims() == std::vector<std::int64_t>{2, 2});
  std::vector<float> room(8, -1), sum(2);
  const TensorView in{padded.data(), DType::F32, {}, 32};
  const MutableTensorView to[] = {{room.data(), DType::F32, {}, 32}, {sum.data(), DType::F32, {}, 8}};
  f.run_into({&in, 1}, to);
  CHECK(room == std::vector<float>{2, 4, 6, 8, -1, -1, -1, -1});
  CHECK(f.run_slots({&in, 1})[0].count == 4);
  CHECK(f.run({{"x", {1, 2, 3, 4, 5, 6}}})[0].size() == 6);  // three rows, not the padded batch
  CompiledGraph c = f.clone();
  CHECK(f.set_active_extent(std::nullopt));
  CHECK(f.run({{"x", padded}})[0].size() == 8);
  CHECK(c.run({{"x", padded}})[0].size() == 4);
  CHECK(contains(error_text([&] {
                   f.set_active_extent(ActiveExtent{5, 4});
                 }),
                 "invalid active extent: actual = 5, upper = 4"));

  Graph fixed("fixed");
  fixed.set_outputs({fixed.input("x", f32({4, 2})) * 2.0});
  CompiledGraph h = Session().compile(std::move(fixed));
  CHECK(!h.set_active_extent(ActiveExtent{2, 4}));
  CHECK(h.run({{"x", padded}})[0].size() == 8);
  Graph turned("turned");
  Dim m = turned.symbol("m", {.min = 1, .max = 8, .divisor = 1});
  turned.set_outputs({turned.t(turned.input("x", f32({m, 2})))});
  CHECK(!Session().compile(std::move(turned)).set_active_extent(ActiveExtent{2, 4}));
}

TEST_CASE("run_pipelined returns the outputs of each run") {
  Graph g("count");
  Expr total = g.state("total", vec({0})) + g.input("x", f32({1}));
  g.set_state("total", total);
  g.set_outputs({total, total * 10.0});
  CompiledGraph f = Session().compile(std::move(g));
  const auto out = f.run_pipelined({{{"x", {1}}}, {{"x", {2}}}, {{"x", {4}}}});
  CHECK(out == std::vector<std::vector<std::vector<float>>>{{{1}, {10}}, {{3}, {30}}, {{7}, {70}}});
}

TEST_CASE("new values of states and what is made of them are one region, each in its state's memory") {
  // 300 elements: a block of the tape and a remainder. The second half of the step reads states of the first half.
  constexpr std::int64_t kSize = 300;
  std::vector<float> w0(kSize), d(kSize);
  for (std::size_t i = 0; i < d.size(); ++i) {
    w0[i] = static_cast<float>(i % 17) * 0.25F;
    d[i] = static_cast<float>(i % 23) * 0.5F - 5.0F;
  }
  Graph g("adam");
  const Expr grad = g.input("d", f32({kSize})), m0 = g.state("m", Tensor::zeros(f32({kSize})));
  const Expr v0 = g.state("v", Tensor::zeros(f32({kSize}))), w = g.state("w", vec(w0));
  g.set_outputs({g.sum(w)});  // computed before the update, else w would be read after it
  const Expr m = 0.5 * m0 + grad, v = 0.25 * v0 + grad * grad;
  g.set_state("m", m);
  g.set_state("v", v);
  g.set_state("w", w - m / (v + 1.0) + m0);  // reads the old m after the new one: m must not be written early
  CompileOptions options;
  options.must_alias = true;
  for (const int threads : {1, 2}) {
    CompiledGraph f = Session().with_threads(threads).compile_with(g, options);
    CHECK(f.compile_result().fusion.fused_count("elementwise_region") == 1);
    std::vector<float> em(d.size()), ev(d.size()), ew = w0;
    for (int step = 0; step < 3; ++step) {
      f.run_typed({{"d", vec(d)}});
      for (std::size_t i = 0; i < d.size(); ++i) {
        const float old = em[i];
        em[i] = 0.5F * em[i] + d[i];
        ev[i] = 0.25F * ev[i] + d[i] * d[i];
        ew[i] = ew[i] - em[i] / (ev[i] + 1.0F) + old;
      }
    }
    CHECK(f.read_state("m").to_f32() == em);
    CHECK(f.read_state("v").to_f32() == ev);
    CHECK(f.read_state("w").to_f32() == ew);
  }
}

TEST_CASE("a donated input's buffer takes the output; other overlaps are refused") {
  for (int threads : {1, 2}) {
    CAPTURE(threads);
    Graph g("append");
    Expr cache = g.input("cache", f32({64, 32})), x = g.input("x", f32({1, 32})), at = g.input("at", {{2}, DType::I32});
    g.set_outputs({g.dynamic_update_slice(cache, x, at), g.tanh(x)});
    CompileOptions options;
    options.donate = {{"cache", 0}};
    options.must_alias = true;
    CompiledGraph f = Session().with_threads(threads).compile_with(g, options);
    std::vector<float> memory(64 * 32, 1.0F), row(32, 3.0F), activated(32);
    const std::int32_t where[] = {5, 0};
    auto views = [&](const float* from) {
      return std::vector<TensorView>{
          {from, DType::F32, {}, memory.size() * 4}, {row.data(), DType::F32, {}, 128}, {where, DType::I32, {}, 8}};
    };
    auto rooms = [&](float* to) {
      return std::vector<MutableTensorView>{{to, DType::F32, {}, memory.size() * 4},
                                            {activated.data(), DType::F32, {}, 128}};
    };
    f.run_into(views(memory.data()), rooms(memory.data()));
    CHECK(std::count(memory.begin(), memory.end(), 3.0F) == 32);
    CHECK(memory[5 * 32] == 3.0F);
    CHECK(memory[4 * 32] == 1.0F);
    std::vector<float> apart(memory.size());  // separate buffers work too
    row.assign(32, 4.0F);
    f.run_into(views(memory.data()), rooms(apart.data()));
    CHECK(apart[5 * 32 + 31] == 4.0F);
    CHECK(apart[6 * 32] == 1.0F);
    CHECK(memory[5 * 32] == 3.0F);

    CompiledGraph plain = Session().with_threads(threads).compile(g);
    CHECK(contains(error_text([&] { plain.run_into(views(memory.data()), rooms(memory.data())); }),
                   "output 'out0' would be written over input 'cache'"));
    std::vector<MutableTensorView> same = rooms(apart.data());
    same[1].data = row.data();
    CHECK(contains(error_text([&] { f.run_into(views(memory.data()), same); }), "not donated"));
    same[1].data = apart.data() + 7;
    CHECK(contains(error_text([&] { f.run_into(views(memory.data()), same); }),
                   "outputs 'out0' and 'out1' are given the same memory"));
    CHECK(contains(error_text([&] { f.run_into(views(memory.data()), rooms(memory.data() + 1)); }),
                   "start at the same address"));
  }
}

TEST_CASE("donations are checked when the program is compiled") {
  auto compile = [](std::vector<Donation> donate, bool must_alias = false) {
    Graph g("two");
    Expr x = g.input("x", f32({4})), y = g.input("y", f32({4, 1}));
    g.set_outputs({g.exp(x), g.sum(x, {0}, true)});
    (void)y;
    CompileOptions options;
    options.donate = std::move(donate);
    options.must_alias = must_alias;
    return error_text([&] { Session().compile_with(std::move(g), options); });
  };
  CHECK(contains(compile({{"xx", 0}}), "did you mean 'x'?"));
  CHECK(contains(compile({{"x", 2}}), "donated to output 2, but graph 'two' has 2"));
  CHECK(contains(compile({{"y", 0}}), "input 'y' [4, 1] f32 is donated to output 0 [4] f32"));
  CHECK(contains(compile({{"x", 0}, {"x", 0}}), "donated twice"));
  // The sum still reads x when exp would write over it.
  CHECK(compile({{"x", 0}}) == "");
  const std::string refused = compile({{"x", 0}}, true);
  CHECK(contains(refused, "donated input 'x': output 0 cannot be written over it: the input is still read by"));
}

TEST_CASE("must_alias names the state that is copied, and why") {
  auto compile = [](const std::function<void(Graph&, Expr, Expr)>& update) {
    Graph g("swap");
    Expr a = g.state("a", Tensor::zeros(f32({4, 4}))), b = g.state("b", Tensor::zeros(f32({4, 4})));
    update(g, a, b);
    CompileOptions options;
    options.must_alias = true;
    return error_text([&] { Session().compile_with(std::move(g), options); });
  };
  const std::string swapped = compile([](Graph& g, Expr a, Expr b) {
    g.set_state("a", b);
    g.set_state("b", a);
    g.set_outputs({a});
  });
  CHECK(contains(swapped, "must_alias"));
  CHECK(contains(swapped, "state 'a': 64 B are copied after each run: the new value lies in state 'b'"));
  const std::string product = compile([](Graph& g, Expr a, Expr) {
    g.set_state("a", g.matmul(a, a));
    g.set_outputs({g.sum(a)});
  });
  CHECK(contains(product, "state 'a'"));
  const std::string returned = compile([](Graph& g, Expr a, Expr) {
    g.set_state("a", a + 1.0);
    g.set_outputs({a});
  });
  CHECK(contains(returned, "the old value itself is an output or the new value of a state"));
  CHECK(compile([](Graph& g, Expr a, Expr b) {  // for each operand that the state may be, and through other ops
          g.set_outputs({g.sum(a)});
          g.set_state("a", g.exp(b) + a * 0.5);
          g.set_state("b", g.softmax(g.matmul(b, g.exp(b))));
        }) == "");
}

}  // namespace
}  // namespace rlx
