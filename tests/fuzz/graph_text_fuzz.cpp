// Fuzz target: any bytes, and damaged prints of every op sample, as graph text. What parses is sound, and prints and
// parses back to the same graph in both forms.
#include <string_view>

#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "tests/fuzz/graph_samples.h"

namespace {

void run(std::string_view text) {
  using namespace rlx;
  try {
    const Graph g = parse_text(text, "fuzz");
    fuzz::expect_sound(g);
    check(same_graph(parse_text(print_text(g), "again"), g), "graph text survives a round trip");
    check(same_graph(from_bytes(to_bytes(g)), g), "a parsed graph survives its binary form");
  } catch (const Error& e) {
    if (e.code() != ErrorCode::BadFile) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run({reinterpret_cast<const char*>(data), size});
  auto random = rlx::fuzz::random_of(data, size);
  const auto& graphs = rlx::fuzz::sample_graphs();
  std::string text = rlx::print_text(graphs[random() % graphs.size()]);
  rlx::fuzz::damage(text, random);
  run(text);
  return 0;
}
