// `rlx ops`: the table of ops with their rules, and the devices that have kernels for them.
#include <algorithm>
#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/op_coverage.h"
#include "cli/op_names.h"
#include "cli/op_page.h"
#include "cli/op_samples.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/device/registry.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/text.h"

namespace rlx::cli {
namespace {

struct OpsArgs {
  std::optional<std::string> op;
  std::string output;
  bool coverage = false, markdown = false;
};

struct RuleState {
  std::string_view name;
  bool own = false, derived = false;
  const char* reason = nullptr;  // if the op has no such rule
};

template <class Fn>
RuleState state_of(std::string_view name, const Rule<Fn>& rule) {
  return {name, rule.has(), rule.derived(), rule.reason()};
}

std::vector<RuleState> rules_of(const OpDef& def) {
  return {state_of("infer", def.infer), state_of("decompose", def.decompose), state_of("vjp", def.vjp),
          state_of("jvp", def.jvp),     state_of("batch", def.batch),         state_of("reference", def.reference),
          state_of("cost", def.cost)};
}

// A target: its short name and the ops that it has kernels for.
struct NamedClaims {
  std::string name;
  OpSet claims;
};

std::vector<NamedClaims> targets() {
  std::vector<NamedClaims> out;
  for (Device d : registered_devices())
    out.push_back({std::string(device_info(d).id), backend_for(d)->target({})->kinds()});
  if (const auto reference = backend_by_name("reference")) out.push_back({"reference", reference->target({})->kinds()});
  return out;
}

// How an op runs on a target: by a kernel, by its decomposition, or not at all.
std::string_view path_on(const OpDef& def, const NamedClaims& target) {
  if (def.is_leaf()) return "leaf";
  if (target.claims.has(def.kind)) return "kernel";
  return def.decompose.has() ? "parts" : "-";
}

std::string rule_text(const RuleState& r) { return r.own ? "own" : r.derived ? "derived" : "-"; }

// Shortens a text to `width` characters. `rlx ops --op NAME` shows all of it.
std::string cut(std::string text, std::size_t width) {
  if (text.size() > width) text = text.substr(0, width - 4) + " ...";
  return text;
}

std::string table() {
  std::vector<std::vector<std::string>> rows{{"op", "level", "operands", "what it computes"}};
  for (const OpDef* def : all_op_defs())
    rows.push_back({std::string(def->name), std::string(level_name(def->level)),
                    "(" + cut(def->inputs.text(), 40) + ")", std::string(def->what)});
  return padded_columns(rows);
}

std::string one_op(const OpDef& def) {
  std::string out = concat_text(def.name, "(", def.inputs.text(), ")  ", level_name(def.level), ", ", facts_text(def),
                                ", precision ", precision_name(def.precision), "\n", def.what, "\n");
  if (!def.attrs.empty()) out += "attributes:\n";
  for (const AttrField& f : def.attrs) {
    out += concat_text("  ", f.name, ": ", attr_type_text(f.type));
    if (!f.enum_names.empty()) out += concat_text(" (", enumerators_text(f), ")");
    if (f.place == AttrPlace::Mnemonic || f.place == AttrPlace::Suffix) out += ", part of the op's name in text";
    if (f.place == AttrPlace::TypeDims || f.place == AttrPlace::TypeDType) out += ", read from the result type in text";
    out += '\n';
  }
  out += "rules:\n";
  for (const RuleState& r : rules_of(def)) {
    out += concat_text("  ", r.name, ": ", rule_text(r));
    if (!r.own && !r.derived && r.reason) out += concat_text(" (", r.reason, ")");
    out += '\n';
  }
  const std::vector<NamedClaims> all = targets();
  if (!all.empty()) out += "devices:\n";
  for (const NamedClaims& t : all) out += concat_text("  ", t.name, ": ", path_on(def, t), "\n");
  const std::vector<std::string> differences = differences_of(def);
  if (!differences.empty()) out += "results differ from the reference:\n";
  for (const std::string& d : differences) out += concat_text("  on ", d, "\n");
  for (const std::string& text : texts_of(def))
    if (const OtherNames* n = names_of(text))
      for (const auto& [library, name] :
           {std::pair{"NumPy", n->numpy}, std::pair{"JAX", n->jax}, std::pair{"ONNX", n->onnx}})
        if (!name.empty())
          out += concat_text("in ", library, ": ", text == def.name ? "" : concat_text(text, " is "), name, "\n");
  const std::vector<testing::Sample> samples = shown_samples(def);
  out += concat_text("samples: ", samples.size(), "\n");
  for (const testing::Sample& s : samples) {
    std::string shapes;
    for (const testing::SampleInput& i : s.inputs) shapes += concat_text(shapes.empty() ? "" : ", ", i.shape);
    const std::string attrs = print_attrs(s.op);
    out += concat_text("  ", s.name, ": ", op_text_name(s.op), "(", shapes, ")",
                       attrs.empty() ? "" : concat_text(" {", attrs, "}"), "\n");
  }
  return out;
}

void run(const OpsArgs& args) {
  std::string text;
  if (args.op) {
    std::vector<std::string> names;
    const OpDef* found = nullptr;
    for (const OpDef* def : all_op_defs()) {
      names.emplace_back(def->name);
      if (def->name == *args.op) found = def;
    }
    if (const auto named = find_op(*args.op); !found && named) found = named->def;  // "gelu" is an activation
    if (!found) {
      throw UsageError(ErrorCode::NotFound, concat_text("there is no op '", *args.op, "'"),
                       did_you_mean(*args.op, names, "`rlx ops` lists them"));
    }
    text = one_op(*found);
  } else {
    text = args.coverage ? coverage_text(op_coverage(), args.markdown) : args.markdown ? ops_page() : table();
  }
  Output out(args.output);
  out.write(text);
  out.close();
}

}  // namespace

void register_ops(CommandLine& line) {
  auto args = std::make_shared<OpsArgs>();
  const Command cmd = line.add_command("ops", "List the ops, their rules and the devices that run them");
  const Argument op = cmd.add_option("--op", args->op, "Everything about one op: attributes, rules, devices, samples")
                          .type_name("NAME");
  cmd.add_flag("--coverage", args->coverage, "The matrix of dtypes, rules and devices, with the reason of every hole")
      .excludes(op);
  cmd.add_flag("--markdown", args->markdown, "Print Markdown: the reference (docs/ops.md), or the matrix").excludes(op);
  cmd.add_option("-o,--output", args->output, "File instead of the standard output").type_name("FILE");
  cmd.callback([args] { run(*args); });
}

}  // namespace rlx::cli
