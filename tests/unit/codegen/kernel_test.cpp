// Numbers and byte ranges of bound programs.
#include <doctest/doctest.h>

#include "rlx/codegen/kernel.h"
#include "rlx/ir/ops/elementwise.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using codegen::Number;

// y = x + x with a hand-made plan: x at byte 512 of input 0, y 40 bytes at byte 300 of the arena.
struct PlannedGraph {
  LirModule lir;
  Value x, y;
  PlannedGraph() : lir{Graph("sum"), {}, Graph("prepare")} {
    Graph& g = lir.graph;
    const Expr in = g.input("x", test::f32({2, 5})), sum = in + in;
    x = in.value(), y = sum.value();
    g.set_outputs({sum});
    lir.plan.values.resize(g.num_nodes());
    lir.plan.values[x.node.index] = {{Place::Input, 0, 512, 40, {}, false}};
    lir.plan.values[y.node.index] = {{Place::Arena, 0, 300, 56, {9, 1}, true}};
    lir.symbols.emplace("seq", 7);
  }
};

}  // namespace

TEST_CASE("codegen: a number is an extent, a stride or an offset of the bound program") {
  const PlannedGraph p;
  CHECK(codegen::evaluate({Number::Kind::Extent, Dim::symbol("seq") * Dim(3) + Dim(1), {}, 0}, p.lir, 0) == 22);
  CHECK(codegen::evaluate({Number::Kind::Stride, {}, p.x, 0}, p.lir, 0) == 5);
  CHECK(codegen::evaluate({Number::Kind::Stride, {}, p.x, 1}, p.lir, 0) == 1);
  CHECK(codegen::evaluate({Number::Kind::Stride, {}, p.y, 0}, p.lir, 0) == 9);
  CHECK(codegen::evaluate({Number::Kind::Offset, {}, p.y, 0}, p.lir, 256) == 44);
  CHECK(codegen::evaluate({Number::Kind::Offset, {}, p.x, 0}, p.lir, 512) == 0);
}

TEST_CASE("codegen: a number that is no u32, or an offset before its binding, is our bug") {
  const PlannedGraph p;
  CHECK(test::contains(test::error_text([&] {
                         (void)codegen::evaluate({Number::Kind::Extent, Dim(-1), {}, 0}, p.lir, 0);
                       }),
                       "does not fit u32"));
  CHECK(test::contains(test::error_text([&] {
                         (void)codegen::evaluate({Number::Kind::Extent, Dim(std::int64_t{1} << 32), {}, 0}, p.lir, 0);
                       }),
                       "does not fit u32"));
  CHECK(test::contains(test::error_text([&] {
                         (void)codegen::evaluate({Number::Kind::Offset, {}, p.y, 0}, p.lir, 512);
                       }),
                       "begins before its binding"));
}

TEST_CASE("codegen: a binding begins at a multiple of 256 and covers all of its values") {
  PlannedGraph p;
  const codegen::ByteRange one = codegen::range_of({{p.y}, -1}, p.lir.plan);
  CHECK(one.begin == 256);
  CHECK(one.end == 356);
  p.lir.plan.values[p.x.node.index][0] = {Place::Arena, 0, 340, 40, {}, false};
  const codegen::ByteRange both = codegen::range_of({{p.y, p.x}, -1}, p.lir.plan);
  CHECK(both.begin == 256);
  CHECK(both.end == 380);
}

}  // namespace rlx
