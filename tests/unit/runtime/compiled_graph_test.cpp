// The interface of a compiled graph: names, lengths, dtypes, shapes, weights, states, clones.
#include "rlx/runtime/compiled_graph.h"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>

#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::contains, test::error_text;

Graph two_layer() {
  Graph g("mlp");
  Expr x = g.input("x", {{2, 3}, DType::F32});
  Expr h =
      g.gelu(g.matmul(x, g.param("layer0.weight", {{3, 4}, DType::F32})) + g.param("layer0.bias", {{4}, DType::F32}));
  g.set_outputs({g.matmul(h, g.param("layer1.weight", {{4, 2}, DType::F32}))});
  return g;
}

void set_weights(CompiledGraph& f, float scale = 1) {
  auto fill = [&](std::size_t n, float start) {
    std::vector<float> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = scale * (start + 0.1f * static_cast<float>(i % 7));
    return v;
  };
  f.set_param("layer0.weight", fill(12, -0.3f));
  f.set_param("layer0.bias", fill(4, 0.2f));
  f.set_param("layer1.weight", fill(8, -0.1f));
}

TEST_CASE("wrong names, lengths and dtypes are errors that name the thing and the nearest right one") {
  CompiledGraph f = Session().compile(two_layer());
  CHECK(contains(error_text([&] { f.set_param("layer0.weigth", std::vector<float>(12)); }),
                 "did you mean 'layer0.weight'?"));
  CHECK(contains(error_text([&] { f.set_param("layer0.weight", std::vector<float>(11)); }), "got 11"));
  std::string unset = error_text([&] { f.run({{"x", {1, 2, 3, 4, 5, 6}}}); });
  CHECK(contains(unset, "3 params have no value"));
  CHECK(contains(unset, "'layer1.weight'"));
  set_weights(f);
  CHECK(contains(error_text([&] { f.run({{"y", {1, 2, 3, 4, 5, 6}}}); }), "has no input 'y'"));
  CHECK(contains(error_text([&] { f.run({{"x", {1, 2, 3}}}); }), "pass 6 values"));
  CHECK(contains(error_text([&] { f.run(); }), "input 'x' [2, 3] f32 was not given"));
  double wide[6] = {};
  TensorView view{wide, DType::F64, {}, sizeof wide};
  CHECK(contains(error_text([&] { f.run_slots({&view, 1}); }), "got f64 values"));
  CHECK(contains(error_text([&] { f.read_state("kv"); }), "has no state 'kv'"));
}

TEST_CASE("run, run_typed, run_into and run_slots agree with the reference evaluator") {
  Graph g = two_layer();
  CompiledGraph f = Session().compile(two_layer());
  set_weights(f);
  std::vector<float> x = {0.5f, -1, 2, 3, 0.25f, -0.125f};
  NamedTensors values{{"x", Tensor::of<float>({2, 3}, x)}};
  CompiledGraph r = Session::on_backend("reference").compile(two_layer());
  set_weights(r);
  std::vector<float> expected = r.run({{"x", x}})[0];

  std::vector<float> got = f.run({{"x", x}})[0];
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  CHECK(f.run_typed(values)[0].to_f32() == got);
  TensorView in{x.data(), DType::F32, {}, x.size() * 4};
  std::vector<float> out(4);
  MutableTensorView to{out.data(), DType::F32, {}, 16};
  f.run_into({&in, 1}, {&to, 1});
  CHECK(out == got);
  std::span<const Slot> slots = f.run_slots({&in, 1});
  REQUIRE(slots.size() == 1);
  const auto* from = reinterpret_cast<const float*>(f.arena_ptr() + slots[0].offset);
  CHECK(std::vector<float>(from, from + slots[0].count) == got);
}

TEST_CASE("a weight set after a run counts in the next run, in this clone alone") {
  CompiledGraph f = Session().compile(two_layer());
  set_weights(f);
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> first = f.run({{"x", x}})[0];
  CompiledGraph c = f.clone();
  CHECK(c.run({{"x", x}})[0] == first);
  c.set_param("layer1.weight", std::vector<float>(8, 0.0f));
  CHECK(c.run({{"x", x}})[0] == std::vector<float>(4, 0.0f));
  CHECK(f.run({{"x", x}})[0] == first);
}

TEST_CASE("sticky inputs serve runs that do not give them") {
  CompiledGraph f = Session().compile(two_layer());
  set_weights(f);
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> first = f.run({{"x", x}})[0];
  f.set_input("x", x);
  CHECK(f.run()[0] == first);
  CHECK(f.run({{"x", {0, 0, 0, 0, 0, 0}}})[0] != first);
  CHECK(f.run()[0] == first);
}

