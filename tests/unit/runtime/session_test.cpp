// Session: every way to compile, its options and its results.
#include "rlx/runtime/session.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "rlx/runtime/device_ext.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

// A linear layer as a HIR block.
void build(Graph& g) {
  Expr x = g.input("x", {{2, 4}, DType::F32});
  Expr w = g.param("w", {{4, 3}, DType::F32}), b = g.param("b", {{3}, DType::F32});
  g.set_outputs({g.linear(x, w, b, ActivationKind::Gelu)});
}

Graph layer() {
  Graph g("layer");
  build(g);
  return g;
}

// The ops that the HIR blocks of a compile were lowered to.
bool lowered_to_fused(const CompiledGraph& f) {
  for (const PipelineStage& s : f.compile_result().stages)
    if (s.name == lower_hir.name) return op_histogram(s.graph).contains("fused_dot");
  FAIL("the compile has no lower-hir stage");
  return false;
}

CompileOptions keeping_stages() {
  CompileOptions o;
  o.keep_stages = true;
  return o;
}

std::vector<float> ramp(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = 0.25f * static_cast<float>(i) - 1.0f;
  return v;
}

std::vector<float> result_of(CompiledGraph f) {
  f.set_param("w", ramp(12));
  f.set_param("b", ramp(3));
  return f.run({{"x", ramp(8)}})[0];
}

TEST_CASE("the policy of a module survives every entry, and an option overrides it") {
  const Session s;
  for (FusionPolicy policy : {FusionPolicy::Direct, FusionPolicy::Fusable}) {
    const bool fused = policy == FusionPolicy::Direct;
    CAPTURE(fused);
    HirModule m = HirModule::named("layer", build);
    CHECK(m.policy == FusionPolicy::Direct);
    m.policy = policy;
    CHECK(lowered_to_fused(s.compile_hir(m, keeping_stages())) == fused);
    CHECK(lowered_to_fused(s.compile_module(GraphModule(m), keeping_stages())) == fused);
    FusionReport report;
    CHECK(op_histogram(CompilePipeline(s.target()).lower_hir(m).graph).contains("fused_dot") == fused);
    CHECK(op_histogram(m.lower_to_mir().graph).contains("fused_dot") == fused);
    CHECK(!op_histogram(m.lower_for_autodiff().graph).contains("fused_dot"));
    CompileOptions other = keeping_stages();
    other.policy = fused ? FusionPolicy::Fusable : FusionPolicy::Direct;
    CHECK(lowered_to_fused(s.compile_hir(m, other)) == !fused);
    CHECK(lowered_to_fused(s.compile_with(layer(), other)) == !fused);
  }
  CHECK(lowered_to_fused(s.compile_with(layer(), keeping_stages())));
}

TEST_CASE("a program runs alike from every stage") {
  const Session s;
  const std::vector<float> expected = result_of(s.compile(layer()));
  CHECK(result_of(s.compile_graph(layer())) == expected);
  CHECK(result_of(s.compile_hir(HirModule::named("layer", build))) == expected);
  CHECK(layer().module().stage() == GraphStage::Hir);
  CHECK(result_of(s.compile_module(Graph::define("layer", build))) == expected);
  MirModule mir = HirModule::named("layer", build).lower_to_mir();
  CHECK(mir.graph.module().stage() == GraphStage::Mir);
  CHECK(result_of(s.compile_module(GraphModule(mir))) == expected);
  LirModule lir = CompilePipeline(s.target()).compile_graph(layer()).lir;
  CHECK(result_of(s.compile_module(GraphModule(lir))) == expected);
  CompiledGraph f = s.compile_module(GraphModule(lir));
  REQUIRE(f.params().size() == 2);
  CHECK(test::contains(test::error_text([&] { f.set_param("v", ramp(3)); }), "no param 'v'"));
  CHECK(test::contains(test::error_text([&] { (void)f.run({{"x", ramp(8)}}); }), "'w'"));
}

