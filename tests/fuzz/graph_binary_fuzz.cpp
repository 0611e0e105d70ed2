// Fuzz target: any bytes, and damaged encodings of every op sample, as a binary graph: as they are and, since the
// checksum stops those, under a header that fits them. What is accepted is sound and is written back to the same graph.
#include "rlx/ir/serial/serialize.h"
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

// `body` as what follows a header that is right.
void run_sealed(std::span<const std::byte> body) {
  std::vector<std::byte> bytes = rlx::graph_bytes_header(body);
  bytes.insert(bytes.end(), body.begin(), body.end());
  run(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  run(input);
  run_sealed(input);
  auto random = rlx::fuzz::random_of(data, size);
  const auto& graphs = rlx::fuzz::sample_graphs();
  const std::vector<std::byte> whole = rlx::to_bytes(graphs[random() % graphs.size()]);
  std::string body(reinterpret_cast<const char*>(whole.data()) + rlx::kGraphBytesHeaderSize,
                   whole.size() - rlx::kGraphBytesHeaderSize);
  rlx::fuzz::damage(body, random);
  run_sealed(std::as_bytes(std::span(body.data(), body.size())));
  return 0;
}
