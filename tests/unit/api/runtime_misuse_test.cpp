// Misuse of sessions, compiled programs, devices and the pipeline.
#include <limits>
#include <memory>

#include "rlx/backends/cpu/custom_kernel.h"
#include "rlx/base/tick.h"
#include "rlx/base/trace.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/device/device.h"
#include "rlx/device/registry.h"
#include "rlx/ir/custom_op.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/text.h"
#include "rlx/report/report.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/model_function.h"
#include "rlx/runtime/nan_check.h"
#include "rlx/runtime/reports.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/hvp.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/module.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

namespace {
const Shape kRow({1, 2}, DType::F32), kSquare({2, 2}, DType::F32);

// y = x w + s, s = y
Graph program() {
  Graph g("program");
  const Expr x = g.input("x", kRow), w = g.param("w", kSquare);
  const Expr y = g.matmul(x, w) + g.state("s", Tensor::zeros(kRow));
  g.set_outputs({y});
  g.set_state("s", y);
  return g;
}

CompileResult no_result() {
  CompileResult r;
  return r;
}

CompileOptions with_binding(SymbolBinding binding) {
  CompileOptions o;
  o.dim_binding = std::move(binding);
  return o;
}

CompiledGraph compiled() { return Session().compile(program()); }

struct Loader : WeightLoader {
  TensorView view;
  std::vector<std::int64_t> dims{2, 2};
  explicit Loader(TensorView v) : view(v) { view.dims = dims; }
  std::vector<std::string> names() const override { return {"w"}; }
  std::optional<TensorView> find(std::string_view) const override { return view; }
};
constexpr auto kNoDevice = static_cast<Device>(77);
using rlx::test::kNoDType;
}  // namespace

TEST_CASE("misuse: params") {
  CompiledGraph f = compiled();
  const std::vector<float> four(4, 1), none;
  REFUSED("no param 'v'", f.set_param("v", four));
  REFUSED("no param ''", f.set_param("", four));
  REFUSED("it is a state", f.set_param("s", four));
  REFUSED("(4 values), got 0", f.set_param("w", none));
  REFUSED("(4 values), got 1", f.set_param("w", {1.0f}));
  REFUSED("got an empty tensor", f.set_param("w", Tensor()));
  REFUSED("got [3] f32", f.set_param("w", Tensor::zeros(Shape({3}, DType::F32))));
  REFUSED("got [2, 2] i32", f.set_param("w", Tensor::zeros(Shape({2, 2}, DType::I32))));
  REFUSED("the pointer to its 16 bytes is null", f.set_param_typed("w", nullptr, 16, DType::F32));
  REFUSED("got 0", f.set_param_typed("w", nullptr, 0, DType::F32));
  REFUSED("77 is not a DType", f.set_param_typed("w", four.data(), 16, kNoDType));
  REFUSED("got i32 values", f.set_param_typed("w", four.data(), 16, DType::I32));
  REFUSED("got", f.set_param_typed("w", four.data(), std::numeric_limits<std::size_t>::max(), DType::F32));
  REFUSED("no loader was given", f.load_params(nullptr));
  REFUSED("has no data, but needs 16",
          f.load_params(std::make_shared<Loader>(TensorView{nullptr, DType::F32, {}, 16})));
  REFUSED("has 4 bytes, but needs 16",
          f.load_params(std::make_shared<Loader>(TensorView{four.data(), DType::F32, {}, 4})));
  REFUSED("77 is not a DType", f.load_params(std::make_shared<Loader>(TensorView{four.data(), kNoDType, {}, 16})));
  CHECK(f.unset_params() == std::vector<std::string>{"w"});
  REFUSED("'w'", f.finalize());
  REFUSED("'w'", f.run({{"x", {1, 2}}}));
  f.set_param("w", four);
  CHECK(f.unset_params().empty());

  Graph open("open");
  open.set_outputs(
      {open.matmul(open.input("x", kRow), open.param("w", Shape({2, open.symbol("n", {1, 8})}, DType::F32)))});
  CompiledGraph unbound = Session().compile(std::move(open));
  REFUSED("dim_binding", unbound.set_param("w", four));
  REFUSED("dim_binding", unbound.set_param("w", Tensor::zeros(kSquare)));
}

