// Products of C64 as products of reals. A complex row of x is a row of twice as many reals, as it lies; to it belongs,
// for every row of w, that row (re, im) and the row times i (-im, re), which are written out first. Then sum_k (x_re
// (re, im) + x_im (-im, re)) is the complex sum, and its columns lie as complex numbers do.
#include <algorithm>

#include "rlx/backends/cpu/kernels/generic.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/backends/cpu/rows/dot_axes.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

// -- the rows of w and those times i: [batch.., contracted.., 2, columns.., 2] --

struct TwinRows {
  const float* w = nullptr;
  const Common* common = nullptr;
  std::vector<std::int64_t> dims, strides;  // of the batch and contracted axes of w, in complex numbers
  RowWalk<1> columns;
  std::int64_t row_columns = 1, rows = 0, per_chunk = 1;

  static void run(const TwinRows& s, std::int64_t chunk) {
    auto* out = reinterpret_cast<float*>(s.common->base);
    const std::int64_t end = std::min(s.rows, (chunk + 1) * s.per_chunk);
    for (std::int64_t row = chunk * s.per_chunk; row < end; ++row) {
      std::int64_t at = 0, left = row;
      for (std::size_t a = s.dims.size(); a-- > 0; left /= s.dims[a]) at += left % s.dims[a] * s.strides[a];
      float *plain = out + row * 4 * s.row_columns, *turned = plain + 2 * s.row_columns;
      RowWalk<1> walk = s.columns;
      walk.seek(0);
      const std::int64_t runs = walk.rows(), n = walk.cols(), step = 2 * walk.step(0);
      for (std::int64_t r = 0; r < runs; ++r, walk.next(), plain += 2 * n, turned += 2 * n) {
        const float* from = s.w + 2 * (at + walk.offset[0]);
        for (std::int64_t j = 0; j < n; ++j) {
          const float re = from[j * step], im = from[j * step + 1];
          plain[2 * j] = re, plain[2 * j + 1] = im;
          turned[2 * j] = -im, turned[2 * j + 1] = re;
        }
      }
    }
  }
};

struct ComplexGemm {
  GemmStridedF32 gemm;
  GemmStridedPlan plan;
  const Common* common = nullptr;
  float* packed_a = nullptr;
  const Scratch* scratch = nullptr;
  const KernelTable* kernels = nullptr;

  static void pack(const ComplexGemm& p, std::int64_t chunk) {
    p.kernels->gemm_pack_a_f32(p.gemm, p.plan, chunk, p.packed_a);
  }
  static void run(const ComplexGemm& p, std::int64_t chunk) {
    GemmStridedF32 gemm = p.gemm;
    gemm.b = reinterpret_cast<const float*>(p.common->base);
    p.kernels->gemm_strided_f32(gemm, p.plan, chunk, p.packed_a, p.scratch->mine());
  }
};

std::vector<int> free_axes(int rank, const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<int> out;
  for (int i = 0; i < rank; ++i)
    if (std::find(a.begin(), a.end(), i) == a.end() && std::find(b.begin(), b.end(), i) == b.end()) out.push_back(i);
  return out;
}

const char* complex_dot_refuses(const Graph& g, NodeId id) {
  if (in_dtype(g, id, 0) != DType::C64 || in_dtype(g, id, 1) != DType::C64 || g.shape(id).dtype() != DType::C64)
    return "its operands and result are not c64";
  // The parts are one more axis.
  return refuse_unless(g.shape(id).rank() < kGemmMaxAxes && in_shape(g, id, 0).rank() < kGemmMaxAxes &&
                           in_shape(g, id, 1).rank() < kGemmMaxAxes,
                       "it has more axes than the kernel");
}