TEST_CASE("states carry a value from run to run; reset, write and clone") {
  Graph g("counter");
  Expr x = g.input("x", {{2}, DType::F32});
  Expr total = g.state("total", Tensor::of<float>({2}, std::vector<float>{10, 20}));
  Expr next = total + x;
  g.set_state("total", next);
  g.set_outputs({next * 2});
  CompiledGraph f = Session().compile(std::move(g));
  CHECK(f.run({{"x", {1, 2}}})[0] == std::vector<float>{22, 44});
  CHECK(f.run({{"x", {1, 2}}})[0] == std::vector<float>{24, 48});
  CHECK(f.read_state("total").to_f32() == std::vector<float>{12, 24});
  CompiledGraph c = f.clone();
  f.reset();
  CHECK(f.run({{"x", {0, 0}}})[0] == std::vector<float>{20, 40});
  CHECK(c.run({{"x", {0, 0}}})[0] == std::vector<float>{24, 48});
  c.write_state("total", Tensor::of<float>({2}, std::vector<float>{-1, -2}));
  CHECK(c.run({{"x", {0, 0}}})[0] == std::vector<float>{-2, -4});
}

TEST_CASE("symbolic dimensions: a shape compiles once, bounds are kept, counts solve one unknown") {
  Graph g("sym");
  Dim n = g.symbol("n", {.min = 1, .max = 8, .divisor = 1});
  Expr x = g.input("x", {{n, 3}, DType::F32});
  g.set_outputs({g.sum(x, {1})});
  CompiledGraph f = Session().compile(std::move(g));
  CHECK(f.run({{"x", {1, 2, 3, 4, 5, 6}}})[0] == std::vector<float>{6, 15});
  CHECK(f.run({{"x", {1, 2, 3}}})[0] == std::vector<float>{6});
  CHECK(contains(error_text([&] { f.run({{"x", std::vector<float>(27)}}); }), "symbol 'n' = 9"));
  CHECK(contains(error_text([&] { f.run({{"x", std::vector<float>(4)}}); }), "not a multiple of 3"));
}

TEST_CASE("arena_bytes is what the last used shape takes: small again after a small one") {
  Graph g("sym");
  Expr x = g.input("x", {{g.symbol("n", {.min = 1, .max = 4096}), 3}, DType::F32});
  g.set_outputs({g.cumsum(g.softmax(g.cumsum(x, 0)), 0)});
  CompiledGraph f = Session().compile(std::move(g));
  CHECK(f.arena_bytes() == 0);
  f.run({{"x", std::vector<float>(30)}});
  const std::size_t small = f.arena_bytes();
  CHECK(small > 0);
  f.run({{"x", std::vector<float>(3000)}});
  CHECK(f.arena_bytes() > small);
  CHECK(f.clone().arena_bytes() == f.arena_bytes());
  f.run({{"x", std::vector<float>(30)}});
  CHECK(f.arena_bytes() == small);
}

TEST_CASE("bytes that values cannot be read at: runs refuse them by name, weights are copied") {
  Graph g("g");
  Expr x = g.input("x", {{3}, DType::F32});
  g.set_outputs({x * g.param("w", {{3}, DType::F32})});
  CompiledGraph f = Session().compile(std::move(g));
  alignas(16) std::byte bytes[64] = {};
  const float values[] = {1, 2, 3};
  std::memcpy(bytes + 1, values, sizeof values);
  class Odd final : public WeightLoader {
   public:
    explicit Odd(const void* data) : data_(data) {}
    std::vector<std::string> names() const override { return {"w"}; }
    std::optional<TensorView> find(std::string_view) const override { return TensorView{data_, DType::F32, dims_, 12}; }

   private:
    const void* data_;
    std::vector<std::int64_t> dims_{3};
  };
  CHECK(f.load_params(std::make_shared<Odd>(bytes + 1)) == 1);
  CHECK(f.run({{"x", {1, 1, 1}}})[0] == std::vector<float>{1, 2, 3});
  f.set_param_typed("w", bytes + 1, 12, DType::F32);
  CHECK(f.run({{"x", {2, 2, 2}}})[0] == std::vector<float>{2, 4, 6});
  const TensorView odd{bytes + 1, DType::F32, {}, 12}, fine{values, DType::F32, {}, 12};
  CHECK(contains(error_text([&] { f.run_slots({&odd, 1}); }), "input 'x': its address is not a multiple of 4"));
  const MutableTensorView room{bytes + 17, DType::F32, {}, 12}, good{bytes + 20, DType::F32, {}, 12};
  CHECK(contains(error_text([&] {
                   f.run_into({&fine, 1}, {&room, 1});
                 }),
                 "output 'out0': its address is not a multiple"));
  f.run_into({&fine, 1}, {&good, 1});
  CHECK(reinterpret_cast<const float*>(bytes + 20)[2] == 9);
}

