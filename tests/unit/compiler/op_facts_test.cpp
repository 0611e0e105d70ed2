// The facts in op records agree with the ops: views have the elements of their operand, elementwise ops broadcast,
// policies hold.
#include "rlx/ir/op_facts.h"

#include <doctest/doctest.h>

#include "rlx/compiler/legalize.h"
#include "rlx/compiler/precision.h"
#include "rlx/compiler/views.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite.h"
#include "tests/support/custom_ops.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

std::vector<std::int64_t> extents(const Shape& s) {
  std::vector<std::int64_t> out;
  for (const Dim& d : s.dims()) out.push_back(d.value());
  return out;
}

// 0, 1, 2, .. in the shape of an operand, so that each element identifies its source.
Tensor numbered(const Shape& s) {
  std::vector<double> values(static_cast<std::size_t>(s.num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return Tensor::of<double>(extents(s), values);
}

TEST_CASE("an op is a view by its record when and only when its result lies in its operand") {
  int views = 0;
  for (const OpDef* def : all_op_defs()) {
    if (!def->is_view() || def->is_leaf()) continue;
    ++views;
    for (const testing::Sample& sample : test::samples_of(*def)) {
      CAPTURE(sample.name);
      REQUIRE(sample.inputs.size() == 1);
      const Tensor x = numbered(sample.inputs[0].shape);
      const Tensor y = evaluate_op(sample.op, std::vector<Tensor>{x}).at(0);
      const std::vector<std::int64_t> from = extents(x.shape()), to = extents(y.shape());
      const Node node{sample.op, {}, {y.shape()}, {}};
      const auto place = view_place(node, from, dense_strides(from), to);
      REQUIRE(place.has_value());  // all of these views can read dense bytes
      std::vector<std::int64_t> at(to.size(), 0);
      for (std::int64_t i = 0; i < y.num_elements(); ++i) {
        std::int64_t offset = place->skip;
        for (std::size_t d = 0; d < to.size(); ++d) offset += at[d] * place->strides[d];
        CHECK(y.at(i) == static_cast<double>(offset));
        for (std::size_t d = to.size(); d-- > 0;) {
          if (++at[d] < to[d]) break;
          at[d] = 0;
        }
      }
      CHECK(needs_no_kernel(node) == (def->view == ViewKind::Always));
    }
  }
  CHECK(views == 5);
}

TEST_CASE("an op that works per element by its record has the shape of its broadcast operands") {
  for (const OpDef* def : all_op_defs()) {
    CHECK(runs_per_element(def->kind) == (def->elementwise == ElementwiseKind::InBodies));
    if (def->elementwise == ElementwiseKind::No) continue;
    for (const testing::Sample& sample : test::samples_of(*def)) {
      CAPTURE(def->name);
      CAPTURE(sample.name);
      std::vector<Shape> operands;
      for (const testing::SampleInput& in : sample.inputs) operands.push_back(in.shape);
      Dims broadcast;
      for (const Shape& s : operands) broadcast = broadcast_dims(broadcast, s.dims()).value();
      const Shapes results = infer_shapes(sample.op, operands).value();
      for (const Shape& result : results) CHECK(result.dims() == broadcast);
    }
  }
}

TEST_CASE("leaves that are found by name are those of a graph's interface") {
  for (const OpDef* def : all_op_defs()) {
    CHECK(is_named_leaf(def->kind) ==
          (def->kind == OpKind::Input || def->kind == OpKind::Param || def->kind == OpKind::State));
    if (def->is_leaf()) CHECK(def->inputs.count == 0);
  }
}

// y = 2 x, as an op that another project registers.
OpBox twice(const char* name, PrecisionCategory precision) {
  if (!registered_op(name)) {
    OpDef def = test::plain_record(name);
    def.what = "2 x.";
    def.elementwise = ElementwiseKind::Yes;
    def.precision = precision;
    def.reference = +[](const RefArgs& a) {
      for (std::int64_t i = 0; i < a.in(0).num_elements(); ++i) a.out().set(i, 2 * a.in(0).at(i));
    };
    register_op(def);
  }
  return custom_op(name);
}

TEST_CASE("a policy treats ops of other projects as their records say") {
  const struct {
    const char* name;
    PrecisionCategory category;
    DType dtype;
  } cases[] = {{"facts.stated", PrecisionCategory::Stated, DType::F32},
               {"facts.elementwise", PrecisionCategory::Elementwise, DType::F16},
               {"facts.reduction", PrecisionCategory::Reduction, DType::F32}};
  for (const auto& c : cases) {
    CAPTURE(c.name);
    Graph g("policy");
    Expr x = g.input("x", {{3}, DType::F32});
    g.set_outputs({g.add(twice(c.name, c.category), {x})});
    const Graph narrow = apply_precision(g, PrecisionPolicy::auto_mixed_conservative());
    for (const Node& n : narrow.nodes())
      if (n.kind() == OpKind::Custom) CHECK(n.shape().dtype() == c.dtype);
    CHECK(narrow.shape(narrow.outputs()[0]).dtype() == DType::F32);
    const Tensor in = Tensor::of<float>({3}, std::vector<float>{1, 2, 3});
    CHECK(evaluate(narrow, {{"x", in}})[0].at(2) == 6);
  }
  CHECK(precision_category(OpKind::Cast) == PrecisionCategory::Stated);
}

}  // namespace
}  // namespace rlx
