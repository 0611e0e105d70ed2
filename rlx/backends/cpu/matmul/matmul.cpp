// Matmuls by the driver: with packed B; of F64; of F16 and BF16 with F32 accumulators; of complex numbers; of integers.
#include <algorithm>

#include "rlx/backends/cpu/matmul/bf16_kernels.h"
#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/backends/cpu/matmul/dot_axes.h"
#include "rlx/backends/cpu/matmul/driver.h"
#include "rlx/backends/cpu/matmul/epilogue.h"
#include "rlx/backends/cpu/matmul/matmul_calls.h"
#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/backends/cpu/quant/int8_kernels.h"
#include "rlx/backends/cpu/quant/interleaved_layout.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

bool is_byte(DType t) { return t == DType::I8 || t == DType::U8; }
bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }
/// Integers of whole bytes.
bool is_number_of_bytes(DType t) {
  return t == DType::I8 || t == DType::I16 || t == DType::I32 || t == DType::I64 || t == DType::U8 || t == DType::U16 ||
         t == DType::U32 || t == DType::U64;
}

const char* matmul_refuses(const Graph& g, NodeId id) {
  const DType t = in_dtype(g, id, 0), y = g.shape(id).dtype();
  const bool halves = is_half(t) && (y == t || y == DType::F32);
  const bool same = y == t && (t == DType::F64 || is_complex(t) || is_number_of_bytes(t));
  if (const char* why =
          refuse_unless((same || halves) && in_dtype(g, id, 1) == t,
                        "its operands are not f64, f16, bf16, complex or integers of the dtype of the result"))
    return why;
  // The parts of complex numbers take one more axis.
  const int most = is_complex(t) ? kGemmMaxAxes - 1 : kGemmMaxAxes;
  return refuse_unless(g.shape(id).rank() <= most && in_shape(g, id, 0).rank() <= most,
                       "it has more axes than the kernel supports");
}

const char* bytes_refuse(const Graph& g, NodeId id) {
  if (!is_byte(in_dtype(g, id, 0)) || !is_byte(in_dtype(g, id, 1)) || g.shape(id).dtype() != DType::I32)
    return "it is not a matmul of 8-bit integers with an i32 result";
  return refuse_unless(g.shape(id).rank() <= kGemmMaxAxes && in_shape(g, id, 0).rank() <= kGemmMaxAxes,
                       "it has more axes than the kernel supports");
}

struct MatmulStep {
  MatmulOperands product;
  MatmulPlan plan;
  const MatmulKernel* kernel = nullptr;
  void* packed = nullptr;
  const Common* common = nullptr;  // where A is packed, if not at `packed`
  const Scratch* scratch = nullptr;

  void* packed_a() const { return common != nullptr ? common->base : packed; }
  static void pack(const MatmulStep& s, std::int64_t chunk) {
    pack_matmul(s.kernel, s.product, s.plan, chunk, s.packed_a());
  }
  static void run(const MatmulStep& s, std::int64_t chunk) {
    run_matmul(s.kernel, s.product, s.plan, chunk, s.packed_a(), s.scratch->mine());
  }
};

MatmulWork runtime_work(DType a, MatmulSums sums) {
  switch (sums) {
    case MatmulSums::F32: return a == DType::F32 ? MatmulWork::RuntimeF32 : MatmulWork::RuntimeHalf;
    case MatmulSums::F64: return MatmulWork::RuntimeF64;
    case MatmulSums::I32: return MatmulWork::RuntimeI32;
    case MatmulSums::I64: return MatmulWork::RuntimeI64;
    case MatmulSums::C64: return MatmulWork::RuntimeC64;
    case MatmulSums::C128: return MatmulWork::RuntimeC128;
  }
  return MatmulWork::RuntimeF64;
}

MatmulWork packed_work(PackedBType type) {
  switch (type) {
    case PackedBType::I8: return MatmulWork::PackedI8;
    case PackedBType::BF16:
    case PackedBType::F16: return MatmulWork::PackedHalf;
    default: return MatmulWork::PackedF32;
  }
}

/// Adds the tasks of a matmul whose operands and kernels are set.
void add_product(LowerContext& c, MatmulStep& s, const MatmulEstimate& estimate) {
  const MatmulOperands& p = s.product;
  const std::int64_t parts = s.kernel->parts;
  s.plan = plan_matmul(s.kernel, p, c.threads());
  s.scratch = c.scratch(s.plan.scratch_bytes);
  if (s.plan.pack_bytes > 0) {
    const auto bytes = static_cast<std::size_t>(s.plan.pack_bytes);
    // Steps of training have many F32 matmuls that do not wait for each other: memory of their own. So have words of
    // bytes.
    if ((p.a_type == DType::F32 && !p.b_packed) || (is_byte(p.a_type) && p.c_type == DType::I32))
      s.packed = c.workspace(bytes);
    else
      s.common = c.common(bytes);
    double elements = static_cast<double>(p.m) * static_cast<double>(s.plan.k / parts);
    for (int i = 0; i < p.num_outer; ++i) elements *= p.outer[i].a != 0 ? static_cast<double>(p.outer[i].extent) : 1.0;
    c.step<&MatmulStep::pack>(s, s.plan.pack_chunks, estimate.a_ns * elements);
  }
  c.step<&MatmulStep::run>(
      s, s.plan.chunks,
      static_cast<double>(num_matmuls(p)) * estimate.run_ns(static_cast<double>(p.m), static_cast<double>(p.n / parts),
                                                            static_cast<double>(s.plan.k / parts)));
}