TEST_CASE("misuse: inputs and runs") {
  CompiledGraph f = compiled();
  f.set_param("w", {1, 0, 0, 1});
  const std::vector<float> two(2, 1);
  REFUSED("no input 'y'", f.run({{"y", {1, 2}}}));
  REFUSED("'x'", f.run());
  REFUSED("'x'", f.run({{"x", {1}}}));
  REFUSED("'x'", f.run({{"x", {1, 2}}, {"x", {1, 2}}}));
  REFUSED("'x'", f.run_typed({{"x", Tensor()}}));
  REFUSED("'x'", f.run_device({{"x", Tensor()}}));
  REFUSED("has no input 'y'", f.run_device({{"y", Tensor()}}));
  REFUSED("'x'", f.run_typed({{"x", Tensor::zeros(Shape({1, 2}, DType::I32))}}));
  REFUSED("'x'", f.run_typed({{"x", Tensor::zeros(Shape({2, 1, 1}, DType::F32))}}));
  REFUSED("no input 'z'", f.run_raw(NamedTensors{{"z", Tensor::zeros(kRow)}}));
  REFUSED("'x'", f.run_raw());
  REFUSED("'x'", f.run_pipelined({{{"x", {1}}}}));
  CHECK(f.run_pipelined({}).empty());
  REFUSED("'x'", f.commit_no_wait());
  REFUSED("'x'", f.commit_no_wait(NamedTensors{{"x", Tensor()}}));
  CHECK(f.sync_pending().empty());
  REFUSED("no output 'out1'", f.output_index("out1"));

  float y[2];
  const std::int64_t dims[] = {1, 2}, negative[] = {-1, -2};
  const TensorView in{two.data(), DType::F32, dims, 8};
  const MutableTensorView out{y, DType::F32, dims, 8};
  auto into = [&](TensorView i, MutableTensorView o) { f.run_into({&i, 1}, {&o, 1}); };
  REFUSED("takes 1 inputs, got 0", f.run_into({}, {&out, 1}));
  REFUSED("has 1 outputs, got views for 0", f.run_into({&in, 1}, {}));
  REFUSED("'x'", into({nullptr, DType::F32, dims, 8}, out));
  REFUSED("'x'", into({two.data(), DType::F32, dims, 4}, out));
  REFUSED("'x'", into({two.data(), DType::I32, dims, 8}, out));
  REFUSED("77 is not a DType", into({two.data(), kNoDType, dims, 8}, out));
  REFUSED("'x'", into({two.data(), DType::F32, negative, 8}, out));
  REFUSED("'out0'", into(in, {nullptr, DType::F32, dims, 8}));
  REFUSED("'out0'", into(in, {y, DType::F32, dims, 4}));
  REFUSED("'out0'", into(in, {y, DType::F64, dims, 8}));
  REFUSED("77 is not a DType", into(in, {y, kNoDType, dims, 8}));
  REFUSED("takes 1 inputs, got 0", f.run_slots({}));
  REFUSED("takes 1 inputs, got 0", f.profile({}));
  REFUSED("takes 1 inputs, got dimensions for 0", f.prepare_shape({}));
  const std::vector<std::int64_t> wrong[] = {{5, 5}};
  CHECK_FALSE(test::error_text([&] { f.prepare_shape(wrong); }).empty());
  REFUSED("", f.set_active_extent(ActiveExtent{5, 2}));
  REFUSED("", f.set_active_extent(ActiveExtent{-1, 2}));
  Graph rows("rows");
  rows.set_outputs({rows.input("x", {{rows.symbol("n", {.max = 8}), 2}, DType::F32}) + 1.0});
  CompiledGraph padded = Session().compile(std::move(rows));
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  REFUSED("'n' is at most 8", padded.set_active_extent(ActiveExtent{kFar, kFar}));

  REFUSED("no input 'y'", f.set_input("y", two));
  REFUSED("'x'", f.set_input("x", std::span<const float>()));
  REFUSED("empty tensor", f.set_input("x", Tensor()));
  REFUSED("the pointer to its 8 bytes is null", f.set_input_typed("x", nullptr, 8, DType::F32));
  REFUSED("not a whole number of f32", f.set_input_typed("x", two.data(), 7, DType::F32));
  REFUSED("77 is not a DType", f.set_input_typed("x", two.data(), 8, kNoDType));
  REFUSED("no input or output 'y'", f.bind_handle("y", two));
  REFUSED("empty tensor", f.bind_handle("out0", Tensor()));
  REFUSED("no handle 'x'", f.read_handle("x"));
}

TEST_CASE("misuse: weights of another program") {
  const auto product = [](const char* name, Shape shape) {
    Graph g("product");
    g.set_outputs({g.input("x", kRow) * g.cast(g.sum(g.param(name, shape)), DType::F32)});
    return Session().compile(std::move(g));
  };
  CompiledGraph f = product("w", kSquare);
  REFUSED("no param 'w'", f.share_weights_from(product("v", kSquare)));
  REFUSED("param 'w' is", f.share_weights_from(product("w", kRow)));
  REFUSED("param 'w' is", f.share_weights_from(product("w", Shape({2, 2}, DType::F64))));
  CHECK(f.unset_params().size() == 1);
  f.share_weights_from(f);
}

TEST_CASE("misuse: states") {
  CompiledGraph f = compiled();
  REFUSED("no state 'k'", f.read_state("k"));
  REFUSED("no state 'k'", f.write_state("k", Tensor::zeros(kRow)));
  REFUSED("'s'", f.write_state("s", Tensor()));
  REFUSED("'s'", f.write_state("s", Tensor::zeros(kSquare)));
  REFUSED("'s'", f.write_state("s", Tensor::zeros(Shape({1, 2}, DType::F64))));
  Graph plain("plain");
  plain.set_outputs({plain.exp(plain.input("x", kRow))});
  CompiledGraph other = Session().compile(std::move(plain));
  REFUSED("no states to share", other.share_state_from(f));
  REFUSED("no state 's'", f.share_state_from(other));
  CHECK(f.share_state_from(f) == 1);
  f.reset();
  CHECK(f.read_state("s").at(1) == 0);
}

