// Coverage from the op table, the samples and the compiler.
#include "cli/op_coverage.h"

#include <algorithm>
#include <map>

#include "cli/device_page.h"
#include "cli/op_samples.h"
#include "rlx/compiler/legalize.h"
#include "rlx/device/registry.h"
#include "rlx/ir/evaluate.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/tensor/visit.h"

namespace rlx::cli {
namespace {

// Values that every op accepts: indices within their bounds, other operands near 1.
NamedTensors plain_values(const testing::Sample& sample, const Graph& g) {
  NamedTensors out;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    const testing::SampleInput& in = sample.inputs[k];
    const std::string name = concat_text("x", k);
    Shape shape = in.shape;
    for (NodeId id : g.leaves(OpKind::Input))
      if (g.leaf_name(id) == name) shape = g.shape(id);
    Tensor t = Tensor::zeros(shape);
    for (std::int64_t i = 0; i < t.num_elements(); ++i) {
      const double v = in.fill == Fill::Index     ? static_cast<double>(i % std::max<std::int64_t>(1, in.bound))
                       : in.fill == Fill::Boolean ? static_cast<double>(i % 2)
                       : is_float(shape.dtype())  ? 0.5 + 0.01 * static_cast<double>(i % 37)
                                                  : static_cast<double>(1 + i % 2);
      store_element(t.mutable_data(), shape.dtype(), i, v);
    }
    out.emplace(name, std::move(t));
  }
  return out;
}

// Adds the cell of a rule, and a hole if the op has no such rule.
template <class Fn>
void add_rule(OpCoverage& c, std::string_view name, const Rule<Fn>& rule) {
  c.rules.emplace_back(name, rule.has() ? "own" : rule.derived() ? "derived" : "-");
  if (rule.has() || rule.derived()) return;
  const std::string reason = rule.reason() ? rule.reason() : "";
  c.holes.push_back({std::string(name), "", reason == "pending" ? "" : reason});
}

// One line of an error without its hint.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void ask_devices(OpCoverage& c, const Graph& g, DType t, const std::vector<DeviceColumn>& columns,
                 std::vector<std::map<std::string, DTypeSet>>& reasons) {
  const auto at = static_cast<std::size_t>(t);
  for (std::size_t d = 0; d < columns.size(); ++d) {
    const KernelDispatchReport report = dispatch_report_for_device(g, columns[d].devices[0]);
    bool host = !report.compile_ready(), parts = c.def->level == Level::Hir;
    for (const KindDispatch& kind : report.summaries) {
      parts = parts || kind.path == DispatchPath::Rewritten;
      if (kind.path != DispatchPath::HostFallback && kind.path != DispatchPath::Unsupported) continue;
      host = true;
      reasons[d][kind.why][at] = true;
    }
    (host ? c.devices[d].host : parts ? c.devices[d].parts : c.devices[d].kernel)[at] = true;
  }
}

OpCoverage coverage_of(const OpDef& def, const std::vector<DeviceColumn>& columns) {
  OpCoverage c;
  c.def = &def;
  add_rule(c, "decompose", def.decompose);
  add_rule(c, "vjp", def.vjp);
  add_rule(c, "jvp", def.jvp);
  add_rule(c, "vmap", def.batch);
  add_rule(c, "reference", def.reference);
  c.devices.resize(columns.size());
  if (def.is_leaf()) {
    c.holes.push_back({"forward", "", "a leaf"});
    return c;
  }
  const std::vector<testing::Sample> samples = shown_samples(def);
  c.samples = samples.size();
  std::map<std::string, DTypeSet> refused;
  std::vector<std::map<std::string, DTypeSet>> left(columns.size());
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    std::string refusal, failure;
    bool taken = false;
    for (const testing::Sample& sample : samples) {
      const std::optional<Graph> g = sample_in_dtype(sample, t, &refusal);
      if (!g) continue;
      taken = true;
      try {
        evaluate(*g, plain_values(sample, *g));
      } catch (const Error& e) {
        failure = first_line(e.what());
      }
      if (def.level != Level::Lir) ask_devices(c, *g, t, columns, left);
    }
    if (!taken)
      refused[refusal.empty() ? "no sample uses this dtype" : first_line(refusal)][static_cast<std::size_t>(i)] = true;
    else if (failure.empty())
      c.forward[static_cast<std::size_t>(i)] = true;
    else
      c.holes.push_back({"forward", concat_text("in ", dtype_name(t), ", which fails: ", failure), ""});
  }
  // The errors differ only in the dtype that they name, so the first is shown for all.
  if (!refused.empty()) {
    DTypeSet all{};
    for (const auto& [why, dtypes] : refused)
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = all[i] || dtypes[i];
    const auto said = std::find_if(refused.begin(), refused.end(),
                                   [](const auto& r) { return r.first != "no sample uses this dtype"; });
    c.holes.push_back({"forward", concat_text("in ", dtypes_text(all)),
                       said == refused.end() ? refused.begin()->first : said->first});
  }
  if (def.level == Level::Lir)
    for (const DeviceColumn& column : columns)
      c.holes.push_back({column.names(), "", "only the compiler makes this op, for devices with a kernel for it"});
  for (std::size_t d = 0; d < columns.size(); ++d)
    for (const auto& [why, dtypes] : left[d])
      c.holes.push_back({columns[d].names(), concat_text("in ", dtypes_text(dtypes)), why});
  return c;
}

std::size_t unexplained(const OpCoverage& c) {
  return static_cast<std::size_t>(
      std::count_if(c.holes.begin(), c.holes.end(), [](const CoverageHole& h) { return h.reason.empty(); }));
}

}  // namespace

