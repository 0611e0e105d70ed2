// Custom ops: registration, missing rules, text and binary form, keys of prepared weights, kernels.
#include "rlx/ir/custom_op.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "rlx/backends/cpu/custom_kernel.h"
#include "rlx/compiler/split_weights.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/custom_ops.h"
#include "tests/support/error_text.h"
#include "tests/support/graph_bytes.h"

using namespace rlx;
using namespace rlx::test;

namespace {

// A record must state its level and every fact; there are no silent defaults.
template <class Field, class Fact>
constexpr bool kMustBeSaid = std::is_same_v<Field, Required<Fact>> && !std::is_default_constructible_v<Field>;
static_assert(kMustBeSaid<decltype(OpDef::level), Level> && kMustBeSaid<decltype(OpDef::leaf), LeafKind> &&
              kMustBeSaid<decltype(OpDef::elementwise), ElementwiseKind> &&
              kMustBeSaid<decltype(OpDef::view), ViewKind> &&
              kMustBeSaid<decltype(OpDef::precision), PrecisionCategory>);

// y = op(x), x [2] f32.
Graph one(OpBox op) {
  custom_ops();
  Graph g("one");
  Expr x = g.input("x", Shape({2}, DType::F32));
  g.set_outputs({g.add(std::move(op), {x})});
  return g;
}

}  // namespace

TEST_CASE("register_op refuses records that cannot work, by name and reason") {
  const auto refused = [](OpDef def, const char* why) {
    const std::string text = error_text([&] { register_op(def); });
    CHECK_MESSAGE(contains(text, why), text);
    CHECK(contains(text, std::string(def.name)));
    CHECK(registered_op("bad.op") == nullptr);
  };
  for (const char* name : {"", "tanh", "bad.", ".bad", "Bad.op", "bad..op", "bad.1op", "bad.op()"})
    refused(plain_record(name), "lower-case words");
  OpDef def = plain_record("bad.op");
  def.kind = OpKind::Softmax;
  refused(def, "OpKind::Custom");
  def = plain_record("bad.op");
  def.attrs = ops::Softmax::def.attrs;
  refused(def, "must not describe attributes");
  def = plain_record("bad.op");
  def.level = Level::Lir;
  refused(def, "planner");
  def = plain_record("bad.op");
  def.view = ViewKind::ByStrides;
  refused(def, "leaf or a view");
  def = plain_record("bad.op");
  def.elementwise = ElementwiseKind::InBodies;
  refused(def, "bodies of regions");
  def = plain_record("bad.op");
  def.infer = none("later");
  refused(def, "no shape rule");
  def = plain_record("bad.op");
  def.reference = none("later");
  refused(def, "no reference rule and no decomposition");
  def.reference = by_decomposition;
  refused(def, "no reference rule and no decomposition");
  def = plain_record("bad.op");
  def.vjp = by_decomposition;
  refused(def, "it has no decomposition");
  def = plain_record("bad.op");
  def.level = Level::Hir;
  refused(def, "HIR block");

  custom_ops();
  CHECK(contains(error_text([] { register_op(plain_record("test.bare")); }), "registered already"));
}

TEST_CASE("a record outlives the strings it was given with") {
  {
    std::string name = "test.short_lived", what = "gone soon";
    OpDef def = plain_record(name);
    def.what = what;
    register_op(def);
    name.assign(name.size(), '?');
    what.assign(what.size(), '?');
  }
  REQUIRE(registered_op("test.short_lived"));
  CHECK(registered_op("test.short_lived")->name == "test.short_lived");
  CHECK(registered_op("test.short_lived")->what == "gone soon");
}

TEST_CASE("an unregistered name is an error in builder, text and binary form") {
  const OpBox unknown = custom_op("nobody.knows", 1.0);
  CHECK(contains(error_text([&] { one(unknown); }), "no op 'nobody.knows' is registered"));
  CHECK(contains(error_text([&] { one(unknown); }), "register_op"));
  const std::string text =
      "graph @g {\n  %0 = input() {name = \"x\"} : [2] f32\n  %1 = nobody.knows(%0) : [2] f32\n  return %1\n}\n";
  CHECK(contains(error_text([&] { parse_text(text); }), "no op 'nobody.knows' is registered"));
  CHECK(contains(error_text([&] { parse_text(text); }), "3:8"));
  // A graph that is built where the op is registered, and read where it is not.
  std::vector<std::byte> bytes = to_bytes(one(custom_op("test.bare")));
  const std::string name = "test.bare";
  auto at = std::search(bytes.begin(), bytes.end(), name.begin(), name.end(),
                        [](std::byte b, char c) { return static_cast<char>(b) == c; });
  REQUIRE(at != bytes.end());
  *at = std::byte{'b'};
  CHECK(contains(error_text([&] { from_bytes(sealed(bytes)); }), "no op 'best.bare' is registered"));
}

