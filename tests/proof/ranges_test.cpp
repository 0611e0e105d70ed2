// Programs that are submitted piece by piece compute the same bits as those submitted whole, on the cpu with several
// threads and on the proof device, wherever the cuts are.
#include <doctest/doctest.h>

#include "rlx/driver/registry.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/session.h"
#include "tests/proof/proof_device.h"
#include "tests/support/needs.h"
#include "tests/support/random_program.h"

namespace rlx {
namespace {

using test::ProofScope;

/// What the backend below did.
struct Cuts {
  test::Dice dice{1};
  int pieces = 0, runs = 0;
};

class PiecesBound final : public BoundGraph {
 public:
  PiecesBound(std::unique_ptr<BoundGraph> inner, std::size_t steps, Cuts& cuts)
      : inner_(std::move(inner)), steps_(steps), cuts_(cuts) {}
  Event submit(const RunArguments& arguments, Stream& stream) override {
    RunArguments piece = arguments;
    Event done;
    ++cuts_.runs;
    for (std::size_t at = 0; at < steps_ || at == 0;) {
      const auto left = static_cast<std::int64_t>(steps_ - at);
      piece.range = {at, at + static_cast<std::size_t>(left == 0 ? 0 : 1 + cuts_.dice.below(left))};
      ++cuts_.pieces;
      // The whole of what is left by name, as a cut finds it, or to the end of the schedule.
      if (piece.range.end == steps_ && cuts_.dice.chance(50)) piece.range.end = ~std::size_t{0};
      done = inner_->submit(piece, stream);
      if (piece.range.end >= steps_) break;
      at = piece.range.end;
    }
    return done;
  }

 private:
  std::unique_ptr<BoundGraph> inner_;
  std::size_t steps_;
  Cuts& cuts_;
};

class PiecesExecutable final : public ExecutableGraph {
 public:
  PiecesExecutable(std::unique_ptr<const ExecutableGraph> inner, Cuts& cuts) : inner_(std::move(inner)), cuts_(cuts) {}
  const LirModule& lir() const override { return inner_->lir(); }
  void encode(NodeId n, std::size_t s, const FormColumns& c, DType t, const std::byte* v, std::byte* f) const override {
    inner_->encode(n, s, c, t, v, f);
  }
  void decode(NodeId n, std::size_t s, const std::byte* f, DType t, std::byte* v) const override {
    inner_->decode(n, s, f, t, v);
  }
  std::unique_ptr<BoundGraph> bind(OpenDevice& device, const LirModule& program,
                                   std::span<const BufferView> arenas) const override {
    return std::make_unique<PiecesBound>(inner_->bind(device, program, arenas), program.plan.schedule.size(), cuts_);
  }
  std::string kernel_name(NodeId n) const override { return inner_->kernel_name(n); }

 private:
  std::unique_ptr<const ExecutableGraph> inner_;
  Cuts& cuts_;
};

/// A backend whose programs submit those of another in pieces.
class PiecesBackend final : public Backend {
 public:
  explicit PiecesBackend(std::shared_ptr<const Backend> inner) : inner_(std::move(inner)) {}
  std::string_view name() const override { return "pieces"; }
  Presence probe(Device) const noexcept override { return {1}; }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions& o) const override { return inner_->open(id, o); }
  std::shared_ptr<const Target> target(const BackendOptions& o) const override { return inner_->target(o); }
  std::unique_ptr<const ExecutableGraph> compile_lir(LirModule lir, const BackendOptions& o) const override {
    return std::make_unique<PiecesExecutable>(inner_->compile_lir(std::move(lir), o), *cuts);
  }
  std::unique_ptr<Cuts> cuts = std::make_unique<Cuts>();

 private:
  std::shared_ptr<const Backend> inner_;
};

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!a[i].identical(b[i])) return false;
  return a.size() == b.size();
}

// Two runs of a random program with its states.
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
  const auto pieces = std::make_shared<PiecesBackend>(backend);
  register_backend(device, pieces);
  for (std::uint64_t seed = 1; seed <= test::repetitions<std::uint64_t>(100); ++seed)
    for (int threads : {1, 3}) {
      if (device != ProofScope::kDevice || threads == 1)
        CHECK_MESSAGE(same(results(Session(whole).with_threads(threads), seed),
                           results(Session(device).with_threads(threads), seed)),
                      "seed ", seed, ", ", threads, " threads\n", print_text(test::random_program(seed).graph));
    }
  CHECK(pieces->cuts->pieces > 2 * pieces->cuts->runs);
  register_backend(device, nullptr);
}

}  // namespace

TEST_CASE("ranges: a program in pieces on the cpu") {
  check_pieces(Session(), backend_for(Device::Cpu), Device::OpenGl);
}

TEST_CASE("ranges: a program in pieces on the proof device") {
  const ProofScope proof;
  const Session whole(ProofScope::kDevice);
  const std::shared_ptr<const Backend> backend = backend_for(ProofScope::kDevice);
  check_pieces(whole, backend, ProofScope::kDevice);
}

}  // namespace rlx
