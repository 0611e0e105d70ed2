// Programs submitted in several ranges compute the same bits as those submitted as a whole, on the cpu with several
// threads and on the adversarial test device, wherever they are split.
#include <doctest/doctest.h>

#include "rlx/device/registry.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_device.h"
#include "tests/support/hooked_backend.h"
#include "tests/support/needs.h"
#include "tests/support/random_program.h"

namespace rlx {
namespace {

using test::AdversarialScope;

/// Counts of the backend below.
struct Cuts {
  test::Dice dice{1};
  int pieces = 0, runs = 0;
};

// Submits the requested range in smaller ranges.
Event submit_in_tasks(Cuts& cuts, Instance& inner, std::size_t steps, const RunArguments& arguments, Stream& stream) {
  RunArguments piece = arguments;
  const StepRange whole = arguments.range.of(steps);
  ++cuts.runs;
  for (std::size_t at = whole.begin;; at = piece.range.end) {
    const auto left = static_cast<std::int64_t>(whole.end - at);
    piece.range = {at, at + static_cast<std::size_t>(left == 0 ? 0 : 1 + cuts.dice.below(left))};
    ++cuts.pieces;
    const bool last = piece.range.end == whole.end;
    // The rest is submitted by its exact end or to the end of the schedule.
    if (piece.range.end == steps && cuts.dice.chance(50)) piece.range.end = ~std::size_t{0};
    Event done = inner.submit(piece, stream);
    if (last) return done;
  }
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!a[i].identical(b[i])) return false;
  return a.size() == b.size();
}

// The results of two runs of a random program with states.
std::vector<Tensor> results(const Session& session, std::uint64_t seed) {
  const test::RandomProgram p = test::random_program(seed);
  CompileOptions options;
  for (const auto& [name, info] : p.graph.symbols()) options.symbol_modes[name] = SymbolMode::runtime(info.max);
  CompiledGraph f = session.compile_with(Graph(p.graph), options);
  const NamedTensors values = p.values(p.binding(0), 0);
  NamedTensors inputs;
  for (const IoInfo& param : f.params()) f.set_param(param.name, values.at(param.name));
  for (const IoInfo& in : f.inputs()) inputs.emplace(in.name, values.at(in.name));
  std::vector<Tensor> out;
  for (int run = 0; run < 2; ++run)
    for (Tensor& t : f.run_typed(inputs)) out.push_back(std::move(t));
  for (const IoInfo& s : f.states()) out.push_back(f.read_state(s.name));
  return out;
}

void check_pieces(const Session& whole, const std::shared_ptr<const Backend>& backend, Device device) {
  Cuts cuts;
  register_backend(device, std::make_shared<test::HookedBackend>(
                               backend, [&](Instance& inner, std::size_t steps, const RunArguments& a, Stream& s) {
                                 return submit_in_tasks(cuts, inner, steps, a, s);
                               }));
  for (const std::uint64_t seed : test::seeds(100))
    for (int threads : {1, 3}) {
      if (device != AdversarialScope::kDevice || threads == 1)
        CHECK_MESSAGE(same(results(Session(whole).with_threads(threads), seed),
                           results(Session(device).with_threads(threads), seed)),
                      "seed ", seed, ", ", threads, " threads\n", print_text(test::random_program(seed).graph));
    }
  CHECK(2 * cuts.pieces > 3 * cuts.runs);  // of any eighth of the seeds
  register_backend(device, nullptr);
}

}  // namespace

TEST_CASE("ranges: a program in pieces on the cpu") {
  check_pieces(Session(), backend_for(Device::Cpu), Device::OpenGl);
}

TEST_CASE("ranges: a program in pieces on the adversarial test device") {
  const AdversarialScope adversary;
  const Session whole(AdversarialScope::kDevice);
  const std::shared_ptr<const Backend> backend = backend_for(AdversarialScope::kDevice);
  check_pieces(whole, backend, AdversarialScope::kDevice);
}

}  // namespace rlx