TEST_CASE("text and fingerprints of custom ops hold name and attributes") {
  const Graph g = one(custom_op("test.scaled_tanh", 2.0));
  const std::string text = print_text(g);
  CHECK_MESSAGE(contains(text, "%1 = test.scaled_tanh(%0) {attrs = 0x0000000000000040} : [2] f32"), text);
  CHECK(same_graph(parse_text(text), g));
  CHECK(fingerprint(parse_text(text)) == fingerprint(g));
  CHECK(fingerprint(one(custom_op("test.scaled_tanh", 3.0))) != fingerprint(g));
  CHECK(fingerprint(one(custom_op("test.bare"))) != fingerprint(one(custom_op("test.bare", 1))));
}

TEST_CASE("attributes of another size name the op and both sizes") {
  const std::string text = error_text([] { one(custom_op("test.scaled_tanh", 2.0f)); });
  CHECK(contains(text, "test.scaled_tanh has 4 bytes of attributes, but its rules read 8"));
}

TEST_CASE("a missing rule names the op and the reason; no gradient is dropped") {
  const Graph g = one(custom_op("test.bare"));
  CHECK(contains(error_text([&] { grad(g, {"x"}); }),
                 "test.bare has no reverse-mode derivative: nobody wrote its gradient"));
  CHECK(contains(error_text([&] { jvp(g, {"x"}); }),
                 "test.bare has no forward-mode derivative: nobody wrote its tangent"));
  CHECK(contains(error_text([&] { vmap(g, {{"x", 0}}, Dim(3)); }), "test.bare cannot be batched: it knows no batches"));
  // Without a kernel and a decomposition the reference rule runs it, or the compile fails if the policy forbids that.
  CHECK(Session().compile(one(custom_op("test.bare"))).run({{"x", {1, 2}}})[0][1] == 2);
  CompileOptions fast;
  fast.kernel_dispatch.emplace().host_fallback = false;
  const std::string compile = error_text([&] {
    Session().compile_with(one(custom_op("test.bare")), fast).run({{"x", {1, 2}}});
  });
  CHECK_MESSAGE(contains(compile, "test.bare([2] f32) has no kernel"), compile);
  CHECK(contains(compile, "on cpu"));
  CHECK(contains(compile, "register_cpu_kernel"));
  CHECK(contains(compile, "it is kept opaque"));
  CHECK(contains(compile, "host_fallback = false"));
  CHECK(Session::on_backend("reference").compile(one(custom_op("test.bare"))).run({{"x", {1, 2}}})[0][1] == 2);
}

TEST_CASE("rules that break their promise are the record's fault, not ours") {
  OpDef def = plain_record("test.wrong_shape");
  def.decompose = +[](DecomposeContext& c) { c.set_result(c.graph().reshape(c.input(0), {Dim(2), Dim(1)})); };
  register_op(def);
  const std::string decomposed = error_text([] {
    Session().compile(one(custom_op("test.wrong_shape"))).run({{"x", {1, 2}}});
  });
  CHECK_MESSAGE(contains(decomposed, "decomposition of test.wrong_shape gives"), decomposed);
  CHECK(contains(decomposed, "register_op"));
  CHECK_FALSE(contains(decomposed, "please report"));

  def = plain_record("test.no_shape");
  def.infer = +[](const InferContext&) -> Result<Shapes> { return Shapes{}; };
  register_op(def);
  CHECK(contains(error_text([] { one(custom_op("test.no_shape")); }), "returns no result"));

  def = plain_record("test.wrong_result");
  def.reference = +[](const RefArgs& a) { a.out() = Tensor::zeros(Shape({1}, DType::F32)); };
  register_op(def);
  const std::string evaluated = error_text([] {
    Session().compile(one(custom_op("test.wrong_result"))).run({{"x", {1, 2}}});
  });
  CHECK_MESSAGE(contains(evaluated, "reference rule of test.wrong_result gives [1] f32 for result 0 of [2] f32"),
                evaluated);
}

TEST_CASE("a shape rule that gives what no tensor can be fails when the node is built, naming the op") {
  const auto built = [](std::string_view name, Result<Shapes> (*infer)(const InferContext&)) {
    OpDef def = plain_record(name);
    def.infer = infer;
    register_op(def);
    return error_text([&] { one(custom_op(std::string(name))); });
  };
  const std::string negative = built(
      "test.negative", +[](const InferContext&) -> Result<Shapes> {
        return Shapes{Shape({2, -3}, DType::F32)};
      });
  CHECK_MESSAGE(contains(negative, "test.negative: the shape rule returns [2, -3] f32 for result 0"), negative);
  CHECK(contains(negative, "%1 = test.negative(%0)"));
  CHECK(contains(negative, "custom_op_test.cpp:"));
  CHECK(contains(negative, "given to register_op"));
  const std::string vast = built(
      "test.vast", +[](const InferContext& c) -> Result<Shapes> {
        return Shapes{c.input(0), Shape({Dim::symbol("n"), std::int64_t{1} << 40, std::int64_t{1} << 40}, DType::F32)};
      });
  CHECK_MESSAGE(contains(vast, "test.vast: the shape rule returns [n, "), vast);
  CHECK(contains(vast, "for result 1"));
  const std::string dtype = built(
      "test.no_dtype",
      +[](const InferContext&) -> Result<Shapes> { return Shapes{Shape({2}, static_cast<DType>(77))}; });
  CHECK_MESSAGE(contains(dtype, "test.no_dtype: 77 is not a DType"), dtype);
  CHECK(contains(dtype, "%1 = test.no_dtype(%0)"));
  // Empty attributes are valid.
  CHECK(built(
            "test.empty",
            +[](const InferContext&) -> Result<Shapes> {
              return Shapes{Shape({0, std::int64_t{1} << 62}, DType::F32)};
            })
            .empty());
}

