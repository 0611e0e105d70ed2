// The binary form: equality after reading back, and one clear error for every kind of damage.
#include "rlx/ir/serial/serialize.h"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "rlx/ir/ops/control.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "tests/support/graph_bytes.h"
#include "tests/unit/ir/sample_graph.h"

using namespace rlx;
using test::sealed;

namespace {

Graph round_tripped() {
  Graph g("example");
  Dim n = g.symbol("n", {1, 64, 8});
  Expr x = g.input("x", Shape({n, 4}, DType::F32));
  Expr s = g.state("count", Tensor::full(Shape({}, DType::I32), 3));
  Expr c = g.constant(Tensor::of<float>({4}, std::vector<float>{1, 2, 3, 4}));
  Expr y = g.gelu(x) + c;
  g.set_label(y.value().node, "layer0/bias");
  Origin& o = g.origin(y.value().node);
  o.loc = {"model.cpp", 7};
  o.pass = "fuse";
  o.from = {"%1 add", "%2 gelu"};
  g.set_outputs({y, x});
  g.set_state("count", s + 1);
  return g;
}

std::string error_of(std::span<const std::byte> bytes) {
  try {
    from_bytes(bytes, "g.rlxb");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::BadFile);
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("binary: everything comes back, origins included") {
  Graph g = round_tripped();
  Graph back = from_bytes(to_bytes(g));
  CHECK(same_graph(g, back));
  CHECK(back.name() == "example");
  CHECK(print_text(back, {.origins = true}) == print_text(g, {.origins = true}));
  for (std::size_t i = 0; i < g.num_nodes(); ++i) CHECK(g.nodes()[i].origin == back.nodes()[i].origin);
  CHECK(to_bytes(back) == to_bytes(g));
}

TEST_CASE("binary: every sample of every op survives a round trip") {
  test::for_each_op_sample([](const OpDef& def, const testing::Sample& sample) {
    INFO(def.name, " / ", sample.name);
    Graph g = test::graph_of(sample);
    Graph back = from_bytes(to_bytes(g));
    CHECK(same_graph(g, back));
    CHECK(fingerprint(back) == fingerprint(g));
  });
}

TEST_CASE("binary: constants beyond the encoder's buffer are whole") {
  Tensor big = Tensor::zeros(Shape({1000, 77}, DType::F32));
  for (std::int64_t i = 0; i < big.num_elements(); i += 997) big.set(i, static_cast<double>(i));
  Graph g("big");
  g.set_outputs({g.constant(big)});
  CHECK(same_graph(from_bytes(to_bytes(g)), g));
}

TEST_CASE("binary: cut anywhere, the message says that the file is damaged, or where its graph ends") {
  const std::vector<std::byte> bytes = to_bytes(round_tripped());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK(error_of(cut).find("damaged") != std::string::npos);
    if (n < kGraphBytesHeaderSize) continue;
    const std::string message = error_of(sealed(std::move(cut)));
    CHECK(message != "no error");
    CHECK(message.find("g.rlxb, byte ") != std::string::npos);
  }
  std::vector<std::byte> more = bytes;
  more.push_back(std::byte{0});
  CHECK(error_of(more).find("the file is damaged: ") != std::string::npos);
  CHECK(error_of(sealed(more)).find("1 extra bytes follow the graph") != std::string::npos);
}

TEST_CASE("binary: a flipped bit anywhere, or two bytes that changed places, are reported as damage") {
  const std::vector<std::byte> good = to_bytes(round_tripped());
  for (std::size_t at = 0; at < good.size(); ++at) {
    INFO("byte ", at);
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> bytes = good;
      bytes[at] ^= std::byte{1} << bit;
      CHECK(error_of(bytes).find("the file is damaged: ") != std::string::npos);
    }
    std::vector<std::byte> swapped = good;
    std::swap(swapped[at], swapped[(at + 7) % good.size()]);
    if (swapped != good && at >= kGraphBytesHeaderSize) CHECK(error_of(swapped).find("damaged") != std::string::npos);
  }
}

TEST_CASE("binary: other files and versions are named as such") {
  std::vector<std::byte> bytes = to_bytes(round_tripped());
  CHECK(
      error_of({}) ==
      "bad file: these bytes are not an rlx graph, or are damaged: they do not start with RLXGRAPH\n  g.rlxb, byte 0");
  const std::string hint = "\n  g.rlxb, byte 8\n  hint: convert the graph to text with the rlx that wrote it";
  bytes[8] = std::byte{9};
  bytes.back() ^= std::byte{1};  // with other contents too, it is another version and not a damaged file
  CHECK(error_of(bytes) == "bad file: graph format version 9 is not known; this build reads version 2" + hint);
  bytes[8] = std::byte{1};
  CHECK(error_of(bytes) ==
        "bad file: graph format version 1 is not known; this build reads version 2 (the first with a checksum)" + hint);
}

TEST_CASE("binary: a wrong name, shape or list length is found") {
  const std::vector<std::byte> good = to_bytes(round_tripped());
  auto damaged = [&](std::string_view find, std::string_view write) {
    std::vector<std::byte> bytes = good;
    std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::size_t at = view.find(find);
    REQUIRE(at != std::string_view::npos);
    std::memcpy(bytes.data() + at, write.data(), write.size());
    return error_of(sealed(bytes));
  };
  CHECK(damaged("activation", "activatiom").find("there is no op 'activatiom'") != std::string::npos);
  CHECK(damaged("activation", "activatiom").find("did you mean 'activation'?") != std::string::npos);
  CHECK(damaged("gelu", "gelq").find("'gelq' is not a value of fn") != std::string::npos);
  CHECK(damaged("f32", "f99").find("'f99' is not a dtype") != std::string::npos);
  CHECK(damaged(std::string_view("\x05\0\0\0count", 9), std::string_view("\xff\xff\xff\xff", 4))
            .find("has 4294967295 entries") != std::string::npos);
}

TEST_CASE("binary and text: what verify lets through is read back, however deep its bodies lie") {
  const std::function<Expr(Graph&, Expr, int)> calls = [&](Graph& b, Expr x, int left) -> Expr {
    if (left == 0) return b.tanh(x);
    return b.checkpoint({x}, [&](Graph& in, const ExprList& v) { return ExprList{calls(in, v[0], left - 1)}; })[0];
  };
  const Shape two({2}, DType::F32);
  for (const int deep : {1, 17, 64}) {
    CAPTURE(deep);
    Graph g("deep");
    g.set_outputs({calls(g, g.input("x", two), deep)});
    CHECK(verify(g, Level::Mir).empty());
    if (deep == 64) {  // no builder makes a deeper one
      Graph deeper("deeper");
      ops::Call call;
      call.body = std::make_shared<const Graph>(g);
      deeper.set_outputs({deeper.add(std::move(call), {deeper.input("x", two)})});
      CHECK_FALSE(verify(deeper, Level::Mir).empty());
    }
    CHECK(fingerprint(from_bytes(to_bytes(g))) == fingerprint(g));
    CHECK(fingerprint(parse_text(print_text(g))) == fingerprint(g));
  }
}
