// Dumps, compared exactly.
#include "rlx/ir/inspect.h"

#include <doctest/doctest.h>

#include "rlx/ir/text.h"

using namespace rlx;

namespace {

Graph example() {
  Graph g = parse_text(R"(graph @net {
    symbol n [0, 64] div 8
    %0 = input() {name = "x"} : [2, 4] f32
    %1 = constant() {value = [9] f32 {0, 0, 0, 0, 0, 0, 0, 0, 0}} : [9] f32
    %2 = input() {name = "ids"} : [n] i32
    %3 = relu(%0) : [2, 4] f32 @"layer0/act"
    %4 = elementwise_region(%3) {body = graph @tail {
      %0 = input() {name = "a"} : [2, 4] f32
      %1 = exp(%0) : [2, 4] f32
      %2 = neg(%1) : [2, 4] f32
      return %2
    }} : [2, 4] f32
    %5:2 = top_k(%4) {k = 1} : [2, 1] f32, [2, 1] i32
    return %5#1, %3
  })");
  Origin& o = g.origin(NodeId{3});
  o.loc = {"net.cpp", 12};
  o.pass = "fuse";
  o.from = {"%1 add", "%2 relu"};
  return g;
}

LirModule planned() {
  LirModule m{parse_text(R"(graph @p {
    %0 = input() {name = "x"} : [4] f32
    %1 = exp(%0) : [4] f32
    %2 = reshape(%1) : [2, 2] f32
    %3 = neg(%2) : [2, 2] f32
    return %3
  })"),
              {},
              Graph("prepare")};
  m.plan.arena_bytes = 128;
  m.plan.live_peak_bytes = 64;
  m.plan.unshared_bytes = 2048;
  m.plan.values.resize(4);
  m.plan.values[0] = {{Place::Input, 0, 0, 16, {}, false}};
  m.plan.values[1] = {{Place::Arena, 0, 64, 16, {}, false}};
  m.plan.values[2] = {{Place::Arena, 0, 64, 16, {1, 2}, true}};
  m.plan.values[3] = {{Place::Output, 0, 0, 16, {}, false}};
  m.plan.schedule = {{NodeId{1}, {}}, {NodeId{3}, {0}}};
  m.plan.output_copies = {{Value(NodeId{3}), 1}};
  m.plan.state_copies = {{Value(NodeId{1}), 0}};
  return m;
}

}  // namespace

TEST_CASE("inspect: a graph") {
  CHECK(inspect_graph(example()) == R"(graph @net (6 nodes, 2 outputs, values of 148 B and 1 symbolic value)
op kinds: input=2, constant=1, elementwise_region=1, relu=1, top_k=1
symbol n: 0 to 64, multiples of 8
  %0   = input() {name = "x"}                            : [2, 4] f32
  %1   = constant() {value = [9] f32 ...}                : [9] f32
  %2   = input() {name = "ids"}                          : [n] i32
  %3   = relu(%0)                                        : [2, 4] f32              )"
                                    R"("layer0/act"  net.cpp:12  by fuse <- %1 add, %2 relu  <- output 1
  %4   = elementwise_region(%3) {body = @tail(exp, neg)} : [2, 4] f32
  %5:2 = top_k(%4)                                       : [2, 1] f32, [2, 1] i32  <- output 0 (#1)
)");
  CHECK(inspect_graph_stats(example()) == R"(graph @net (6 nodes, 2 outputs, values of 148 B and 1 symbolic value)
op kinds: input=2, constant=1, elementwise_region=1, relu=1, top_k=1
symbol n: 0 to 64, multiples of 8
)");
}

TEST_CASE("inspect: differences are signed counts of ops") {
  Graph before = example();
  Graph after = parse_text(R"(graph @net {
    %0 = input() {name = "x"} : [2, 4] f32
    %1 = gelu(%0) : [2, 4] f32
    %2 = gelu(%1) : [2, 4] f32
    return %2
  })");
  CHECK(inspect_graph_diff(before, after) == R"(@net: 6 -> 3 nodes (-3)
  constant -1
  elementwise_region -1
  gelu +2
  input -1
  relu -1
  top_k -1
)");
  CHECK(inspect_mir_diff(MirModule{before}, MirModule{before}) == "@net: 6 -> 6 nodes (0)\n  no change\n");
  Graph other = before;
  other.set_outputs(std::vector<Value>{Value(NodeId{3})});
  CHECK(inspect_graph_diff(before, other) ==
        "@net: 6 -> 6 nodes (0)\n  the same ops, with other operands, attributes or order\n");
}

TEST_CASE("inspect: a buffer plan") {
  CHECK(inspect_buffer_plan(planned()) == R"(buffer plan: arena 128 B, aligned to 64 B, 2 steps
  2.000 times the live peak of 64 B; 1.9 KB saved of 2.0 KB without reuse
  step  value  place                        offset  bytes  type        waits for
  -     %0     input 0                           0     16  [4] f32
  -     %2     arena (view) strides [1, 2]      64     16  [2, 2] f32
  0     %1     arena                            64     16  [4] f32
  1     %3     output 0                          0     16  [2, 2] f32  0
  then copy %3 to output 1
  then copy %1 to state 0
)");
}

TEST_CASE("inspect: each stage names itself") {
  CHECK(inspect_hir(HirModule{example()}).find("hir @net (6 nodes") == 0);
  CHECK(inspect_hir_stats(HirModule{example()}).find("hir @net (6 nodes") == 0);
  CHECK(inspect_mir(MirModule{example()}).find("mir @net (6 nodes") == 0);
  CHECK(inspect_module(GraphModule(MirModule{example()})) == inspect_mir(MirModule{example()}));
  std::string lir = inspect_lir(planned());
  CHECK(lir.find("lir @p (4 nodes, 1 output") == 0);
  CHECK(lir.find("buffer plan: arena 128 B") != std::string::npos);
  CHECK(inspect_module(GraphModule(planned())) == lir);
  CHECK(inspect_lir_stats(planned()).find("lir @p") == 0);
}

TEST_CASE("inspect: byte counts") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1536) == "1.5 KB");
  CHECK(bytes_text(90812416) == "86.6 MB");
  CHECK(bytes_text(1023u * 1024) == "1023 KB");
}
