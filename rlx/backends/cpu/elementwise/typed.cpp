// Elementwise ops of integers, comparisons, selects and casts in the dtype itself, without conversion to another type.
#include "rlx/backends/cpu/elementwise/typed.h"

#include <algorithm>
#include <cmath>

#include "rlx/backends/cpu/elementwise/typed_kernels.h"
#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t kSpreadBlock = 256;   // elements per block when an operand is not contiguous
constexpr std::int64_t kDirectBlock = 4096;  // when all operands are contiguous

struct TypedStep {
  RowIterator<4> walk;  // three operands, the result
  int num_inputs = 0;
  const void* in[3] = {};
  void* out = nullptr;
  int bytes[4] = {};
  TypedFn fn = nullptr;
  std::int64_t block = kDirectBlock, blocks_per_row = 1, blocks = 0, blocks_per_chunk = 1;
};

template <class E>
void spread_elements(const void* from, std::int64_t at, std::int64_t step, std::int64_t n, void* to) {
  const E* p = static_cast<const E*>(from) + at;
  E* out = static_cast<E*>(to);
  if (step == 0)
    std::fill(out, out + n, *p);
  else
    for (std::int64_t i = 0; i < n; ++i) out[i] = p[i * step];
}

void run_typed(const TypedStep& s, std::int64_t chunk) {
  alignas(64) std::byte spread[3][kSpreadBlock * 8];
  RowIterator<4> walk = s.walk;
  const std::int64_t begin = chunk * s.blocks_per_chunk, end = std::min(s.blocks, begin + s.blocks_per_chunk);
  walk.seek(begin / s.blocks_per_row);
  std::int64_t filled[3] = {-1, -1, -1};  // the offset whose element fills the whole block
  for (std::int64_t b = begin; b < end; ++b) {
    const std::int64_t col = b % s.blocks_per_row * s.block;
    if (b != begin && col == 0) walk.next();
    const std::int64_t n = std::min(s.block, walk.cols() - col);
    const void* operands[3] = {};
    for (int i = 0; i < s.num_inputs; ++i) {
      const std::int64_t step = walk.step(i), at = walk.offset[i] + col * step;
      if (step == 1) {
        operands[i] = static_cast<const std::byte*>(s.in[i]) + at * s.bytes[i];
        continue;
      }
      operands[i] = spread[i];
      if (step == 0 && filled[i] == at) continue;
      filled[i] = step == 0 ? at : -1;
      const std::int64_t count = step == 0 ? kSpreadBlock : n;
      switch (s.bytes[i]) {
        case 1: spread_elements<std::uint8_t>(s.in[i], at, step, count, spread[i]); break;
        case 2: spread_elements<std::uint16_t>(s.in[i], at, step, count, spread[i]); break;
        case 4: spread_elements<std::uint32_t>(s.in[i], at, step, count, spread[i]); break;
        default: spread_elements<std::uint64_t>(s.in[i], at, step, count, spread[i]); break;
      }
    }
    std::byte* to = static_cast<std::byte*>(s.out) + (walk.offset[3] + col) * s.bytes[3];
    s.fn(operands[0], operands[1], operands[2], to, n);
  }
}

/// The loop of a region that compares |x| with infinity, as is_finite and is_inf do.
TypedFn region_fn(const TypedKernels& k, const Graph& body) {
  if (body.num_nodes() != 4 || body.outputs().size() != 1) return nullptr;
  const Node& last = body.node(body.outputs()[0].node);
  const auto* compare = last.op.get_if<ops::Compare>();
  if (!compare) return nullptr;
  const Node &size = body.node(last.inputs[0].node), &limit = body.node(last.inputs[1].node);
  const auto* abs = size.op.get_if<ops::Activation>();
  const auto* infinity = limit.op.get_if<ops::Constant>();
  if (!abs || abs->fn != ActivationKind::Abs || body.node(size.inputs[0].node).kind() != OpKind::Input) return nullptr;
  if (!infinity || infinity->value.num_elements() != 1 || infinity->value.at(0) != HUGE_VAL) return nullptr;
  return k.magnitude(compare->fn, limit.shape().dtype());
}

/// The loop of a node. `swaps`: it takes its operands in reverse order.
TypedFn typed_fn(const TypedKernels& k, const Graph& g, NodeId id, bool& swaps) {
  const Node& n = g.node(id);
  if (const auto* op = n.op.get_if<ops::ElementwiseRegion>()) return region_fn(k, *op->body);
  const DType t = in_dtype(g, id, 0);
  if (const auto* op = n.op.get_if<ops::Activation>()) return k.unary(op->fn, t);
  if (const auto* op = n.op.get_if<ops::Binary>()) return k.binary(op->fn, t);
  if (const auto* op = n.op.get_if<ops::Compare>()) {
    swaps = op->fn == CompareKind::Gt || op->fn == CompareKind::Ge;
    return k.compare(swaps ? op->fn == CompareKind::Gt ? CompareKind::Lt : CompareKind::Le : op->fn, t);
  }
  const DType to = n.shape().dtype();
  if (n.kind() == OpKind::Where)
    return t == DType::Bool && dtype_bits(to) >= 8 && dtype_bits(to) <= 64 ? k.choose(dtype_bits(to) / 8) : nullptr;
  return n.kind() == OpKind::Cast ? k.cast(t, to) : nullptr;
}

}  // namespace

bool lower_typed(LowerContext& c) {
  const View y = c.out();
  bool swaps = false;
  const TypedFn fn = typed_fn(typed_kernels(c.kernels().isa), c.graph(), c.id(), swaps);
  if (!fn) return false;
  RowIterator<4> walk;
  std::vector<std::vector<std::int64_t>> strides;
  const int inputs = c.num_inputs();
  const auto place = [&](int i) { return swaps ? 1 - i : i; };
  for (int i = 0; i < inputs; ++i) strides.push_back(broadcast_strides(c.in(place(i)), y.dims));
  strides.resize(3, std::vector<std::int64_t>(y.dims.size(), 0));
  strides.push_back(y.strides);
  walk.set(y.dims, strides);
  if (walk.cols() > 1 && walk.step(3) != 1) return false;
  auto& s = c.keep<TypedStep>();
  s.walk = walk, s.num_inputs = inputs, s.fn = fn;
  for (int i = 0; i < inputs; ++i) {
    const View x = c.in(place(i));
    s.bytes[i] = static_cast<int>(dtype_bits(x.dtype) / 8);
    if (walk.step(i) != 1) s.block = kSpreadBlock;
    c.point(s.in[i], x);
  }
  s.bytes[3] = static_cast<int>(dtype_bits(y.dtype) / 8);
  c.point(s.out, y);
  s.blocks_per_row = (walk.cols() + s.block - 1) / s.block;
  s.blocks = s.blocks_per_row * walk.rows();
  const std::int64_t columns = std::min(s.block, walk.cols());
  s.blocks_per_chunk = c.grain(std::max<std::int64_t>(1, 32768 / columns));
  constexpr double kCostNs = 0.15;
  c.step<run_typed>(s, (s.blocks + s.blocks_per_chunk - 1) / s.blocks_per_chunk,
                    kCostNs * static_cast<double>(y.elements()) + 4.0 * static_cast<double>(s.blocks));
  return true;
}

}  // namespace rlx::cpu