TEST_CASE("the bytes of 4-bit values mean the same count whatever ran before") {
  Graph g("nibbles");
  Dim n = g.symbol("n", {.max = 100});
  g.set_outputs({g.cast(g.input("x", {{n}, DType::I4}), DType::F32)});
  CompiledGraph f = Session().compile(std::move(g));
  const unsigned char bytes[] = {0x21, 0x43};
  const std::vector<std::int64_t> three{3};
  const TensorView with_dims{bytes, DType::I4, three, 2}, without{bytes, DType::I4, {}, 2};
  for (int run = 0; run < 2; ++run) {
    CHECK(f.run_slots({&with_dims, 1})[0].count == 3);
    const Slot slot = f.run_slots({&without, 1})[0];
    REQUIRE(slot.count == 4);
    CHECK(reinterpret_cast<const float*>(f.arena_ptr() + slot.offset)[3] == 4);
  }

  Graph rows("rows");
  Dim m = rows.symbol("m", {.max = 100});
  rows.set_outputs({rows.cast(rows.input("x", {{m, 3}, DType::I4}), DType::F32)});
  CompiledGraph r = Session().compile(std::move(rows));
  const std::vector<std::int64_t> one_row{1, 3};
  const TensorView row{bytes, DType::I4, one_row, 2};
  CHECK(r.run_slots({&row, 1})[0].count == 3);
  CHECK(contains(error_text([&] { r.run_slots({&without, 1}); }), "4 values are not a multiple of 3"));
}

TEST_CASE("inputs in memory that the run writes are refused by name") {
  const auto compile = [](bool donated) {
    Graph g("sums");
    Dim n = g.symbol("n", {.max = 4096});
    Expr x = g.input("x", {{n}, DType::F32});
    if (donated)
      g.set_outputs({x + 1.0});
    else
      g.set_outputs({g.cumsum(g.reverse(x, {0}), 0), g.cumsum(x, 0)});
    CompileOptions options;
    if (donated) options.donate = {{"x", 0}};
    return Session().with_threads(1).compile_with(std::move(g), options);
  };
  const auto view_of = [](const void* data, const std::vector<std::int64_t>& dims) {
    return TensorView{data, DType::F32, dims, static_cast<std::size_t>(dims[0]) * sizeof(float)};
  };
  const auto at = [](CompiledGraph& f, const Slot& slot) { return f.arena_ptr() + slot.offset; };
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<std::int64_t> dims{4};
  const TensorView v = view_of(values.data(), dims);
  const std::string_view refused =
      "input 'x' of graph 'sums' is in memory of this CompiledGraph, which the run overwrites";

  CompiledGraph f = compile(false);
  const Slot first = f.run_slots({&v, 1})[0];
  const TensorView slot = view_of(at(f, first), dims);
  CHECK(contains(error_text([&] { f.run_slots({&slot, 1}); }), refused));
  CHECK(contains(error_text([&] { f.profile({&slot, 1}); }), refused));
  const NamedTensors borrowed{{"x", Tensor::borrowed(slot.data, Shape({4}, DType::F32), nullptr)}};
  CHECK(contains(error_text([&] { f.run_raw(borrowed); }), refused));
  CHECK(contains(error_text([&] { f.commit_no_wait(borrowed); }), refused));
  CompiledGraph other = f.clone();  // it has its own memory
  CHECK(other.run_slots({&slot, 1}).size() == 2);

  // A slot may be an input if the results go elsewhere.
  const std::vector<float> once = f.run({{"x", values}})[0], sums = f.run({{"x", once}})[1];
  CHECK(once == std::vector<float>{4, 7, 9, 10});
  f.run_slots({&v, 1});
  CHECK(f.run_typed(borrowed)[1].to_f32() == sums);
  std::vector<float> a(4), b(4);
  const MutableTensorView out[] = {{a.data(), DType::F32, dims, 16}, {b.data(), DType::F32, dims, 16}};
  f.run_slots({&v, 1});
  f.run_into({&slot, 1}, out);
  CHECK(b == sums);
  // But not for a run that needs more memory, which replaces the memory of the slot.
  Graph two("two");
  Expr x = two.input("x", {{4}, DType::F32}), y = two.input("y", {{two.symbol("m", {.max = 4096})}, DType::F32});
  two.set_outputs({x + 1.0, two.cumsum(two.reverse(y, {0}), 0)});
  CompiledGraph grows = Session().compile(std::move(two));
  const TensorView small[] = {v, v};
  const TensorView kept = view_of(at(grows, grows.run_slots(small)[0]), dims);
  const std::vector<float> ones(4096, 1.0F);
  const std::vector<std::int64_t> many{4096};
  const TensorView large[] = {kept, view_of(ones.data(), many)};
  std::vector<float> c(4096);
  const MutableTensorView room[] = {{a.data(), DType::F32, dims, 16}, {c.data(), DType::F32, many, 4096 * 4}};
  CHECK(contains(error_text([&] { grows.run_into(large, room); }), "input 'x' of graph 'two' is in"));
  const TensorView fits[] = {kept, v};
  const MutableTensorView small_room[] = {{a.data(), DType::F32, dims, 16}, {b.data(), DType::F32, dims, 16}};
  grows.run_into(fits, small_room);
  CHECK(a == std::vector<float>{3, 4, 5, 6});

  // A donated input may be the slot of its output, as run_into may use one buffer for both.
  CompiledGraph g = compile(true);
  const Slot result = g.run_slots({&v, 1})[0];
  const TensorView in_place = view_of(at(g, result), dims);
  g.run_slots({&in_place, 1});
  const auto* p = reinterpret_cast<const float*>(at(g, result));
  CHECK(std::vector<float>(p, p + 4) == std::vector<float>{3, 4, 5, 6});
  const std::vector<std::int64_t> few{3};
  const TensorView shifted = view_of(at(g, result) + 4, few);
  CHECK(contains(error_text([&] { g.run_slots({&shifted, 1}); }), refused));
}

