// Regions of elementwise ops on F64, I64 and Bool: each block goes through all of them, and intermediate values stay in
// L1.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "rlx/backends/cpu/elementwise/functions_f64_kernels.h"
#include "rlx/backends/cpu/elementwise/typed.h"
#include "rlx/backends/cpu/elementwise/typed_kernels.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::cpu {
namespace {

constexpr int kRegionBlock = 256;     // elements per block
constexpr int kRegionRegisters = 14;  // of 2 KiB each: registers, inputs and outputs stay in L1
constexpr int kRegionInputs = 8, kRegionOutputs = 4;
constexpr int kRegionWalks = kRegionInputs + kRegionOutputs;

/// An instruction on values: an f64 block function, or a function in the dtype itself.
struct RegionInstr {
  BlockFn<double> wide = nullptr;
  BlockArgs args;
  TypedFn typed = nullptr;
  std::array<int, 3> in{-1, -1, -1};  // values
  int out = -1;
};

/// A region as instructions on numbered values: inputs first, then constants and results in order.
struct RegionCode {
  struct Number {
    int value = 0;
    std::uint64_t bits = 0;  // of the element
  };
  std::vector<RegionInstr> instrs;
  std::vector<Number> constants;
  std::vector<DType> types;  // of each value
  std::vector<int> outputs;
  int inputs = 0;
  double cost = 0.1;  // approximate ns per element
  bool ok = true;

  int add(DType t) {
    types.push_back(t);
    return static_cast<int>(types.size()) - 1;
  }
};

class RegionWriter {
 public:
  explicit RegionWriter(Isa isa) : isa_(isa), typed_(typed_kernels(isa)) {}

  RegionCode write(const Graph& body) {
    std::vector<int> values(body.num_nodes(), -1);
    for (std::uint32_t i = 0; i < body.num_nodes(); ++i)
      if (body.node(NodeId{i}).kind() == OpKind::Input) {
        values[i] = code_.add(body.node(NodeId{i}).shape().dtype());
        ++code_.inputs;
      }
    for (std::uint32_t i = 0; i < body.num_nodes() && code_.ok; ++i) {
      const Node& n = body.node(NodeId{i});
      const DType t = n.shape().dtype();
      code_.ok =
          n.shapes.size() == 1 && n.inputs.size() <= 3 && (t == DType::F64 || t == DType::I64 || t == DType::Bool);
      if (!code_.ok) break;
      if (n.kind() == OpKind::Input) continue;
      if (const auto* c = n.op.get_if<ops::Constant>()) {
        code_.ok = c->value.num_elements() == 1;
        if (code_.ok)
          values[i] = t == DType::I64 ? constant_bits(t, static_cast<std::uint64_t>(c->value.at_i64(0)))
                                      : constant(t, c->value.at(0));
      } else {
        std::array<int, 3> in{-1, -1, -1};
        for (std::size_t k = 0; k < n.inputs.size(); ++k) in[k] = values[n.inputs[k].node.index];
        values[i] = node(body, n, in);
      }
    }
    for (Value v : body.outputs()) {
      const int out = code_.ok ? values[v.node.index] : -1;
      // Each output must be the result of an instruction, and outputs must differ. Other regions are not taken.
      const bool made =
          std::any_of(code_.instrs.begin(), code_.instrs.end(), [&](const auto& s) { return s.out == out; });
      code_.ok = code_.ok && made && std::find(code_.outputs.begin(), code_.outputs.end(), out) == code_.outputs.end();
      code_.outputs.push_back(out);
    }
    code_.ok = code_.ok && code_.inputs <= kRegionInputs && code_.outputs.size() <= std::size_t{kRegionOutputs};
    return std::move(code_);
  }

 private:
  int constant_bits(DType t, std::uint64_t bits) {
    for (const RegionCode::Number& c : code_.constants)  // registers are few
      if (c.bits == bits && code_.types[static_cast<std::size_t>(c.value)] == t) return c.value;
    const int value = code_.add(t);
    code_.constants.push_back({value, bits});
    return value;
  }
  int constant(DType t, double number) {
    return constant_bits(t, t == DType::F64   ? std::bit_cast<std::uint64_t>(number)
                            : t == DType::I64 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(number))
                                              : std::uint64_t{number != 0});
  }