/// Selects the kernels, bf16 pairs where the machine has them, and returns their estimate.
MatmulEstimate choose_kernels(LowerContext& c, MatmulStep& s) {
  MatmulOperands& p = s.product;
  const Isa isa = c.kernels().isa;
  bool deep = true;  // bf16 pair kernels need a depth of at least 1
  for (int i = 0; i < p.num_contracted; ++i) deep = deep && p.contracted[i].extent > 0;
  if (const Bf16Kernels* const pairs = p.a_type == DType::BF16 && deep ? c.kernels().bf16 : nullptr) {
    s.kernel = &pairs->exact;
    return matmul_estimate(isa, MatmulWork::PairsRuntime, pairs->kind == Bf16DotKind::Tiles);
  }
  if (is_byte(p.a_type) && is_byte(p.b_type) && p.c_type == DType::I32) {
    s.kernel = &byte_kernel(isa, c.kernels().interleaved->kind);
    return matmul_estimate(isa, MatmulWork::RuntimeI8);
  }
  const MatmulSums sums = matmul_sums(p.c_type);
  s.kernel = &matmul_kernel(c.kernels(), sums);
  if (s.kernel->parts == 2) as_parts(p);
  return matmul_estimate(isa, runtime_work(p.a_type, sums));
}

bool matmul_reads_strided(const Graph&, NodeId, int operand) { return operand < 2; }

// -- f16 and bf16 with packed B: rows of x are widened, sums are f32, and results are rounded --

const char* packed_16bit_refuses(const Graph& g, NodeId id) {
  const std::optional<Panels> panels = panels_of(packed_layout_of(g, g.node(id).inputs[1]));
  if (!panels || panels->type == PackedBType::BF16Pairs) return "the weight is not prepacked";
  const DType t = in_dtype(g, id, 0), y = g.shape(id).dtype();
  return refuse_unless(is_half(t) && (y == t || y == DType::F32), "its operands are not f16 or bf16");
}

std::optional<PackedLayout> packed_layout_16bit(const KernelTable& kernels, const Graph& g, NodeId id, int operand,
                                                const ConstantMatrix& m) {
  if (operand != 1 || !is_half(m.dtype) || in_dtype(g, id, 0) != m.dtype || m.k < 1 || m.n < 1) return std::nullopt;
  if (is_block_scheme(m.scheme)) return std::nullopt;
  ConstantMatrix exact = m;
  // With bf16 operands the bf16 instructions lose nothing (matmul/bf16_kernels.h).
  if (kernels.bf16 != nullptr && m.stored == DType::BF16 && m.dtype == DType::BF16) {
    exact.allowed_loss = MatmulPrecision::BF16;
    return bf16_pair_layout(kernels, exact);
  }
  exact.allowed_loss = MatmulPrecision::Exact;
  if (exact.stored != m.dtype) return std::nullopt;
  return packed_b_layout(kernels, exact);
}
bool reads_packed_16bit(const Graph& g, NodeId id, int operand, const PackedLayout& layout) {
  const std::optional<Panels> p = panels_of(layout);
  if (operand != 1 || !p || !is_half(in_dtype(g, id, 0))) return false;
  if (p->type == PackedBType::BF16Pairs) return layout.lossless && in_dtype(g, id, 0) == DType::BF16;
  return p->type == PackedBType::F16 || p->type == PackedBType::BF16;
}

// -- bf16 with a weight in the bf16 pair layout --

const char* bf16_pairs_refuse(const Graph& g, NodeId id) {
  const PackedLayout& layout = packed_layout_of(g, g.node(id).inputs[1]);
  const std::optional<Panels> panels = panels_of(layout);
  if (!panels || panels->type != PackedBType::BF16Pairs || !layout.lossless)
    return "the weight is not prepacked as bf16 pairs without loss";
  const DType y = g.shape(id).dtype();
  return refuse_unless(in_dtype(g, id, 0) == DType::BF16 && (y == DType::BF16 || y == DType::F32),
                       "its operands are not bf16");
}

