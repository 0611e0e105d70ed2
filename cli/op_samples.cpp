// Reading the table of samples. A sample is a line "-- name", a line for each operand (its shape, and where they are
// not normal numbers what is drawn, with the bound), and its node as the text of a graph has it.
#include "cli/op_samples.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "rlx/ir/text.h"

namespace rlx::cli {
namespace {

struct SampleSection {
  std::string_view op, text;
};
constexpr SampleSection kSampleSections[] = {
#include "cli/op_samples.txt"
};

constexpr std::string_view kFillNames[] = {"normal", "positive", "unit", "above_one", "index", "boolean", "small"};

// The lines of one sample.
struct SampleLines {
  std::string name, node;
  std::vector<std::string> operands;
};

testing::Sample sample_of(const SampleLines& lines) {
  std::string text = "graph @sample {\n";
  std::vector<std::pair<Fill, std::int64_t>> draws;
  for (const std::string& operand : lines.operands) {
    std::size_t end = operand.find(' ', operand.find(']') + 2);  // behind the dtype
    end = std::min(end, operand.size());
    std::istringstream words(operand.substr(end));
    std::string fill;
    std::int64_t bound = 1;
    const auto* at = std::begin(kFillNames);
    if (words >> fill) at = std::find(std::begin(kFillNames), std::end(kFillNames), fill);
    words >> bound;
    check(at != std::end(kFillNames), "op_samples.txt is malformed");
    text +=
        concat_text("%", draws.size(), " = input() {name = \"x", draws.size(), "\"} : ", operand.substr(0, end), "\n");
    draws.emplace_back(static_cast<Fill>(at - std::begin(kFillNames)), words.fail() ? 1 : bound);
  }
  const Graph g = parse_text(text + lines.node + "}\n", "op_samples.txt");
  std::vector<testing::SampleInput> inputs;
  for (const auto& [fill, bound] : draws)
    inputs.emplace_back(g.shape(NodeId{static_cast<std::uint32_t>(inputs.size())}), fill, bound);
  return {lines.name, g.node(NodeId{static_cast<std::uint32_t>(draws.size())}).op, std::move(inputs)};
}

}  // namespace

std::vector<testing::Sample> shown_samples(const OpDef& def) {
  std::vector<testing::Sample> out;
  const auto* section = std::find_if(std::begin(kSampleSections), std::end(kSampleSections),
                                     [&](const SampleSection& s) { return s.op == def.name; });
  if (section == std::end(kSampleSections)) return out;
  std::istringstream text{std::string(section->text)};
  SampleLines lines;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("-- ")) {
      if (!lines.name.empty()) out.push_back(sample_of(lines));
      lines = {line.substr(3), {}, {}};
    } else if (line.starts_with('[') && lines.node.empty()) {
      lines.operands.push_back(line);
    } else if (!line.empty()) {
      lines.node += line + "\n";
    }
  }
  if (!lines.name.empty()) out.push_back(sample_of(lines));
  return out;
}

}  // namespace rlx::cli
