// The facts that kernel entries give about their steps, and parts of a larger value that they read in place.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "rlx/backends/cpu/entries.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/runtime/session.h"

namespace rlx::cpu {
namespace {

struct Nothing {};
void run_nothing(const Nothing&, std::int64_t) {}

Tensor random_entries(unsigned seed, std::vector<std::int64_t> dims) {
  std::mt19937 rng(seed);
  std::size_t count = 1;
  for (const std::int64_t d : dims) count *= static_cast<std::size_t>(d);
  std::vector<float> values(count);
  for (float& v : values) v = std::uniform_real_distribution<float>(-3, 3)(rng);
  return Tensor::of<float>(dims, values);
}
std::int64_t steps_of(const CompiledGraph& f, OpKind kind) {
  const LirModule& lir = f.compile_result().lir;
  return std::count_if(lir.plan.schedule.begin(), lir.plan.schedule.end(),
                       [&](const LirStep& s) { return lir.graph.node(s.node).kind() == kind; });
}
bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

constexpr std::int64_t kHeads = 3, kDim = 64, kWidth = kHeads * kDim, kPlaces = 11;

}  // namespace

TEST_CASE("a node without steps says nothing of the step of the node before") {
  Graph g;
  g.set_outputs({g.softmax(g.input("x", Shape({4, 8}, DType::F32)))});
  const CompileResult result = CompilePipeline(Session().target()).compile_graph(std::move(g));
  const LirModule& lir = result.lir;
  const NodeId node = lir.plan.schedule[0].node;
  const std::size_t bytes = lir.plan.arenas.empty() ? 0 : lir.plan.arenas[0];
  const std::vector<BufferView> memory{BufferView(nullptr, bytes)};
  TaskList list;
  Nothing nothing;
  LowerContext first(lir, node, memory, kernels_for(best_isa()), 1, list);
  first.step<run_nothing>(nothing, 3, 1.0);
  LowerContext second(lir, node, memory, kernels_for(best_isa()), 1, list);
  second.step<run_nothing>(nothing, 0, 1.0);
  second.tile_rows(8, 1, 1, {0});
  REQUIRE(list.tasks.size() == 1);
  CHECK(list.tasks[0].halves.rows == 0);
  first.tile_rows(4, 1, 1, {0});
  CHECK(list.tasks[0].halves.rows == 4);
}

TEST_CASE("blocks are made in the places of a cache where they are put, from part of a wider value") {
  for (const QuantScheme scheme : {QuantScheme::Q8_0, QuantScheme::Q4_0})
    for (const IndexMode mode : {IndexMode::Drop, IndexMode::Clamp})
      for (const int threads : {1, 2}) {
        const auto graph = [&](bool others_read) {
          Graph g;
          const Dim t = g.symbol("t", SymbolInfo{.min = 1, .max = 300});
          const Expr x = g.input("x", Shape({t, 3 * kWidth}, DType::F32));
          const Expr slots = g.input("slots", Shape({t}, DType::I32));
          const Expr part = g.reshape(g.narrow(x * 1.5, 1, kWidth, kWidth), {t, kHeads, kDim});
          const Expr codes = g.quantize(part, scheme);
          const Expr pool = g.input("pool", Shape({kPlaces, kHeads, codes.dim(2)}, DType::U8));
          ops::Scatter put;
          put.fn = ScatterKind::Set, put.mode = mode;
          std::vector<Expr> outputs{g.scatter(pool, {slots}, codes, put)};
          if (others_read) outputs.push_back(codes);
          g.set_outputs(outputs);
          return g;
        };
        CompileOptions options;
        options.symbol_modes = {{"t", SymbolMode::runtime()}};
        CompiledGraph fused = Session().with_threads(threads).compile_with(graph(false), options);
        CompiledGraph apart = Session().with_threads(threads).compile_with(graph(true), options);
        CHECK(steps_of(fused, OpKind::Quantize) == 0);
        CHECK(steps_of(fused, OpKind::Slice) == 0);
        CHECK(steps_of(apart, OpKind::Quantize) == 1);
        CHECK(fused.compile_result().fusion.fused_count("encode_in_place") == 1);
        const FusionReport& report = apart.compile_result().fusion;
        CHECK(report.fused_count("encode_in_place") == 0);
        REQUIRE(report.missed_count("encode_in_place") == 1);
        CHECK(report.missed.back().reason == MissReason::IsOutput);
        for (const std::int64_t count : {std::int64_t{1}, std::int64_t{7}, std::int64_t{300}}) {
          NamedTensors in;
          in.emplace("x", random_entries(static_cast<unsigned>(count), {count, 3 * kWidth}));
          std::vector<std::int32_t> slots(static_cast<std::size_t>(count));
          std::mt19937 rng(4);
          for (std::int32_t& s : slots)
            s = static_cast<std::int32_t>(rng() % (kPlaces + 4)) - 2;  // some indices occur twice, some not at all
          in.emplace("slots", Tensor::of<std::int32_t>({count}, slots));
          const std::int64_t bytes = block_layout(scheme).bytes * kDim / 32;
          in.emplace("pool", Tensor::of<std::uint8_t>(
                                 {kPlaces, kHeads, bytes},
                                 std::vector<std::uint8_t>(static_cast<std::size_t>(kPlaces * kHeads * bytes), 7)));
          const std::vector<Tensor> wanted = evaluate(graph(true), in);
          CHECK(same_bytes(fused.run_typed(in)[0], wanted[0]));
          const std::vector<Tensor> got = apart.run_typed(in);
          CHECK(same_bytes(got[0], wanted[0]));
          CHECK(same_bytes(got[1], wanted[1]));
        }
      }
}

TEST_CASE("rows of every dtype are put from part of a wider value") {
  for (const DType dtype : {DType::F32, DType::BF16, DType::I64, DType::U8}) {
    const auto graph = [&] {
      Graph g;
      const Expr x = g.input("x", Shape({40, 3 * kWidth}, dtype)), slots = g.input("slots", Shape({40}, DType::I64));
      const Expr pool = g.input("pool", Shape({kPlaces, kHeads, kDim}, dtype));
      const Expr part = g.reshape(g.narrow(x, 1, kWidth, kWidth), {40, kHeads, kDim});
      g.set_outputs({g.scatter(ScatterKind::Set, pool, slots, part)});
      return g;
    };
    NamedTensors in;
    std::vector<double> values(static_cast<std::size_t>(40 * 3 * kWidth));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 199);
    std::vector<std::int64_t> at(40);
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i * 7 % 13) - 1;
    in.emplace("x", Tensor::of<double>({40, 3 * kWidth}, values).cast(dtype));
    in.emplace("slots", Tensor::of<std::int64_t>({40}, at));
    in.emplace("pool", Tensor::zeros(Shape({kPlaces, kHeads, kDim}, dtype)));
    CompiledGraph f = Session().compile(graph());
    CHECK(steps_of(f, OpKind::Slice) == 0);
    CHECK(same_bytes(f.run_typed(in)[0], evaluate(graph(), in)[0]));
  }
}

