// Writes the HTML report: fixed parts as text, data as JSON.
#include "rlx/report/report.h"

#include <array>

#include "rlx/base/json_writer.h"
#include "rlx/base/utf8.h"
#include "rlx/ir/inspect.h"
#include "rlx/report/assets.h"
#include "rlx/report/plan_picture.h"
#include "rlx/report/records.h"

namespace rlx {
namespace {

// Escapes one line of text for the title.
std::string html_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t valid = find_invalid_utf8(text).value_or(text.size());
    for (const char c : text.substr(0, valid))
      if (c == '<' || c == '>' || c == '&')
        out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
      else
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    if (valid == text.size()) break;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(valid + 1);
  }
  return out;
}

void write_fusion(JsonWriter& json, const FusionReport& report) {
  json.begin_object().member("before", report.nodes_before).member("after", report.nodes_after);
  json.key("counts").begin_array();
  std::map<std::string, std::array<int, 2>> counts;
  for (const auto& [op, n] : report.before) counts[op][0] = n;
  for (const auto& [op, n] : report.after) counts[op][1] = n;
  for (const auto& [op, n] : counts) json.begin_array().value(op).value(n[0]).value(n[1]).end_array();
  json.end_array().key("fused").begin_array();
  for (const auto& [pattern, n] : report.fused) json.begin_array().value(pattern).value(n).end_array();
  json.end_array().key("missed").begin_array();
  for (const MissedFusion& m : report.missed) {
    json.begin_array().value(m.pattern).value(miss_reason_name(m.reason)).value(m.label).value(m.detail).value(m.hint);
    json.value(m.node.index).value(m.stage ? static_cast<std::int64_t>(*m.stage) : -1).value(m.in_body).end_array();
  }
  json.end_array().end_object();
}

void write_kernels(JsonWriter& json, const ReportOptions& options, ReportStrings& strings) {
  json.begin_object().member("note", options.times_note).key("limits").begin_array().value(options.limits.gflops);
  for (const MachineLimits::Bandwidth& b : options.limits.bandwidth)
    json.begin_array().value(b.bytes).value(b.gb_per_s).end_array();
  json.end_array().key("times").begin_array();
  const bool floors = options.limits.gflops > 0;
  for (const NodeTime& t : options.times) {
    json.begin_array().value(t.node.valid() ? static_cast<std::int64_t>(t.node.index) : -1).value(strings.id(t.op));
    json.value(strings.id(t.kernel)).value(t.ns).value(floors ? options.limits.floor_ns(t.cost) : 0.0);
    json.value(t.cost.flops).value(t.cost.read_bytes + t.cost.write_bytes).end_array();
  }
  json.end_array().end_object();
}

void write_dispatch(JsonWriter& json, const KernelDispatchReport& report) {
  json.begin_array();
  for (const KindDispatch& k : report.summaries)
    json.begin_array().value(k.name).value(dispatch_path_name(k.path)).value(k.node_count).value(k.why).end_array();
  json.end_array();
}

std::string report_data(const CompileResult& result, const ReportOptions& options) {
  ReportStrings strings;
  ReportRecords records(strings);
  JsonWriter json(kHtmlJson);
  const LirModule& lir = result.lir;
  json.begin_object().member("version", 1).member("title", options.title.empty() ? lir.graph.name() : options.title);
  json.member("graph", lir.graph.name()).member("target", result.dispatch.backend_name);
  json.key("devices").begin_array().value(result.dispatch.backend_name);
  for (DeviceId d : lir.others) json.value(device_text(d));
  json.end_array().key("stages").begin_array();
  std::map<std::string, int> runs;  // run counts of repeated passes, which make their names unique
  std::int64_t planned = -1, number = 0;
  const auto add = [&](std::string_view name, std::string_view what, const Graph& g) {
    const int run = ++runs[std::string(name)];
    records.add_stage(json, run == 1 ? std::string(name) : concat_text(name, "-", run), what, g);
    ++number;
  };
  for (const PipelineStage& s : result.stages) {
    const Pass* pass = find_pass(s.name);
    if (s.name == "lir") planned = number;
    add(s.name,
        pass                   ? pass->what
        : s.name == "hir"      ? "the graph as given"
        : s.name == "legalize" ? "ops that the device has no kernel for are decomposed"
        : s.name == "lir"
            ? "the planned program: the prepare graph holds the work on weights, transfers copy values between devices"
            : "",
        s.graph);
  }
  if (planned < 0) {
    planned = number;
    add("lir", result.source ? "the program, which has unbound symbols and no memory plan" : "the planned program",
        lir.graph);
  }
  json.end_array().member("planned", planned).member("open", result.source != nullptr).key("plans").begin_array();
  if (!result.source) write_plans(json, lir, records, strings);
  json.end_array().key("prepare").value(lir.prepare.num_nodes() ? static_cast<std::int64_t>(records.body(lir.prepare))
                                                                : -1);
  json.key("fusion");
  write_fusion(json, result.fusion);
  json.key("kernels");
  write_kernels(json, options, strings);
  json.key("dispatch");
  write_dispatch(json, result.dispatch);
  json.key("reports").begin_array();
  const auto report = [&](const char* name, const std::string& text) {
    json.begin_array().value(name).value(text).end_array();
  };
  report("dispatch: how each kind of op reaches the device", result.dispatch.text());
  report("updates that need a copy", result.source ? std::string() : inspect_copies(lir));
  report("devices", inspect_devices(lir));
  report("fusion", result.fusion.summary_line() + "\n");
  report("program", result.source ? inspect_graph_stats(lir.graph) : inspect_lir_stats(lir));
  json.end_array();
  records.write(json);
  json.key("strings").begin_array();
  for (const std::string* text : strings.texts()) json.value(*text);
  return json.end_array().end_object().take();
}

}  // namespace

std::string inspect_html(const CompileResult& result, const ReportOptions& options) {
  const std::string title = html_text(options.title.empty() ? result.lir.graph.name() : options.title);
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  // The content security policy: the browser refuses every fetch.
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n";
  out += concat_text("<title>", title, " - rlx</title>\n<style>\n", kReportStyle, "</style>\n</head>\n", kReportBody);
  out += "<script type=\"application/json\" id=\"data\">";
  out += report_data(result, options);
  out += concat_text("</script>\n<script>\n\"use strict\";\n(() => {\n", kReportScript, "})();\n</script>\n</html>\n");
  return out;
}

std::string inspect_html(const CompiledGraph& program, const ReportOptions& options) {
  return inspect_html(program.compile_result(), options);
}

}  // namespace rlx
