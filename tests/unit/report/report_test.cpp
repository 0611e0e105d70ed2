// HTML reports of compiles: they may contain any text, and their JSON has the whole compile result.
#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "rlx/formats/json.h"
#include "rlx/ir/attr.h"
#include "rlx/ir/text.h"
#include "rlx/report/report.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"

using namespace rlx;
using namespace rlx::test;

namespace {

std::string data_of(const std::string& page) {
  const std::string open = "id=\"data\">", close = "</script>";
  const std::size_t at = page.find(open) + open.size();
  REQUIRE(at > open.size());
  return page.substr(at, page.find(close, at) - at);
}

// The data of a report, with its nodes restored.
class ReportData {
 public:
  explicit ReportData(const std::string& page) : document_(JsonDocument::parse(data_of(page), "page")) {
    for (JsonValue text : root().at("strings").elements("strings")) strings_.emplace_back(text.as_string("text"));
    records_ = root().at("records").elements("records");
    for (JsonValue stage : root().at("stages").elements("stages")) {
      std::vector<std::int64_t> order;
      const std::vector<std::int64_t> runs = numbers(stage.at("order")), set = numbers(stage.at("set"));
      for (std::size_t i = 0; i < runs.size(); i += 2)
        for (std::int64_t k = 0; k < runs[i + 1]; ++k) order.push_back(runs[i] + k);
      for (std::size_t i = 0; i < set.size(); i += 2) record_of_[set[i]] = static_cast<std::size_t>(set[i + 1]);
      stages_.push_back(lines(order, record_of_));
    }
  }
  JsonValue root() const { return document_.root(); }
  const std::string& text(std::int64_t i) const { return strings_.at(static_cast<std::size_t>(i)); }
  const std::vector<std::vector<std::string>>& stages() const { return stages_; }
  static std::vector<std::int64_t> numbers(JsonValue list) {
    std::vector<std::int64_t> out;
    for (JsonValue v : list.elements("list")) out.push_back(v.as_int("number"));
    return out;
  }

 private:
  // "add(%0, %1#1) [2] f32 label" of each node.
  std::vector<std::string> lines(const std::vector<std::int64_t>& order, std::map<std::int64_t, std::size_t>& record) {
    std::map<std::int64_t, std::size_t> place;
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::vector<std::string> out;
    for (std::int64_t entity : order) {
      const std::vector<JsonValue> fields = records_.at(record.at(entity)).elements("record");
      std::string line = text(fields[0].as_int("op")) + "(";
      for (JsonValue in : fields[3].elements("operands")) {
        const bool later = in.is_array();
        const std::vector<std::int64_t> pair = later ? numbers(in) : std::vector{in.as_int("operand"), std::int64_t{0}};
        line +=
            Value(NodeId{static_cast<std::uint32_t>(place.at(pair[0]))}, static_cast<std::uint32_t>(pair[1])).text();
        line += " ";
      }
      line += ")";
      if (fields[2].is_array())
        for (std::int64_t type : numbers(fields[2])) line += " " + text(type);
      else
        line += " " + text(fields[2].as_int("type"));
      out.push_back(line + " " + text(fields.size() > 4 ? fields[4].as_int("label") : 0));
    }
    return out;
  }

  JsonDocument document_;
  std::vector<std::string> strings_;
  std::vector<JsonValue> records_;
  std::map<std::int64_t, std::size_t> record_of_;
  std::vector<std::vector<std::string>> stages_;
};

// The same lines, from a graph.
std::vector<std::string> lines_of(const Graph& g) {
  std::vector<std::string> out;
  for (const Node& n : g.nodes()) {
    std::string line = op_text_name(n.op) + "(";
    for (Value v : n.inputs) line += v.text() + " ";
    line += ")";
    for (const Shape& s : n.shapes) line += " " + s.text();
    out.push_back(line + " " + n.origin.label);
  }
  return out;
}

// Layers with biases, residuals, a matmul that is an output (a missed fusion), views, a loop and a state.
Graph program(int layers) {
  Graph g("program");
  Expr x = g.input("x", Shape({4, 8}, DType::F32));
  Expr product;
  for (int l = 0; l < layers; ++l) {
    const auto scope = g.scope(concat_text("layer", l));
    product = g.matmul(x, g.param(concat_text("w", l), Shape({8, 8}, DType::F32)));
    x = x + g.gelu(product + g.param(concat_text("b", l), Shape({8}, DType::F32)));
  }
  const Expr s = g.state("kv", Tensor::zeros(Shape({4, 8}, DType::F32)));
  g.set_state("kv", s + x);
  g.set_outputs({g.transpose(x, {1, 0}), product});
  return g;
}

CompileResult compiled(Graph g, SymbolBinding binding = {}) {
  CompileOptions options;
  options.keep_stages = true;
  options.dim_binding = std::move(binding);
  return CompilePipeline(Session().target(), options).compile_graph(std::move(g));
}

}  // namespace

