// Matrix products of F64, and of F16 and BF16 with sums in F32.
#include <algorithm>

#include "rlx/backends/cpu/kernels/products.h"
#include "rlx/backends/cpu/panels.h"
#include "rlx/backends/cpu/rows/dot_axes.h"
#include "rlx/backends/cpu/rows/epilogue.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }

const char* products_refuse(const Graph& g, NodeId id) {
  const DType t = in_dtype(g, id, 0), y = g.shape(id).dtype();
  const bool f64 = t == DType::F64 && y == DType::F64, halves = is_half(t) && (y == t || y == DType::F32);
  if (const char* why = refuse_unless((f64 || halves) && in_dtype(g, id, 1) == t,
                                      "its operands are not f64, f16 or bf16 with sums as wide"))
    return why;
  return refuse_unless(g.shape(id).rank() <= kGemmMaxAxes && in_shape(g, id, 0).rank() <= kGemmMaxAxes,
                       "it has more axes than the kernel");
}

struct ProductStep {
  ProductOperands product;
  ProductPlan plan;
  const ProductKernels* kernels = nullptr;
  const Common* packed = nullptr;
  const Scratch* scratch = nullptr;

  static void pack(const ProductStep& s, std::int64_t chunk) {
    s.kernels->pack(s.product, s.plan, chunk, s.packed->base);
  }
  static void run(const ProductStep& s, std::int64_t chunk) {
    s.kernels->run(s.product, s.plan, chunk, s.packed ? s.packed->base : nullptr, s.scratch->mine());
  }
};

void lower_product(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<ProductStep>();
  ProductOperands& p = s.product;
  DotAxes axes = dot_axes(c);
  // A vector of columns: its transpose fills whole vectors of the processor.
  const bool swapped = axes.col.extent == 1 && axes.row.extent > 1 && axes.row.c == 1;
  if (swapped) {
    const auto swap = [](GemmAxis& axis) { std::swap(axis.a, axis.b); };
    std::swap(axes.row, axes.col);
    swap(axes.row), swap(axes.col);
    for (auto* list : {&axes.outer, &axes.contracted}) std::for_each(list->begin(), list->end(), swap);
  }
  place_axes(axes, p);
  p.a_type = p.b_type = x.dtype;
  p.c_type = y.dtype;
  c.point(p.a, swapped ? w : x);
  c.point(p.b, swapped ? x : w);
  c.point(p.c, y);
  s.kernels = &product_kernels(c.kernels().isa, y.dtype == DType::F64);
  s.plan = s.kernels->plan(p, c.threads());
  s.scratch = c.scratch(s.plan.scratch_bytes);
  if (s.plan.pack_bytes > 0) {
    s.packed = c.common(static_cast<std::size_t>(s.plan.pack_bytes));
    c.step<&ProductStep::pack>(s, s.plan.pack_chunks, 0.15 * static_cast<double>(s.plan.pack_bytes));
  }
  const double products = static_cast<double>(y.elements()) * static_cast<double>(s.plan.k);
  const double speed = gemm_flops_per_ns(c.kernels().isa) / (y.dtype == DType::F64 ? 2 : 1);
  c.step<&ProductStep::run>(s, s.plan.chunks, std::max(2 * products / speed, 0.3 * static_cast<double>(w.elements())));
}

bool product_reads_strided(const Graph&, NodeId, int operand) { return operand < 2; }

// -- halves with a weight in panels: rows of x are widened, the product is that of F32, and so are results rounded --

const char* panels_of_halves_refuse(const Graph& g, NodeId id) {
  const std::optional<Panels> panels = panels_of(form_of(g, g.node(id).inputs[1]));
  if (!panels || panels->type == PanelType::BF16Pairs) return "its second operand is not in panels";
  const DType t = in_dtype(g, id, 0), y = g.shape(id).dtype();
  return refuse_unless(is_half(t) && (y == t || y == DType::F32), "its operands are not f16 or bf16");
}

std::optional<Form> halves_form(const KernelTable& kernels, const Graph& g, NodeId id, int operand,
                                const ConstantMatrix& m) {
  if (operand != 1 || !is_half(m.dtype) || in_dtype(g, id, 0) != m.dtype || m.k < 1 || m.n < 1) return std::nullopt;
  if (is_block_scheme(m.scheme)) return std::nullopt;
  ConstantMatrix exact = m;
  exact.leave = Products::Exact;
  if (exact.stored != m.dtype) return std::nullopt;
  return panel_form(kernels, exact);
}
bool reads_halves_form(const Graph& g, NodeId id, int operand, const Form& form) {
  const std::optional<Panels> p = panels_of(form);
  return operand == 1 && p && is_half(in_dtype(g, id, 0)) && (p->type == PanelType::F16 || p->type == PanelType::BF16);
}