  int typed(TypedFn fn, DType out, std::array<int, 3> in) {
    if (!fn) return fail();
    RegionInstr s;
    s.typed = fn;
    return append(s, out, in, 0.05);
  }
  int wide(BlockFn<double> fn, const BlockArgs& args, std::array<int, 3> in, double cost) {
    if (!fn) return fail();
    RegionInstr s;
    s.wide = fn;
    s.args = args;
    return append(s, DType::F64, in, cost);
  }
  int append(RegionInstr& s, DType out, std::array<int, 3> in, double cost) {
    s.in = in;
    s.out = code_.add(out);
    code_.instrs.push_back(s);
    code_.cost += cost;
    return s.out;
  }
  int fail() {
    code_.ok = false;
    return -1;
  }

  int node(const Graph& body, const Node& n, std::array<int, 3> in) {
    const DType t = body.shape(n.inputs[0]).dtype(), out = n.shape().dtype();
    if (const auto* op = n.op.get_if<ops::Activation>()) return activation(*op, t, in);
    if (const auto* op = n.op.get_if<ops::Binary>())
      return t == DType::F64 ? binary(op->fn, in) : typed(typed_.binary(op->fn, t), t, in);
    if (const auto* op = n.op.get_if<ops::Compare>()) {
      if (t == DType::Bool) {  // compares two flags as truth values, because any nonzero byte is true
        if (op->fn != CompareKind::Eq && op->fn != CompareKind::Ne) return fail();
        const int differ = typed(typed_.binary(BinaryKind::BitXor, t), t, in);
        return op->fn == CompareKind::Ne ? differ : is_zero(differ);
      }
      const bool swaps = op->fn == CompareKind::Gt || op->fn == CompareKind::Ge;
      if (swaps) std::swap(in[0], in[1]);
      const CompareKind fn = !swaps ? op->fn : op->fn == CompareKind::Gt ? CompareKind::Lt : CompareKind::Le;
      return typed(typed_.compare(fn, t), DType::Bool, in);
    }
    if (n.kind() == OpKind::Where) return typed(typed_.choose(out == DType::Bool ? 1 : 8), out, in);
    if (n.kind() == OpKind::Clamp && t == DType::F64)
      return code_.ok ? binary(BinaryKind::Min, {binary(BinaryKind::Max, {in[0], in[1], -1}), in[2], -1}) : fail();
    if (n.kind() == OpKind::Bitcast) {  // a value of its own only where it is a result
      if (dtype_bits(t) != 64 || dtype_bits(out) != 64) return fail();
      const bool result =
          std::any_of(body.outputs().begin(), body.outputs().end(), [&](Value v) { return &body.node(v.node) == &n; });
      return result ? typed(typed_.cast(DType::I64, DType::U64), out, in) : in[0];
    }
    if (n.kind() != OpKind::Cast) return fail();
    if (t == out) return in[0];
    if (t == DType::Bool) return typed(typed_.cast(DType::U8, out), out, {is_zero(is_zero(in[0])), -1, -1});
    if (out == DType::Bool) return typed(typed_.compare(CompareKind::Ne, t), out, {in[0], constant(t, 0), -1});
    return typed(typed_.cast(t, out), out, in);
  }
  int is_zero(int flag) {
    return typed(typed_.compare(CompareKind::Eq, DType::U8), DType::Bool, {flag, constant(DType::Bool, 0), -1});
  }

  int activation(const ops::Activation& op, DType t, std::array<int, 3> in) {
    if (t == DType::Bool) {
      return op.fn == ActivationKind::Not ? is_zero(in[0]) : fail();
    }
    if (t == DType::I64) return typed(typed_.unary(op.fn, t), t, in);
    BlockArgs args;
    args.bits = dtype_bits(t);
    args.params = function_params(op);
    args.fn = static_cast<int>(op.fn);
    const bool takes_alpha = op.fn == ActivationKind::Elu || op.fn == ActivationKind::LeakyRelu;
    if (f64_has(op.fn) && (takes_alpha || has_own_params(op)))
      return wide(f64_kernels(isa_).unary, args, in, f64_cost(op.fn));
    return wide(activation_block<double>(op, t), args, in, 3);
  }
  int binary(BinaryKind fn, std::array<int, 3> in) {
    BlockArgs args;
    args.bits = 64;
    args.fn = static_cast<int>(fn);
    if (f64_has(fn)) return wide(f64_kernels(isa_).binary, args, in, f64_cost(fn));
    return wide(binary_block<double>(fn), args, in, 3);
  }
  Isa isa_;
  const TypedKernels& typed_;
  RegionCode code_;
};

