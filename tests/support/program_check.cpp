// Random programs beside evaluate_bounded.
#include "tests/support/program_check.h"

#include "tests/support/random_program.h"
#include "tests/support/rounding.h"

namespace rlx::test {

std::string check_program(const Session& session, std::uint64_t seed, Subnormals subnormals) {
  ProgramOptions options;
  options.specials = seed % 4 == 3;
  const RandomProgram p = random_program(seed, options);
  CompileOptions compile;
  if (seed % 2 == 0)
    for (const auto& [name, info] : p.graph.symbols()) compile.symbol_modes[name] = SymbolMode::runtime(info.max);
  CompiledGraph f = session.compile_with(Graph(p.graph), compile);
  for (std::uint64_t variant : {0, 1}) {
    const SymbolBinding binding = p.binding(variant);
    const Graph g = p.graph.symbols().empty() ? p.graph : p.graph.bind(binding);
    f.reset();
    NamedTensors values = p.values(binding, variant), inputs;
    if (subnormals == Subnormals::MayBeZero) values = without_subnormals(values);
    for (const IoInfo& param : f.params()) f.set_param(param.name, values.at(param.name));
    for (const IoInfo& in : f.inputs()) inputs.emplace(in.name, values.at(in.name));
    for (int run = 0; run < 2; ++run) {
      const BoundedResult exact = evaluate_bounded(g, values, subnormals);
      const std::vector<Tensor> got = f.run_typed(inputs);
      for (std::size_t i = 0; i < got.size(); ++i)
        if (const Gap gap = gap_to(got[i], exact.outputs[i]); !(gap.size <= 1))
          return concat_text("variant ", variant, ", run ", run, ", result ", i, ": ", gap.text);
      for (const IoInfo& s : f.states()) {
        const Tensor state = f.read_state(s.name);
        if (const auto it = exact.states.find(s.name); it != exact.states.end())
          if (const Gap gap = gap_to(state, it->second); !(gap.size <= 1))
            return concat_text("variant ", variant, ", run ", run, ", state ", s.name, ": ", gap.text);
        values.insert_or_assign(s.name, state);
      }
    }
  }
  return {};
}

}  // namespace rlx::test