struct HalvesStep {
  GemmF32 gemm;
  GemmPlan plan;
  const KernelTable* kernels = nullptr;
  const ProductKernels* convert = nullptr;
  DType x_type = DType::F16, y_type = DType::F16;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t ld_x = 0, rows_per_chunk = 1, y_at = 0;  // of the common memory, in floats
  const Common* wide = nullptr;

  float* wide_x() const { return reinterpret_cast<float*>(wide->base); }
  static void widen(const HalvesStep& s, std::int64_t chunk) {
    const std::int64_t end = std::min(s.gemm.m, (chunk + 1) * s.rows_per_chunk);
    for (std::int64_t r = chunk * s.rows_per_chunk; r < end; ++r)
      s.convert->widen(s.x_type, static_cast<const std::uint16_t*>(s.x) + r * s.ld_x, s.wide_x() + r * s.gemm.k,
                       s.gemm.k);
  }
  static void run(const HalvesStep& s, std::int64_t chunk) {
    GemmF32 g = s.gemm;
    g.a = s.wide_x();
    if (is_half(s.y_type)) g.c = s.wide_x() + s.y_at;
    s.kernels->gemm_f32(g, s.plan, chunk);
  }
  static void narrow(const HalvesStep& s, std::int64_t chunk) {
    const std::int64_t first = chunk * s.rows_per_chunk * s.gemm.n;
    const std::int64_t count = std::min(s.gemm.m * s.gemm.n - first, s.rows_per_chunk * s.gemm.n);
    s.convert->narrow(s.y_type, s.wide_x() + s.y_at + first, static_cast<std::uint16_t*>(s.y) + first, count);
  }
};

void lower_halves(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<HalvesStep>();
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a product with a formed weight folds to rows");
  GemmF32& g = s.gemm;
  g.m = rows->rows, g.n = y.dim(-1), g.k = x.dim(-1);
  const Form& form = form_of(c.graph(), c.node().inputs[1]);
  check(reads_panels(c.kernels(), form, g.k, g.n), "a weight in panels of another instruction set");
  g.b_type = panels_of(form)->type;
  g.lda = g.k, g.ldc = g.n;
  c.point(g.b_packed, c.in(1));
  c.point(s.x, x);
  if (is_half(y.dtype))
    c.point(s.y, y);
  else
    c.point(g.c, y);
  s.kernels = &c.kernels();
  s.convert = &product_kernels(c.kernels().isa, false);
  s.x_type = x.dtype, s.y_type = y.dtype;
  s.ld_x = rows->ld;
  s.rows_per_chunk = c.grain(std::max<std::int64_t>(1, 16384 / std::max(g.k, g.n)));
  s.y_at = (g.m * g.k + 15) / 16 * 16;
  s.wide = c.common(static_cast<std::size_t>(s.y_at + (is_half(y.dtype) ? g.m * g.n : 0)) * sizeof(float));
  s.plan = s.kernels->gemm_plan_f32(g.m, g.n, g.k, c.threads());
  const std::int64_t chunks = (g.m + s.rows_per_chunk - 1) / s.rows_per_chunk;
  c.step<&HalvesStep::widen>(s, chunks, 0.1 * static_cast<double>(g.m * g.k));
  const double mnk = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  c.step<&HalvesStep::run>(
      s, s.plan.chunks, std::max(2 * mnk / gemm_flops_per_ns(c.kernels().isa), static_cast<double>(g.n * g.k) / 25.0));
  if (is_half(y.dtype)) c.step<&HalvesStep::narrow>(s, chunks, 0.1 * static_cast<double>(g.m * g.n));
}

constexpr Row kProductRows[] = {
    {OpKind::DotGeneral, "gemm_panels_halves", panels_of_halves_refuse, lower_halves, reads_strided_rows},
    {OpKind::DotGeneral, "gemm_product", products_refuse, lower_product, product_reads_strided, nullptr, false,
     halves_form, reads_halves_form},
};

}  // namespace

std::span<const Row> product_rows() { return kProductRows; }

}  // namespace rlx::cpu