TEST_CASE("an HIR block of another project lowers by its decomposition") {
  OpDef def = plain_record("test.block");
  def.level = Level::Hir;
  def.decompose = +[](DecomposeContext& c) { c.set_result(c.graph().relu(c.input(0)) * 3.0); };
  def.reference = by_decomposition;
  register_op(def);
  const Graph g = one(custom_op("test.block"));
  CHECK(make_module(g).stage() == GraphStage::Hir);
  CHECK(Session().compile(g).run({{"x", {-1, 2}}})[0] == std::vector<float>{0, 6});
}

TEST_CASE("custom ops compile: by kernel, by decomposition, in gradients, over weights") {
  custom_ops();
  Graph g("mixed");
  Expr x = g.input("x", Shape({2}, DType::F32)), w = g.param("w", Shape({2}, DType::F32));
  // Two ops on one weight that differ only in attributes are prepared separately.
  Expr a = g.add(custom_op("test.scaled_tanh", 1.0), {w}), b = g.add(custom_op("test.scaled_tanh", 2.0), {w});
  Expr pair = g.add(custom_op("test.sum_and_difference"), {g.mul(x, a), b});
  Expr y = g.add(custom_op("test.scaled_tanh", 0.5), {pair.result(1)});
  g.set_outputs({pair.result(0), g.sum(y, {0}, false)});
  Graph loss = g;
  loss.set_outputs(std::vector<Value>{g.outputs()[1]});
  GradResult d = value_and_grad(loss, {"x"});
  CompiledGraph f = Session().compile(g), df = Session().compile(d.graph);
  f.set_param("w", {0.5f, -1});
  df.set_param("w", {0.5f, -1});
  const auto out = f.run({{"x", {3, 4}}});
  const double t0 = std::tanh(0.5), t1 = std::tanh(-1.0);
  const double u0 = std::tanh(3 * t0 - 2 * t0), u1 = std::tanh(4 * t1 - 2 * t1);
  CHECK(out[0][0] == doctest::Approx(5 * t0));
  CHECK(out[0][1] == doctest::Approx(6 * t1));
  CHECK(out[1][0] == doctest::Approx(0.5 * (u0 + u1)));
  const auto grads = df.run({{"x", {3, 4}}});
  CHECK(grads[1][0] == doctest::Approx(0.5 * (1 - u0 * u0) * t0));
  CHECK(grads[1][1] == doctest::Approx(0.5 * (1 - u1 * u1) * t1));
  // Reports name the op, not its kind.
  const float values[] = {3, 4};
  const TensorView view{values, DType::F32, {}, sizeof values};
  bool named = false;
  for (const NodeTime& t : f.profile({&view, 1}))
    named = named || (t.op == "test.scaled_tanh" && contains(t.kernel, "custom"));
  CHECK(named);
}

TEST_CASE("cpu kernels: duplicates, empty kernels, and what a kernel reports") {
  custom_ops();
  const CpuKernel fails{+[](const KernelCall& call) -> std::optional<Diagnostic> {
                          auto x = call.inputs[0].as<double>();
                          if (!x) return x.error();
                          return std::nullopt;
                        },
                        nullptr};
  CHECK(contains(error_text([&] { register_cpu_kernel("test.scaled_tanh", fails); }), "has a cpu kernel already"));
  CHECK(contains(error_text([] { register_cpu_kernel("test.fails", {}); }), "no run function"));
  for (const char* ours : {"softmax", "relu"}) {
    const std::string text = error_text([&] { register_cpu_kernel(ours, fails); });
    CHECK_MESSAGE(contains(text, concat_text("register_cpu_kernel('", ours, "'): the op is built into rlx")), text);
  }
  const std::string unknown = error_text([&] { register_cpu_kernel("test.scaled_tan", fails); });
  CHECK_MESSAGE(contains(unknown, "no op of this name is registered\n  hint: did you mean 'test.scaled_tanh'?"),
                unknown);
  register_op(plain_record("test.fails"));
  register_cpu_kernel("test.fails", fails);
  for (int threads : {1, 2}) {
    CompiledGraph f = Session().with_threads(threads).compile(one(custom_op("test.fails")));
    const std::string text = error_text([&] { f.run({{"x", {1, 2}}}); });
    CHECK_MESSAGE(contains(text, "test.fails: operand 0 is read as f64 but holds f32"), text);
    CHECK(contains(text, "%1 = test.fails(%0)"));
  }
}