TEST_CASE("misuse: programs that were moved from") {
  CompiledGraph f = compiled();
  CompiledGraph g = std::move(f);
  const std::vector<float> four(4, 1);
  const std::string moved = "a CompiledGraph was used after it was moved from";
  // NOLINTBEGIN(bugprone-use-after-move)
  REFUSED(moved, f.device());
  REFUSED(moved, f.target_name());
  REFUSED(moved, f.code());
  REFUSED(moved, f.inputs());
  REFUSED(moved, f.params());
  REFUSED(moved, f.outputs());
  REFUSED(moved, f.states());
  REFUSED(moved, f.set_param("w", four));
  REFUSED(moved, f.set_param("w", Tensor::zeros(kSquare)));
  REFUSED(moved, f.set_param_typed("w", four.data(), 16, DType::F32));
  REFUSED(moved, f.load_params(std::make_shared<Loader>(TensorView{four.data(), DType::F32, {}, 16})));
  REFUSED(moved, f.unset_params());
  REFUSED(moved, f.finalize());
  REFUSED(moved, f.set_input("x", four));
  REFUSED(moved, f.set_input("x", Tensor::zeros(kRow)));
  REFUSED(moved, f.set_input_typed("x", four.data(), 8, DType::F32));
  REFUSED(moved, f.output_index("out0"));
  REFUSED(moved, f.run({{"x", {1, 2}}}));
  REFUSED(moved, f.run_typed({}));
  REFUSED(moved, f.run_into({}, {}));
  REFUSED(moved, f.run_slots({}));
  REFUSED(moved, f.arena_ptr());
  REFUSED(moved, f.run_raw());
  REFUSED(moved, f.run_raw(NamedTensors()));
  REFUSED(moved, f.run_pipelined({{}}));
  REFUSED(moved, f.commit_no_wait());
  REFUSED(moved, f.sync_pending());
  REFUSED(moved, f.set_active_extent({}));
  REFUSED(moved, f.prepare_shape({}));
  REFUSED(moved, f.profile({}));
  REFUSED(moved, median_profile(f, {}, 1));
  REFUSED(moved, inspect_html(f));
  REFUSED(moved, f.read_state("s"));
  REFUSED(moved, f.write_state("s", Tensor::zeros(kRow)));
  REFUSED(moved, f.reset());
  REFUSED(moved, f.share_state_from(g));
  REFUSED(moved, g.share_state_from(f));
  REFUSED(moved, f.bind_handle("x", four));
  REFUSED(moved, f.bind_handle("x", Tensor::zeros(kRow)));
  REFUSED(moved, f.read_handle("x"));
  REFUSED(moved, f.clone());
  REFUSED(moved, f.compile_result());
  REFUSED(moved, f.arena_bytes());
  REFUSED(moved, f.prepared_bytes());
  f = std::move(g);  // operator= makes it usable again
  CHECK(f.inputs().size() == 1);
  CompiledGraph again(std::move(f));
  CHECK(again.output_index("out0") == 0);

  Session s;
  const Session t = std::move(s);
  const std::string no_session = "a Session was used after it was moved from";
  REFUSED(no_session, s.compile(program()));
  REFUSED(no_session, s.compile_graph(program()));
  REFUSED(no_session, s.compile_with(program(), {}));
  REFUSED(no_session, s.compile_module(make_module(program())));
  REFUSED(no_session, s.compile_hir(HirModule{program()}));
  REFUSED(no_session, s.try_compile(program()).value());
  REFUSED(no_session, s.try_compile_with(program(), {}).value());
  REFUSED(no_session, s.target());
  REFUSED(no_session, s.device());
  REFUSED(no_session, s.open_device());
  // NOLINTEND(bugprone-use-after-move)
  CHECK(t.device() == Device::Cpu);
}

TEST_CASE("misuse: models as functions") {
  REFUSED("has no name", ModelFunction("", [](Graph&) { return ExprList(); }));
  REFUSED("has no function", ModelFunction("m", nullptr));
  const ModelFunction nothing("nothing", [](Graph&) { return std::vector<Expr>(); });
  REFUSED("returns no outputs", nothing.build_graph());
  REFUSED("returns no outputs", nothing.compiled());
  REFUSED("returns no outputs", nothing.operator()({}));
  REFUSED("77 is not a value of Device", nothing.compiled({.device = kNoDevice}));
  REFUSED("77 is not a value of Precision", nothing.compiled({.precision = static_cast<Precision>(77)}));
  REFUSED("null pointer", nothing.load_params(nullptr));
  const ModelFunction one("one",
                          [](Graph& g) { return std::vector<Expr>{g.input("x", Shape({1}, DType::F32)) + 1.0}; });
  one.set_param("", Tensor());
  REFUSED("param", one.compiled());
  REFUSED("'x'", one({}));
  ModelFunction::Program p = one.compiled();
  REFUSED("holds the program", one.compiled());
  const ModelFunction::Program q = std::move(p);
  REFUSED("moved from", p.operator*());   // NOLINT(bugprone-use-after-move)
  REFUSED("moved from", p.operator->());  // NOLINT(bugprone-use-after-move)
  CHECK(q->inputs().size() == 1);
}

TEST_CASE("misuse: sessions") {
  REFUSED("77 is not a value of Device", Session(kNoDevice));
  REFUSED("77 is not a value of Device", Session::try_new(kNoDevice).value());
  REFUSED("is not available", Session(Device::Mlx));
  REFUSED("no backend ''", Session::on_backend(""));
  REFUSED("no backend", Session::on_backend(std::string(100000, 'x')));
  Session s;
  REFUSED("threads", s.with_threads(-1));
  REFUSED("threads", s.with_threads(std::numeric_limits<int>::max()));
  REFUSED("77 is not a value of Precision", s.with_precision(static_cast<Precision>(77)));
  REFUSED("not f64", s.with_policy(PrecisionPolicy{{DType::F64, DType::F32, DType::F32, DType::F32}}));
  REFUSED("77 is not a DType", s.with_policy(PrecisionPolicy{{kNoDType, DType::F32, DType::F32, DType::F32}}));
  CHECK(s.precision() == Precision::F32);
  CHECK(s.policy().is_f32());
  REFUSED("no such set", s.with_isa("no such set"));
  CHECK_FALSE(s.try_compile_with(program(), with_binding({{"n", 1}})).ok());

  Graph used("used");
  const Expr x = used.input("x", kRow);
  used.set_outputs({used.exp(x)});
  CompiledGraph f = s.compile(std::move(used));
  REFUSED("after its graph was moved, compiled or destroyed", x + 1);
  REFUSED("graph 'empty' has no outputs", s.compile(Graph("empty")));
  REFUSED("graph 'empty' has no outputs", s.compile_module(make_module(Graph("empty"))));
  REFUSED("graph 'empty' has no outputs", s.compile_hir(HirModule{Graph("empty")}));
}

