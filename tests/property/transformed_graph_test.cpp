// Graphs made by the transforms verify, and survive the text and binary formats.
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/samples.h"

namespace rlx::test {
namespace {

void check_sound(const Graph& g, Level level, const char* what) {
  INFO(what);
  for (const Diagnostic& d : verify(g, level)) FAIL_CHECK(d.text());
  CHECK(same_graph(parse_text(print_text(g)), g));
  Graph back = from_bytes(to_bytes(g));
  CHECK(same_graph(back, g));
  CHECK(fingerprint(back) == fingerprint(g));
}

TEST_CASE("samples and what the transforms make of them verify and round-trip") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    Graph g = sample_graph(sample);
    check_sound(g, def.level, "the sample");
    if (def.is_leaf() || def.level == Level::Lir || (!def.reference.has() && !def.reference.derived())) return;
    std::vector<Wrt> wrt;
    InAxes in_axes;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      if (is_inexact(sample.inputs[k].shape.dtype())) wrt.push_back("x" + std::to_string(k));
      in_axes.emplace("x" + std::to_string(k), 0);
    }
    if (!in_axes.empty()) check_sound(vmap(g, in_axes, 2).graph, def.level, "vmap");
    if (wrt.empty() || def.vjp.reason() || def.jvp.reason()) return;
    check_sound(vjp(g, wrt).graph, def.level, "vjp");
    check_sound(jvp(g, wrt).graph, def.level, "jvp");
  });
}

}  // namespace
}  // namespace rlx::test
