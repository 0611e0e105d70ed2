// Guarded memory of a bound program.
#include "tests/support/guarded_program.h"

#include <algorithm>
#include <cstring>
#include <functional>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "rlx/backends/cpu/kernels.h"
#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/device/host_device.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/lir.h"

namespace rlx::test {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::size_t kAligned = 64;

// The 4-byte integer 1 is the smallest subnormal F32. It makes every F64 subnormal, and every second F16 and BF16.
std::byte pattern(Around around, std::size_t at) {
  return around == Around::Nan ? std::byte{0xff} : std::byte{at % 4 == 0 ? std::uint8_t{1} : std::uint8_t{0}};
}

// Writes n bytes of the pattern, beginning with byte `at`. It copies blocks, as sanitizers check each access of a loop.
void fill(Around around, std::byte* bytes, std::size_t n, std::size_t at) {
  std::byte block[64];
  for (std::size_t i = 0; i < sizeof block; ++i) block[i] = pattern(around, at + i);
  for (std::size_t i = 0; i < n; i += sizeof block) std::memcpy(bytes + i, block, std::min(sizeof block, n - i));
}

// Fills fresh heap blocks with huge numbers or zeros; the allocator offers nothing else.
void perturb_heap([[maybe_unused]] Around around) {
#ifdef M_PERTURB
  mallopt(M_PERTURB, around == Around::Nan ? 0x80 : 0xff);
#endif
}

std::vector<GuardedBytes> guarded(std::size_t n) { return std::vector<GuardedBytes>(n); }

}  // namespace

GuardedBytes::GuardedBytes(std::size_t n, Around around, std::size_t misaligned)
    : storage_(n + 2 * kGuard + 2 * kAligned), size_(n), around_(around) {
  const auto at = reinterpret_cast<std::uintptr_t>(storage_.data()) + kGuard;
  start_ = kGuard + (kAligned - at % kAligned) % kAligned + misaligned;
  fill(around_, storage_.data(), storage_.size(), 0 - start_);
}

void GuardedBytes::spoil() { fill(around_, storage_.data() + start_, size_, 0); }

bool GuardedBytes::intact() const {
  const auto kept = [&](std::size_t from, std::size_t to) {
    std::vector<std::byte> expected(to - from);
    fill(around_, expected.data(), expected.size(), from - start_);
    return std::equal(expected.begin(), expected.end(), storage_.data() + from);
  };
  return kept(0, start_) && kept(start_ + size_, storage_.size());
}

LirModule lir_for(const Graph& g, const std::shared_ptr<const Target>& target) {
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (!target->claims(g, NodeId{i}) || g.node(NodeId{i}).kind() == OpKind::Param)
      return CompilePipeline(target).compile_graph(g).lir;
  LirModule lir{g, plan_memory(g, *target), Graph("prepare")};
  const std::vector<std::string> problems = check_plan(lir.graph, lir.plan);
  check(problems.empty(), problems.empty() ? "" : problems.front());
  return lir;
}

GuardedProgram::GuardedProgram(const Executable& exe, const NamedTensors& params, Around around)
    : exe_(exe),
      around_(around),
      arena_(exe.lir().plan.arena_bytes, around),
      device_(open_host_device(Device::Cpu)),
      stream_(device_->stream()) {
  perturb_heap(around);
  const LirModule& lir = exe.lir();
  const Graph& prepare = lir.prepare;
  std::map<Value, Tensor> computed;
  const std::function<Tensor(Value)> value_of = [&](Value v) -> Tensor {
    if (auto it = computed.find(v); it != computed.end()) return it->second;
    const Node& n = prepare.node(v.node);
    if (n.kind() == OpKind::Param) return params.at(prepare.leaf_name(v.node));
    std::vector<Tensor> operands;
    for (Value in : n.inputs) operands.push_back(value_of(in));
    const std::vector<Tensor> results = evaluate_op(n.op, operands);
    for (std::uint32_t r = 0; r < results.size(); ++r) computed.emplace(Value(v.node, r), results[r]);
    return results[v.result];
  };
  prepared_ = guarded(prepare.outputs().size());
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const Value v = prepare.outputs()[i];
    prepared_[i] = GuardedBytes(stored_bytes(prepare, v), around);
    if (const auto* op = prepare.node(v.node).op.get_if<ops::Relayout>()) {
      const std::vector<Value>& sources = prepare.node(v.node).inputs;
      for (std::size_t s = 0; s < sources.size(); ++s) {
        const Tensor t = value_of(sources[s]);
        exe.encode(v.node, s, {0, op->source(s).columns}, t.dtype(), t.data(), prepared_[i].data());
      }
    } else {
      const Tensor t = value_of(v);
      std::copy_n(t.data(), t.size_bytes(), prepared_[i].data());
    }
    weight_views_.emplace_back(prepared_[i].data(), stored_bytes(prepare, v));
  }
  const std::vector<NodeId> leaves = lir.graph.leaves(OpKind::State);
  states_ = guarded(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    states_[i] = GuardedBytes(lir.graph.shape(leaves[i]).size_bytes(), around);
    state_slots_.push_back({BufferView(states_[i].data(), lir.graph.shape(leaves[i]).size_bytes())});
  }
  reset();
  check(lir.plan.arenas.size() <= 1, "the host has one arena");
  const BufferView arena(arena_.data(), lir.plan.arena_bytes);
  bound_ = exe.bind(*device_, lir, std::span(&arena, 1));
}