TEST_CASE("misuse: devices and backends") {
  const Graph g = program();
  REFUSED("77 is not a value of Device", device_info(kNoDevice));
  REFUSED("77 is not a value of Device", full_name(kNoDevice));
  REFUSED("77 is not a value of Device", drain_device(kNoDevice));
  REFUSED("77 is not a value of Device", backend_for(kNoDevice));
  REFUSED("77 is not a value of Device", register_backend(kNoDevice, nullptr));
  REFUSED("77 is not a value of Device", fastest_among(std::vector<Device>{kNoDevice, Device::Cpu}));
  REFUSED("77 is not a value of Device", legalize_graph_for_device(g, kNoDevice));
  REFUSED("77 is not a value of Device", legalize_graph_for_device_with_options(g, kNoDevice, {}));
  REFUSED("77 is not a value of Device", dispatch_report_for_device(g, kNoDevice));
  REFUSED("77 is not a value of Device", dispatch_report_for_device_with_options(g, kNoDevice, {}));
  REFUSED("77 is not a value of Device", fusion_target_for(kNoDevice));
  CHECK_FALSE(is_available(kNoDevice));
  CHECK(test::contains(unavailable_reason(kNoDevice), "77 is not a value of Device"));
  CHECK_FALSE(supports(kNoDevice, OpKind::MatMul));
  CHECK_FALSE(supports_graph(kNoDevice, g));
  CHECK_FALSE(supports_graph_with_options(kNoDevice, g, {}));
  CHECK_FALSE(supports_run_slots(kNoDevice));
  CHECK(first_unsupported_op(kNoDevice, g).has_value());
  CHECK(first_unsupported_op_with_options(kNoDevice, g, {}).has_value());
  REFUSED("999 is not a value of OpKind", supports(Device::Cpu, static_cast<OpKind>(999)));
  REFUSED("77 is not a value of Device", legalize_graph_for_device(g, kNoDevice));
  CHECK(fastest_among({}) == Device::Cpu);
  CHECK(devices_for(Graph()).size() == available_devices().size());
  CHECK_FALSE(parse_device("").has_value());
  CHECK_FALSE(parse_device(std::string(100000, 'x')).has_value());
  CHECK(backend_by_name("") == nullptr);
  for (const char* text : {"", ":", "cpu:", "cpu:-1", "cpu:1x", "cpu: 1", "cpu:99999999999999999999", ":0", "cpu:0:0"})
    CHECK_FALSE(parse_device_id(text).has_value());
  CHECK(no_such_device("nvidia:x").message == "device 'nvidia:x': 'x' is not an ordinal");
  CHECK(no_such_device("reverence", {"reference"}).hint == "did you mean 'reference'?");
  CHECK(no_such_device("").message == "there is no device ''");
  CHECK(parse_device_id("NVIDIA:3") == DeviceId(Device::Cuda, 3));
  CHECK(device_text({Device::Cuda, 3}) == "cuda:3");
  REFUSED("77 is not a value of Device", device_text(kNoDevice));
  REFUSED("77 is not a value of Device", probe_device(kNoDevice));
  REFUSED("77 is not a value of Device", require_backend(kNoDevice));
  REFUSED("this version has no CUDA backend", require_backend(Device::Cuda));
  CHECK(probe_device(Device::Cuda).count == 0);
  CHECK(probe_device(Device::Cpu).count == 1);
  register_backend(Device::Cpu, nullptr);  // documented: registers the built-in backend again
  CHECK(backend_for(Device::Cpu) != nullptr);
}

