// Edits of planned programs over several devices: arenas and whole values, host segments, host-controlled loops.
#include "tests/support/plan_edits.h"

#include <cstdlib>

#include "tests/adversarial/check_on_adversarial.h"
#include "tests/support/segment_programs.h"

namespace rlx {

TEST_CASE("every edit of a plan over several devices is refused by name, or changes no result") {
  test::EditCounts counts;
  std::size_t modules = 0;
  const std::size_t every = std::getenv("RLX_ALL_CASES") ? 1 : 11;
  for (const bool opaque : {false, true})
    for (const bool loops : {false, true}) {
      test::AdversarialOptions options;
      options.opaque = opaque;
      options.refuse = loops ? test::AdversarialOptions::control_flow() : OpSet{};
      options.refuse.add(OpKind::Sort);
      const test::AdversarialScope adversary(options);
      const Session session(test::AdversarialScope::kDevice);
      const Graph g = loops ? test::sorting_loop() : test::sorting();
      NamedTensors values = test::drawn(g);
      if (loops) values.insert_or_assign("n", Tensor::scalar_i64(DType::I32, 4));
      CAPTURE(opaque);
      CAPTURE(loops);
      const LirModule lir = session.compile(Graph(g)).compile_result().lir;
      test::try_edits(test::Planned(session, lir, std::move(values)), modules++, every, counts);
    }
  MESSAGE("plan edits over several devices: ", counts.edits, " tried, ", counts.refused, " refused, ", counts.right,
          " without effect");
  CHECK(counts.refused > counts.edits / 2);
}

}  // namespace rlx
