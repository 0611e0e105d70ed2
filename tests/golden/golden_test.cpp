// Golden tests of the passes: tests/golden/<pass>.rlx holds graphs and what the pass makes of them.
//
//   // pass: fuse-dot-epilogue          directives before the first graph hold for the whole file, later ones for their
//   case
//   // claims: dot_general fused_dot    (default: everything)
//   // accepts: no_tanh                 (a rule of `kAccepts` below)
//   // options: max_region_steps=2 unfuse
//   // policy: fusable
//   graph @in { .. }
//   ----
//   graph @out { .. }                   or: unchanged
//   // fused matmul_bias_act: 1
//   // missed ..
//   // -----                            ends a case
//
// `golden_tests --update` writes what the passes make; review the difference.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "tests/support/paths.h"
#include "tests/support/toy_target.h"
#include "tests/support/update.h"
#include "tests/unit/passes/pass_test.h"

using namespace rlx;
using namespace rlx::test;

namespace {

constexpr std::string_view kCaseEnd = "// -----\n";
constexpr std::string_view kResult = "----\n";

// -- directives --

bool body_has(const Graph& g, NodeId id, ActivationKind fn) {
  const auto* dot = g.node(id).op.get_if<ops::FusedDot>();
  if (!dot) return false;
  for (const Node& n : dot->epilogue->nodes())
    if (const auto* a = n.op.get_if<ops::Activation>(); a && a->fn == fn) return true;
  return false;
}

struct Accepts {
  std::string_view name;
  bool (*rule)(const Graph&, NodeId);
};
constexpr Accepts kAccepts[] = {
    {"no_tanh", [](const Graph& g, NodeId id) { return !body_has(g, id, ActivationKind::Tanh); }},
    {"no_bias_norm",
     [](const Graph& g, NodeId id) {
       const auto* norm = g.node(id).op.get_if<ops::FusedResidualLN>();
       return !norm || !norm->present.has(2);
     }},
    {"short_regions",
     [](const Graph& g, NodeId id) {
       const auto* region = g.node(id).op.get_if<ops::ElementwiseRegion>();
       return !region || region->body->num_nodes() - region->body->leaves(OpKind::Input).size() <= 3;
     }},
    {"no_f64", [](const Graph& g, NodeId id) { return g.node(id).shape().dtype() != DType::F64; }},
    {"no_regions",
     [](const Graph& g, NodeId id) {
       return g.node(id).kind() != OpKind::ElementwiseRegion ||
              g.node(id).op.as<ops::ElementwiseRegion>().body->num_nodes() < 4;
     }},
    {"strided_lhs",
     [](const Graph& g, NodeId id) {
       const auto* dot = g.node(id).op.get_if<ops::DotGeneral>();
       return !dot || dot->lhs_contract.back() == g.shape(g.node(id).inputs[0]).rank() - 1;
     }},
};

struct Setup {
  const Pass* pass = nullptr;
  PassContext context;
  test::ToyTarget target;
};

OpSet claims_of(const std::string& words) {
  if (words.find("everything") != std::string::npos) return OpSet::everything();
  OpSet set;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    bool known = false;
    for (const OpDef* def : all_op_defs())
      if (def->name == word) set.add(def->kind), known = true;
    REQUIRE_MESSAGE(known, "unknown op '", word, "'");
  }
  return set;
}

