// Which loops have straight-line code, and how it is written. An elementwise node or region on one element becomes
// instructions; every other node becomes a call of its own kernel on fixed memory.
#include "rlx/backends/cpu/control/loop_writer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "rlx/backends/cpu/elementwise/functions_f64_kernels.h"
#include "rlx/backends/cpu/index/indices.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/tensor/visit.h"

namespace rlx::cpu {
namespace {

constexpr std::size_t kMostLoopNodes = 192;
constexpr std::size_t kMostLoopBytes = 4096;  // of a value that an op computes or reads as a whole
constexpr double kMostLoopFlops = 65536;      // of one node: a few microseconds

/// Operands of which the op reads or replaces only a part.
bool reads_part(const Node& n, std::size_t operand) {
  return operand == 0 && (n.kind() == OpKind::Gather || n.kind() == OpKind::DynamicSlice ||
                          op_def(n.op).updates == UpdateKind::Yes || op_def(n.op).is_view());
}

const char* body_not_small(const Graph& body, std::size_t& nodes) {
  nodes += body.num_nodes();
  if (nodes > kMostLoopNodes) return "its bodies have more than 192 nodes";
  if (!body.is_static()) return "a body has symbolic extents";
  for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
    const Node& n = body.node(NodeId{i});
    const OpDef& def = op_def(n.op);
    if (def.is_leaf()) continue;
    if (is_ordered(n.op)) return "a body has an op with side effects";
    std::vector<Shape> operands;
    for (Value v : n.inputs) operands.push_back(body.shape(v));
    const std::vector<Subgraph> inner = body_graphs(n.op);
    for (const Subgraph& g : inner)
      if (n.kind() != OpKind::ElementwiseRegion)
        if (const char* why = body_not_small(*g, nodes)) return why;
    const bool whole = inner.empty() || n.kind() == OpKind::ElementwiseRegion;  // loops read rows of their operands
    for (std::size_t k = 0; k < operands.size() && whole; ++k)
      if (!reads_part(n, k) && stored_bytes(body, n.inputs[k]) > kMostLoopBytes)
        return "a body reads more than 4 KB at a time";
    const bool part = def.updates == UpdateKind::Yes || def.is_view();
    for (const Shape& s : n.shapes)
      if (whole && !part && s.size_bytes() > kMostLoopBytes) return "a body computes more than 4 KB at a time";
    if (whole && def.cost(CostContext{n.op, operands, n.shapes}).flops > kMostLoopFlops)
      return "a body has an op of more than 65536 floating-point operations";
    if (!entry_table().find(body, NodeId{i}) && !def.is_view()) return "a body has an op without a kernel";
  }
  return nullptr;
}

}  // namespace

const char* bodies_not_small(const Graph& g, NodeId id) {
  std::size_t nodes = 0;
  for (const Subgraph& body : body_graphs(g.node(id).op))
    if (const char* why = body_not_small(*body, nodes)) return why;
  return nullptr;
}

/// Writes the steps of one body.
class LoopCode::Writer {
 public:
  Writer(LoopCode& to, Body& body, const KernelTable& kernels, int threads)
      : to_(to), body_(body), kernels_(kernels), threads_(threads) {}

