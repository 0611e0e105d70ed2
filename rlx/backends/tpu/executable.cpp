// Runs: one call of the plug-in, with weights that stay on the device and states that it may overwrite.
#include "rlx/backends/tpu/executable.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "rlx/backends/tpu/stablehlo.h"
#include "rlx/exec/fetching.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::tpu {
namespace {

// The number of programs of one executable that stay compiled. More extents than that are not in use at a time.
constexpr std::size_t kMostCompiled = 64;

/// The positions of a program's arguments and results. Arguments: inputs, states, weights. Results: outputs, states.
struct Signature {
  explicit Signature(const LirModule& lir) : g(lir.graph) {
    const std::vector<NodeId> states = g.leaves(OpKind::State);
    inputs = g.leaves(OpKind::Input).size();
    updated.assign(states.size(), false);
    for (std::size_t s = 0; s < states.size(); ++s)
      for (const Graph::StateUpdate& u : g.state_updates()) updated[s] = updated[s] || u.name == g.leaf_name(states[s]);
    for (const LirAlias& a : lir.plan.aliases)
      if (a.refused.empty()) aliases.push_back({a.input, a.output});
    for (std::size_t s = 0; s < states.size(); ++s)
      if (updated[s])
        aliases.push_back({static_cast<std::uint32_t>(inputs + s), static_cast<std::uint32_t>(g.outputs().size() + s)});
    for (Value v : g.outputs()) results.push_back(v);
    for (std::size_t s = 0; s < states.size(); ++s) results.emplace_back(states[s]);
  }
  const Graph& g;
  std::size_t inputs;
  std::vector<bool> updated;      // of each state: true when a run sets it
  std::vector<HloAlias> aliases;  // by argument and result
  std::vector<Value> results;     // values of the same shapes
};

class TpuInstance final : public Instance {
 public:
  TpuInstance(std::shared_ptr<TpuDevice> device, std::shared_ptr<const Program> program, const LirModule& lir)
      : device_(std::move(device)), program_(std::move(program)) {
    const Signature s(lir);
    outputs_ = lir.graph.outputs().size();
    updated_ = s.updated;
    aliased_.assign(s.inputs + updated_.size(), false);
    for (const HloAlias& a : s.aliases) aliased_[a.argument] = true;
    for (Value v : s.results) {
      const Shape& shape = lir.graph.shape(v);
      const bool packed = element_of(shape.dtype()).packed;
      results_.push_back({shape.size_bytes(), packed ? 1 : static_cast<std::size_t>(shape.rank()),
                          results_.size() < outputs_ ? BufferUse::Slots : BufferUse::States, nullptr});
    }
    made_.assign(results_.size(), nullptr);
  }

