// Weights: packed from the caller's memory, without a second copy, and read back if a later shape needs them.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "tests/support/build_kind.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::f32;

/// `n` small values that depend on the seed; sums of some hundred are exact in F32.
std::vector<float> values(std::size_t n, int seed) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<float>(static_cast<int>((i * 7 + static_cast<std::size_t>(seed) * 13) % 11) - 5) / 4;
  return v;
}

Tensor tensor(std::vector<std::int64_t> dims, int seed) {
  std::size_t n = 1;
  for (std::int64_t d : dims) n *= static_cast<std::size_t>(d);
  return Tensor::of<float>(std::move(dims), values(n, seed));
}

/// The results of the reference rules for the values.
std::vector<float> expected(const Graph& g, const NamedTensors& v) { return evaluate(g, v)[0].to_f32(); }

/// The bytes of a packed [k, n] weight: whole panels of columns.
void check_packed_only(const CompiledGraph& f, std::size_t raw_bytes) {
  CHECK(f.prepared_bytes() >= raw_bytes);
  CHECK(f.prepared_bytes() < raw_bytes + raw_bytes / 4);
}

Graph product(Dim rows, std::int64_t k, std::int64_t n) {
  Graph g("product");
  if (!rows.is_static()) g.symbol("rows", {.min = 1, .max = 64});
  g.set_outputs({g.matmul(g.input("x", f32({rows, k})), g.param("w", f32({k, n})))});
  return g;
}

/// Tensors in memory, as a checkpoint holds them.
class MemoryLoader final : public WeightLoader {
 public:
  explicit MemoryLoader(NamedTensors t) : tensors_(std::move(t)) {
    for (const auto& [name, value] : tensors_) dims_.emplace(name, value.dims());
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, value] : tensors_) out.push_back(name);
    return out;
  }
  std::optional<TensorView> find(std::string_view name) const override {
    auto it = tensors_.find(name);
    if (it == tensors_.end()) return std::nullopt;
    return TensorView{it->second.data(), it->second.dtype(), dims_.find(name)->second, it->second.size_bytes()};
  }

 private:
  NamedTensors tensors_;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> dims_;
};

TEST_CASE("set_param packs from the caller's memory and keeps no other copy") {
  CompiledGraph f = Session().compile(product(3, 64, 96));
  CHECK(f.prepared_bytes() == 0);
  std::vector<float> w = values(64 * 96, 1);
  const NamedTensors v{{"x", tensor({3, 64}, 2)}, {"w", Tensor::of<float>({64, 96}, w)}};
  f.set_param("w", w);
  check_packed_only(f, 64 * 96 * 4);
  w.assign(w.size(), 0);  // the caller may change its memory again
  CHECK(f.run({{"x", v.at("x").to_f32()}})[0] == expected(product(3, 64, 96), v));
  check_packed_only(f, 64 * 96 * 4);
}

TEST_CASE("before the first shape a copy waits, and is given back when it is packed") {
  CompiledGraph f = Session().compile(product(Dim::symbol("rows"), 64, 96));
  const NamedTensors v{{"x", tensor({5, 64}, 2)}, {"w", tensor({64, 96}, 3)}};
  f.set_param("w", v.at("w").to_f32());
  CHECK(f.prepared_bytes() == 64 * 96 * 4);
  CHECK(f.run({{"x", v.at("x").to_f32()}})[0] == expected(product(5, 64, 96), v));
  check_packed_only(f, 64 * 96 * 4);
  const std::size_t packed = f.prepared_bytes();
  f.run({{"x", values(7 * 64, 1)}});  // another shape uses the same packed layout
  CHECK(f.prepared_bytes() == packed);
  f.set_param("w", values(64 * 96, 4));  // now packed directly into it
  CHECK(f.prepared_bytes() == packed);
  CHECK(f.run({{"x", v.at("x").to_f32()}})[0] ==
        expected(product(5, 64, 96), {{"x", v.at("x")}, {"w", tensor({64, 96}, 4)}}));
}

// The peak of resident bytes of this process since the last call. It is 0 if the system does not report it, and under
// the thread sanitizer, whose shadow memory is counted too.
std::size_t peak_and_reset() {
#if defined(RLX_THREAD_SANITIZER)
  return 0;
#endif
  std::ifstream status("/proc/self/status");
  std::string line;
  std::size_t kb = 0;
  while (std::getline(status, line))
    if (line.starts_with("VmHWM:")) kb = static_cast<std::size_t>(std::stoul(line.substr(6)));
  std::FILE* refs = std::fopen("/proc/self/clear_refs", "w");
  if (!refs) return 0;
  const bool reset = std::fputs("5", refs) >= 0;
  return std::fclose(refs) == 0 && reset ? kb * 1024 : 0;
}

