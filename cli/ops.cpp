// `rlx ops`: the table of ops with their rules, and the devices that have kernels for them.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/driver/registry.h"
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
  const char* reason = nullptr;  // of a rule that is neither
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

// A target with kernels: its short name and the kinds that it claims.
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

std::string_view level_name(Level level) { return level == Level::Hir ? "hir" : level == Level::Mir ? "mir" : "lir"; }

std::string_view precision_text(PrecisionCategory c) {
  constexpr std::string_view names[] = {"compute", "reduction", "elementwise", "movement", "stated"};
  return names[static_cast<std::size_t>(c)];
}

// The facts of a record, but for its level and precision.
std::string facts_text(const OpDef& def) {
  const std::pair<bool, std::string_view> facts[] = {
      {def.leaf == LeafKind::Named, "named leaf"},
      {def.leaf == LeafKind::Embedded, "leaf"},
      {def.elementwise == ElementwiseKind::Yes, "elementwise"},
      {def.elementwise == ElementwiseKind::InBodies, "elementwise (also in bodies)"},
      {def.view == ViewKind::ByStrides, "view where strides allow"},
      {def.view == ViewKind::Always, "view"},
      {def.is_composite(), "composite"}};
  std::string out;
  for (const auto& [holds, name] : facts)
    if (holds) out += concat_text(out.empty() ? "" : ", ", name);
  return out.empty() ? "primitive" : out;
}

std::string attrs_text(const OpDef& def) {
  std::string out;
  for (const AttrField& f : def.attrs) out += concat_text(out.empty() ? "" : ", ", f.name);
  return out;
}

std::string_view type_text(AttrType t) {
  constexpr std::string_view names[] = {"bool",
                                        "integer",
                                        "number",
                                        "enumerator",
                                        "string",
                                        "dtype",
                                        "dims",
                                        "integers",
                                        "numbers",
                                        "enumerators",
                                        "bytes",
                                        "tensor",
                                        "graph",
                                        "optional bool",
                                        "optional integer",
                                        "optional number",
                                        "optional enumerator",
                                        "optional graph",
                                        "optional operands that are there"};
  static_assert(std::size(names) == static_cast<std::size_t>(AttrType::Operands) + 1);
  return names[static_cast<std::size_t>(t)];
}

std::string enum_text(const AttrField& f) {
  std::string out;
  for (std::string_view name : f.enum_names) out += concat_text(out.empty() ? "" : ", ", name);
  return out;
}

std::string rule_text(const RuleState& r) { return r.own ? "own" : r.derived ? "derived" : "-"; }

// Columns padded to their widest cell.
std::string columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

// The first `width` characters; `rlx ops --op NAME` shows all.
std::string cut(std::string text, std::size_t width) {
  if (text.size() > width) text = text.substr(0, width - 4) + " ...";
  return text;
}

std::string table() {
  std::vector<std::vector<std::string>> rows{{"op", "level", "operands", "what it computes"}};
  for (const OpDef* def : all_op_defs())
    rows.push_back({std::string(def->name), std::string(level_name(def->level)),
                    "(" + cut(def->inputs.text(), 40) + ")", std::string(def->what)});
  return columns(rows);
}