TEST_CASE("a planned program is believed only where it fits") {
  const Session s;
  const LirModule good = CompilePipeline(s.target()).compile_graph(layer()).lir;
  auto refused = [&](const Session& on, LirModule lir, CompileOptions options = {}) {
    return test::error_text([&] { (void)on.compile_module(GraphModule(std::move(lir)), std::move(options)); });
  };
  LirModule cut = good;
  cut.plan.values.pop_back();
  CHECK(test::contains(refused(s, cut), "planned nodes, but needs"));
  LirModule overlapping = good;
  for (auto& node : overlapping.plan.values)
    for (LirValue& v : node) v = LirValue{Place::Arena, 0, 0, std::size_t{1} << 20, {}, false};
  CHECK(test::contains(refused(s, overlapping), "invalid plan"));
  LirModule no_weights = good;
  no_weights.prepare.set_outputs(std::vector<Value>{});
  CHECK(test::contains(refused(s, no_weights), "prepared weights"));
  CompileOptions few;
  few.supported_ops = OpSet{OpKind::Binary};
  CHECK(test::contains(refused(s, good, few), "a target other than"));
  CompileOptions wide;
  wide.arena_alignment = 4096;
  CHECK(test::contains(refused(s, good, wide), "aligned to"));
}

TEST_CASE("a session says its precision; an option wins over it, f32 too") {
  Session s;
  CHECK(s.precision() == Precision::F32);
  CHECK(s.policy() == PrecisionPolicy::always_f32());
  s.with_precision(Precision::BF16);
  CHECK(s.precision() == Precision::BF16);
  CHECK(s.policy() == PrecisionPolicy::of_precision(Precision::BF16));
  s.with_policy(PrecisionPolicy::auto_mixed());
  CHECK(s.precision() == Precision::F16);
  const std::vector<float> f32 = result_of(Session().compile(layer())), f16 = result_of(s.compile(layer()));
  CHECK(f16 != f32);
  CompileOptions o;
  o.precision = PrecisionPolicy::always_f32();
  CHECK(result_of(s.compile_with(layer(), o)) == f32);
  o.precision = PrecisionPolicy::auto_mixed();
  CHECK(result_of(Session().compile_with(layer(), o)) == f16);
}

TEST_CASE("try_new and try_compile answer with the error") {
  Result<Session> none = Session::try_new(Device::Mlx);
  REQUIRE(!none.ok());
  CHECK(none.error().code == ErrorCode::DeviceUnavailable);
  Result<Session> s = Session::try_new(Device::Cpu);
  REQUIRE(s.ok());
  Result<CompiledGraph> f = s->try_compile(layer());
  REQUIRE(f.ok());
  CHECK(result_of(std::move(*f)) == result_of(Session().compile(layer())));
  CompileOptions o;
  o.supported_ops = OpSet{OpKind::Relayout};
  Result<CompiledGraph> refused = s->try_compile_with(layer(), o);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::Unsupported);
  CHECK(test::contains(refused.error().text(), "cannot run on"));
}

TEST_CASE("the arena is aligned as asked") {
  CompileOptions o;
  for (std::size_t alignment : {std::size_t{256}, std::size_t{4096}, std::size_t{1} << 16}) {
    o.arena_alignment = alignment;
    Graph g("chain");
    Expr x = g.input("x", {{3, 5}, DType::F32});
    g.set_outputs({g.softmax(x), g.reduce_max(g.softmax(g.mul(x, 2.0f)), {1})});
    CompiledGraph f = Session().compile_with(std::move(g), o);
    const std::vector<float> x_values = ramp(15);
    const std::vector<std::int64_t> dims{3, 5};
    const TensorView view{x_values.data(), DType::F32, dims, x_values.size() * sizeof(float)};
    for (const Slot& slot : f.run_slots({&view, 1})) {
      CHECK(slot.offset % alignment == 0);
      CHECK(reinterpret_cast<std::uintptr_t>(f.arena_ptr() + slot.offset) % alignment == 0);
    }
    CHECK(f.compile_result().lir.plan.alignment == alignment);
    const auto typed = f.run({{"x", x_values}});
    CHECK(std::equal(typed[1].begin(), typed[1].end(),
                     reinterpret_cast<const float*>(f.arena_ptr() + f.run_slots({&view, 1})[1].offset)));
  }
  o.arena_alignment = 96;
  CHECK(
      test::contains(test::error_text([&] { (void)Session().compile_with(layer(), o); }), "96 is not a power of two"));
}