TEST_CASE("page: a title that would end the script reads back") {
  ReportOptions options;
  options.title = "</script><!--\xE2\x80\xA8 \xFF";
  const ReportData page(inspect_html(compiled(program(1)), options));
  CHECK(page.root().get_string("title") == "</script><!--\xE2\x80\xA8 \xEF\xBF\xBD");
}

TEST_CASE("page: every stage is there, each node with its op, operands, types and label") {
  const CompileResult result = compiled(program(12));
  const ReportData page(inspect_html(result));
  REQUIRE(page.stages().size() == result.stages.size());
  for (std::size_t i = 0; i < result.stages.size(); ++i) CHECK(page.stages()[i] == lines_of(result.stages[i].graph));
  CHECK(page.root().get_int("planned") == static_cast<std::int64_t>(result.stages.size()) - 1);
}

TEST_CASE("page: nodes that a pass leaves keep their number, those it makes get a new one") {
  const CompileResult result = compiled(program(12));
  const ReportData page(inspect_html(result));
  for (JsonValue stage : page.root().at("stages").elements("stages"))
    if (stage.get_string("name") == "fuse-dot-epilogue") {
      // Twelve matmuls become fused ones. x, weights, biases, the state and the last ops stay, with other operands.
      const std::size_t changed = stage.at("set").elements("set").size() / 2;
      CHECK(changed >= 12);
      CHECK(changed <= 16);
    }
}

TEST_CASE("page: every missed fusion with reason and hint, at the node of the stage that it saw") {
  const CompileResult result = compiled(program(3));
  REQUIRE(!result.fusion.missed.empty());
  const ReportData page(inspect_html(result));
  const std::vector<JsonValue> missed = page.root().at("fusion").at("missed").elements("missed");
  REQUIRE(missed.size() == result.fusion.missed.size());
  for (std::size_t i = 0; i < missed.size(); ++i) {
    const MissedFusion& m = result.fusion.missed[i];
    const std::vector<JsonValue> row = missed[i].elements("miss");
    CHECK(row[0].as_string("pattern") == m.pattern);
    CHECK(row[1].as_string("reason") == miss_reason_name(m.reason));
    CHECK(row[3].as_string("detail") == m.detail);
    CHECK(row[4].as_string("hint") == m.hint);
    REQUIRE(m.stage);
    const Graph& seen = result.stages.at(*m.stage).graph;
    REQUIRE(m.node.index < seen.num_nodes());
    CHECK(node_label(seen, m.node) == m.label);
  }
}

TEST_CASE("page: every value of the plan is there with its place, bytes and life") {
  const CompileResult result = compiled(program(5));
  const ReportData page(inspect_html(result));
  const LirBufferPlan& plan = result.lir.plan;
  const JsonValue shown = page.root().at("plans").elements("plans").at(0);
  CHECK(shown.at("steps").elements("steps").size() == plan.schedule.size());
  std::size_t values = 0, arena = 0;
  for (const auto& results : plan.values)
    for (const LirValue& v : results) ++values, arena += v.place == Place::Arena;
  const std::vector<JsonValue> buffers = shown.at("buffers").elements("buffers");
  CHECK(buffers.size() == arena);
  CHECK(buffers.size() + shown.at("elsewhere").elements("elsewhere").size() == values);
  for (JsonValue b : buffers) {
    const std::vector<std::int64_t> row = ReportData::numbers(b);
    const LirValue& v = plan.at(Value(NodeId{static_cast<std::uint32_t>(row[0])}, static_cast<std::uint32_t>(row[1])));
    CHECK(row[3] == static_cast<std::int64_t>(v.offset));
    CHECK(row[4] == static_cast<std::int64_t>(v.bytes));
    CHECK(row[5] >= 0);
    CHECK(row[6] >= row[5]);
    CHECK((row[7] == 2) == v.is_view);
  }
}

