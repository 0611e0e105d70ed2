// Fuzz target: any bytes, and damaged encodings of every op sample, as a binary graph. What is accepted is sound and is
// written back to the same graph.
#include "rlx/ir/serialize.h"
#include "rlx/ir/text.h"
#include "tests/fuzz/graph_samples.h"

namespace {

void run(std::span<const std::byte> bytes) {
  using namespace rlx;
  try {
    const Graph g = from_bytes(bytes, "fuzz");
    fuzz::expect_sound(g);
    const Graph again = from_bytes(to_bytes(g), "again");
    check(same_graph(again, g) && fingerprint(again) == fingerprint(g), "a binary graph survives a round trip");
    check(same_graph(parse_text(print_text(g), "text"), g), "a binary graph survives its text form");
  } catch (const Error& e) {
    if (e.code() != ErrorCode::BadFile) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run(std::as_bytes(std::span(data, size)));
  auto random = rlx::fuzz::random_of(data, size);
  const auto& graphs = rlx::fuzz::sample_graphs();
  const std::vector<std::byte> whole = rlx::to_bytes(graphs[random() % graphs.size()]);
  std::string bytes(reinterpret_cast<const char*>(whole.data()), whole.size());
  rlx::fuzz::damage(bytes, random);
  run(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return 0;
}
