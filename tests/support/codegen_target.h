// A target of generated kernels without a device, for their texts.
#pragma once

#include <string>
#include <vector>

#include "rlx/codegen/row.h"
#include "rlx/compiler/pipeline.h"

namespace rlx::test {

struct CodegenTarget final : Target {
  std::string_view name() const override { return "codegen"; }
  TargetLimits limits() const override {
    TargetLimits l;
    l.alignment = l.view_alignment = codegen::kBindingAlignment;
    l.max_bindings = codegen::Dialect{}.max_bindings;
    return l;
  }
  bool runtime_symbols() const override { return true; }
  const OpSet& kinds() const override { return codegen::row_kinds(); }
  const char* refuses(const Graph& g, NodeId id) const override { return codegen::rows_refuse(g, id); }
  bool reads_strided(const Graph& g, NodeId id, int operand) const override {
    const codegen::Row* row = codegen::find_row(g, id);
    return row && row->reads_strided && row->reads_strided(g, id, operand);
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    const codegen::Row* row = codegen::find_row(g, id);
    return row && row->in_place && row->in_place(g, id, operand, result);
  }
  bool reads_encoded(const Graph& g, NodeId id, int operand) const override {
    const codegen::Row* row = codegen::find_row(g, id);
    return row && row->reads_encoded && row->reads_encoded(g, id, operand);
  }
  bool skips_unread(const Graph& g, NodeId id, int result) const override {
    const codegen::Row* row = codegen::find_row(g, id);
    return row && result < 32 && (row->skips_unread >> result & 1U) != 0;
  }
};

/// The kernels of all steps of `g`, compiled for a target of generated kernels. Symbols are runtime symbols, unless the
/// options say how they are met.
inline std::vector<codegen::Kernel> kernels_of(Graph g, CompileOptions options = {},
                                               const codegen::Dialect& dialect = {}) {
  for (const auto& [name, info] : g.symbols()) options.symbol_modes.emplace(name, SymbolMode::runtime());
  CompilePipeline pipeline(std::make_shared<CodegenTarget>(), std::move(options));
  const LirModule lir = pipeline.compile_graph(std::move(g)).lir;
  std::vector<codegen::Kernel> out;
  for (const LirStep& s : lir.plan.schedule)
    for (codegen::Kernel& k : codegen::launches_of(lir, s.node, dialect).kernels) out.push_back(std::move(k));
  return out;
}

}  // namespace rlx::test