TEST_CASE("page: bodies of loops, and their plans") {
  const Graph g = parse_text(R"(graph @loop {
  %0 = input() {name = "x"} : [6, 4] f32
  %1 = state() {name = "s", init = [4] f32 {0, 0, 0, 0}} : [4] f32
  %2:2 = scan(%1, %0) {carries = 1, length = [6], body = graph @inner {
      %0 = input() {name = "carry"} : [4] f32
      %1 = input() {name = "row"} : [4] f32
      %2 = add(%0, %1) : [4] f32
      return %2, %0
    }} : [4] f32, [6, 4] f32
  return %2#1
  set_state "s" %2
}
)");
  const ReportData page(inspect_html(compiled(g)));
  bool inner = false;
  for (JsonValue body : page.root().at("bodies").elements("bodies")) inner |= body.get_string("graph") == "inner";
  CHECK(inner);
  const std::vector<JsonValue> plans = page.root().at("plans").elements("plans");
  REQUIRE(plans.size() == 2);
  CHECK(plans[1].get_string("name") == "body 0 of %2");
  CHECK(plans[1].get_int("body") >= 0);
}

TEST_CASE("page: open symbols have no plan; several devices are named; a program of a session has its times") {
  Graph open =
      parse_text("graph @open {\n  %0 = input() {name = \"x\"} : [n, 4] f32\n  %1 = exp(%0)\n  return %1\n}\n");
  const ReportData page(inspect_html(compiled(open)));
  CHECK(page.root().get_bool("open"));
  CHECK(page.root().at("plans").elements("plans").empty());

  CompileOptions options;
  options.keep_stages = true;
  CompiledGraph f = Session().compile_with(program(2), options);
  for (const IoInfo& p : f.params()) f.set_param(p.name, Tensor::zeros(p.shape));
  const Tensor x = Tensor::zeros(Shape({4, 8}, DType::F32));
  const TensorView view = x.view();
  ReportOptions shown;
  shown.title = "a <title> & more";
  shown.times = median_profile(f, {&view, 1}, 3);
  shown.limits.gflops = 10;
  shown.limits.bandwidth = {{1024, 5.0}};
  const std::string html = inspect_html(f, shown);
  CHECK(contains(html, "<title>a &lt;title&gt; &amp; more - rlx</title>"));
  const ReportData timed(html);
  const std::vector<JsonValue> times = timed.root().at("kernels").at("times").elements("times");
  CHECK(times.size() == f.compile_result().lir.plan.schedule.size());
  for (JsonValue t : times) {
    const std::vector<JsonValue> row = t.elements("time");
    const auto node = static_cast<std::uint32_t>(row[0].as_int("node"));
    CHECK(timed.text(row[1].as_int("op")) == op_text_name(f.compile_result().lir.graph.node(NodeId{node}).op));
    CHECK(row[3].as_number("ns") > 0);
    CHECK(row[4].as_number("floor") > 0);
  }
  CHECK(timed.stages().size() == f.compile_result().stages.size());
}

TEST_CASE("page: its size is linear in the nodes") {
  const std::size_t small = inspect_html(compiled(program(200))).size();
  const std::size_t large = inspect_html(compiled(program(800))).size();
  CHECK(large < 4.5 * static_cast<double>(small));
  CHECK(large < 1500000);
}

TEST_CASE("page: a result without stages shows the planned program; a profile of no runs is refused") {
  const CompileResult result = CompilePipeline(Session().target()).compile_graph(program(1));
  const ReportData page(inspect_html(result));
  REQUIRE(page.stages().size() == 1);
  CHECK(page.stages()[0] == lines_of(result.lir.graph));
  CompiledGraph f = Session().compile(program(1));
  CHECK(contains(error_text([&] { (void)median_profile(f, {}, 0); }), "a profile of 0 runs"));
}