TEST_CASE("misuse: open devices") {
  REFUSED("no backend was given", open_device(nullptr, Device::Cpu));
  REFUSED("there is no device cpu:1: the machine has 1", open_device(backend_for(Device::Cpu), {Device::Cpu, 1}));
  REFUSED("ordinals count from 0 to 0", Session({Device::Cpu, -1}));
  REFUSED("77 is not a value of BufferUse", buffer_use_name(static_cast<BufferUse>(77)));
  const std::shared_ptr<OpenDevice> device = open_device(backend_for(Device::Cpu), Device::Cpu);
  CHECK(device == Session().open_device());
  CHECK(opened_devices(Device::Cpu).size() == 1);
  REFUSED("a native stream cannot be used", device->stream(1));
  REFUSED("no memory", device->allocate(std::size_t{1} << 62, BufferUse::Values));
  REFUSED("77 is not a value of BufferUse", device->allocate(8, static_cast<BufferUse>(77)));
  const auto stream = device->stream();
  const auto buffer = device->allocate(8, BufferUse::Values);
  const std::size_t in_use = device->memory().used();
  CHECK(in_use >= 8);
  std::byte bytes[16]{};
  const BufferView whole(*buffer, 0, 8), nowhere;
  REFUSED("an upload of 16 bytes to a buffer view of 8 bytes", stream->upload(bytes, whole));
  REFUSED("a download of 16 bytes from a buffer view of 8 bytes", stream->download(whole, bytes));
  REFUSED("a copy of 16 bytes from a buffer view of 8 bytes", stream->copy(whole, BufferView(bytes, 16)));
  REFUSED("a buffer view without memory", stream->upload(std::span(bytes, 4), BufferView(nullptr, 8)));
  REFUSED("16 bytes from a buffer of 8 bytes", device->get(*buffer, {bytes, DType::U8, {}, 16}, *stream));
  REFUSED("4 bytes is null", device->put({nullptr, DType::U8, {}, 4}, nullptr, BufferUse::Values, *stream));
  REFUSED("a read of 16 bytes from a buffer view of 8 bytes", buffer->read(bytes));
  REFUSED("an empty tensor was given", to(Tensor(), Device::Cpu));
  REFUSED("this version has no CUDA backend", to(Tensor::zeros(kRow), Device::Cuda));
  REFUSED("no buffer (a null pointer)", Tensor::on_device(nullptr, kRow));
  REFUSED("needs 16 bytes, but its buffer has 8", Tensor::on_device(buffer, kSquare));
  const Tensor there = Tensor::on_device(buffer, kRow);
  REFUSED("on a device", there.data());
  REFUSED("on a device", there.to_f32());
  REFUSED("on a device", there.at(0));
  REFUSED("on a device", there.rows(0, 1));
  REFUSED("on a device", there.cast(DType::F64));
  REFUSED("on a device", there.identical(there));
  REFUSED("on a device", Tensor(there).mutable_data());
  REFUSED("on a device", Tensor(there).set(0, 1));
  CHECK(there.text() == "[1, 2] f32 {on a device}");
  CHECK(there.to_host().num_elements() == 2);
  CHECK(Tensor().to_host().empty());
  stream->upload({}, nowhere);
  CHECK(device->memory().used() == in_use);
}

TEST_CASE("misuse: the pipeline") {
  const std::shared_ptr<const Target> target = Session().target();
  CompilePipeline pipeline(target);
  CompileOptions unknown = with_binding({{"n", 1}});
  REFUSED("'n'", bind_module(make_module(program()), unknown));
  CompileOptions odd;
  odd.arena_alignment = 3;
  REFUSED("alignment", target_with_options(target, odd));
  odd.arena_alignment = std::size_t{1} << 62;
  REFUSED("more than a GiB", target_with_options(target, odd));
  REFUSED("null pointer", target_with_options(nullptr, {}));
  REFUSED("null pointer", CompilePipeline(nullptr));
  REFUSED("null pointer", limited_to(nullptr, OpSet()));
  REFUSED("null pointer", with_alignment(nullptr, 64));
  odd.arena_alignment = 0;
  REFUSED("alignment", target_with_options(target, odd));
  CompileOptions nobody, far, mode;
  nobody.donate = {{"nobody", 0}};
  far.donate = {{"x", 99}};
  mode.symbol_modes = {{"n", SymbolMode::runtime(4)}};
  for (const CompileOptions& o : {nobody, far, mode})
    CHECK_FALSE(test::error_text([&] { (void)CompilePipeline(target, o).compile_graph(program()); }).empty());
  REFUSED("999 is not a value of OpKind",
          KernelDispatchConfig().policy_of(OpKind::MatMul) == KernelDispatchPolicy::PreferNative
              ? precision_category(static_cast<OpKind>(999))
              : PrecisionCategory::Compute);
  CHECK(pipeline.compile_module(make_module(Graph("empty"))).lir.graph.num_nodes() == 0);
  CHECK(pipeline.lower_hir(HirModule{Graph()}).graph.num_nodes() == 0);
  FusionReport fusion;
  KernelDispatchReport dispatch;
  CHECK(pipeline.optimize_with_report(MirModule{Graph()}, fusion).graph.num_nodes() == 0);
  CHECK(pipeline.legalize(MirModule{Graph()}, dispatch).graph.num_nodes() == 0);
  CHECK(pipeline.plan_lir(MirModule{Graph()}).graph.num_nodes() == 0);
  Graph open("open");
  open.set_outputs({open.exp(open.input("x", Shape({open.symbol("n", {1, 8})}, DType::F32)))});
  CHECK_FALSE(test::error_text([&] { (void)pipeline.plan_lir(MirModule{open}); }).empty());
  const CompileResult result = pipeline.compile_graph(open);
  CHECK(result.has_dynamic_dims());
  CHECK(result.dynamic_symbols() == std::vector<std::string>{"n"});
  REFUSED("'m'", result.specialize({{"m", 2}}));
  REFUSED("'n'", result.specialize({{"n", 99}}));
  CHECK_FALSE(inspect_lir(result.lir).empty());  // no plan yet
  CHECK_FALSE(inspect_lir_stats(result.lir).empty());
  CHECK_FALSE(inspect_buffer_plan(LirModule{open, {}, Graph()}).empty());
  CHECK(inspect_plan_notes(LirModule{open, {}, Graph()}).empty());
  CHECK(inspect_copies(LirModule{Graph(), {}, Graph()}).empty());
  CHECK_FALSE(inspect_html(result).empty());
  CHECK_FALSE(inspect_html(CompileResult()).empty());
  CHECK_FALSE(test::error_text([&] {
                (void)Session().compile_module(GraphModule(LirModule{program(), {}, Graph()}));
              }).empty());
  REFUSED("no planned node 5", LirBufferPlan().at(Value(NodeId{5})));
  LirBufferPlan several;
  several.arena_devices = {0, 1}, several.node_devices = {0};
  REFUSED("no arena 5", several.arena_device(5));
  REFUSED("no planned node 5", several.node_device(NodeId{5}));
  CHECK_FALSE(inspect_compiled(no_result()).text().empty());
  CHECK(inspect_fusion(Graph(), target).missed.empty());
  CHECK_FALSE(inspect_pipeline(make_module(Graph("empty")), target).text().empty());
  CHECK(dump_file(result, "folder/") == "folder/open.ir.txt");
  CompileResult named;
  for (const auto& [name, file] : {std::pair<std::string, std::string>{"../../etc/x", "_.._.._etc_x"},
                                   {"", "_"},
                                   {std::string("a\0\nb", 4), "a__b"},
                                   {std::string(5000, 'n'), std::string(200, 'n')}}) {
    named.lir.graph.set_name(name);
    CHECK(dump_file(named, "folder/") == "folder/" + file + ".ir.txt");
    CHECK(dump_file(named, "file") == "file");
  }
  REFUSED("no_such_folder", dump_pipeline(result, "/no_such_folder/file"));
  maybe_dump_pipeline(no_result());  // no dump was requested: no effect
  CHECK_FALSE(maybe_log_fusion(no_result()));
  CHECK_FALSE(maybe_log_dispatch(no_result()));

  REFUSED("77 is not a value of DispatchPath", dispatch_path_name(static_cast<DispatchPath>(77)));
  REFUSED("77 is not a value of KernelDispatchPolicy",
          kernel_dispatch_policy_name(static_cast<KernelDispatchPolicy>(77)));
  CHECK_FALSE(parse_kernel_dispatch_policy("").has_value());
  REFUSED("77 is not a value of PrecisionCategory", PrecisionPolicy().of(static_cast<PrecisionCategory>(77)));
  REFUSED("77 is not a value of Precision", PrecisionPolicy::of_precision(static_cast<Precision>(77)));
  REFUSED("77 is not a value of MatmulPrecision",
          PrecisionPolicy::with_matmul_precision(static_cast<MatmulPrecision>(77)));
  REFUSED("77 is not a value of MatmulPrecision", matmul_precision_name(static_cast<MatmulPrecision>(77)));
  CHECK(apply_precision(Graph(), PrecisionPolicy::always_f16()).num_nodes() == 0);
  CHECK(legalize_for_backend(Graph(), OpSet()).empty());
  REFUSED("matmul", legalize_or_rewrite_for_backend(program(), OpSet(), ""));
  KernelDispatchReport report;
  CHECK(rewrite_for_backend(program(), OpSet(), "", report).num_nodes() > 0);
  CHECK_FALSE(report.compile_ready());
  CHECK_FALSE(report.text().empty());
  (void)rewrite_for_backend(Graph(), OpSet(), "", report);
  CHECK(report.compile_ready());
  CHECK_FALSE(needs_no_kernel(Node{ops::MatMul{}, {}, {}, {}}));
}