TEST_CASE("clones run at the same time") {
  CompiledGraph f = Session().compile(two_layer());
  set_weights(f);
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> expected = f.run({{"x", x}})[0];
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t, c = f.clone()]() mutable {
      for (int i = 0; i < 50; ++i) wrong[t] += c.run({{"x", x}})[0] != expected;
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("the user's line is in the error of a wrong graph") {
  Graph g("bad");
  Expr x = g.input("x", {{1, 4}, DType::F32});
  Expr w = g.param("w", {{3, 2}, DType::F32});
  std::string text = error_text([&] { g.matmul(x, w); });
  CHECK(contains(text, "shape mismatch"));
  CHECK(contains(text, concat_text("compiled_graph_test.cpp:", __LINE__ - 2)));
}

}  // namespace
}  // namespace rlx

namespace rlx {
namespace {

TEST_CASE("setting one of several weights that are packed together changes its columns alone") {
  Graph g("shared");
  Expr x = g.input("x", {{1, 4}, DType::F32});
  auto [a, b] = g.shared_linear_pair(x, g.param("w1", {{4, 3}, DType::F32}), g.param("w2", {{4, 5}, DType::F32}));
  g.set_outputs({a, b});
  CompiledGraph f = Session().compile(std::move(g));
  f.set_param("w1", std::vector<float>(12, 1.0f));
  f.set_param("w2", std::vector<float>(20, 2.0f));
  std::vector<float> x_values = {1, 2, 3, 4};
  auto y = f.run({{"x", x_values}});
  CHECK(y[0] == std::vector<float>(3, 10.0f));
  CHECK(y[1] == std::vector<float>(5, 20.0f));
  CompiledGraph c = f.clone();
  f.set_param("w2", std::vector<float>(20, -1.0f));
  y = f.run({{"x", x_values}});
  CHECK(y[0] == std::vector<float>(3, 10.0f));
  CHECK(y[1] == std::vector<float>(5, -10.0f));
  CHECK(c.run({{"x", x_values}})[1] == std::vector<float>(5, 20.0f));
}

TEST_CASE("a profile counts the bytes that packed weights have") {
  constexpr std::int64_t kIn = 64, kOut = 96;
  const auto read = [&](DType of) {
    Graph g("bytes");
    const Expr x = g.input("x", {{1, kIn}, DType::F32}), w = g.param("w", {{kIn, kOut}, of});
    g.set_outputs({g.matmul(x, of == DType::F32 ? w : g.cast(w, DType::F32))});
    CompiledGraph f = Session().with_threads(1).compile(std::move(g));
    f.set_param("w", Tensor::zeros({{kIn, kOut}, of}));
    const std::vector<float> values(kIn, 1.0f);
    const std::int64_t dims[] = {1, kIn};
    const TensorView view{values.data(), DType::F32, dims, values.size() * sizeof(float)};
    double bytes = 0;
    for (const NodeTime& t : f.profile({&view, 1})) bytes += t.cost.read_bytes;
    return bytes;
  };
  const double values = kIn * sizeof(float);
  CHECK(read(DType::F32) == values + kIn * kOut * 4);  // whole panels, so nothing is added
  CHECK(read(DType::BF16) == values + kIn * kOut * 2);
}

}  // namespace
}  // namespace rlx