std::string coverage() {
  const std::vector<NamedClaims> all = targets();
  std::vector<std::vector<std::string>> rows{{"op"}};
  for (const RuleState& r : rules_of(*all_op_defs()[0])) rows[0].emplace_back(r.name);
  rows[0].emplace_back("samples");
  for (const NamedClaims& t : all) rows[0].push_back(t.name);
  std::vector<std::size_t> kernels(all.size(), 0);
  for (const OpDef* def : all_op_defs()) {
    std::vector<std::string> row{std::string(def->name)};
    for (const RuleState& r : rules_of(*def)) row.push_back(rule_text(r));
    SampleSet samples;
    if (def->samples.has()) def->samples(samples);
    row.push_back(std::to_string(samples.all().size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      row.emplace_back(path_on(*def, all[i]));
      kernels[i] += row.back() == "kernel";
    }
    rows.push_back(std::move(row));
  }
  std::string out = columns(rows);
  out += "\nrules: own, derived from the decomposition, or none (`rlx ops --op NAME` says why)\n";
  for (std::size_t i = 0; i < all.size(); ++i)
    out += concat_text(all[i].name, ": ", kernels[i], " of ", all_op_defs().size(), " ops have kernels\n");
  return out;
}

// "tpu: subnormal ...", for each backend and each of its differences about the op.
std::vector<std::string> differences_of(const OpDef& def) {
  std::map<std::string_view, std::string> devices;  // by backend
  for (Device d : registered_devices()) {
    std::string& names = devices[backend_for(d)->name()];
    names += concat_text(names.empty() ? "" : ", ", device_info(d).id);
  }
  std::vector<std::string> out;
  for (const auto& [backend, names] : devices)
    for (const Difference& d : backend_by_name(backend)->differences())
      if (std::find(d.kinds.begin(), d.kinds.end(), def.kind) != d.kinds.end())
        out.push_back(concat_text(names, ": ", d.text));
  return out;
}

std::string one_op(const OpDef& def) {
  std::string out = concat_text(def.name, "(", def.inputs.text(), ")  ", level_name(def.level), ", ", facts_text(def),
                                ", precision ", precision_text(def.precision), "\n", def.what, "\n");
  if (!def.attrs.empty()) out += "attributes:\n";
  for (const AttrField& f : def.attrs) {
    out += concat_text("  ", f.name, ": ", type_text(f.type));
    if (!f.enum_names.empty()) out += concat_text(" (", enum_text(f), ")");
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
  if (!differences.empty()) out += "numbers that are not those of the rules:\n";
  for (const std::string& d : differences) out += concat_text("  on ", d, "\n");
  SampleSet samples;
  if (def.samples.has()) def.samples(samples);
  out += concat_text("samples: ", samples.all().size(), "\n");
  for (const Sample& s : samples.all()) {
    std::string shapes;
    for (const SampleInput& i : s.inputs) shapes += concat_text(shapes.empty() ? "" : ", ", i.shape);
    const std::string attrs = print_attrs(s.op);
    out += concat_text("  ", s.name, ": ", op_text_name(s.op), "(", shapes, ")",
                       attrs.empty() ? "" : concat_text(" {", attrs, "}"), "\n");
  }
  return out;
}

std::string markdown() {
  const std::vector<NamedClaims> all = targets();
  std::string out =
      "# Ops\n\nGenerated by `rlx ops --markdown -o docs/ops.md`; the exact meaning of each op is stated beside its "
      "struct in `rlx/ir/ops/`, what happens at infinities, ties and overflow in [numerics.md](numerics.md).\n"
      "Rules: **own**, *derived* from the decomposition, or – where the op has none (`rlx ops --op NAME` says why).\n"
      "Devices: **kernel**, or *parts* where the op runs as the ops of its decomposition.\n\n| op | level | operands | "
      "attributes | facts | precision |";
  std::string line = "|---|---|---|---|---|---|";
  for (std::string_view name : {"decompose", "vjp", "jvp", "batch", "reference"}) {
    out += concat_text(" ", name, " |");
    line += "---|";
  }
  for (const NamedClaims& t : all) {
    out += concat_text(" ", t.name, " |");
    line += "---|";
  }
  out += "\n" + line + "\n";
  for (const OpDef* def : all_op_defs()) {
    out += concat_text("| `", def->name, "` | ", level_name(def->level), " | ", def->inputs.text(), " | ",
                       attrs_text(*def), " | ", facts_text(*def), " | ", precision_text(def->precision), " |");
    for (const RuleState& r : rules_of(*def))
      if (r.name != "infer" && r.name != "cost") out += r.own ? " **own** |" : r.derived ? " *derived* |" : " – |";
    for (const NamedClaims& t : all) {
      const std::string_view path = path_on(*def, t);
      out += path == "kernel" ? " **kernel** |" : path == "parts" ? " *parts* |" : " – |";
    }
    out += '\n';
  }
  out += "\n## What they compute\n\n| op | result |\n|---|---|\n";
  for (const OpDef* def : all_op_defs()) out += concat_text("| `", def->name, "` | ", def->what, " |\n");
  out +=
      "\n## Where devices differ\n\nNumbers that are not those of the op's rules. Fused ops and composites have the "
      "differences of their parts. The tests of devices show each, and allow for no other.\n\n| op | difference "
      "|\n|---|---|\n";
  for (const OpDef* def : all_op_defs())
    for (const std::string& d : differences_of(*def)) out += concat_text("| `", def->name, "` | On ", d, ". |\n");
  out += "\n## Enumerators\n\n| op | attribute | names |\n|---|---|---|\n";
  for (const OpDef* def : all_op_defs())
    for (const AttrField& f : def->attrs)
      if (!f.enum_names.empty()) out += concat_text("| `", def->name, "` | ", f.name, " | ", enum_text(f), " |\n");
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
    text = args.markdown ? markdown() : args.coverage ? coverage() : table();
  }
  Output out(args.output);
  out.write(text);
  out.close();
}

}  // namespace

void register_ops(CLI::App& app) {
  auto args = std::make_shared<OpsArgs>();
  CLI::App* cmd = app.add_subcommand("ops", "List the ops, their rules and the devices that run them");
  auto* op = cmd->add_option("--op", args->op, "everything about one op: attributes, rules, devices, samples")
                 ->type_name("NAME");
  auto* coverage =
      cmd->add_flag("--coverage", args->coverage, "which rules each op has, and how it runs on each device")
          ->excludes(op);
  cmd->add_flag("--markdown", args->markdown, "the table as a page: docs/ops.md")->excludes(op)->excludes(coverage);
  cmd->add_option("-o,--output", args->output, "file instead of the standard output")->type_name("FILE");
  cmd->callback([args] { run(*args); });
}

}  // namespace rlx::cli