TEST_CASE("the peak of memory while weights are set is one packed copy beside the caller's") {
  constexpr std::size_t kBytes = std::size_t{4096} * 4096 * 4;
  CompiledGraph f = Session().compile(product(1, 4096, 4096));
  const std::vector<float> w(kBytes / 4, 0.5F);
  (void)peak_and_reset();
  const std::size_t before = peak_and_reset();
  if (before == 0) {
    MESSAGE("the peak of this process cannot be reset here; the bytes are counted by prepared_bytes alone");
  }
  f.set_param("w", w);
  f.finalize();
  const std::size_t after = peak_and_reset();
  if (before != 0) CHECK(after - before < kBytes + kBytes / 4);
  check_packed_only(f, kBytes);
}

// x [2, 32] by w1 [32, 24] and by w2 [32, 40], which are packed as one weight.
Graph joined_pair() {
  Graph g("joined");
  Expr x = g.input("x", f32({2, 32}));
  auto [a, b] = g.shared_linear_pair(x, g.param("w1", f32({32, 24})), g.param("w2", f32({32, 40})));
  g.set_outputs({a, b});
  return g;
}

TEST_CASE("weights packed together: one is set without its siblings, in a clone too") {
  const Graph g = joined_pair();
  CompiledGraph f = Session().compile(g);
  NamedTensors v{{"x", tensor({2, 32}, 1)}, {"w1", tensor({32, 24}, 2)}, {"w2", tensor({32, 40}, 3)}};
  auto check = [&](CompiledGraph& h) {
    const auto got = h.run({{"x", v.at("x").to_f32()}});
    const std::vector<Tensor> want = evaluate(g, v);
    CHECK(got[0] == want[0].to_f32());
    CHECK(got[1] == want[1].to_f32());
  };
  f.set_param("w1", v.at("w1").to_f32());
  const std::string missing = test::error_text([&] { f.finalize(); });
  CHECK(test::contains(missing, "1 param has no value: 'w2'"));
  f.set_param("w2", v.at("w2"));
  check(f);
  check_packed_only(f, 32 * 64 * 4);
  const std::size_t packed = f.prepared_bytes();
  CompiledGraph c = f.clone();
  const NamedTensors old = v;
  v.insert_or_assign("w2", tensor({32, 40}, 4));
  c.set_param("w2", v.at("w2").to_f32());
  check(c);
  CHECK(c.prepared_bytes() == packed);
  v = old;
  check(f);
}

TEST_CASE("a clone of a half set program does not see what the other half becomes") {
  const Graph g = joined_pair();
  CompiledGraph f = Session().compile(g);
  f.set_param("w1", values(32 * 24, 1));
  CompiledGraph c = f.clone();
  f.set_param("w2", values(32 * 40, 2));
  c.set_param("w2", values(32 * 40, 3));
  const NamedTensors v{{"x", tensor({2, 32}, 5)}, {"w1", tensor({32, 24}, 1)}, {"w2", tensor({32, 40}, 2)}};
  CHECK(f.run({{"x", values(64, 5)}})[1] == evaluate(g, v)[1].to_f32());
  CHECK(c.run({{"x", values(64, 5)}})[1] ==
        evaluate(g, {{"x", v.at("x")}, {"w1", v.at("w1")}, {"w2", tensor({32, 40}, 3)}})[1].to_f32());
}

TEST_CASE("a weight that a kernel also reads as it is stays beside its packed layout") {
  Graph g("tied");
  Expr ids = g.input("ids", {{3}, DType::I32});
  Expr w = g.param("w", f32({48, 32}));
  g.set_outputs({g.matmul(g.gather(w, ids), g.t(w)), g.gather(w, ids, 1)});
  CompiledGraph f = Session().compile(g);
  const Tensor rows = Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{5, 0, 31});
  for (int seed : {1, 2}) {
    f.set_param("w", values(48 * 32, seed));
    CHECK(f.run_typed({{"ids", rows}})[0].to_f32() == expected(g, {{"ids", rows}, {"w", tensor({48, 32}, seed)}}));
  }
  CHECK(f.prepared_bytes() >= 2 * 48 * 32 * 4);
}