  void step(NodeId id) {
    const Graph& g = body_.lir->graph;
    const std::vector<Shape>& shapes = g.node(id).shapes;
    if (std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.num_elements() == 0; })) return;
    LowerContext c = context(id);
    const KernelEntry* row = entry_table().find(g, id);
    check(row != nullptr, "a small loop holds a node without a kernel");
    drafts_.clear();
    if (elementwise(c) || (std::string_view(row->kernel) == "gather_blocks" && take(c)) ||
        (g.node(id).kind() == OpKind::Scatter && put(c))) {
      std::move(drafts_.begin(), drafts_.end(), std::back_inserter(to_.drafts_));
      return;
    }
    row->lower(c);
    call_tasks(c, to_.drafts_);
  }

  LowerContext context(NodeId id) { return {*body_.lir, id, body_.arenas, kernels_, threads_, body_.list}; }

  /// The bytes of a value, copied to output `output` of the body.
  void copy_output(LowerContext& c, const View& from, std::uint32_t output) {
    auto& to = c.keep<LirValue>();
    to.place = Place::Output, to.index = output;
    View y = from;
    y.where = &to;
    copy(from, y, to_.drafts_);
  }

 private:
  /// An operand or result: the place of a value, or memory of the loop.
  struct Operand {
    std::optional<View> view{};
    std::byte* slot = nullptr;
    DType dtype = DType::F32;
    std::int64_t n = 1;  // elements
  };

  // Runs the tasks that a kernel entry added.
  void call_tasks(LowerContext& c, std::vector<Draft>& out) {
    for (const Task& task : body_.list.tasks) {
      LoopInstr instr;
      instr.op = LoopOp::Kernel;
      instr.call = &c.keep<LoopKernelCall>(task.run, task.ctx, task.chunks);
      out.push_back({instr, &body_});
      to_.calls_kernels_ = true;
    }
    body_.list.tasks.clear();
  }

  void copy(const View& from, const View& to, std::vector<Draft>& out) {
    const std::size_t bytes = size_bytes(from.dtype, from.elements());
    LoopInstr instr;
    instr.op = bytes == 4 ? LoopOp::Copy4 : bytes == 8 ? LoopOp::Copy8 : LoopOp::CopyBytes;
    instr.n = bytes;
    out.push_back({instr, &body_, {{0, from}, {3, to}}});
  }

  Operand fresh(LowerContext& c, DType t, std::int64_t n) {
    if (n == 1) return {std::nullopt, reinterpret_cast<std::byte*>(&c.keep<std::uint64_t>()), t, 1};
    return {std::nullopt, c.workspace(size_bytes(t, n)), t, n};
  }

  void emit(LoopOp op, const Operand& d, std::initializer_list<const Operand*> in, const void* call = nullptr,
            std::size_t n = 0) {
    LoopInstr instr;
    instr.op = op, instr.call = call, instr.n = n;
    if (d.n > 1 && !is_copy(op)) instr.op = LoopOp::Many, instr.inner = op, instr.n = static_cast<std::size_t>(d.n);
    Draft draft{instr, &body_};
    int k = 0;
    for (const Operand* o : in) {
      if (o->n == 1) draft.instr.once = static_cast<std::uint8_t>(draft.instr.once | 1U << k);
      const void* LoopInstr::*const fields[] = {&LoopInstr::a, &LoopInstr::b, &LoopInstr::c};
      if (o->view)
        draft.places.emplace_back(k, *o->view);
      else
        draft.instr.*fields[k] = o->slot;
      ++k;
    }
    if (d.view)
      draft.places.emplace_back(3, *d.view);
    else
      draft.instr.d = d.slot;
    drafts_.push_back(std::move(draft));
  }

  static bool is_copy(LoopOp op) { return op == LoopOp::Copy4 || op == LoopOp::Copy8 || op == LoopOp::CopyBytes; }

  // -- elementwise nodes --

  static bool is_elementwise(OpKind kind) {
    switch (kind) {
      case OpKind::Activation:
      case OpKind::Binary:
      case OpKind::Compare:
      case OpKind::Where:
      case OpKind::Cast:
      case OpKind::Clamp: return true;
      default: return false;
    }
  }

  /// True when the node works on one element, or few of them, and all of it has instructions. Otherwise its kernel runs
  /// it.
  bool elementwise(LowerContext& c) {
    const Node& n = c.node();
    if (!is_elementwise(n.kind()) && n.kind() != OpKind::ElementwiseRegion) return false;
    std::vector<Operand> in, out;
    const View y = c.out();
    bool few = y.elements() <= kMostMany;
    const auto operand = [&](const View& v) {
      few = few && v.dense() && (v.elements() == 1 || v.dims == y.dims);
      return Operand{v, nullptr, v.dtype, v.elements()};
    };
    for (int i = 0; i < c.num_inputs(); ++i) in.push_back(operand(c.in(i)));
    for (std::uint32_t r = 0; r < n.num_results(); ++r) out.push_back(operand(c.out(static_cast<int>(r))));
    if (!few) return false;
    if (n.kind() != OpKind::ElementwiseRegion) return node(c, n, in, out[0]);
    // The kernel of a region sets up once what instructions set up for each op.
    constexpr std::uint32_t kMostOps = 24;
    const Graph& body = *c.op<ops::ElementwiseRegion>().body;
    return (y.elements() == 1 || body.num_nodes() <= kMostOps) && region(c, body, in, out);
  }

  bool region(LowerContext& c, const Graph& body, const std::vector<Operand>& in, const std::vector<Operand>& out) {
    std::vector<Operand> values(body.num_nodes());
    std::vector<bool> reads_input(body.num_nodes()), computed(body.num_nodes());
    std::size_t next = 0;
    std::uint32_t last_read = 0;  // the last node that reads an operand of the region
    for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
      const Node& n = body.node(NodeId{i});
      if (n.kind() == OpKind::Input) {
        values[i] = in[next++], reads_input[i] = true;
        continue;
      }
      for (Value v : n.inputs)
        if (reads_input[v.node.index]) {
          last_read = i;
          reads_input[i] = reads_input[i] || is_same_bytes(body, n);  // it may stay in the operand's place
        }
    }
    // A result may have the bytes of an operand, so it is written after the last read of the operands.
    std::vector<bool> direct(out.size());
    for (std::size_t o = 0; o < out.size(); ++o) {
      const std::uint32_t at = body.outputs()[o].node.index;
      bool once = at >= last_read && !reads_input[at];
      for (std::size_t other = 0; other < out.size(); ++other)
        once = once && (other == o || body.outputs()[other].node.index != at);
      direct[o] = once;
    }
    for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
      const Node& n = body.node(NodeId{i});
      if (n.kind() == OpKind::Input) continue;
      if (n.shapes.size() != 1) return false;
      if (const auto* constant = n.op.get_if<ops::Constant>()) {
        if (constant->value.num_elements() != 1 || dtype_bits(n.shape().dtype()) < 8) return false;
        values[i] = fresh(c, n.shape().dtype(), 1);
        if (constant->value.size_bytes() > sizeof(std::uint64_t)) return false;
        std::memcpy(values[i].slot, constant->value.data(), constant->value.size_bytes());
        continue;
      }
      std::vector<Operand> operands;
      for (Value v : n.inputs) operands.push_back(values[v.node.index]);
      if (is_same_bytes(body, n)) {
        values[i] = operands[0];
        values[i].dtype = n.shape().dtype();
        continue;
      }
      if (!is_elementwise(n.kind())) return false;
      std::int64_t elements = 1;
      for (const Operand& o : operands) elements = std::max(elements, o.n);
      values[i] = fresh(c, n.shape().dtype(), elements);
      for (std::size_t o = 0; o < out.size(); ++o)
        if (direct[o] && body.outputs()[o].node.index == i && elements == out[o].n) values[i] = out[o];
      if (!node(c, n, operands, values[i])) return false;
      computed[i] = true;
    }
    for (std::size_t o = 0; o < out.size(); ++o) {
      const std::uint32_t at = body.outputs()[o].node.index;
      const Operand& from = values[at];
      if (direct[o] && computed[at] && from.n == out[o].n) continue;
      // Another result may replace an operand, and one element is not copied to several.
      if ((from.view && out.size() > 1) || from.n != out[o].n) return false;
      const std::size_t bytes = size_bytes(from.dtype, from.n);
      emit(bytes == 4   ? LoopOp::Copy4
           : bytes == 8 ? LoopOp::Copy8
                        : LoopOp::CopyBytes,
           out[o], {&from}, nullptr, bytes);
    }
    return true;
  }

  /// A cast or bitcast that changes no byte.
  static bool is_same_bytes(const Graph& g, const Node& n) {
    if (n.kind() == OpKind::Cast) return g.shape(n.inputs[0]).dtype() == n.shape().dtype();
    return n.kind() == OpKind::Bitcast && dtype_bits(g.shape(n.inputs[0]).dtype()) == dtype_bits(n.shape().dtype()) &&
           dtype_bits(n.shape().dtype()) >= 32;
  }

  /// The instructions of a node; false where it has none.
  bool node(LowerContext& c, const Node& n, const std::vector<Operand>& in, const Operand& d) {
    const DType t = in[0].dtype;
    if (const auto* op = n.op.get_if<ops::Binary>()) return binary(c, n, op->fn, t, in, d);
    if (const auto* op = n.op.get_if<ops::Compare>()) return compare(c, op->fn, t, in, d);
    if (const auto* op = n.op.get_if<ops::Activation>()) return activation(c, n, *op, t, in, d);
    switch (n.kind()) {
      case OpKind::Where: {
        const int bits = dtype_bits(d.dtype);
        if (t != DType::Bool || (bits != 8 && bits != 32 && bits != 64)) return false;
        emit(bits == 8 ? LoopOp::Where1 : bits == 32 ? LoopOp::Where4 : LoopOp::Where8, d, {&in[0], &in[1], &in[2]});
        return true;
      }
      case OpKind::Clamp: {
        const Operand low = fresh(c, t, std::max(in[0].n, in[1].n));
        return binary(c, n, BinaryKind::Max, t, {in[0], in[1]}, low) &&
               binary(c, n, BinaryKind::Min, t, {low, in[2]}, d);
      }
      case OpKind::Cast: return cast(c, t, d.dtype, in, d);
      default: return false;
    }
  }

  /// The instruction of a type, from the four in the order of RLX_LOOP_NUMBERS.
  static std::optional<LoopOp> by_type(DType t, LoopOp f32, LoopOp f64, LoopOp i32, LoopOp i64) {
    switch (t) {
      case DType::F32: return f32;
      case DType::F64: return f64;
      case DType::I32: return i32;
      case DType::I64: return i64;
      default: return std::nullopt;
    }
  }
