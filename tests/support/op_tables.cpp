// Writes the tables of op samples.
#include "tests/support/op_tables.h"

#include <set>
#include <utility>
#include <vector>

#include "rlx/ir/text.h"
#include "rlx/testing/op_samples.h"

namespace rlx::test {
namespace {

constexpr const char* kWritten =
    "// Written by `cmake --build --preset dev --target update_op_tables`; a test says when it is out of date.\n";
constexpr std::string_view kFillNames[] = {"normal", "positive", "unit", "above_one", "index", "boolean", "small"};

// A raw string literal.
std::string raw_literal(const std::string& text) { return "R\"~~(" + text + ")~~\""; }

std::string operand_line(const testing::SampleInput& in) {
  std::string line = in.shape.text();
  if (in.fill != Fill::Normal || in.bound != 1) line += concat_text(" ", kFillNames[static_cast<int>(in.fill)]);
  if (in.bound != 1) line += concat_text(" ", in.bound);
  return line + "\n";
}

// The node of the sample. Its type is omitted where inference finds it.
std::string node_lines(const testing::Sample& sample) {
  Graph g("sample");
  std::vector<Value> operands;
  for (const testing::SampleInput& in : sample.inputs)
    operands.push_back(g.input(concat_text("x", operands.size()), in.shape));
  std::string text = print_node(g, g.add(sample.op, operands).value().node);
  bool needs_type = false;
  for (const AttrField& f : op_def(sample.op).attrs)
    needs_type = needs_type || f.place == AttrPlace::TypeDims || f.place == AttrPlace::TypeDType;
  return (needs_type ? text : text.substr(0, text.rfind(" : "))) + "\n";
}

std::string example_row(const std::string& name, const testing::Sample& s) {
  const auto infer_with = [&](DType t) {
    std::vector<Shape> shapes;
    for (const testing::SampleInput& i : s.inputs)
      shapes.push_back(i.shape.dtype() == DType::F32 ? i.shape.with_dtype(t) : i.shape);
    return attempt([&] { return infer_shapes(s.op, shapes).value(); });
  };
  std::string dtypes, text;
  for (int t = 0; t < kNumDTypes; ++t)
    if (infer_with(static_cast<DType>(t)).ok())
      dtypes += concat_text(dtypes.empty() ? "" : " ", dtype_name(static_cast<DType>(t)));
  for (const testing::SampleInput& i : s.inputs) text += concat_text(text.empty() ? "" : ", ", i.shape);
  text += " -> ";
  bool first = true;
  const Result<Shapes> results = infer_with(DType::F32);
  for (const Shape& r : *results) text += concat_text(std::exchange(first, false) ? "" : ", ", r);
  if (const std::string attrs = print_attrs(s.op); !attrs.empty()) text += concat_text(" with ", attrs);
  return concat_text("{\"", name, "\", \"", dtypes, "\", ", raw_literal(text), "},\n");
}

}  // namespace

std::string op_samples_table() {
  std::string out = kWritten;
  for (const OpDef* def : all_op_defs()) {
    std::string section;
    for (const testing::Sample& sample : testing::op_samples(*def)) {
      section += concat_text("-- ", sample.name, "\n");
      for (const testing::SampleInput& in : sample.inputs) section += operand_line(in);
      section += node_lines(sample);
    }
    if (!section.empty()) out += concat_text("{\"", def->name, "\", ", raw_literal("\n" + section), "},\n");
  }
  return out;
}

std::string op_examples_table() {
  std::string out = kWritten;
  std::set<std::string> named;
  for (const OpDef* def : all_op_defs())
    for (const testing::Sample& sample : testing::op_samples(*def))
      if (const std::string name = op_text_name(sample.op); named.insert(name).second) out += example_row(name, sample);
  return out;
}

}  // namespace rlx::test