TEST_CASE("values computed from weights follow each weight that is set alone") {
  Graph g("computed");
  Expr x = g.input("x", f32({4, 16}));
  Expr w1 = g.param("w1", f32({16, 16})), w2 = g.param("w2", f32({16, 16}));
  // One packed layout concatenates w1 and a sum that contains it.
  g.set_outputs(
      {g.matmul(x, g.concat({w1, w1 + w2}, 1)) + g.concat({g.param("b1", f32({16})), g.param("b2", f32({16}))}, 0)});
  CompiledGraph f = Session().compile(g);
  NamedTensors v{{"x", tensor({4, 16}, 9)},
                 {"w1", tensor({16, 16}, 1)},
                 {"w2", tensor({16, 16}, 2)},
                 {"b1", tensor({16}, 3)},
                 {"b2", tensor({16}, 4)}};
  for (const IoInfo& p : f.params()) f.set_param(p.name, v.at(p.name));
  CHECK(f.run({{"x", v.at("x").to_f32()}})[0] == expected(g, v));
  int seed = 10;
  CompiledGraph c = f.clone();
  for (const char* name : {"w1", "b2", "w2", "b1"}) {
    v.insert_or_assign(name, tensor(v.at(name).dims(), ++seed));
    f.set_param(name, v.at(name).to_f32());
    CHECK(f.run({{"x", v.at("x").to_f32()}})[0] == expected(g, v));
  }
  v = {{"x", v.at("x")},
       {"w1", tensor({16, 16}, 1)},
       {"w2", tensor({16, 16}, 2)},
       {"b1", tensor({16}, 3)},
       {"b2", tensor({16}, 4)}};
  CHECK(c.run({{"x", v.at("x").to_f32()}})[0] == expected(g, v));
}

// The first shape packs the whole weight, a later one reads a part of it: the values are unpacked.
TEST_CASE("a shape that needs another packed layout of a weight finds its values") {
  for (bool transposed : {false, true}) {
    CAPTURE(transposed);
    auto build = [&](Dim n) {
      Graph g("parts");
      if (!n.is_static()) g.symbol("n", {.min = 1, .max = 33});
      Expr x = g.input("x", f32({2, n})), z = g.input("z", f32({2, 33}));
      Expr w = g.param("w", transposed ? f32({128, 33}) : f32({33, 128})),
           u = g.param("u", transposed ? f32({64, 33}) : f32({33, 64}));
      auto product = [&](Expr a, Expr b) { return g.matmul(a, transposed ? g.t(b) : b); };
      auto part = transposed ? g.slice(w, {0, 0}, {128, n}, {1, 1}) : g.slice(w, {0, 0}, {n, 128}, {1, 1});
      // z times u and w: both are in one packed layout, so w is one of its sources.
      g.set_outputs({product(x, part) + product(z, w), product(z, u)});
      return g;
    };
    CompiledGraph f = Session().compile(build(Dim::symbol("n")));
    const NamedTensors weights{
        {"w", tensor(transposed ? std::vector<std::int64_t>{128, 33} : std::vector<std::int64_t>{33, 128}, 3)},
        {"u", tensor(transposed ? std::vector<std::int64_t>{64, 33} : std::vector<std::int64_t>{33, 64}, 4)}};
    for (const auto& [name, t] : weights) f.set_param(name, t);
    for (std::int64_t n : {33, 8, 20}) {
      CAPTURE(n);
      NamedTensors v = weights;
      v.emplace("x", tensor({2, n}, 5));
      v.emplace("z", tensor({2, 33}, 6));
      const std::vector<Tensor> want = evaluate(build(n), v), got = f.run_typed({{"x", v.at("x")}, {"z", v.at("z")}});
      CHECK(got[0].to_f32() == want[0].to_f32());
      CHECK(got[1].to_f32() == want[1].to_f32());
      if (n == 33) check_packed_only(f, 33 * (128 + 192) * 4);  // w for x, w and u for z
    }
  }
}

TEST_CASE("values computed for a shape go when its program goes") {
  Graph g("positions");
  Dim n = g.symbol("n", {.min = 1, .max = 128});
  Expr table = g.param("table", f32({128, 128}));
  g.set_outputs({g.sum(g.input("x", f32({n, 128})) + g.slice(table, {0, 0}, {n, 128}, {1, 1}), {0, 1})});
  CompiledGraph f = Session().compile(std::move(g));
  f.set_param("table", std::vector<float>(128 * 128, 1.0F));
  for (std::int64_t rows = 128; rows > 0; --rows)
    CHECK(f.run({{"x", std::vector<float>(static_cast<std::size_t>(rows * 128), 1.0F)}})[0][0] ==
          static_cast<float>(rows * 256));
  // The last 33 shapes need 33 * 17 * 512 bytes, all of them 4.2 MB.
  CHECK(f.prepared_bytes() < 128 * 128 * 4 + 2 * 33 * 17 * 512);
}

TEST_CASE("a checkpoint in half precision is converted tensor by tensor and let go") {
  for (bool symbolic : {false, true}) {
    CAPTURE(symbolic);
    CompiledGraph f = Session().compile(product(symbolic ? Dim::symbol("rows") : Dim(2), 32, 64));
    auto loader = std::make_shared<const MemoryLoader>(NamedTensors{{"w", tensor({32, 64}, 1).cast(DType::F16)}});
    std::weak_ptr<const MemoryLoader> alive = loader;
    CHECK(f.load_params(std::move(loader)) == 1);
    if (symbolic) CHECK(f.prepared_bytes() == 0);  // still in the memory of the loader
    const NamedTensors v{{"x", tensor({2, 32}, 2)}, {"w", tensor({32, 64}, 1)}};
    CHECK(f.run({{"x", v.at("x").to_f32()}})[0] == expected(product(2, 32, 64), v));
    check_packed_only(f, 32 * 64 * 4);
    CHECK(alive.expired());
  }
}