void GuardedProgram::reset() {
  const Graph& g = exe_.lir().graph;
  const std::vector<NodeId> leaves = g.leaves(OpKind::State);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const auto& op = g.node(leaves[i]).op.as<ops::State>();
    const Tensor init = op.init.empty() ? Tensor::zeros(g.shape(leaves[i])) : op.init;
    std::copy_n(init.data(), init.size_bytes(), states_[i].data());
  }
}

NamedTensors GuardedProgram::states() {
  NamedTensors out;
  const Graph& g = exe_.lir().graph;
  const std::vector<NodeId> leaves = g.leaves(OpKind::State);
  for (std::size_t i = 0; i < leaves.size(); ++i)
    out.emplace(g.leaf_name(leaves[i]), Tensor::copy_of(states_[i].data(), g.shape(leaves[i])));
  return out;
}

std::vector<Tensor> GuardedProgram::run(const NamedTensors& inputs, bool timed) {
  const LirModule& lir = exe_.lir();
  const std::size_t off = around_ == Around::Subnormal ? 16 : 0;
  std::vector<GuardedBytes> ins, outs;
  std::vector<RunSlot> in_slots, out_slots;
  for (NodeId id : lir.graph.leaves(OpKind::Input)) {
    const Tensor& t = inputs.at(lir.graph.leaf_name(id));
    check(t.shape() == lir.graph.shape(id), "an input of another shape");
    ins.emplace_back(t.size_bytes(), around_, off);
    std::copy_n(t.data(), t.size_bytes(), ins.back().data());
  }
  for (Value v : lir.graph.outputs()) outs.emplace_back(lir.graph.shape(v).size_bytes(), around_, off);
  for (GuardedBytes& b : ins) in_slots.push_back({BufferView(b.data(), b.size())});
  for (GuardedBytes& b : outs) out_slots.push_back({BufferView(b.data(), b.size())});
  arena_.spoil();
  std::vector<StepTime> times;
  (void)bound_->submit({in_slots, out_slots, state_slots_, weight_views_, 1, timed ? &times : nullptr}, *stream_);
  check(!timed || times.size() == lir.plan.schedule.size(), "a time of each step");
  const auto intact = [](const std::vector<GuardedBytes>& list, const char* what) {
    for (const GuardedBytes& b : list) check(b.intact(), concat_text("bytes around ", what, " were written"));
  };
  check(arena_.intact(), "bytes around the arena were written");
  intact(ins, "an input");
  intact(outs, "an output");
  intact(prepared_, "a weight");
  intact(states_, "a state");
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < outs.size(); ++i)
    results.push_back(Tensor::copy_of(outs[i].data(), lir.graph.shape(lir.graph.outputs()[i])));
  return results;
}

std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (cpu::Isa isa : {cpu::Isa::Generic, cpu::Isa::Sse4, cpu::Isa::Avx2, cpu::Isa::Avx512, cpu::Isa::Neon})
    if (cpu::isa_supported(isa)) names.emplace_back(cpu::isa_name(isa));
  return names;
}

}  // namespace rlx::test
