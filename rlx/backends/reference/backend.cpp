// The reference backend runs an LIR step by step with the reference rules. It is small on purpose: copy it to start a
// backend.
#include <chrono>
#include <cstring>
#include <optional>

#include "rlx/base/trace.h"
#include "rlx/device/host_device.h"
#include "rlx/device/registry.h"
#include "rlx/exec/planned_value.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx {
namespace {

class ReferenceInstance final : public Instance {
 public:
  ReferenceInstance(const LirModule& lir, std::span<const BufferView> arenas)
      : lir_(lir), arenas_(arenas.begin(), arenas.end()) {}

  Event submit(const RunArguments& arguments, Stream&) override {
    using Clock = std::chrono::steady_clock;
    run_ = arguments;
    if (run_.times) run_.times->clear();
    const StepRange range = run_.range.of(lir_.plan.schedule.size());
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto start = Clock::now();
      const NodeId node = lir_.plan.schedule[i].node;
      std::optional<TraceSpan> span;
      if (Trace::current()) span.emplace("step", op_text_name(lir_.graph.node(node).op), node_label(lir_.graph, node));
      run_step(node);
      if (run_.times)
        run_.times->push_back({node, std::chrono::duration<double, std::nano>(Clock::now() - start).count()});
    }
    if (range.end != lir_.plan.schedule.size()) return {};
    for (const LirOutputCopy& c : lir_.plan.output_copies) {
      Tensor t = load(c.value);
      if (t.size_bytes() != 0) std::memcpy(run_.outputs[c.output].view.host, t.data(), t.size_bytes());
    }
    std::vector<Tensor> states;  // all states are read before the first is written, as states may be swapped
    for (const LirStateCopy& c : lir_.plan.state_copies) states.push_back(load(c.value));
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i].size_bytes() != 0)
        std::memcpy(run_.states[lir_.plan.state_copies[i].state].view.host, states[i].data(), states[i].size_bytes());
    return {};
  }

 private:
  std::byte* place(const LirValue& w) const {
    switch (w.place) {
      case Place::Arena: return arenas_[w.index].host + w.offset;
      case Place::Input: return run_.inputs[w.index].view.host + w.offset;
      case Place::Output: return run_.outputs[w.index].view.host + w.offset;
      case Place::Prepared: return run_.weights[w.index].host + w.offset;
      case Place::State: return run_.states[w.index].view.host + w.offset;
      case Place::None: break;  // the evaluator reads no quantized values
      case Place::Constant:
        return const_cast<std::byte*>(lir_.graph.node(NodeId{w.index}).op.as<ops::Constant>().value.data()) + w.offset;
    }
    return nullptr;
  }

  Tensor load(Value v) const {
    Tensor t = Tensor::zeros(lir_.graph.shape(v));
    gather_value(t.shape(), lir_.plan.at(v), place(lir_.plan.at(v)), t.mutable_data());
    return t;
  }

  void run_step(NodeId id) const {
    const Node& n = lir_.graph.node(id);
    std::vector<Tensor> operands;
    for (Value v : n.inputs) operands.push_back(load(v));
    std::vector<Tensor> results = evaluate_op(n.op, operands);
    for (std::uint32_t r = 0; r < results.size(); ++r) {
      const LirValue& w = lir_.plan.at(Value(id, r));
      spread_value(results[r].shape(), w, results[r].data(), place(w));
    }
  }

  const LirModule& lir_;
  std::vector<BufferView> arenas_;
  RunArguments run_;
};

class ReferenceExecutable final : public Executable {
 public:
  explicit ReferenceExecutable(LirModule lir) : lir_(std::move(lir)) {}
  const LirModule& lir() const override { return lir_; }
  std::unique_ptr<Instance> bind(OpenDevice&, const LirModule& program,
                                 std::span<const BufferView> arenas) const override {
    return std::make_unique<ReferenceInstance>(program, arenas);
  }
  std::string kernel_name(NodeId node) const override {
    return concat_text(op_text_name(lir_.graph.node(node).op), " (reference)");
  }

 private:
  LirModule lir_;
};

// Claims every op with a reference rule, or one derived from its decomposition.
class ReferenceTarget final : public Target {
 public:
  std::string_view name() const override { return "reference (1 thread)"; }
  bool runtime_symbols() const override { return true; }
  const OpSet& kinds() const override {
    static const OpSet kinds = [] {
      OpSet set;
      for (const OpDef* def : all_op_defs())
        if (def->is_leaf() || def->reference.has() || def->reference.derived() || def->kind == OpKind::Custom)
          set.add(def->kind);
      return set;
    }();
    return kinds;
  }
  const char* refuses(const Graph& g, NodeId id) const override {
    return has(g.node(id).kind()) ? nullptr : "the op has no reference rule";
  }
  bool by_kind() const override { return true; }
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  Presence probe(Device) const noexcept override { return {1}; }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions&) const override { return open_host_device(id); }
  std::shared_ptr<const Target> target(const BackendOptions&) const override {
    return std::make_shared<const ReferenceTarget>();
  }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions&) const override {
    return std::make_unique<ReferenceExecutable>(std::move(lir));
  }
};

}  // namespace

extern const BackendEntry reference_backend;
const BackendEntry reference_backend{"reference", {}, [](Device) -> const Backend& {
                                       static const ReferenceBackend backend;
                                       return backend;
                                     }};

}  // namespace rlx