TEST_CASE("bytes that lie at odd addresses are taken too") {
  CompiledGraph f = Session().compile(product(1, 16, 16));
  const Tensor w = tensor({16, 16}, 1);
  std::vector<std::byte> bytes(w.size_bytes() + 1);
  std::memcpy(bytes.data() + 1, w.data(), w.size_bytes());
  f.set_param_typed("w", bytes.data() + 1, w.size_bytes(), DType::F32);
  CHECK(f.run({{"x", values(16, 2)}})[0] == expected(product(1, 16, 16), {{"x", tensor({1, 16}, 2)}, {"w", w}}));
}

TEST_CASE("a mutable weight keeps its own layout: no packed layout, and each new value counts at once") {
  auto build = [](ParamMode mode) {
    Graph g("adapter");
    Expr x = g.input("x", f32({3, 64}));
    g.set_outputs({g.matmul(x, g.param("w", f32({64, 96}), mode)), g.matmul(x, g.param("v", f32({64, 96}), mode))});
    return g;
  };
  CompiledGraph frozen = Session().compile(build(ParamMode::Frozen));
  CompiledGraph changing = Session().compile(build(ParamMode::Mutable));
  CHECK(op_histogram(frozen.compile_result().lir.prepare).contains("relayout"));
  CHECK(!op_histogram(changing.compile_result().lir.prepare).contains("relayout"));
  CHECK(changing.compile_result().fusion.fused_count("shared_input_matmul") == 0);
  const Tensor x = tensor({3, 64}, 1);
  for (int seed : {2, 3, 4}) {
    const NamedTensors v{{"x", x}, {"w", tensor({64, 96}, seed)}, {"v", tensor({64, 96}, seed + 5)}};
    for (const char* name : {"w", "v"}) changing.set_param(name, v.at(name).to_f32());
    const auto y = changing.run({{"x", x.to_f32()}});
    const std::vector<Tensor> want = evaluate(build(ParamMode::Mutable), v);
    for (std::size_t i = 0; i < 2; ++i) CHECK(y[i] == want[i].to_f32());
    CHECK(changing.prepared_bytes() == 2 * 64 * 96 * 4);
  }
}

TEST_CASE("a weight that sixty-four products made, each from the one before twice, compiles and runs") {
  // A permutation of order three to the power 2^64, which is the power 2^64 mod 3 = 1.
  Graph g("powers");
  Expr w = g.param("w", f32({3, 3}));
  for (int i = 0; i < 64; ++i) w = g.matmul(w, w);
  g.set_outputs({g.matmul(g.input("x", f32({2, 3})), w)});
  CompiledGraph f = Session().compile(g);
  const float turn[] = {0, 1, 0, 0, 0, 1, 1, 0, 0};
  f.set_param("w", Tensor::of<float>({3, 3}, turn));
  CHECK(f.run({{"x", {1, 2, 3, 4, 5, 6}}})[0] == std::vector<float>{3, 1, 2, 6, 4, 5});
}

TEST_CASE("rows of a weight are converted between float dtypes, as the whole is") {
  Graph g("g");
  const Expr x = g.input("x", {{1, 3}, DType::F32});
  g.set_outputs({g.matmul(x, g.cast(g.param("w", {{3, 2}, DType::BF16}), DType::F32)),
                 g.sum(g.cast(g.param("i", {{2}, DType::I32}), DType::F32))});
  CompiledGraph f = Session().compile(std::move(g));
  f.set_param("w", Tensor::full({{3, 2}, DType::F32}, 1));
  f.set_param("w", Tensor::full({{1, 2}, DType::F32}, 3), Rows{1, 1});
  f.set_param("w", Tensor::full({{1, 2}, DType::F64}, 5), Rows{2, 1});
  f.set_param("i", Tensor::full({{2}, DType::I32}, 0));
  CHECK(f.run({{"x", {1, 10, 100}}})[0] == std::vector<float>(2, 1 + 30 + 500));
  CHECK(test::contains(test::error_text([&] { f.set_param("w", Tensor(), Rows{1, 1}); }), "an empty tensor"));
  CHECK(test::contains(test::error_text([&] {
                         f.set_param("i", Tensor::zeros({{1}, DType::F32}), Rows{0, 1});
                       }),
                       "1 of its rows are [1] i32, got [1] f32"));
}

}  // namespace
}  // namespace rlx