TEST_CASE("norms of heads read part of a wider value, in the bits of a copy of it") {
  for (const bool layer : {false, true})
    for (const bool heads_first : {false, true})
      for (const std::int64_t count : {std::int64_t{1}, std::int64_t{5}, std::int64_t{130}}) {
        const auto graph = [&](bool copied) {
          Graph g;
          const Expr x = g.input("x", Shape({count, 3 * kWidth}, DType::F32));
          const Expr gamma = g.input("gamma", Shape({kDim}, DType::F32));
          Expr part = g.reshape(g.narrow(x * 2, 1, kWidth, kWidth), {count, kHeads, kDim});
          if (heads_first) part = g.transpose(part, {1, 0, 2});
          const Expr y = layer ? g.layer_norm(part, gamma, g.neg(gamma)) : g.rms_norm(part, gamma);
          std::vector<Expr> outputs{y};
          if (copied) outputs.push_back(part);
          g.set_outputs(outputs);
          return g;
        };
        NamedTensors in;
        in.emplace("x", random_entries(9, {count, 3 * kWidth}));
        in.emplace("gamma", random_entries(10, {kDim}));
        CompiledGraph in_place = Session().compile(graph(false)), copied = Session().compile(graph(true));
        if (count > 1) CHECK(steps_of(in_place, OpKind::Slice) + steps_of(in_place, OpKind::Transpose) == 0);
        CHECK(same_bytes(in_place.run_typed(in)[0], copied.run_typed(in)[0]));
      }
}

}  // namespace rlx::cpu
