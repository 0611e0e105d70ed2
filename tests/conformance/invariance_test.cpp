// Results depend only on the inputs: not on the number of threads, the assignment of chunks, neighbouring memory, stale
// memory or alignment. Every op sample and 2,000 random programs run with the smallest possible chunks, between NaN and
// between subnormal numbers, and are compared bit by bit.
#include <doctest/doctest.h>

#include <optional>

#include "rlx/device/registry.h"
#include "rlx/ir/text.h"
#include "rlx/threads/chunk_audit.h"
#include "tests/support/guarded_program.h"
#include "tests/support/needs.h"
#include "tests/support/random_program.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

using test::Around;

constexpr std::uint64_t kPrograms = test::repetitions(std::uint64_t{2000});

struct Outcome {
  std::vector<Tensor> outputs;
  NamedTensors states;
};

std::string difference_of(const Outcome& a, const Outcome& b) {
  for (std::size_t i = 0; i < a.outputs.size(); ++i)
    if (!a.outputs[i].identical(b.outputs[i]))
      return concat_text("output ", i, ": ", test::ulp_gap(a.outputs[i], b.outputs[i]).text);
  for (const auto& [name, value] : a.states)
    if (!value.identical(b.states.at(name)))
      return concat_text("state ", name, ": ", test::ulp_gap(value, b.states.at(name)).text);
  return {};
}

// The number of parallel steps that ran on one thread, and the number that were shared.
int shared_steps = 0;
std::string lonely_steps(const AuditedRun& run) {
  std::string text;
  for (const AuditedStep& s : run.steps) {
    if (s.chunks < 2) continue;
    if (s.num_threads() < 2) text += concat_text(s.kernel, " of ", s.node, " (", s.chunks, " chunks) ");
    ++shared_steps;
  }
  return text;
}

// Runs the program on `values`, on `others` (which leave other stale memory) and on `values` again, with the smallest
// possible chunks. Returns the difference, or "". With `audited` two threads meet in every step, which is slower.
std::string check_invariance(const Graph& g, const NamedTensors& values, const NamedTensors& others, bool audited) {
  auto backend = backend_for(Device::Cpu);
  std::optional<Outcome> first;
  for (int threads : {1, 2, 3, 5}) {
    BackendOptions options;
    options.threads = threads;
    options.finest_grain = true;
    if (threads == 2 && audited) options.chunk_audit = std::make_shared<ChunkAudit>();
    auto exe = backend->compile_lir(test::lir_for(g, backend->target(options)), options);
    for (Around around : {Around::Nan, Around::Subnormal}) {
      if (threads == (around == Around::Nan ? 5 : 3)) continue;  // each thread count with one fill of memory
      test::GuardedProgram program(*exe, values, around);
      for (const NamedTensors* in : {&values, &others, &values}) {
        program.reset();
        Outcome got{program.run(*in), program.states()};
        if (in == &others) continue;
        if (!first)
          first = std::move(got);
        else if (std::string text = difference_of(got, *first); !text.empty())
          return concat_text(threads, " threads, between ", around == Around::Nan ? "NaN" : "subnormal numbers", ", ",
                             text);
      }
      if (options.chunk_audit && options.chunk_audit->last_run().threads == 2)
        if (std::string text = lonely_steps(options.chunk_audit->last_run()); !text.empty())
          return "one thread ran all chunks of " + text;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("invariance: every op sample") {
  test::Share share(2);
  test::for_each_sample([&](const OpDef& def, const testing::Sample& sample) {
    if (def.level == Level::Lir || def.is_leaf() || !share.next()) return;
    const std::string text =
        check_invariance(test::sample_graph(sample), test::bind_operands(test::draw_operands(sample)),
                         test::bind_operands(test::draw_operands(sample, 1)), true);
    CHECK_MESSAGE(text.empty(), text);
  });
}

TEST_CASE("invariance: 2,000 random programs") {
  shared_steps = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    test::ProgramOptions options;
    options.specials = seed % 4 == 3;
    const test::RandomProgram p = test::random_program(seed, options);
    const SymbolBinding binding = p.binding(0);
    const Graph g = p.graph.symbols().empty() ? p.graph : p.graph.bind(binding);
    std::string text;
    try {
      text = check_invariance(g, p.values(binding, 0), p.values(binding, 1), seed % 8 == 0);
    } catch (const Error& e) {
      text = e.what();
    }
    if (!text.empty()) FAIL_CHECK("seed " << seed << ": " << text << "\n" << print_text(g));
  }
  CHECK(shared_steps > static_cast<int>(kPrograms / 8));
}

}  // namespace rlx