/// The register of each value; -1 for values elsewhere. Nullopt when there are too few registers.
std::optional<std::vector<int>> registers_of(const RegionCode& code) {
  const auto n = code.types.size();
  std::vector<int> at(n, -1);
  std::vector<std::size_t> last(n, 0);
  for (std::size_t k = 0; k < code.instrs.size(); ++k)
    for (int v : code.instrs[k].in)
      if (v >= 0) last[static_cast<std::size_t>(v)] = k;
  int taken = 0;
  std::vector<int> free;
  const auto take = [&](std::size_t v) {
    if (free.empty())
      at[v] = taken++;
    else
      at[v] = free.back(), free.pop_back();
  };
  for (int i = 0; i < code.inputs; ++i) take(static_cast<std::size_t>(i));  // for inputs that are not contiguous
  for (const RegionCode::Number& c : code.constants) take(static_cast<std::size_t>(c.value));
  const auto first_result = static_cast<std::size_t>(code.inputs);
  std::vector<bool> lasts(n, false);  // live until the end of the block
  for (std::size_t v = 0; v < first_result; ++v) lasts[v] = true;
  for (const RegionCode::Number& c : code.constants) lasts[static_cast<std::size_t>(c.value)] = true;
  for (int v : code.outputs) lasts[static_cast<std::size_t>(v)] = true;
  for (std::size_t k = 0; k < code.instrs.size(); ++k) {
    const RegionInstr& s = code.instrs[k];
    const auto out = static_cast<std::size_t>(s.out);
    // Functions in the dtype itself must not write over their operands, so operands are freed after the result is
    // assigned.
    if (std::find(code.outputs.begin(), code.outputs.end(), s.out) == code.outputs.end()) take(out);
    for (std::size_t i = 0; i < s.in.size(); ++i) {
      const int v = s.in[i];
      if (v < 0 || lasts[static_cast<std::size_t>(v)] || last[static_cast<std::size_t>(v)] != k) continue;
      lasts[static_cast<std::size_t>(v)] = true;  // once, even if it is read twice
      free.push_back(at[static_cast<std::size_t>(v)]);
    }
    if (!lasts[out] && last[out] == 0 && at[out] >= 0) free.push_back(at[out]), lasts[out] = true;  // nobody reads it
  }
  if (taken > kRegionRegisters) return std::nullopt;
  return at;
}

struct Region64Step {
  RowIterator<kRegionWalks> walk;
  RegionCode code;
  std::vector<int> registers;
  const void* in[kRegionInputs] = {};
  void* out[kRegionOutputs] = {};
  std::int64_t blocks_per_row = 1, blocks = 0, blocks_per_chunk = 1;
};

std::int64_t bytes_of(DType t) { return t == DType::Bool ? 1 : 8; }

template <class E>
void spread_values(const void* from, std::int64_t at, std::int64_t step, int n, void* to) {
  const E* p = static_cast<const E*>(from) + at;
  E* y = static_cast<E*>(to);
  for (int i = 0; i < n; ++i) y[i] = p[i * step];
}

