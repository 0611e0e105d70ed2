// Fuzz target: fused ops, regions and blocks with the shapes of their operands changed at random. What inference takes
// survives the text and binary form and runs on the cpu, at one and two threads, within the bound of its exact result.
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/session.h"
#include "tests/fuzz/dice_entry.h"
#include "tests/fuzz/graph_samples.h"
#include "tests/support/rounding.h"

namespace {

using namespace rlx;
using namespace rlx::test;

struct Case {
  OpBox op;
  std::vector<Shape> inputs;
};

const std::vector<Case>& cases() {
  static const auto* all = [] {
    auto* out = new std::vector<Case>();
    for (const OpDef* def : all_op_defs()) {
      if (!def->decompose.has() || def->level == Level::Lir) continue;
      for (const testing::Sample& s : testing::op_samples(*def)) {
        out->push_back({s.op, {}});
        for (const testing::SampleInput& in : s.inputs) out->back().inputs.push_back(in.shape);
      }
    }
    return out;
  }();
  return *all;
}

// One edit: an extent set to 1 or another (everywhere or in one operand), an axis added or dropped.
void edit(std::vector<Shape>& inputs, Dice& dice) {
  Shape& x = inputs[static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(inputs.size())))];
  Dims dims = x.dims();
  if (dims.empty()) return;
  const auto at = static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(dims.size())));
  static constexpr std::int64_t kExtents[] = {0, 1, 1, 2, 3, 4, 5, 8, 17};
  switch (dice.below(5)) {
    case 0: dims[at] = 1; break;
    case 1: dims.insert(dims.begin(), Dim(dice.of(kExtents))); break;
    case 2: dims.erase(dims.begin()); break;
    case 3: {
      const Dim from = dims[at], to = dice.of(kExtents);
      for (Shape& s : inputs)
        for (int a = 0; a < s.rank(); ++a)
          if (s.dim(a) == from) s = s.with_dim(a, to);
      return;
    }
    default: dims[at] = dice.of(kExtents);
  }
  x = Shape(dims, x.dtype());
}

void run(Dice& dice) {
  Case c = dice.any(cases());
  if (c.inputs.empty()) return;
  for (std::int64_t edits = dice.below(4); edits-- > 0;) edit(c.inputs, dice);
  Graph g("fused");
  NamedTensors values;
  std::vector<Value> operands, outputs;
  for (const Shape& s : c.inputs) {
    const std::string name = concat_text("in", operands.size());
    operands.push_back(g.input(name, s));
    Tensor t = Tensor::zeros(s);
    for (std::int64_t i = 0; i < t.num_elements(); ++i)
      t.set(i, is_inexact(s.dtype()) ? 3 * dice.uniform() - 1.5 : static_cast<double>(dice.below(3)));
    values.emplace(name, std::move(t));
  }
  try {
    const Expr e = g.add(c.op, operands);
    for (std::uint32_t r = 0; r < g.node(e.value().node).num_results(); ++r) outputs.emplace_back(e.value().node, r);
    g.set_outputs(outputs);
  } catch (const Error& e) {
    check(e.code() != ErrorCode::Internal, e.what());
    return;
  }
  fuzz::expect_sound(g);
  check(same_graph(parse_text(print_text(g), "again"), g), "the text form gives the graph back");
  check(same_graph(from_bytes(to_bytes(g)), g), "the binary form gives the graph back");
  const BoundedResult exact = evaluate_bounded(g, values);
  std::vector<Tensor> first;
  for (int threads : {1, 2}) {
    std::vector<Tensor> got = Session().with_threads(threads).compile(g).run_typed(values);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Gap gap = gap_to(got[i], exact.outputs[i]);
      check(gap.size <= 1, concat_text("result ", i, ": ", gap.text, "\n", print_text(g)));
      check(first.empty() || got[i].identical(first[i]), concat_text("threads change bits of\n", print_text(g)));
    }
    if (first.empty()) first = std::move(got);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::roll(data, size, run);
}