void read_directives(const std::string& text, Setup& setup) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line) && line.rfind("graph", 0) != 0;) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("// ", 0) != 0 || colon == std::string::npos) continue;
    const std::string key = line.substr(3, colon - 3), value = line.substr(colon + 2);
    PassContext& c = setup.context;
    if (key == "pass") {
      setup.pass = find_pass(value);
      REQUIRE_MESSAGE((setup.pass != nullptr), "unknown pass '", value, "'");
    } else if (key == "claims") {
      setup.target.takes = claims_of(value);
    } else if (key == "accepts") {
      for (const Accepts& a : kAccepts)
        if (a.name == value) setup.target.accepts = a.rule;
      REQUIRE_MESSAGE((setup.target.accepts != nullptr), "unknown rule '", value, "'");
    } else if (key == "policy") {
      c.policy = value == "fusable" ? FusionPolicy::Fusable : FusionPolicy::Direct;
    } else if (key == "options") {
      std::istringstream words(value);
      for (std::string word; words >> word;) {
        if (word == "unfuse")
          c.options.unfuse_elementwise_regions = true;
        else if (word.rfind("max_region_steps=", 0) == 0)
          c.options.max_region_steps = std::stoi(word.substr(17));
        else if (word.rfind("max_region_inputs=", 0) == 0)
          c.options.max_region_inputs = std::stoi(word.substr(18));
        else
          FAIL("unknown option '", word, "'");
      }
    }
  }
}

// -- running --

std::string result_text(const Graph& g, Setup setup, std::set<MissReason>& reasons) {
  FusionReport report;
  setup.context.report = &report;
  setup.context.claims = &setup.target;
  std::optional<Graph> after = setup.pass->run(g, setup.context);
  std::string out = after ? print_text(*after) : std::string("unchanged\n");
  if (!out.empty() && out.back() != '\n') out += '\n';
  for (const auto& [pattern, count] : report.fused) out += concat_text("// fused ", pattern, ": ", count, "\n");
  for (const MissedFusion& m : report.missed) {
    out += concat_text("// missed ", m.text(), "\n");
    reasons.insert(m.reason);
  }
  if (after) {
    check_same_results(g, *after, 1e-5);
    const Graph again = parse_text(print_text(*after));
    CHECK(print_text(again) == print_text(*after));
  }
  return out;
}

std::vector<std::string> split(const std::string& text, std::string_view separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    // A separator is a whole line.
    std::size_t at = text.find(separator, begin);
    while (at != std::string::npos && at > 0 && text[at - 1] != '\n') at = text.find(separator, at + 1);
    parts.push_back(text.substr(begin, at == std::string::npos ? std::string::npos : at - begin));
    if (at == std::string::npos) return parts;
    begin = at + separator.size();
  }
}

std::set<MissReason> run_file(const std::filesystem::path& path) {
  std::set<MissReason> reasons;
  const std::string text = read_file(path.string());
  Setup file_setup;
  std::string written;
  bool first = true;
  for (const std::string& part : split(text, kCaseEnd)) {
    INFO(path.filename().string(), " case:\n", part);
    const std::vector<std::string> halves = split(part, kResult);
    const std::string& in = halves[0];
    Setup setup = file_setup;
    read_directives(in, setup);
    if (first) file_setup = setup;
    REQUIRE_MESSAGE((setup.pass != nullptr), "no `// pass:` before the first graph");
    const std::string got = result_text(parse_text(in, path.filename().string()), setup, reasons);
    if (!update_golden()) {
      REQUIRE(halves.size() == 2);
      CHECK(got == halves[1]);
    }
    written += concat_text(first ? "" : kCaseEnd, in, kResult, got);
    first = false;
  }
  if (update_golden() && written != text) {
    std::ofstream(path, std::ios::binary) << written;
    MESSAGE("wrote ", path.string());
  }
  return reasons;
}

}  // namespace

TEST_CASE("golden files of the passes") {
  std::set<MissReason> reasons;
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/golden"))) {
    if (entry.path().extension() != ".rlx") continue;
    files.insert(entry.path().stem().string());
    reasons.merge(run_file(entry.path()));
  }
  // Every pass has its file, every reason a case.
  for (const Pass* pass : all_passes()) {
    std::string name(pass->name);
    std::replace(name.begin(), name.end(), '-', '_');
    CHECK_MESSAGE(files.contains(name), "no tests/golden/", name, ".rlx");
  }
  for (int r = 0; r <= static_cast<int>(MissReason::NotFused); ++r)
    CHECK_MESSAGE(reasons.contains(static_cast<MissReason>(r)), "no golden case misses for ",
                  miss_reason_name(static_cast<MissReason>(r)));
}
