// The parts of generated kernels: numbers, bindings, elements narrower than a word, merged axes.
#include "rlx/codegen/kernel_builder.h"

#include <doctest/doctest.h>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/codegen/helpers/helper_table.h"
#include "rlx/codegen/helpers/helpers.h"
#include "rlx/codegen/moves.h"
#include "rlx/ir/functions.h"
#include "tests/support/codegen_target.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using codegen::Ref;

Ref ref_of(Dims dims, DType t = DType::F32) {
  Ref r{{}, 0, t, std::move(dims), {}, true};
  r.strides = codegen::dense_strides(r.dims);
  return r;
}

// A planned program: x [4, 6] plus a row.
struct Sum {
  LirModule lir;
  codegen::Dialect dialect;
  explicit Sum(DType t = DType::F32) {
    Graph g("sum");
    const Expr x = g.input("x", {{4, 6}, t}), row = g.input("row", {{6}, t});
    g.set_outputs({x + row});
    CompilePipeline pipeline(std::make_shared<test::CodegenTarget>());
    lir = pipeline.compile_graph(std::move(g)).lir;
  }
  codegen::NodeKernels node() const { return {lir, lir.plan.schedule.at(0).node, dialect}; }
};

}  // namespace

TEST_CASE("codegen: axes are joined where all values walk them as one") {
  std::vector<Ref> same{ref_of({2, 3, 4}), ref_of({2, 3, 4})};
  codegen::join_axes(same);
  CHECK(same[0].dims == Dims{24});
  std::vector<Ref> row{ref_of({2, 3, 4}), codegen::broadcast_to(ref_of({4}), {2, 3, 4})};
  codegen::join_axes(row);
  CHECK(row[0].dims == Dims{6, 4});
  CHECK(row[1].strides[0].is(0));
  std::vector<Ref> scalar{codegen::broadcast_to(ref_of({}), {1, 1})};
  codegen::join_axes(scalar);
  CHECK(scalar[0].dims == Dims{1});
  const Dim n = Dim::symbol("n");
  std::vector<Ref> symbolic{ref_of({n, 2, 3})};
  codegen::join_axes(symbolic);
  CHECK(symbolic[0].dims == Dims{n * Dim(6)});
}

TEST_CASE("codegen: large elements are words along one more axis") {
  const Ref wide = codegen::as_words(ref_of({2, 3}, DType::C128));
  CHECK(wide.dtype == DType::U32);
  CHECK(wide.dims == Dims{2, 3, 4});
  CHECK(wide.strides[0].is(12));
  CHECK(codegen::as_words(ref_of({2}, DType::BF16)).dtype == DType::U16);
}

TEST_CASE("codegen: special axes stand alone, the others together") {
  const Ref r = codegen::grouped_axes(ref_of({2, 3, 4, 5}), {2});
  CHECK(r.dims == Dims{6, 4, 5});
  CHECK(codegen::group_of(2, {2}) == 1);
  CHECK(codegen::grouped_axes(ref_of({2, 3}), {1}).dims == Dims{2, 3, 1});
  CHECK(codegen::group_of(1, {1}) == 1);
  CHECK(codegen::group_of(1, {0, 1}) == 1);
}

TEST_CASE("codegen: one binding for each value, numbers that are known stand in the text") {
  const Sum sum;
  codegen::NodeKernels node = sum.node();
  codegen::KernelBuilder k(node, "sum");
  CHECK(k.size(codegen::Size(24)) == "24u");
  const Ref x = node.in(0), out = node.out();
  k << "let i = THREAD;\n" << k.store(out, "i", k.load(x, "i") + " + " + k.load(x, "0u"));
  k.finish_threads(Dim(24));
  const codegen::NodeLaunches made = node.take();
  REQUIRE(made.kernels.size() == 1);
  CHECK(made.kernels[0].bindings.size() == 2);
  CHECK(made.kernels[0].numbers.empty());
  CHECK(made.kernels[0].groups.is_static(1));
  CHECK(made.kernels[0].text.find("@binding(0)") == std::string::npos);
}

TEST_CASE("codegen: a number given is never in the text") {
  const Sum sum;
  codegen::NodeKernels node = sum.node();
  codegen::KernelBuilder k(node, "given");
  k << k.store_word(node.out(), "0u", k.given(codegen::Size(4711)));
  k.finish(Dim(1));
  const codegen::NodeLaunches made = node.take();
  CHECK(made.kernels[0].numbers.size() == 1);
  CHECK(made.kernels[0].text.find("4711") == std::string::npos);
}

TEST_CASE("codegen: elements narrower than a word are not stored one by one") {
  const Sum sum(DType::BF16);
  codegen::NodeKernels node = sum.node();
  codegen::KernelBuilder k(node, "narrow");
  CHECK(test::contains(test::error_text([&] { (void)k.store(node.out(), "0u", "1.0"); }), "a dtype of 4 bytes"));
}

TEST_CASE("codegen: every function and what it calls is in the library, callees first") {
  for (int i = 0; i < kNumActivationKinds; ++i) {
    const auto fn = static_cast<ActivationKind>(i);
    if (!contains(function_row(fn).dtypes, DType::F32)) continue;
    Graph g("one");
    const Expr y = g.activation(fn, g.input("x", Shape({}, DType::F32)));
    if (codegen::step_refuses(g, g.node(y.value().node))) continue;  // known_gaps.txt lists them
    const Sum sum;
    codegen::NodeKernels node = sum.node();
    codegen::KernelBuilder k(node, "function");
    k << k.store(node.out(), "0u", codegen::step_text(k, ops::Activation{fn}, {{"1.0f"}}, DType::F32));
    k.finish(Dim(1));
  }
  const auto texts = codegen::helper_texts("gelu_f32");
  CHECK(texts.size() > 3);
  CHECK(texts.back().find("fn gelu_f32(") == 0);
  CHECK(test::contains(test::error_text([] { (void)codegen::helper_texts("no_such_function"); }), "no_such_function"));
}

TEST_CASE("codegen: literals have the value and the type") {
  const Sum sum;
  codegen::NodeKernels node = sum.node();
  codegen::KernelBuilder k(node, "literals");
  CHECK(codegen::literal(k, DType::F32, 3) == "3.0f");
  CHECK(codegen::literal(k, DType::F32, -0.1) == "(-0.100000001f)");
  CHECK(codegen::literal(k, DType::F32, HUGE_VAL) == "f32_of(2139095040u)");
  CHECK(codegen::literal(k, DType::F32, -0.0) == "f32_of(2147483648u)");
  CHECK(codegen::literal(k, DType::I32, -2147483648.0) == "(-2147483647 - 1)");
  CHECK(codegen::literal(k, DType::U8, 255) == "255u");
}

}  // namespace rlx