TEST_CASE("misuse: symbol modes") {
  Graph g("g");
  const Dim n = g.symbol("n", {1, 64}), m = g.symbol("m");
  g.set_outputs({g.exp(g.input("x", Shape({n, m}, DType::F32)))});
  REFUSED("1 <= min", power_of_two_ladder(0, 8));
  REFUSED("1 <= min", power_of_two_ladder(8, 4));
  REFUSED("1 <= min", power_of_two_ladder(1, std::numeric_limits<std::int64_t>::max()));
  auto modes = [&](SymbolMode mode) { return SymbolModes{{"n", std::move(mode)}}; };
  REFUSED("'k'", check_symbol_modes(g, {{"k", SymbolMode::specialise()}}));
  REFUSED("'k'", check_symbol_modes(g, {}, {{"k", 1}}));
  REFUSED("'n'", check_symbol_modes(g, modes(SymbolMode::bucket({}))));
  REFUSED("'n'", check_symbol_modes(g, modes(SymbolMode::bucket({8, 4}))));
  REFUSED("'n'", check_symbol_modes(g, modes(SymbolMode::runtime(-1))));
  REFUSED("'m'", check_symbol_modes(g, {{"m", SymbolMode::runtime()}}));
  REFUSED("'n'", upper_extent(g, {}, "n", 65));
  REFUSED("'n'", upper_extent(g, modes(SymbolMode::bucket({8})), "n", 9));
  REFUSED("'n'", upper_extent(g, modes(SymbolMode::runtime(8)), "n", 9));
  CHECK_FALSE(test::error_text([&] { (void)upper_extent(g, modes(SymbolMode::bucket({})), "n", 3); }).empty());
  CHECK(plan_symbols(Graph(), {}).empty());
}

