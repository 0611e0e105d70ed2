// Pipeline stages as text.
#include <span>

#include "rlx/base/output_file.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/text.h"

namespace rlx {
namespace {

const Graph* stage(const CompileResult& r, std::string_view name, bool last) {
  const Graph* found = nullptr;
  for (const PipelineStage& s : r.stages)
    if (s.name == name && (last || !found)) found = &s.graph;
  return found;
}

std::string histogram_diff(const Graph& a, const Graph& b) {
  auto before = op_histogram(a), after = op_histogram(b);
  std::string out = concat_text("nodes ", a.num_nodes(), " -> ", b.num_nodes(), "\n");
  for (const auto& [name, count] : before) after.try_emplace(name, 0);
  for (const auto& [name, count] : after) {
    auto it = before.find(name);
    int old = it == before.end() ? 0 : it->second;
    if (old != count) out += concat_text("  ", name, " ", count > old ? "+" : "", count - old, "\n");
  }
  return out;
}

}  // namespace

std::string inspect_devices(const LirModule& m) {
  std::string out;
  for (std::size_t i = 0; i < m.others.size(); ++i)
    out += concat_text(i ? ", " : "devices: 0 is the program's own, ", i + 1, " is ", device_text(m.others[i]));
  return out.empty() ? out : out + "\n";
}

PipelineInspect inspect_compiled(const CompileResult& r) {
  PipelineInspect p;
  if (const Graph* hir = stage(r, "hir", false)) p.hir = print_text(*hir);
  const Graph* lowered = stage(r, lower_hir.name, true);
  if (!lowered) lowered = stage(r, "hir", false);
  const Graph* optimized = stage(r, "legalize", true);
  if (lowered) p.mir_lowered = print_text(*lowered);
  if (lowered && optimized) p.mir_diff = histogram_diff(*lowered, *optimized);
  if (optimized) p.mir_optimized = print_text(*optimized);
  if (!r.has_dynamic_dims())  // else there is no plan yet
    p.lir = concat_text(print_text(r.lir.graph), "\n", print_text(r.lir.prepare), "\n", inspect_devices(r.lir),
                        inspect_buffer_plan(r.lir));
  p.fusion = r.fusion.text();
  p.dispatch = r.dispatch.text();
  return p;
}

std::string PipelineInspect::text() const {
  std::string out;
  auto section = [&](std::string_view title, const std::string& body) {
    if (!body.empty()) out += concat_text("==== ", title, " ====\n", body, body.back() == '\n' ? "\n" : "\n\n");
  };
  section("HIR", hir);
  section("MIR, lowered", mir_lowered);
  section("MIR, what the passes changed", mir_diff);
  section("MIR, optimised and legal", mir_optimized);
  section("LIR: run, prepare, buffers", lir);
  section("fusion", fusion);
  section("dispatch", dispatch);
  return out;
}

PipelineInspect inspect_pipeline(GraphModule m, const std::shared_ptr<const Target>& target, CompileOptions options) {
  options.keep_stages = true;
  return inspect_compiled(CompilePipeline(target, std::move(options)).compile_module(std::move(m)));
}

FusionReport inspect_fusion(const Graph& g, const std::shared_ptr<const Target>& target, CompileOptions options) {
  return CompilePipeline(target, std::move(options)).compile_graph(g).fusion;
}

std::string dump_file(const CompileResult& r, const std::string& path) {
  if (!path.ends_with('/')) return path;
  std::string name = r.lir.graph.name();  // perhaps from a file of somebody else: it must not name another folder
  for (char& c : name)
    if (c == '/' || static_cast<unsigned char>(c) < 0x20) c = '_';
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return path + name.substr(0, 200) + ".ir.txt";
}

std::string dump_pipeline(const CompileResult& r, const std::string& path, bool append) {
  std::string file = dump_file(r, path);
  const std::string text = inspect_compiled(r).text();
  const std::string_view part = text;
  try {
    if (append)
      append_to_file(file, text);
    else
      replace_file(file, std::span(&part, 1));
  } catch (const Error& e) {
    throw Error(e.code(), e.diagnostic().message,
                "set RLX_IR_DUMP to a path on a disk with free space, or to an existing folder with a / at its end");
  }
  return file;
}

}  // namespace rlx