constexpr KernelEntry kMatmulEntries[] = {
    {OpKind::DotGeneral, "gemm_int8_i32", bytes_refuse, lower_runtime_matmul, matmul_reads_strided},
    {OpKind::DotGeneral, "gemm_bf16_pairs", bf16_pairs_refuse, lower_packed_matmul, reads_strided_rows},
    {OpKind::DotGeneral, "gemm_packed_16bit", packed_16bit_refuses, lower_packed_matmul, reads_strided_rows},
    {OpKind::DotGeneral, "gemm_product", matmul_refuses, lower_runtime_matmul, matmul_reads_strided, nullptr, false,
     packed_layout_16bit, reads_packed_16bit},
};

}  // namespace

std::span<const KernelEntry> matmul_entries() { return kMatmulEntries; }

void lower_packed_matmul(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  const PackedLayout& layout = packed_layout_of(c.graph(), c.node().inputs[1]);
  const std::int64_t n = y.dim(-1), k = x.dim(-1);
  const std::optional<InterleavedPanels> blocks = interleaved_panels_of(layout);
  check(blocks ? reads_interleaved(c.kernels(), layout, k, n) : reads_packed_b(c.kernels(), layout, k, n),
        "the weight is packed for another instruction set");
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a matmul with a packed weight does not fold to a matrix");
  auto& s = c.keep<MatmulStep>();
  MatmulOperands& p = s.product;
  p = packed_b_operands(rows->rows, n, k);
  p.a_m_stride = rows->ld;
  p.a_type = p.b_type = x.dtype, p.c_type = y.dtype;
  c.point(p.a, x);
  c.point(p.b, w);
  c.point(p.c, y);
  const EpilogueMatch epilogue = *match_epilogue(c.graph(), c.id());
  if (y.dtype == DType::F32) point_epilogue(c, epilogue, n, p.epilogue);
  const Isa isa = c.kernels().isa;
  if (blocks) {
    s.kernel = &c.kernels().interleaved->matmul, p.b_blocks = blocks->kind;
    return add_product(c, s, matmul_estimate(isa, MatmulWork::BlocksInt8));
  }
  const PackedBType type = panels_of(layout)->type;
  if (type == PackedBType::BF16Pairs) {
    const Bf16Kernels& pairs = *c.kernels().bf16;
    const bool rounds = x.dtype == DType::F32;
    s.kernel = rounds ? &pairs.rounded : &pairs.exact;
    return add_product(c, s,
                       matmul_estimate(isa, rounds ? MatmulWork::PairsRounded : MatmulWork::PairsExact,
                                       pairs.kind == Bf16DotKind::Tiles));
  }
  s.kernel = &packed_b_kernel(c.kernels(), type);
  if (type == PackedBType::I8) {
    View bytes = w;
    bytes.dtype = DType::U8;
    c.point(p.b_scale, bytes, packed_scales_at(*panels_of(layout), k, n));
  }
  // The last panels of a matmul prefetch the first panel of the next matmul; the last matmul of a run prefetches for
  // the next run.
  TaskList& list = c.list();
  if (list.next_weight)
    c.point(*list.next_weight, w);
  else
    list.first_weight = w.where;
  list.next_weight = &p.prefetch_next;
  add_product(c, s, matmul_estimate(isa, packed_work(type)));
  if (s.plan.pack_chunks > 0) return;
  const auto operand = [](const EpilogueOperand& o) { return o.operand < 0 ? -1 : o.operand + 2; };
  c.tile_rows(p.m, s.plan.rows_per_chunk, s.plan.panel_chunks, {0, operand(epilogue.residual), operand(epilogue.mul)});
}

void lower_runtime_matmul(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<MatmulStep>();
  MatmulOperands& p = s.product;
  const EpilogueMatch epilogue = *match_epilogue(c.graph(), c.id());
  DotAxes axes = dot_axes(c, epilogue.bias.used());
  bool swapped = !epilogue.bias.used() && as_gemv(axes);
  place_axes(axes, p);
  p.a_type = (swapped ? w : x).dtype, p.b_type = (swapped ? x : w).dtype, p.c_type = y.dtype;
  const bool f32 = x.dtype == DType::F32;
  // So few columns leave most lanes empty; transposed, they become rows.
  if (!swapped && !f32 && p.n <= kTransposedRows && p.m >= 8 * p.n && !is_complex(x.dtype) && is_float(x.dtype))
    transpose_matmul(p), swapped = true;
  c.point(p.a, swapped ? w : x);
  c.point(p.b, swapped ? x : w);
  c.point(p.c, y);
  if (f32) point_epilogue(c, epilogue, p.n, p.epilogue);
  p.epilogue_reads_c = epilogue.residual.used() || epilogue.mul.used();
  add_product(c, s, choose_kernels(c, s));
}

void add_number_product(LowerContext& c, const MatmulOperands& product, const MatmulSource& a, const MatmulSource& b,
                        std::int64_t at) {
  auto& s = c.keep<MatmulStep>();
  MatmulOperands& p = s.product;
  p = product;
  point_source(c, p.a, a);
  point_source(c, p.b, b);
  c.point(p.c, c.out(), at);
  add_product(c, s, choose_kernels(c, s));
}

}  // namespace rlx::cpu
