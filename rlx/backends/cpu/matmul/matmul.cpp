// Matmuls of F64; of F16 and BF16 with F32 accumulators; of complex numbers; of integers.
#include <algorithm>

#include "rlx/backends/cpu/matmul/bf16_kernels.h"
#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/backends/cpu/matmul/dot_axes.h"
#include "rlx/backends/cpu/matmul/driver.h"
#include "rlx/backends/cpu/matmul/epilogue.h"
#include "rlx/backends/cpu/matmul/matmul_calls.h"
#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

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

struct MatmulStep {
  MatmulOperands product;
  MatmulPlan plan;
  const MatmulDriver* driver = &kMatmulDriver;
  const MatmulKernel* kernel = nullptr;  // null with bf16 pairs
  void* packed = nullptr;
  const Common* common = nullptr;  // where A is packed, if not at `packed`
  const Scratch* scratch = nullptr;

  void* packed_a() const { return common != nullptr ? common->base : packed; }
  static void pack(const MatmulStep& s, std::int64_t chunk) {
    s.driver->pack(s.kernel, s.product, s.plan, chunk, s.packed_a());
  }
  static void run(const MatmulStep& s, std::int64_t chunk) {
    s.driver->run(s.kernel, s.product, s.plan, chunk, s.packed_a(), s.scratch->mine());
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

/// Adds the tasks of a matmul whose operands and kernels are set.
void add_product(LowerContext& c, MatmulStep& s, const MatmulEstimate& estimate) {
  const MatmulOperands& p = s.product;
  s.plan = s.driver->plan(s.kernel, p, c.threads());
  s.scratch = c.scratch(s.plan.scratch_bytes);
  if (s.plan.pack_bytes > 0) {
    const auto bytes = static_cast<std::size_t>(s.plan.pack_bytes);
    // Steps of training have many F32 matmuls that do not wait for each other: memory of their own.
    if (p.a_type == DType::F32)
      s.packed = c.workspace(bytes);
    else
      s.common = c.common(bytes);
    const std::int64_t element = s.kernel != nullptr ? s.kernel->sum_bytes * s.kernel->parts : 2;
    c.step<&MatmulStep::pack>(s, s.plan.pack_chunks,
                              estimate.a_ns * static_cast<double>(bytes) / static_cast<double>(element));
  }
  const std::int64_t parts = s.kernel != nullptr ? s.kernel->parts : 1;
  double outer = 1;
  for (int i = 0; i < p.num_outer; ++i) outer *= static_cast<double>(p.outer[i].extent);
  c.step<&MatmulStep::run>(s, s.plan.chunks,
                           outer * estimate.run_ns(static_cast<double>(p.m), static_cast<double>(p.n / parts),
                                                   static_cast<double>(s.plan.k / parts)));
}

/// Selects the kernels, bf16 pairs where the machine has them, and returns their estimate.
MatmulEstimate choose_kernels(LowerContext& c, MatmulStep& s) {
  MatmulOperands& p = s.product;
  const Isa isa = c.kernels().isa;
  bool deep = true;  // bf16 pair kernels need a depth of at least 1
  for (int i = 0; i < p.num_contracted; ++i) deep = deep && p.contracted[i].extent > 0;
  if (const Bf16Kernels* const pairs = p.a_type == DType::BF16 && deep ? c.kernels().bf16 : nullptr) {
    s.driver = &bf16_pair_driver(isa, pairs->kind);
    return matmul_estimate(isa, MatmulWork::PairsRuntime, pairs->kind == Bf16DotKind::Tiles);
  }
  const MatmulSums sums = matmul_sums(p.c_type);
  s.kernel = &matmul_kernel(isa, sums);
  if (s.kernel->parts == 2) as_parts(p);
  return matmul_estimate(isa, runtime_work(p.a_type, sums));
}

bool matmul_reads_strided(const Graph&, NodeId, int operand) { return operand < 2; }

// -- f16 and bf16 with packed B: rows of x are widened, the GEMM is f32, and results are rounded --

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

void lower_bf16_pairs(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<MatmulStep>();
  MatmulOperands& p = s.product;
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a matmul with a packed weight does not fold to a matrix");
  p.m = rows->rows, p.n = y.dim(-1), p.a_m_stride = rows->ld, p.ldc = p.n;
  p.num_contracted = 1;
  p.contracted[0] = {x.dim(-1), 1, 1, 0};
  p.a_type = p.b_type = DType::BF16, p.c_type = y.dtype;
  check(reads_packed_b(c.kernels(), packed_layout_of(c.graph(), c.node().inputs[1]), x.dim(-1), p.n),
        "the weight is packed for another instruction set");
  c.point(p.a, x);
  p.b_packed = true;
  c.point(p.b, c.in(1));
  c.point(p.c, y);
  s.driver = &bf16_pair_driver(c.kernels().isa, c.kernels().bf16->kind);
  add_product(c, s,
              matmul_estimate(c.kernels().isa, MatmulWork::PairsExact, c.kernels().bf16->kind == Bf16DotKind::Tiles));
}

struct Packed16BitStep {
  GemmF32 gemm;
  GemmPlan plan;
  const KernelTable* kernels = nullptr;
  const HalfConversions* convert = nullptr;
  DType x_type = DType::F16, y_type = DType::F16;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t ld_x = 0, rows_per_chunk = 1, y_at = 0;  // in the common memory, in floats
  const Common* wide = nullptr;

  float* x_f32() const { return reinterpret_cast<float*>(wide->base); }
  static void widen(const Packed16BitStep& s, std::int64_t chunk) {
    const std::int64_t end = std::min(s.gemm.m, (chunk + 1) * s.rows_per_chunk);
    for (std::int64_t r = chunk * s.rows_per_chunk; r < end; ++r)
      s.convert->widen(s.x_type, static_cast<const std::uint16_t*>(s.x) + r * s.ld_x, s.x_f32() + r * s.gemm.k,
                       s.gemm.k);
  }
  static void run(const Packed16BitStep& s, std::int64_t chunk) {
    GemmF32 g = s.gemm;
    g.a = s.x_f32();
    if (is_half(s.y_type)) g.c = s.x_f32() + s.y_at;
    s.kernels->gemm_f32(g, s.plan, chunk);
  }
  static void narrow(const Packed16BitStep& s, std::int64_t chunk) {
    const std::int64_t first = chunk * s.rows_per_chunk * s.gemm.n;
    const std::int64_t count = std::min(s.gemm.m * s.gemm.n - first, s.rows_per_chunk * s.gemm.n);
    s.convert->narrow(s.y_type, s.x_f32() + s.y_at + first, static_cast<std::uint16_t*>(s.y) + first, count);
  }
};

void lower_packed_16bit(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<Packed16BitStep>();
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a matmul with a packed weight does not fold to a matrix");
  GemmF32& g = s.gemm;
  g.m = rows->rows, g.n = y.dim(-1), g.k = x.dim(-1);
  const PackedLayout& layout = packed_layout_of(c.graph(), c.node().inputs[1]);
  check(reads_packed_b(c.kernels(), layout, g.k, g.n), "the weight is packed for another instruction set");
  g.b_type = panels_of(layout)->type;
  g.lda = g.k, g.ldc = g.n;
  c.point(g.b_packed, c.in(1));
  c.point(s.x, x);
  if (is_half(y.dtype))
    c.point(s.y, y);
  else
    c.point(g.c, y);
  s.kernels = &c.kernels();
  s.convert = &half_conversions(c.kernels().isa);
  s.x_type = x.dtype, s.y_type = y.dtype;
  s.ld_x = rows->ld;
  s.rows_per_chunk = c.grain(std::max<std::int64_t>(1, 16384 / std::max(g.k, g.n)));
  s.y_at = (g.m * g.k + 15) / 16 * 16;
  s.wide = c.common(static_cast<std::size_t>(s.y_at + (is_half(y.dtype) ? g.m * g.n : 0)) * sizeof(float));
  s.plan = s.kernels->gemm_plan_f32(g.m, g.n, g.k, c.threads());
  const std::int64_t chunks = (g.m + s.rows_per_chunk - 1) / s.rows_per_chunk;
  const MatmulEstimate estimate = matmul_estimate(c.kernels().isa, MatmulWork::PackedHalf);
  c.step<&Packed16BitStep::widen>(s, chunks, estimate.a_ns * static_cast<double>(g.m * g.k));
  c.step<&Packed16BitStep::run>(
      s, s.plan.chunks, estimate.run_ns(static_cast<double>(g.m), static_cast<double>(g.n), static_cast<double>(g.k)));
  if (is_half(y.dtype)) c.step<&Packed16BitStep::narrow>(s, chunks, estimate.a_ns * static_cast<double>(g.m * g.n));
}

constexpr KernelEntry kMatmulEntries[] = {
    {OpKind::DotGeneral, "gemm_bf16_pairs", bf16_pairs_refuse, lower_bf16_pairs, reads_strided_rows},
    {OpKind::DotGeneral, "gemm_packed_16bit", packed_16bit_refuses, lower_packed_16bit, reads_strided_rows},
    {OpKind::DotGeneral, "gemm_product", matmul_refuses, lower_runtime_matmul, matmul_reads_strided, nullptr, false,
     packed_layout_16bit, reads_packed_16bit},
};

}  // namespace

std::span<const KernelEntry> matmul_entries() { return kMatmulEntries; }

void lower_runtime_matmul(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<MatmulStep>();
  MatmulOperands& p = s.product;
  const EpilogueMatch epilogue = *match_epilogue(c.graph(), c.id());
  DotAxes axes = dot_axes(c, epilogue.bias.used());
  bool swapped = !epilogue.bias.used() && as_gemv(axes);
  place_axes(axes, p);
  p.a_type = p.b_type = x.dtype, p.c_type = y.dtype;
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