  Event submit(const RunArguments& a, Stream& on) override {
    TpuStream& stream = tpu_stream(*device_, on, "a run");
    stream.begin();
    arguments_.resize(a.inputs.size() + a.states.size());
    kept_.clear();
    for (std::size_t i = 0; i < arguments_.size(); ++i) take_slot(i, slot(a, i));
    take_weights(a);
    for (Result& r : results_)  // no allocation after a successful run
      if (!r.owner) r.owner = device_->new_buffer(r.bytes, r.use);
    std::fill(made_.begin(), made_.end(), nullptr);
    if (a.times) wait_quietly(stream);
    const auto start = std::chrono::steady_clock::now();
    abi::Point* const done = execute(a);
    give_results(a);
    stream.add(done);
    if (a.times) {
      wait_quietly(stream.record());
      a.times->assign(1, {NodeId{}, std::chrono::duration<double, std::nano>(Clock::now() - start).count()});
    }
    return stream.record();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Result {
    std::size_t bytes, rank;
    BufferUse use;
    std::shared_ptr<TpuBuffer> owner;  // the buffer of the next run's result
  };
  static const RunSlot& slot(const RunArguments& a, std::size_t i) {
    return i < a.inputs.size() ? a.inputs[i] : a.states[i - a.inputs.size()];
  }

  void take_slot(std::size_t i, const RunSlot& s) {
    const TpuBuffer& b = tpu_buffer(*device_, s.buffer_slot ? s.buffer_slot->get() : nullptr, "a run");
    arguments_[i] = b.handle();
    if (aliased_[i] && (!s.donated || b.lent())) kept_.push_back(static_cast<std::int64_t>(i));
  }
  void take_weights(const RunArguments& a) {
    if (!binding_generation_ || *binding_generation_ != a.binding_generation || weights_.size() != a.weights.size()) {
      binding_generation_.reset();
      weights_.clear();
      for (const BufferView& w : a.weights)
        weights_.push_back(tpu_buffer(*device_, w.buffer, "the weight of a run").handle());
      binding_generation_ = a.binding_generation;
    }
    arguments_.insert(arguments_.end(), weights_.begin(), weights_.end());
  }

  abi::Point* execute(const RunArguments& a) {
    abi::ExecuteOptions options{};
    options.struct_size = sizeof options;
    options.non_donatable_input_indices = kept_.data();
    options.num_non_donatable_input_indices = kept_.size();
    abi::Buffer* const* const arguments = arguments_.data();
    abi::Buffer** const results = made_.data();
    abi::Point* done = nullptr;
    auto call = abi::arguments<abi::LoadedExecutableExecute>();
    call.executable = program_->handle();
    call.options = &options;
    call.argument_lists = &arguments;
    call.num_devices = 1;
    call.num_args = arguments_.size();
    call.output_lists = &results;
    call.device_complete_events = &done;
    abi::Failure* const failure = device_->library().attempt(device_->text(), call);
    if (!failure) return done;
    for (std::size_t i = 0; i < a.inputs.size() + a.states.size(); ++i)
      if (const RunSlot& s = slot(a, i); s.donated && static_cast<TpuBuffer&>(**s.buffer_slot).taken())
        s.buffer_slot->reset();
    try {
      device_->throw_failed("PJRT_LoadedExecutable_Execute", failure, program_->run_bytes(), BufferUse::Arena);
    } catch (const Error& e) {
      Diagnostic d = e.diagnostic();
      d.where = concat_text("graph '", program_->graph(), "'");
      throw Error(std::move(d));
    }
  }

  void give_results(const RunArguments& a) {
    bool whole = true;
    for (std::size_t r = 0; r < results_.size(); ++r) {
      whole = whole && made_[r];
      results_[r].owner->own(made_[r], results_[r].rank);
    }
    for (const RunSlot& s : a.inputs)
      if (s.donated) s.buffer_slot->reset();
    for (std::size_t o = 0; o < outputs_; ++o) *a.outputs[o].buffer_slot = std::move(results_[o].owner);
    for (std::size_t s = 0; s < updated_.size(); ++s) {
      std::shared_ptr<TpuBuffer> made = std::move(results_[outputs_ + s].owner);
      if (updated_[s]) *a.states[s].buffer_slot = std::move(made);
    }
    if (!whole)
      device_->library().broke(device_->text(), "PJRT_LoadedExecutable_Execute", "returned a result without a buffer");
  }

  std::shared_ptr<TpuDevice> device_;
  std::shared_ptr<const Program> program_;
  std::size_t outputs_ = 0;
  std::vector<bool> updated_, aliased_;
  std::vector<Result> results_;
  std::vector<abi::Buffer*> arguments_, weights_, made_;
  std::vector<std::int64_t> kept_;  // arguments that a run must not modify
  std::optional<std::uint64_t> binding_generation_;
};

}  // namespace

TpuExecutable::TpuExecutable(LirModule lir, const std::shared_ptr<const Client>& client, int ordinal,
                             CompileSettings settings)
    : lir_(std::move(lir)), settings_(std::move(settings)), platform_(client ? client->platform() : "no plug-in") {
  // A program of Session::for_target may be for an absent device; then only the text is made.
  const bool here = client && static_cast<std::size_t>(ordinal) < client->devices().size();
  if (here && lir_.graph.is_static()) (void)program_of(lir_, client, ordinal);
}

std::string TpuExecutable::code() const {
  if (!lir_.graph.is_static())
    return concat_text("// the graph '", lir_.graph.name(), "' has symbols: its text is written when they are bound\n");
  return stablehlo_text(lir_.graph, Signature(lir_).aliases);
}

std::string TpuExecutable::kernel_name(NodeId) const { return concat_text("stablehlo (", platform_, ")"); }

std::shared_ptr<const Program> TpuExecutable::program_of(const LirModule& lir,
                                                         const std::shared_ptr<const Client>& client,
                                                         int ordinal) const {
  const std::string text = stablehlo_text(lir.graph, Signature(lir).aliases);
  const Fingerprint key = fingerprint_bytes(text.data(), text.size());
  const auto find = [&]() -> std::shared_ptr<const Program> {
    for (auto it = compiled_.begin(); it != compiled_.end(); ++it) {
      if (it->client != client.get() || it->ordinal != ordinal || !(it->text == key)) continue;
      compiled_.splice(compiled_.begin(), compiled_, it);
      return it->program;
    }
    return nullptr;
  };
  {
    std::lock_guard lock(mutex_);
    if (auto known = find()) return known;
  }
  // Unlocked, so other threads may bind meanwhile. If two threads compile the same text at once, both use the first
  // result.
  auto made = std::make_shared<const Program>(client, ordinal, text, lir.graph.name(), settings_);
  std::lock_guard lock(mutex_);
  if (auto known = find()) return known;
  compiled_.push_front(Compiled{client.get(), ordinal, key, made});
  if (compiled_.size() > kMostCompiled) compiled_.pop_back();
  return made;
}

std::unique_ptr<Instance> TpuExecutable::bind(OpenDevice& device, const LirModule& program,
                                              std::span<const BufferView>) const {
  auto* const ours = dynamic_cast<TpuDevice*>(&device);
  check(ours, "a program of the tpu backend was bound to a device of another backend");
  return std::make_unique<TpuInstance>(ours->self(), program_of(program, ours->client(), ours->id().ordinal), program);
}

}  // namespace rlx::tpu