#define RLX_LOOP_BY_TYPE(t, NAME) by_type(t, LoopOp::NAME##F32, LoopOp::NAME##F64, LoopOp::NAME##I32, LoopOp::NAME##I64)

  static std::optional<LoopOp> simple_binary(BinaryKind fn, DType t) {
    const bool number = t == DType::I32 || t == DType::I64;
    const auto bits = [&](LoopOp i32, LoopOp i64, LoopOp flag) -> std::optional<LoopOp> {
      if (t == DType::Bool) return flag;
      return number ? std::optional(t == DType::I32 ? i32 : i64) : std::nullopt;
    };
    switch (fn) {
      case BinaryKind::Add: return RLX_LOOP_BY_TYPE(t, Add);
      case BinaryKind::Sub: return RLX_LOOP_BY_TYPE(t, Sub);
      case BinaryKind::Mul: return RLX_LOOP_BY_TYPE(t, Mul);
      case BinaryKind::Max: return RLX_LOOP_BY_TYPE(t, Max);
      case BinaryKind::Min: return RLX_LOOP_BY_TYPE(t, Min);
      case BinaryKind::Div:
        if (t == DType::F32) return LoopOp::DivF32;
        if (t == DType::F64) return LoopOp::DivF64;
        return std::nullopt;
      case BinaryKind::BitAnd: return bits(LoopOp::AndI32, LoopOp::AndI64, LoopOp::AndB);
      case BinaryKind::BitOr: return bits(LoopOp::OrI32, LoopOp::OrI64, LoopOp::OrB);
      case BinaryKind::BitXor: return bits(LoopOp::XorI32, LoopOp::XorI64, LoopOp::XorB);
      default: return std::nullopt;
    }
  }

  bool binary(LowerContext& c, const Node& n, BinaryKind fn, DType t, const std::vector<Operand>& in,
              const Operand& d) {
    constexpr std::int64_t kMostInTurn = 16;  // more elements are computed in vectors
    if (n.kind() == OpKind::Binary && d.n > kMostInTurn && tape(c, n, t, in, d)) return true;
    if (const auto op = simple_binary(fn, t); op && (t != DType::F64 || d.n <= kMostInTurn)) {
      emit(*op, d, {&in[0], &in[1]});
      return true;
    }
    if (n.kind() == OpKind::Binary && tape(c, n, t, in, d)) return true;
    if (t == DType::F64) {
      BlockArgs args;
      args.bits = 64, args.fn = static_cast<int>(fn);
      return wide(c, f64_has(fn) ? f64_kernels(kernels_.isa).binary : binary_block<double>(fn), args, in, d);
    }
    return typed(c, is_half(t) ? nullptr : typed_kernels(kernels_.isa).binary(fn, t), in, d);
  }

  bool compare(LowerContext& c, CompareKind fn, DType t, std::vector<Operand> in, const Operand& d) {
    if (fn == CompareKind::Gt || fn == CompareKind::Ge) {
      std::swap(in[0], in[1]);
      fn = fn == CompareKind::Gt ? CompareKind::Lt : CompareKind::Le;
    }
    if (t == DType::Bool) {
      if (fn != CompareKind::Eq && fn != CompareKind::Ne) return false;
      emit(fn == CompareKind::Eq ? LoopOp::EqB : LoopOp::XorB, d, {&in[0], &in[1]});
      return true;
    }
    const std::optional<LoopOp> op = fn == CompareKind::Eq   ? RLX_LOOP_BY_TYPE(t, Eq)
                                     : fn == CompareKind::Ne ? RLX_LOOP_BY_TYPE(t, Ne)
                                     : fn == CompareKind::Lt ? RLX_LOOP_BY_TYPE(t, Lt)
                                                             : RLX_LOOP_BY_TYPE(t, Le);
    if (!op) return typed(c, is_half(t) ? nullptr : typed_kernels(kernels_.isa).compare(fn, t), in, d);
    emit(*op, d, {&in[0], &in[1]});
    return true;
  }

  bool activation(LowerContext& c, const Node& n, const ops::Activation& op, DType t, const std::vector<Operand>& in,
                  const Operand& d) {
    using A = ActivationKind;
    const auto simple = [&](LoopOp f32, LoopOp f64) {
      emit(t == DType::F32 ? f32 : f64, d, {&in[0]});
      return true;
    };
    if (t == DType::Bool && op.fn == A::Not) return simple(LoopOp::NotB, LoopOp::NotB);
    if (op.fn == A::Neg)
      if (const auto neg = RLX_LOOP_BY_TYPE(t, Neg)) return simple(*neg, *neg);
    if (op.fn == A::Square)
      if (const auto mul = RLX_LOOP_BY_TYPE(t, Mul)) {
        emit(*mul, d, {&in[0], &in[0]});
        return true;
      }
    if (t == DType::F32 || t == DType::F64) {
      if (op.fn == A::Abs) return simple(LoopOp::AbsF32, LoopOp::AbsF64);
      if (op.fn == A::Sqrt) return simple(LoopOp::SqrtF32, LoopOp::SqrtF64);
      if (op.fn == A::Recip) return simple(LoopOp::RecipF32, LoopOp::RecipF64);
    }
    if (tape(c, n, t, in, d)) return true;
    if (t == DType::F64) {
      BlockArgs args;
      args.bits = 64, args.params = function_params(op), args.fn = static_cast<int>(op.fn);
      const bool takes_alpha = op.fn == A::Elu || op.fn == A::LeakyRelu;
      const bool vectors = f64_has(op.fn) && (takes_alpha || has_own_params(op));
      return wide(c, vectors ? f64_kernels(kernels_.isa).unary : activation_block<double>(op, t), args, in, d);
    }
    return typed(c, is_int(t) && t != DType::I32 ? typed_kernels(kernels_.isa).unary(op.fn, t) : nullptr, in, d);
  }

  bool cast(LowerContext& c, DType from, DType to, const std::vector<Operand>& in, const Operand& d) {
    std::optional<LoopOp> op;
    const auto pair = [&](DType a, DType b, LoopOp one) {
      if (from == a && to == b) op = one;
    };
    if (from == DType::Bool) op = RLX_LOOP_BY_TYPE(to, To);
    if (to == DType::Bool) op = RLX_LOOP_BY_TYPE(from, True);
    pair(DType::F32, DType::F64, LoopOp::F32ToF64), pair(DType::F64, DType::F32, LoopOp::F64ToF32);
    pair(DType::I32, DType::F32, LoopOp::I32ToF32), pair(DType::I32, DType::F64, LoopOp::I32ToF64);
    pair(DType::I64, DType::F32, LoopOp::I64ToF32), pair(DType::I64, DType::F64, LoopOp::I64ToF64);
    pair(DType::I32, DType::I64, LoopOp::I32ToI64), pair(DType::I64, DType::I32, LoopOp::I64ToI32);
    if (op) {
      emit(*op, d, {&in[0]});
      return true;
    }
    if (from == DType::F32 && to == DType::I32) {
      emit(LoopOp::Tape, d, {&in[0]}, tape_call(c, TapeOp::F32ToI32));
      return true;
    }
    if (from == DType::Bool || to == DType::Bool || is_half(from) || is_half(to)) return false;
    return typed(c, typed_kernels(kernels_.isa).cast(from, to), in, d);
  }

  static bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }

  const LoopTapeCall* tape_call(LowerContext& c, TapeOp op) {
    auto& call = c.keep<LoopTapeCall>();
    call.run = tape_few(kernels_.isa);
    call.instr.op = op;
    call.instr.a = 0, call.instr.b = 1, call.instr.c = 2, call.instr.dst = 3;
    if (op == TapeOp::Elu) call.instr.imm = 1.0F;  // its alpha
    return &call;
  }
  bool tape(LowerContext& c, const Node& n, DType t, const std::vector<Operand>& in, const Operand& d) {
    if (t != DType::F32 && t != DType::I32) return false;
    const std::optional<TapeOp> op = tape_op_of(n, t);
    if (!op) return false;
    if (in.size() == 1)
      emit(LoopOp::Tape, d, {&in[0]}, tape_call(c, *op));
    else
      emit(LoopOp::Tape, d, {&in[0], &in[1]}, tape_call(c, *op));
    return true;
  }
  bool wide(LowerContext& c, BlockFn<double> fn, const BlockArgs& args, const std::vector<Operand>& in,
            const Operand& d) {
    if (!fn) return false;
    const LoopWideCall& call = c.keep<LoopWideCall>(fn, args);
    if (in.size() == 1)
      emit(LoopOp::Wide, d, {&in[0]}, &call);
    else
      emit(LoopOp::Wide, d, {&in[0], &in[1]}, &call);
    return true;
  }
  bool typed(LowerContext& c, TypedFn fn, const std::vector<Operand>& in, const Operand& d) {
    if (!fn) return false;
    const LoopTypedCall& call = c.keep<LoopTypedCall>(fn, dtype_bits(in[0].dtype) / 8);
    if (in.size() == 1)
      emit(LoopOp::Typed, d, {&in[0]}, &call);
    else
      emit(LoopOp::Typed, d, {&in[0], &in[1]}, &call);
    return true;
  }

  // -- one block at run-time indices --

  /// Fills in the indexing of leading axes of `x`; null where the block is not contiguous or the indices are several.
  LoopIndexing* indexing(LowerContext& c, const View& x, const std::vector<std::int64_t>& axes) {
    if (!x.dense() || dtype_bits(x.dtype) < 8 || axes.size() > std::size_t{LoopIndexing::kMostAxes}) return nullptr;
    for (std::size_t k = 0; k < axes.size(); ++k)
      if (axes[k] != static_cast<std::int64_t>(k) || c.in(static_cast<int>(k) + 1).elements() != 1 || x.dims[k] == 0)
        return nullptr;
    const std::vector<std::int64_t> strides = row_major_strides(x.dims);
    auto& to = c.keep<LoopIndexing>();
    to.count = static_cast<int>(axes.size());
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const View index = c.in(static_cast<int>(k) + 1);
      to.axes[k].wide = index.dtype == DType::I64;
      to.axes[k].extent = x.dims[k];
      to.axes[k].stride = strides[k] * dtype_bits(x.dtype) / 8;
      c.point(to.axes[k].index, index);
    }
    return &to;
  }

  bool take(LowerContext& c) {
    const auto& op = c.op<ops::Gather>();
    const View x = c.in(0), y = c.out();
    const std::size_t bytes = size_bytes(y.dtype, y.elements());
    if (bytes == 0 || op.axes.empty()) return false;
    LoopIndexing* const from = indexing(c, x, op.axes);
    if (!from) return false;
    from->clamp = op.mode == IndexMode::Clamp;
    std::byte* const fill = c.workspace(bytes);
    for (std::int64_t i = 0; i < y.elements(); ++i) store_element(fill, x.dtype, i, op.fill);
    from->fill = fill;
    c.point(from->table, x);
    LoopInstr instr;
    instr.op = LoopOp::Take, instr.n = bytes, instr.call = from;
    drafts_.push_back({instr, &body_, {{3, y}}});
    return true;
  }

  bool put(LowerContext& c) {
    const auto& op = c.op<ops::Scatter>();
    const View x = c.in(0), y = c.out(), updates = c.in(c.num_inputs() - 1);
    if (op.fn != ScatterKind::Set || op.axes.empty() || updates.elements() == 0 || !updates.dense() ||
        updates.where->place == Place::None)
      return false;
    LoopIndexing* const to = indexing(c, y, op.axes);
    if (!to) return false;
    to->clamp = op.mode == IndexMode::Clamp;
    c.point(to->table, y);
    copy_unless_in_place(c, x, y);
    call_tasks(c, drafts_);
    LoopInstr instr;
    instr.op = LoopOp::Put, instr.n = size_bytes(updates.dtype, updates.elements()), instr.call = to;
    drafts_.push_back({instr, &body_, {{0, updates}}});
    return true;
  }

  LoopCode& to_;
  Body& body_;
  const KernelTable& kernels_;
  int threads_;
  std::vector<Draft> drafts_;
};