void lower_complex_dot(LowerContext& c) {
  const auto& op = c.op<ops::DotGeneral>();
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  auto& twin = c.keep<TwinRows>();
  auto& p = c.keep<ComplexGemm>();
  GemmStridedF32& gemm = p.gemm;
  std::vector<std::int64_t> column_dims, column_strides;
  for (const int b : free_axes(w.rank(), op.rhs_batch, op.rhs_contract))
    column_dims.push_back(w.dim(b)), column_strides.push_back(w.stride(b));
  twin.columns.set(column_dims, {column_strides});
  twin.row_columns = product(column_dims);
  // Strides of the twins, from the last contracted axis outwards: a row and its twin are 4 reals a column.
  std::int64_t depth = 1;
  for (std::int64_t a : op.rhs_contract) depth *= w.dim(static_cast<int>(a));
  std::int64_t step = 4 * twin.row_columns * depth;
  std::vector<GemmAxis> batch(op.lhs_batch.size()), rows, contracted(op.lhs_contract.size());
  std::size_t at = op.lhs_batch.size();
  for (std::size_t i = op.lhs_batch.size(); i-- > 0;) {
    const auto a = static_cast<int>(op.lhs_batch[i]);
    batch[i] = {x.dim(a), 2 * x.stride(a), step, 2 * y.strides[i]};
    step *= x.dim(a);
  }
  for (const int a : free_axes(x.rank(), op.lhs_batch, op.lhs_contract))
    rows.push_back({x.dim(a), 2 * x.stride(a), 0, 2 * y.strides[at]}), ++at;
  step = 4 * twin.row_columns;
  for (std::size_t i = op.lhs_contract.size(); i-- > 0;) {
    const auto a = static_cast<int>(op.lhs_contract[i]);
    contracted[i] = {x.dim(a), 2 * x.stride(a), step, 0};
    step *= x.dim(a);
  }
  contracted.push_back({2, 1, 2 * twin.row_columns, 0});  // the parts
  for (const auto* axes : {&op.rhs_batch, &op.rhs_contract})
    for (const std::int64_t b : *axes)
      twin.dims.push_back(w.dim(static_cast<int>(b))), twin.strides.push_back(w.stride(static_cast<int>(b)));
  twin.rows = product(twin.dims);
  std::vector<GemmAxis> outer = folded(batch);
  rows = folded(rows);
  GemmAxis row;
  if (!rows.empty()) {
    row = rows.back();
    rows.pop_back();
  }
  outer.insert(outer.end(), rows.begin(), rows.end());
  contracted = folded(contracted);
  gemm.m = row.extent;
  gemm.a_m_stride = row.a;
  gemm.n = 2 * twin.row_columns;
  gemm.ldc = row.extent > 1 ? row.c : gemm.n;
  check(outer.size() <= kGemmMaxAxes && contracted.size() <= kGemmMaxAxes, "a product of this many axes");
  std::copy(outer.begin(), outer.end(), gemm.outer);
  std::copy(contracted.begin(), contracted.end(), gemm.contracted);
  gemm.num_outer = static_cast<int>(outer.size());
  gemm.num_contracted = static_cast<int>(contracted.size());
  // The twins of a row are one run: all its columns, whatever axes they are.
  p.common = twin.common = c.common(static_cast<std::size_t>(twin.rows * 4 * twin.row_columns) * sizeof(float));
  c.point(twin.w, w);
  twin.per_chunk = c.grain(std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, twin.row_columns)));
  c.step<TwinRows::run>(twin, (twin.rows + twin.per_chunk - 1) / twin.per_chunk,
                        2.0 * static_cast<double>(twin.rows * twin.row_columns));
  c.point(gemm.a, x);
  c.point(gemm.c, y);
  p.kernels = &c.kernels();
  p.plan = p.kernels->gemm_strided_plan_f32(gemm, c.threads());
  p.scratch = c.scratch(p.plan.scratch_bytes);
  if (p.plan.pack_a_floats > 0) {
    p.packed_a = reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(p.plan.pack_a_floats) * sizeof(float)));
    c.step<ComplexGemm::pack>(p, p.plan.pack_a_chunks, 0.3 * static_cast<double>(p.plan.pack_a_floats));
  }
  const double flops = 4.0 * static_cast<double>(y.elements()) * static_cast<double>(p.plan.k);
  c.step<ComplexGemm::run>(p, p.plan.chunks, flops / gemm_flops_per_ns(c.kernels().isa));
}

bool complex_dot_reads_strided(const Graph&, NodeId, int) { return true; }

constexpr Row kComplexDotRows[] = {
    {OpKind::DotGeneral, "gemm_strided_c64", complex_dot_refuses, lower_complex_dot, complex_dot_reads_strided}};

}  // namespace

std::span<const Row> complex_dot_rows() { return kComplexDotRows; }

}  // namespace rlx::cpu