TEST_CASE("an aligned arena has room for every shape, in whatever order they grow") {
  CompileOptions o;
  o.arena_alignment = std::size_t{1} << 16;
  Graph g("grows");
  Expr x = g.input("x", {{g.symbol("n", {.max = 1 << 20})}, DType::F32});
  g.set_outputs({x + 1.0});  // no arena: only one slot grows, by one alignment at a time
  CompiledGraph f = Session().compile_with(std::move(g), o);
  for (std::int64_t n = 64; n < 1 << 17; n += 16320) {
    const std::vector<float> ones(static_cast<std::size_t>(n), 1.0F);
    const TensorView view{ones.data(), DType::F32, {}, ones.size() * sizeof(float)};
    const Slot slot = f.run_slots({&view, 1})[0];
    CHECK(reinterpret_cast<const float*>(f.arena_ptr() + slot.offset)[n - 1] == 2);
  }
}

TEST_CASE("a program of open symbols is compiled when they get values") {
  Graph g("open");
  Dim batch = g.symbol("batch"), seq = g.symbol("seq", {1, 512, 1});
  Expr x = g.input("x", {{batch, seq, 8}, DType::F32});
  g.set_outputs({g.gelu(g.add(g.matmul(x, g.param("w", {{8, 8}, DType::F32})), g.param("b", {{8}, DType::F32})))});
  const Session s;
  const CompileResult open = CompilePipeline(s.target()).compile_graph(std::move(g));
  CHECK(open.has_dynamic_dims());
  CHECK(open.lir.graph.has_dynamic_dims());
  CHECK(open.dynamic_symbols() == std::vector<std::string>{"batch", "seq"});
  CHECK(open.lir.plan.schedule.empty());
  CHECK(!inspect_compiled(open).text().empty());
  CHECK(test::contains(test::error_text([&] { (void)s.compile_module(GraphModule(open.lir)); }), "unbound symbols"));
  CHECK(test::contains(test::error_text([&] { (void)open.specialize({{"sek", 4}}); }), "did you mean 'seq'"));
  CHECK(test::contains(test::error_text([&] { (void)open.specialize({{"seq", 513}}); }), "outside [1, 512]"));
  const CompileResult half = open.specialize({{"seq", 4}});
  CHECK(half.dynamic_symbols() == std::vector<std::string>{"batch"});
  const CompileResult whole = half.specialize({{"batch", 2}});
  CHECK(!whole.has_dynamic_dims());
  CHECK(whole.dynamic_symbols().empty());
  CHECK(whole.lir.graph.shape(whole.lir.graph.outputs()[0]).static_dims() == std::vector<std::int64_t>{2, 4, 8});
  CHECK(whole.fusion.fused_count("matmul_bias_act") == 1);
  CompiledGraph f = s.compile_module(GraphModule(whole.lir));
  f.set_param("w", ramp(64));
  f.set_param("b", ramp(8));
  CHECK(f.run({{"x", ramp(64)}})[0].size() == 64);
}

TEST_CASE("device queries take the options of a compile") {
  Graph g = layer();
  CompileOptions few;
  few.supported_ops = OpSet{OpKind::DotGeneral, OpKind::Activation};
  CHECK(supports_graph_with_options(Device::Cpu, g, {}));
  CHECK(!supports_graph_with_options(Device::Cpu, g, few));
  CHECK(first_unsupported_op_with_options(Device::Cpu, g, few)->second == OpKind::Linear);
  CHECK(!dispatch_report_for_device_with_options(g, Device::Cpu, few).compile_ready());
  CHECK(test::contains(test::error_text([&] { (void)legalize_graph_for_device_with_options(g, Device::Cpu, few); }),
                       "cannot run on"));
  CompileOptions chains;
  chains.policy = FusionPolicy::Fusable;
  CHECK(op_histogram(legalize_graph_for_device_with_options(g, Device::Cpu, {})).contains("fused_dot"));
  CHECK(!op_histogram(legalize_graph_for_device_with_options(g, Device::Cpu, chains)).contains("fused_dot"));
}

TEST_CASE("legality: the illegal nodes with their kinds") {
  Graph g("g");
  Expr x = g.input("x", {{4}, DType::F32});
  g.set_outputs({g.gelu(g.add(x, x))});
  CHECK(legalize_for_backend(g, OpSet::everything()).empty());
  const auto illegal = legalize_for_backend(g, OpSet{OpKind::Binary});
  REQUIRE(illegal.size() == 1);
  CHECK(illegal[0].first == NodeId{2});
  CHECK(illegal[0].second == OpKind::Activation);
}

}  // namespace
}  // namespace rlx
