// Random programs whose extents are values, run repeatedly and compared with the evaluator.
#include <algorithm>

#include <doctest/doctest.h>

#include "rlx/ir/rewrite/symbol_order.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/runtime/session.h"
#include "tests/support/value_symbols.h"
#include "tests/support/values.h"

namespace rlx::test {

TEST_CASE("programs whose extents are values run as the evaluator says, on one thread and on two") {
  std::int64_t stops = 0, longest = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const ValueProgram program = random_value_program(seed);
    for (const Diagnostic& d : verify(program.graph, Level::Mir)) FAIL_CHECK(d.text());
    for (int threads : {1, 2}) {
      CompiledGraph f = Session().with_threads(threads).compile(Graph(program.graph));
      check_value_program(program, std::move(f), seed, 8);
    }
    const auto order = symbol_order(program.graph);
    REQUIRE(order.has_value());
    stops += static_cast<std::int64_t>(order->stages.size());
    longest = std::max(longest, static_cast<std::int64_t>(order->stages.size()));
  }
  CHECK(stops > 40);   // checks that the programs are of the intended kind
  CHECK(longest > 2);  // symbols from whose extents other symbols are computed
}

TEST_CASE("programs whose extents are values are the same through text and bytes, and in any order of their nodes") {
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    CAPTURE(seed);
    const ValueProgram program = random_value_program(seed);
    CHECK(same_graph(parse_text(print_text(program.graph)), program.graph));
    CHECK(same_graph(from_bytes(to_bytes(program.graph)), program.graph));
    const Graph sorted = sorted_by_symbols(program.graph);
    CHECK(in_symbol_order(sorted));
    for (const Diagnostic& d : verify(sorted, Level::Mir)) FAIL_CHECK(d.text());
    const NamedTensors values = random_value_inputs(program, seed);
    const std::vector<Tensor> a = evaluate(program.graph, values), b = evaluate(sorted, values);
    for (std::size_t i = 0; i < a.size(); ++i) expect_close(b[i], a[i], 0);
  }
}

}  // namespace rlx::test