TEST_CASE("misuse: passes and fusion reports") {
  REFUSED("77 is not a value of FusionTarget", fusion_target_name(static_cast<FusionTarget>(77)));
  REFUSED("77 is not a value of FusionTarget", default_claims(static_cast<FusionTarget>(77)));
  REFUSED("77 is not a value of FusionTarget", supported_for_target(static_cast<FusionTarget>(77)));
  REFUSED("77 is not a value of FusionTarget", FusionOptions().for_target(static_cast<FusionTarget>(77)));
  REFUSED("77 is not a value of FusionTarget", fusion_passes(static_cast<FusionTarget>(77), {}));
  CHECK_FALSE(miss_reason_name(static_cast<MissReason>(77)).empty());
  CHECK(find_pass("") == nullptr);
  CHECK(FusionReport().fused_count("nothing") == 0);
  CHECK(FusionReport().missed_count("nothing") == 0);
  CHECK_FALSE(FusionReport().summary_line().empty());
  CHECK_FALSE(FusionReport().text().empty());
  CHECK_FALSE(MissedFusion().text().empty());
  CHECK(op_histogram(Graph()).empty());
  REFUSED("999 is not a value of OpKind", supports_op(OpSet(), static_cast<OpKind>(999)));
  PassContext context;
  REFUSED("an empty Expr", context.refuses(Expr(), program().node(NodeId{0})));
  CHECK_FALSE(test::error_text([&] { (void)context.together(Graph(), NodeId{3}, NodeId{4}); }).empty());
  context.fused("p");  // no report: nothing is recorded
  context.missed("p", Graph(), NodeId(), MissReason::NotFused, "");
  FusionReport report;
  context.report = &report;
  REFUSED("has no value", context.missed("p", Graph(), NodeId{3}, MissReason::NotFused, ""));
  CHECK(run_passes(Graph(), {}, context).num_nodes() == 0);
  CHECK(run_passes(Graph(), all_passes(), context).num_nodes() == 0);
  const Pass* const null_pass[] = {nullptr};
  REFUSED("one of the passes is a null pointer", run_passes(Graph(), null_pass, context));
  REFUSED("one of the passes is a null pointer", changed_by_passes(Graph(), null_pass, context));
  CHECK_FALSE(changed_by_passes(Graph(), all_passes(), context).has_value());
  CHECK(fusion_passes_for_supported(OpSet(), {}).size() <= all_passes().size());
}

TEST_CASE("misuse: modules") {
  const GraphModule m = make_module(program());
  REFUSED("but stage hir is needed", m.hir());
  REFUSED("but stage lir is needed", m.lir());
  REFUSED("but stage mir is needed", GraphModule(HirModule{Graph()}).mir());
  REFUSED("but stage lir is needed", GraphModule(HirModule{Graph()}).into_lir());
  REFUSED("77 is not a value of GraphStage", stage_name(static_cast<GraphStage>(77)));
  GraphModule taken = make_module(program());
  CHECK(std::move(taken).into_graph().num_nodes() > 0);
  CHECK(taken.graph().num_nodes() == 0);  // NOLINT(bugprone-use-after-move)
  CHECK(taken.stage() == GraphStage::Mir);
  CHECK(lower_blocks(Graph(), static_cast<FusionPolicy>(77)).num_nodes() == 0);
  CHECK_FALSE(holds_blocks(Graph()));
  CHECK(HirModule::named("", [](Graph&) {}).lower_to_mir().graph.num_nodes() == 0);
  CHECK(HirModule{Graph()}.lower_for_autodiff().graph.num_nodes() == 0);
  for (const std::string& text :
       {inspect_graph(Graph()), inspect_graph_stats(Graph()), inspect_graph_diff(Graph(), Graph()),
        inspect_hir(HirModule{Graph()}), inspect_hir_stats(HirModule{Graph()}), inspect_mir(MirModule{Graph()}),
        inspect_mir_stats(MirModule{Graph()}), inspect_mir_diff(MirModule{Graph()}, MirModule{Graph()}),
        inspect_module(m), bytes_text(~std::size_t{0})})
    CHECK_FALSE(text.empty());
}

TEST_CASE("misuse: transforms") {
  Graph g("g"), other("other");
  const Expr x = g.input("x", kRow), i = g.input("i", Shape({2}, DType::I32));
  g.set_outputs({g.sum(x * x)});
  const Expr foreign = other.input("x", kRow);
  using Transform = TransformResult (*)(const Graph&, const std::vector<Wrt>&);
  const std::pair<const char*, Transform> all[] = {{"grad", grad},
                                                   {"grad_with_loss", grad_with_loss},
                                                   {"value_and_grad", value_and_grad},
                                                   {"vjp", vjp},
                                                   {"jvp", jvp},
                                                   {"hvp", hvp},
                                                   {"jacrev", jacrev},
                                                   {"jacfwd", jacfwd},
                                                   {"hessian", hessian}};
  for (const auto& entry : all) {
    const char* const name = entry.first;
    const Transform transform = entry.second;
    CAPTURE(name);
    REFUSED("belongs to graph 'other', not to 'g'", transform(g, {foreign}));
    REFUSED("an empty Expr", transform(g, {Expr()}));
    REFUSED("'y'", transform(g, {"y"}));
    REFUSED("an empty name", transform(g, {""}));
    REFUSED("an empty name", transform(g, {static_cast<const char*>(nullptr)}));
    REFUSED("is not a value of graph", transform(g, {NodeId{99}}));
    REFUSED("is not a value of graph", transform(g, {Value(NodeId{0}, 5)}));
    REFUSED("[2] i32", transform(g, {i}));
    CHECK_FALSE(test::error_text([&] { (void)transform(Graph("none"), {"x"}); }).empty());
    const Graph nothing("nothing");
    const std::string text = test::error_text([&] { (void)transform(nothing, {}); });
    CHECK_FALSE(test::contains(text, "please report"));
  }
  REFUSED("belongs to graph 'other'", linearize(g, {foreign}));
  REFUSED("'y'", linearize(g, {"y"}));
  REFUSED("'y'", vmap(g, {{"y", 0}}, 2));
  CHECK_FALSE(test::error_text([&] { (void)vmap(g, {{"x", 9}}, 2); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)vmap(g, {{"x", 0}}, -1); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)vmap(g, {{"x", 0}}, 2, {9}); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)vmap(g, {{"x", 0}}, 2, {0, 0, 0}); }).empty());
  const GraphModule lir(LirModule{program(), {}, Graph()});
  CHECK_FALSE(test::error_text([&] { (void)grad_with_loss_module(lir, {"x"}); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)jvp_module(lir, {"x"}); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)prepare_module_for_ad(lir); }).empty());
  CHECK(prepare_graph_for_ad(Graph()).graph.num_nodes() == 0);
  const Wrt wrt(x);
  CHECK(wrt.name().empty());
  CHECK(wrt.value() == x.value());
  CHECK(wrt.expr().has_value());
}