bool LoopCode::add_body(LowerContext& c, std::size_t number) {
  bodies_.push_back(std::make_unique<Body>());
  Body& body = *bodies_.back();
  body.lir = &c.bodies().modules[number];
  for (std::uint32_t range : c.bodies().arenas[number]) body.arenas.push_back(c.body_range(range));
  body.list.executable = c.list().executable;
  Writer writer(*this, body, c.kernels(), c.threads());
  for (const LirStep& s : body.lir->plan.schedule) writer.step(s.node);
  for (const LirOutputCopy& copy : body.lir->plan.output_copies) {
    LowerContext from = writer.context(copy.value.node);
    const View value = from.value(copy.value);
    if (!value.dense()) return false;
    writer.copy_output(from, value, copy.output);
  }
  return true;
}

std::size_t LoopCode::add(const LoopInstr& instr) {
  drafts_.push_back({instr});
  return drafts_.size() - 1;
}

void LoopCode::finish() {
  code_.reserve(drafts_.size());  // relocated fields must not move
  for (const Draft& draft : drafts_) {
    code_.push_back(draft.instr);
    LoopInstr& i = code_.back();
    for (const auto& [field, view] : draft.places) {
      Body& body = *draft.body;
      LowerContext c(*body.lir, NodeId{0}, body.arenas, kernels_, 1, body.list);
      if (field == 3)
        c.point(i.d, view);
      else
        c.point(field == 0 ? i.a : field == 1 ? i.b : i.c, view);
    }
  }
  drafts_.clear();
  for (const std::unique_ptr<Body>& body : bodies_) {
    TaskList& p = body->list;
    if (p.scratch_bytes > 0) {
      body->scratch = AlignedBytes(p.scratch_bytes);
      p.scratch = {body->scratch.data, 0};  // the loop runs as worker 0
    }
    if (p.common_bytes > 0) {
      body->common = AlignedBytes(p.common_bytes);
      p.common = {body->common.data};
    }
    body->pointers = PointerRelocation(std::move(p.patches));
  }
}

void LoopCode::point(std::size_t n, std::span<const RunSlot> inputs, std::span<const RunSlot> outputs) {
  RunArguments a;
  a.inputs = inputs, a.outputs = outputs;
  bodies_[n]->pointers.follow(a);
}

}  // namespace rlx::cpu