void run_region_64bit(const Region64Step& s, std::int64_t chunk) {
  alignas(64) std::byte registers[kRegionRegisters][kRegionBlock * 8];
  const RegionCode& code = s.code;
  constexpr std::size_t kMostValues = 64;
  std::byte* at[kMostValues] = {};
  for (std::size_t v = 0; v < code.types.size(); ++v)
    if (s.registers[v] >= 0) at[v] = registers[s.registers[v]];
  for (const RegionCode::Number& c : code.constants) {
    std::byte* const to = at[c.value];
    if (bytes_of(code.types[static_cast<std::size_t>(c.value)]) == 8)
      std::fill_n(reinterpret_cast<std::uint64_t*>(to), kRegionBlock, c.bits);
    else
      std::fill_n(reinterpret_cast<std::uint8_t*>(to), kRegionBlock, static_cast<std::uint8_t>(c.bits));
  }
  RowIterator<kRegionWalks> walk = s.walk;
  const std::int64_t begin = chunk * s.blocks_per_chunk, end = std::min(s.blocks, begin + s.blocks_per_chunk);
  walk.seek(begin / s.blocks_per_row);
  for (std::int64_t b = begin; b < end; ++b) {
    const std::int64_t col = b % s.blocks_per_row * kRegionBlock;
    if (b != begin && col == 0) walk.next();
    const int n = static_cast<int>(std::min<std::int64_t>(kRegionBlock, walk.cols() - col));
    const std::byte* read[kMostValues];
    std::copy(at, at + code.types.size(), read);
    for (int i = 0; i < code.inputs; ++i) {
      const std::int64_t step = walk.step(i), place = walk.offset[i] + col * step;
      const std::int64_t bytes = bytes_of(code.types[static_cast<std::size_t>(i)]);
      if (step == 1)
        read[i] = static_cast<const std::byte*>(s.in[i]) + place * bytes;
      else if (bytes == 8)
        spread_values<std::uint64_t>(s.in[i], place, step, n, at[i]);
      else
        spread_values<std::uint8_t>(s.in[i], place, step, n, at[i]);
    }
    std::byte* write[kMostValues];
    std::copy(at, at + code.types.size(), write);
    for (std::size_t o = 0; o < code.outputs.size(); ++o) {
      const int v = code.outputs[o];
      const std::int64_t place = walk.offset[kRegionInputs + o] + col;
      write[v] = static_cast<std::byte*>(s.out[o]) + place * bytes_of(code.types[static_cast<std::size_t>(v)]);
      read[v] = write[v];
    }
    for (const RegionInstr& instr : code.instrs) {
      const auto operand = [&](int i) -> const std::byte* {
        const int v = instr.in[static_cast<std::size_t>(i)];
        return v < 0 ? nullptr : read[v];
      };
      if (instr.typed)
        instr.typed(operand(0), operand(1), operand(2), write[instr.out], n);
      else
        instr.wide(reinterpret_cast<const double*>(operand(0)), reinterpret_cast<const double*>(operand(1)), nullptr,
                   reinterpret_cast<double*>(write[instr.out]), n, instr.args);
    }
  }
}

RegionCode region_code(const Graph& g, NodeId id, Isa isa) {
  return RegionWriter(isa).write(*g.node(id).op.as<ops::ElementwiseRegion>().body);
}

const char* region_64bit_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(g.shape(id))) return why;
  const RegionCode code = region_code(g, id, Isa::Generic);
  return refuse_unless(
      code.ok && code.types.size() <= 64 && registers_of(code),
      "its values are not all f64, i64 and bool, or there are too many of them, or one of its ops has no kernel");
}

void lower_region_64bit(LowerContext& c) {
  if (lower_typed(c)) return;
  const View y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<Region64Step>();
  s.code = region_code(c.graph(), c.id(), c.kernels().isa);
  s.registers = registers_of(s.code).value();
  std::vector<std::vector<std::int64_t>> strides(kRegionWalks, std::vector<std::int64_t>(y.dims.size(), 0));
  for (int i = 0; i < s.code.inputs; ++i) {
    strides[static_cast<std::size_t>(i)] = broadcast_strides(c.in(i), y.dims);
    c.point(s.in[i], c.in(i));
  }
  for (std::size_t o = 0; o < s.code.outputs.size(); ++o) {
    const View out = c.out(static_cast<int>(o));
    check(out.dense(), "the result of an elementwise kernel is not row-major");
    strides[kRegionInputs + o] = out.strides;
    c.point(s.out[o], out);
  }
  s.walk.set(y.dims, strides);
  s.blocks_per_row = (s.walk.cols() + kRegionBlock - 1) / kRegionBlock;
  s.blocks = s.blocks_per_row * s.walk.rows();
  constexpr double kChunkNs = 8000;
  const auto columns = static_cast<double>(std::min<std::int64_t>(kRegionBlock, s.walk.cols()));
  s.blocks_per_chunk =
      c.grain(std::max<std::int64_t>(4, static_cast<std::int64_t>(kChunkNs / (s.code.cost * columns))));
  c.step<run_region_64bit>(s, (s.blocks + s.blocks_per_chunk - 1) / s.blocks_per_chunk,
                           s.code.cost * static_cast<double>(y.elements()));
}

bool region_reads_strided(const Graph&, NodeId, int) { return true; }

constexpr KernelEntry kRegion64BitEntries[] = {
    {OpKind::ElementwiseRegion, "wide_region", region_64bit_refuses, lower_region_64bit, region_reads_strided},
};

}  // namespace

std::span<const KernelEntry> region_64bit_entries() { return kRegion64BitEntries; }

}  // namespace rlx::cpu