std::string dtypes_text(const DTypeSet& set) {
  struct Class {
    std::string_view name;
    DType first, last;
  };
  constexpr Class kClasses[] = {
      {"ints", DType::I8, DType::U64}, {"floats", DType::BF16, DType::F64}, {"complex", DType::C64, DType::C128}};
  std::string out;
  for (int i = 0; i < kNumDTypes; ++i) {
    if (!set[static_cast<std::size_t>(i)]) continue;
    std::string word(dtype_name(static_cast<DType>(i)));
    for (const Class& c : kClasses) {
      bool whole = i == static_cast<int>(c.first);
      for (int k = i; whole && k <= static_cast<int>(c.last); ++k) whole = set[static_cast<std::size_t>(k)];
      if (!whole) continue;
      word = c.name;
      i = static_cast<int>(c.last);
      break;
    }
    out += concat_text(out.empty() ? "" : " ", word);
  }
  return out;
}

bool DeviceWay::any(const DTypeSet& set) const {
  return std::any_of(set.begin(), set.end(), [](bool b) { return b; });
}

std::string DeviceWay::text() const {
  std::string out;
  if (any(kernel)) out = "kernel";
  if (any(parts)) out += out.empty() ? "parts" : "+parts";
  if (any(host)) out += concat_text(out.empty() ? "" : ", ", "host ", dtypes_text(host));
  return out.empty() ? "-" : out;
}

std::vector<OpCoverage> op_coverage() {
  const std::vector<DeviceColumn> columns = device_columns();
  std::vector<OpCoverage> out;
  for (const OpDef* def : all_op_defs()) out.push_back(coverage_of(*def, columns));
  return out;
}

std::string coverage_text(const std::vector<OpCoverage>& ops, bool markdown) {
  const std::vector<DeviceColumn> columns = device_columns();
  std::vector<std::vector<std::string>> rows{{"op", "forward on the reference"}};
  for (const auto& [name, state] : ops[0].rules) rows[0].push_back(name);
  for (const DeviceColumn& c : columns) rows[0].push_back(c.names());
  rows[0].emplace_back("samples");
  for (const OpCoverage& c : ops) {
    std::vector<std::string> row{std::string(c.def->name), dtypes_text(c.forward)};
    if (row[1].empty()) row[1] = "-";
    for (const auto& [name, state] : c.rules) row.push_back(state);
    for (const DeviceWay& way : c.devices) row.push_back(c.def->is_leaf() ? "leaf" : way.text());
    row.push_back(std::to_string(c.samples));
    rows.push_back(std::move(row));
  }
  std::string out;
  if (markdown) {
    out =
        "# Coverage of ops\n\nPrinted by `rlx ops --coverage --markdown`. Rules are the op's own, derived from its "
        "decomposition, or "
        "-. On a device an op runs by a kernel, as the ops of its decomposition (parts), or, in the dtypes named, on "
        "the host.\n\n";
    for (std::size_t i = 0; i < rows.size(); ++i) {
      out += markdown_row(rows[i]);
      if (i == 0)
        out += "|" + [&] {
          std::string line;
          for (std::size_t k = 0; k < rows[0].size(); ++k) line += "---|";
          return line;
        }() + "\n";
    }
    out += "\n## What is missing, and why\n\n";
  } else {
    out = padded_columns(rows);
    out +=
        "\nrules: own, derived from the decomposition, or none. On a device: by a kernel, as the ops of its "
        "decomposition (parts),\n"
        "or, in the dtypes named, on the host. What is missing, and why:\n";
  }
  // Holes by reason.
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> said;
  std::vector<std::string> silent;
  for (const OpCoverage& c : ops)
    for (const CoverageHole& h : c.holes) {
      const std::string where = concat_text(c.def->name, h.what.empty() ? "" : " ", h.what);
      if (h.reason.empty()) {
        silent.push_back(concat_text(h.where, " of ", where));
        continue;
      }
      const std::string key = concat_text(h.where, ": ", h.reason);
      if (said[key].empty()) order.push_back(key);
      said[key].push_back(where);
    }
  std::sort(order.begin(), order.end());
  for (const std::string& key : order) {
    std::string list;
    for (const std::string& where : said[key]) list += concat_text(list.empty() ? "" : ", ", where);
    out += markdown ? concat_text("* ", key, " — ", list, "\n") : concat_text("  ", key, "\n    ", list, "\n");
  }
  if (markdown) out += "\n";
  for (std::size_t d = 0; d < columns.size(); ++d) {
    const auto kernels = std::count_if(ops.begin(), ops.end(),
                                       [&](const OpCoverage& c) { return c.devices[d].any(c.devices[d].kernel); });
    out +=
        concat_text(markdown ? "* " : "", columns[d].names(), ": ", kernels, " of ", ops.size(), " ops have kernels\n");
  }
  for (const std::string& where : silent) out += concat_text(markdown ? "* " : "", "unexplained: ", where, "\n");
  std::size_t count = 0;
  for (const OpCoverage& c : ops) count += unexplained(c);
  return out + concat_text(markdown ? "\n" : "", count, " unexplained holes\n");
}

std::string padded_columns(const std::vector<std::vector<std::string>>& rows) {
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

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) {
    std::string text;
    for (const char c : cell) text += c == '|' ? std::string("\\|") : std::string(1, c);
    out += " " + text + " |";
  }
  return out + "\n";
}

}  // namespace rlx::cli