TEST_CASE("misuse: environment and clocks") {
  CHECK_FALSE(env_get("").has_value());
  CHECK_FALSE(env_flag("NO_SUCH_VARIABLE"));
  {
    const RuntimeOverrides threads("RLX_THREADS", "many");
    REFUSED("RLX_THREADS", env_int("RLX_THREADS"));
    REFUSED("RLX_THREADS", Session());
  }
  env_set("RLX_THREADS", "-1");
  REFUSED("RLX_THREADS", env_int("THREADS"));
  env_unset("RLX_THREADS");
  env_unset("RLX_THREADS");  // the second call has no effect
  CHECK_FALSE(env_variables().empty());
  REFUSED("RLX_NAN_CHECK = 'maybe'", parse_nan_check("maybe", "RLX_NAN_CHECK"));
  CHECK(time_ns([] {}) >= 0);
}

TEST_CASE("misuse: custom ops") {
  REFUSED("", register_op(op_def(OpKind::MatMul)));
  CHECK(registered_op("") == nullptr);
  CHECK(registered_op("acme.nobody") == nullptr);
  const OpBox box = custom_op("acme.nobody", 1.0);
  REFUSED("acme.nobody", custom_attrs<float, float, float>(box));
  CHECK(test::contains(test::error_text([] { (void)custom_attrs<double>(ops::MatMul{}); }), "read as another kind"));
  Graph g("g");
  CHECK_FALSE(test::error_text([&] { (void)g.add(box, {g.input("x", kRow)}); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)g.add(custom_op(""), {g.input("y", kRow)}); }).empty());
}

TEST_CASE("misuse: records field by field") {
  const auto shape = +[](const InferContext& c) -> Result<Shapes> { return Shapes{c.input(0)}; };
  const auto compute = +[](const RefArgs&) {};
  REFUSED("acme.part", CustomOpDef("acme.part").record());
  REFUSED(".infer(f)", register_op(CustomOpDef("acme.part").inputs("x").reference(compute)));
  REFUSED(".reference(f)", register_op(CustomOpDef("acme.part").inputs("x").infer(shape)));
  REFUSED(".inputs(", register_op(CustomOpDef("acme.part").infer(shape).decompose(none("no"))));
  const auto whole = [&](const char* name) { return CustomOpDef(name).inputs("x").infer(shape).reference(compute); };
  REFUSED("lower-case words", register_op(whole("")));
  REFUSED("planner", register_op(whole("acme.part").level(Level::Lir)));
  REFUSED("HIR block", register_op(whole("acme.part").level(Level::Hir)));
  REFUSED("by_decomposition", register_op(whole("acme.part").vjp(by_decomposition)));
  REFUSED("by_decomposition", register_op(whole("acme.part").jvp(by_decomposition)));
  REFUSED("by_decomposition", register_op(whole("acme.part").batch(by_decomposition)));
  REFUSED("no shape rule", register_op(whole("acme.part").infer(none("later"))));
  REFUSED("ordered op", register_op(whole("acme.part").ordered().decompose([](DecomposeContext&) {})));
  REFUSED("no run function", register_op(whole("acme.no_kernel").kernel(CpuKernel{})));
  const OpDef def =
      whole("acme.part").what("a part").elementwise().precision(PrecisionCategory::Compute).cost(no_cost).record();
  CHECK(def.elementwise == ElementwiseKind::Yes);
  CHECK(def.precision == PrecisionCategory::Compute);
  CHECK(registered_op("acme.part") == nullptr);
}

TEST_CASE("misuse: custom kernels") {
  REFUSED("acme.nobody", register_cpu_kernel("acme.nobody", CpuKernel{}));  // run is null
  float two[2] = {1, 2};
  const std::int64_t dims[] = {2};
  const KernelInput in = KernelInput(3, TensorView{two, DType::F32, dims, sizeof two});
  const KernelOutput out = KernelOutput(4, MutableTensorView{two, DType::F32, dims, sizeof two});
  REFUSED("operand 3", in.as<double>().value());
  REFUSED("result 4", out.as<std::int32_t>().value());
  REFUSED("77 is not a DType", KernelInput(0, TensorView{two, kNoDType, dims, 8}).as<float>().value());
  CHECK(KernelInput(0, TensorView()).as<float>().value().empty());
  CHECK(KernelOutput(0, MutableTensorView()).as<float>().value().empty());
}

TEST_CASE("misuse: traces") {
  REFUSED("/nowhere/run.json", Trace("/nowhere/run.json"));
  REFUSED("trace cannot be written: cannot write \"\"", Trace(""));
  Trace kept;  // in memory
  kept.flush();
  CHECK_FALSE(kept.json().empty());
  const RuntimeOverrides none("RLX_TRACE", "");
  CHECK(env_trace() == nullptr);
  const RuntimeOverrides bad("RLX_TRACE", "/nowhere/run.json");
  CHECK(env_trace() == nullptr);  // it says so and goes on
  Session session;
  session.with_trace(nullptr);
  CHECK(session.compile(program()).inputs().size() == 1);
}
