// The reference backend: runs an LIR step by step with the reference rules. Small on purpose: copy it to start a
// backend.
#include <chrono>
#include <cstring>

#include "rlx/driver/registry.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"

namespace rlx {
namespace {

/// Moves a value between its planned bytes (any strides) and a row-major tensor.
void copy_value(const Shape& shape, const LirValue& where, std::byte* planned, std::byte* dense, bool to_dense) {
  const std::vector<std::int64_t> dims = shape.static_dims();
  if (where.strides.empty()) {
    if (shape.size_bytes() != 0)
      std::memcpy(to_dense ? dense : planned, to_dense ? planned : dense, shape.size_bytes());
    return;
  }
  const std::int64_t n = shape.num_elements();
  const std::size_t bytes = size_bytes(shape.dtype());
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t at = 0, rest = i;
    for (std::size_t a = dims.size(); a-- > 0;) {
      at += rest % dims[a] * where.strides[a];
      rest /= dims[a];
    }
    std::byte *p = planned + static_cast<std::size_t>(at) * bytes, *d = dense + static_cast<std::size_t>(i) * bytes;
    std::memcpy(to_dense ? d : p, to_dense ? p : d, bytes);
  }
}

class ReferenceBound final : public BoundGraph {
 public:
  ReferenceBound(const LirModule& lir, const BindContext& memory) : lir_(lir), memory_(memory) {}

  void run(std::span<const void* const> inputs, std::span<void* const> outputs) override { run_timed(inputs, outputs); }

  std::vector<StepTime> run_timed(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    using Clock = std::chrono::steady_clock;
    inputs_ = inputs;
    outputs_ = outputs;
    std::vector<StepTime> times;
    for (const LirStep& step : lir_.plan.schedule) {
      const auto start = Clock::now();
      run_step(step.node);
      times.push_back({step.node, std::chrono::duration<double, std::nano>(Clock::now() - start).count()});
    }
    for (const LirOutputCopy& c : lir_.plan.output_copies) {
      Tensor t = load(c.value);
      if (t.size_bytes() != 0) std::memcpy(outputs_[c.output], t.data(), t.size_bytes());
    }
    std::vector<Tensor> states;  // all read before the first is written: states may change places
    for (const LirStateCopy& c : lir_.plan.state_copies) states.push_back(load(c.value));
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i].size_bytes() != 0)
        std::memcpy(memory_.states[lir_.plan.state_copies[i].state], states[i].data(), states[i].size_bytes());
    return times;
  }

 private:
  std::byte* place(const LirValue& w) const {
    switch (w.place) {
      case Place::Arena: return memory_.arena + w.offset;
      case Place::Input: return static_cast<std::byte*>(const_cast<void*>(inputs_[w.index])) + w.offset;
      case Place::Output: return static_cast<std::byte*>(outputs_[w.index]) + w.offset;
      case Place::Prepared: return const_cast<std::byte*>(memory_.prepared[w.index]) + w.offset;
      case Place::State: return memory_.states[w.index] + w.offset;
      case Place::Constant:
        return const_cast<std::byte*>(lir_.graph.node(NodeId{w.index}).op.as<ops::Constant>().value.data()) + w.offset;
    }
    return nullptr;
  }

  Tensor load(Value v) const {
    Tensor t = Tensor::zeros(lir_.graph.shape(v));
    copy_value(t.shape(), lir_.plan.at(v), place(lir_.plan.at(v)), t.mutable_data(), true);
    return t;
  }

  void run_step(NodeId id) const {
    const Node& n = lir_.graph.node(id);
    std::vector<Tensor> operands;
    for (Value v : n.inputs) operands.push_back(load(v));
    std::vector<Tensor> results = evaluate_op(n.op, operands);
    for (std::uint32_t r = 0; r < results.size(); ++r) {
      const LirValue& w = lir_.plan.at(Value(id, r));
      copy_value(results[r].shape(), w, place(w), results[r].mutable_data(), false);
    }
  }

  const LirModule& lir_;
  BindContext memory_;
  std::span<const void* const> inputs_;
  std::span<void* const> outputs_;
};

class ReferenceExecutable final : public ExecutableGraph {
 public:
  explicit ReferenceExecutable(LirModule lir) : lir_(std::move(lir)) {}
  const LirModule& lir() const override { return lir_; }
  void pack(NodeId, std::size_t, const void*, std::byte*) const override { no_relayout(); }
  void unpack(NodeId, std::size_t, const std::byte*, void*) const override { no_relayout(); }
  std::unique_ptr<BoundGraph> bind(const BindContext& context) const override {
    return std::make_unique<ReferenceBound>(context.lir ? *context.lir : lir_, context);
  }
  std::string kernel_name(NodeId node) const override {
    return concat_text(op_text_name(lir_.graph.node(node).op), " (reference)");
  }

 private:
  [[noreturn]] static void no_relayout() {
    throw Error(ErrorCode::Internal, "the reference backend packs no weights, so no relayout can reach it");
  }
  LirModule lir_;
};

// Every op that has a rule of its own, or one derived from its decomposition.
class ReferenceTarget final : public Target {
 public:
  std::string_view name() const override { return "reference (1 thread)"; }
  bool runtime_symbols() const override { return true; }
  const OpSet& kinds() const override {
    static const OpSet kinds = [] {
      OpSet set;
      for (const OpDef* def : all_op_defs())
        if (def->is(OpTrait::Leaf) || def->reference.has() || def->reference.derived() || def->kind == OpKind::Custom)
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
  std::string unavailable_reason() const noexcept override { return {}; }
  std::shared_ptr<const Target> target(const BackendOptions&) const override {
    return std::make_shared<const ReferenceTarget>();
  }
  std::unique_ptr<const ExecutableGraph> compile_lir(LirModule lir, const BackendOptions&) const override {
    return std::make_unique<ReferenceExecutable>(std::move(lir));
  }
};

}  // namespace

extern const BackendEntry reference_backend;
const BackendEntry reference_backend{"reference", {}, []() -> const Backend& {
                                       static const ReferenceBackend backend;
                                       return backend;
                                     }};

}  // namespace rlx
