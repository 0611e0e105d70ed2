// Quantized values: decoding and encoding as tasks of their own, and matmuls whose second operand is quantized.
#include <algorithm>

#include "rlx/backends/cpu/matmul/driver.h"
#include "rlx/backends/cpu/matmul/epilogue.h"
#include "rlx/backends/cpu/quant/decoder.h"
#include "rlx/backends/cpu/quant/encoder.h"
#include "rlx/backends/cpu/quant/interleaved_layout.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/tensor/half.h"

namespace rlx::cpu {
namespace {

// -- decoding --

struct DecodeStep {
  Decoder decoder;
  DType dtype = DType::F32;
  std::int64_t elements = 0, per_chunk = 0;
  std::byte* y = nullptr;
};
void run_decode(const DecodeStep& s, std::int64_t chunk) {
  const std::int64_t first = chunk * s.per_chunk, end = std::min(s.elements, first + s.per_chunk);
  if (s.dtype == DType::F32) return s.decoder.read(first, end - first, reinterpret_cast<float*>(s.y) + first);
  constexpr std::int64_t kPart = 1024;  // a multiple of every block size
  float part[kPart];
  auto* to = reinterpret_cast<std::uint16_t*>(s.y);
  for (std::int64_t i = first; i < end; i += kPart) {
    const std::int64_t n = std::min(kPart, end - i);
    s.decoder.read(i, n, part);
    for (std::int64_t e = 0; e < n; ++e)
      to[i + e] = s.dtype == DType::BF16 ? float_to_bf16_bits(part[e]) : float_to_f16_bits(part[e]);
  }
}
void lower_decode(LowerContext& c) {
  const View y = c.out();
  auto& s = c.keep<DecodeStep>();
  s.decoder.point(c, c.id());
  s.dtype = y.dtype;
  s.elements = y.elements();
  const std::int64_t blocks = (std::int64_t{8192} + s.decoder.grain() - 1) / s.decoder.grain();
  s.per_chunk = c.grain(blocks) * s.decoder.grain();
  c.point(s.y, y);
  c.step<run_decode>(s, (s.elements + s.per_chunk - 1) / s.per_chunk, 1.5 * static_cast<double>(s.elements));
}

// -- encoding --

struct EncodeStep {
  Encoder encoder;
  std::int64_t blocks = 0, per_chunk = 0;
  std::byte* y = nullptr;
};
void run_encode(const EncodeStep& s, std::int64_t chunk) {
  const std::int64_t first = chunk * s.per_chunk, end = std::min(s.blocks, first + s.per_chunk);
  s.encoder.write(first, end, s.y + first * s.encoder.block_bytes());
}
void lower_encode(LowerContext& c) {
  auto& s = c.keep<EncodeStep>();
  if (c.in(0).elements() == 0) return;
  s.encoder.point(c, c.id());
  s.blocks = s.encoder.blocks();
  s.per_chunk = c.grain(s.encoder.blocks_of(5000));
  c.point(s.y, c.out());
  c.step<run_encode>(s, (s.blocks + s.per_chunk - 1) / s.per_chunk,
                     s.encoder.block_ns() * static_cast<double>(s.blocks));
}
bool encode_reads_strided(const Graph&, NodeId, int operand) { return operand == 0; }

// -- matmuls --

// x [.., K] times a Dequantize of rank 2, which is decoded some columns at a time.
struct QuantizedStep {
  MatmulOperands gemm;
  const MatmulKernel* kernel = nullptr;
  Decoder decoder;
  const KernelTable* kernels = nullptr;
  bool transposed = false;        // quantized values of [N, K]
  std::int64_t k = 0, width = 0;  // columns per chunk
  const Scratch* scratch = nullptr;
};
void run_quantized(const QuantizedStep& p, std::int64_t chunk) {
  const std::int64_t n = p.gemm.n, n0 = chunk * p.width, cols = std::min(p.width, n - n0);
  auto* decoded = reinterpret_cast<float*>(p.scratch->mine());
  float* panel = decoded + p.k * p.width;
  if (p.transposed) {
    p.decoder.read(n0 * p.k, cols * p.k, decoded);
  } else {
    for (std::int64_t k = 0; k < p.k; ++k) p.decoder.read(k * n + n0, cols, decoded + k * cols);
  }
  p.kernels->pack_b_f32(decoded, p.transposed ? 1 : cols, p.transposed ? p.k : 1, p.k, cols, 0, cols, panel);
  run_whole_matmul(p.kernel, columns_of(p.gemm, n0, cols, panel), nullptr);
}

bool is_batched(const Graph& g, NodeId id) {
  if (const auto* fused = g.node(id).op.get_if<ops::FusedDot>()) return !fused->lhs_batch.empty();
  return !g.node(id).op.as<ops::DotGeneral>().lhs_batch.empty();
}
const std::vector<std::int64_t>& contracted(const Graph& g, NodeId id, bool rhs) {
  if (const auto* fused = g.node(id).op.get_if<ops::FusedDot>()) return rhs ? fused->rhs_contract : fused->lhs_contract;
  const auto& dot = g.node(id).op.as<ops::DotGeneral>();
  return rhs ? dot.rhs_contract : dot.lhs_contract;
}

const char* quantized_refuses(const Graph& g, NodeId id) {
  const NodeId from = g.node(id).inputs[1].node;
  const auto* op = g.node(from).op.get_if<ops::Dequantize>();
  if (!op) return "its second operand is not a dequantize";
  if (in_dtype(g, id, 0) != DType::F32 || op->dtype != DType::F32 || g.shape(id).dtype() != DType::F32)
    return "its operands and result are not f32";
  const Shape &x = in_shape(g, id, 0), &w = in_shape(g, id, 1);
  const auto &lc = contracted(g, id, false), &rc = contracted(g, id, true);
  if (is_batched(g, id) || w.rank() != 2 || !w.is_static() || x.rank() < 1 || lc.size() != 1 || lc[0] != x.rank() - 1)
    return "the quantized values are not one matrix contracted with the last axis of x";
  if (is_block_scheme(op->scheme) && rc[0] != 1) return "the quantized blocks are not along the contracted axis";
  if (const char* why = decoder_refuses(g, from)) return why;
  return epilogue_refuses(g, id);
}
bool coded_reads(const Graph& g, NodeId id, int operand) { return operand == 1 && quantized_refuses(g, id) == nullptr; }

void lower_coded(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  const NodeId from = c.node().inputs[1].node;
  auto& p = c.keep<QuantizedStep>();
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a matmul does not fold to a matrix");
  p.kernels = &c.kernels();
  p.decoder.point(c, from);
  p.transposed = contracted(c.graph(), c.id(), true)[0] == 1;
  p.k = x.dim(-1);
  p.gemm = packed_b_operands(rows->rows, y.dim(-1), p.k);
  p.gemm.a_m_stride = rows->ld;
  p.kernel = &packed_b_kernel(c.kernels(), PackedBType::F32);
  c.point(p.gemm.a, x);
  c.point(p.gemm.c, y);
  point_epilogue(c, *match_epilogue(c.graph(), c.id()), p.gemm.n, p.gemm.epilogue);
  p.width = p.kernels->packed_nr_f32(p.gemm.n);
  const std::int64_t floats = p.k * p.width;
  p.scratch = c.scratch(2 * static_cast<std::size_t>(std::max<std::int64_t>(floats, 1)) * sizeof(float));
  const double mnk = static_cast<double>(p.gemm.m) * static_cast<double>(p.gemm.n) * static_cast<double>(p.k);
  const double decoded = 2.0 * static_cast<double>(p.gemm.n) * static_cast<double>(p.k);
  c.step<run_quantized>(p, (p.gemm.n + p.width - 1) / p.width, decoded + 2 * mnk / gemm_flops_per_ns(c.kernels().isa));
}

std::optional<PackedLayout> quantized_layout(const KernelTable& kernels, const Graph& g, NodeId id, int operand,
                                             const ConstantMatrix& m) {
  if (operand != 1 || in_dtype(g, id, 0) != DType::F32) return std::nullopt;
  return interleaved_layout(kernels, m);
}
bool quantized_reads_packed(const Graph&, NodeId, int operand, const PackedLayout& layout) {
  return operand == 1 && interleaved_panels_of(layout).has_value();
}

constexpr KernelEntry kQuantizedEntries[] = {
    {OpKind::Dequantize, "decode", decoder_refuses, lower_decode},
    {OpKind::Quantize, "encode_blocks", encoder_refuses, lower_encode, encode_reads_strided},
    {.kind = OpKind::DotGeneral,
     .kernel = "gemm_quantized_f32",
     .refuses = quantized_refuses,
     .lower = lower_coded,
     .reads_strided = reads_strided_rows,
     .packed_layout = quantized_layout,
     .reads_packed = quantized_reads_packed,
     .reads_encoded = coded_reads},
    {.kind = OpKind::FusedDot,
     .kernel = "gemm_quantized_f32",
     .refuses = quantized_refuses,
     .lower = lower_coded,
     .reads_strided = reads_strided_rows,
     .in_place = lies_over_epilogue,
     .packed_layout = quantized_layout,
     .reads_packed = quantized_reads_packed,
     .reads_encoded = coded_reads},
};

}  // namespace

std::span<const KernelEntry> quantized_entries() { return kQuantizedEntries; }

}  // namespace rlx::cpu
