// A target for generated kernels that needs no device, for tests of kernel texts.
#pragma once

#include <string>
#include <vector>

#include "rlx/codegen/entry.h"
#include "rlx/compiler/pipeline.h"

namespace rlx::test {

struct CodegenTarget final : EntryTarget<codegen::KernelEntry> {
  CodegenTarget() : EntryTarget(codegen::entry_table()) {}
  std::string_view name() const override { return "codegen"; }
  TargetLimits limits() const override {
    TargetLimits l;
    l.alignment = l.view_alignment = codegen::kBindingAlignment;
    l.max_bindings = codegen::Dialect{}.max_bindings;
    return l;
  }
  bool runtime_symbols() const override { return true; }
};

/// The kernels of all steps of `g`, compiled for a target of generated kernels. Symbols are runtime symbols unless the
/// options say otherwise.
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
