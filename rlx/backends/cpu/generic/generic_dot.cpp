// Matmuls of every dtype and any axes, in the generic compute types: a row of results at a time.
#include <algorithm>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/generic/generic_blocks.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

// Rows run over the batch and lhs-free axes. A row is a block of the rhs-free axes, which are its columns.
template <class A>
struct DotStep {
  RowIterator<2> rows;   // batch and lhs free: offsets into a and b
  RowIterator<2> inner;  // contracted: offsets into a and b
  RowIterator<1> cols;   // rhs free: offset into b
  std::int64_t num_rows = 1, num_cols = 1, depth = 1, units = 0, per_chunk = 1, blocks = 1;
  const void *a = nullptr, *b = nullptr;
  void* y = nullptr;
  LoadBlock<A> load_a = nullptr, load_b = nullptr;
  StoreBlock<A> store = nullptr;

  static void run(const DotStep& s, std::int64_t chunk) {
    const std::int64_t end = std::min(s.units, (chunk + 1) * s.per_chunk);
    for (std::int64_t u = chunk * s.per_chunk; u < end; ++u) {
      const std::int64_t row = u / s.blocks, first = u % s.blocks * kGenericBlock;
      const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, s.num_cols - first));
      A acc[kGenericBlock] = {}, values[kGenericBlock], scale;
      RowIterator<2> at = s.rows;
      seek_element(at, row);
      RowIterator<2> inner = s.inner;
      const std::int64_t inner_rows = s.depth == 0 ? 0 : inner.rows();
      for (std::int64_t r = 0; r < inner_rows; ++r, inner.next()) {
        for (std::int64_t k = 0; k < inner.cols(); ++k) {
          s.load_a(s.a, at.offset[0] + inner.offset[0] + k * inner.step(0), 0, 1, &scale);
          load_columns(s, at.offset[1] + inner.offset[1] + k * inner.step(1), first, n, values);
          for (int i = 0; i < n; ++i) acc[i] = add_vd(acc[i], mul_vd(scale, values[i]));
        }
      }
      s.store(s.y, row * s.num_cols + first, 1, n, acc);
    }
  }
  /// Moves to element `i`, with the last axis included.
  template <int N>
  static void seek_element(RowIterator<N>& w, std::int64_t i) {
    w.seek(i / w.cols());
    for (int o = 0; o < N; ++o) w.offset[o] += i % w.cols() * w.step(o);
  }
  static void load_columns(const DotStep& s, std::int64_t base, std::int64_t first, int n, A* out) {
    RowIterator<1> cols = s.cols;
    cols.seek(first / cols.cols());
    std::int64_t col = first % cols.cols();
    for (int done = 0; done < n;) {
      const int count = static_cast<int>(std::min<std::int64_t>(n - done, cols.cols() - col));
      s.load_b(s.b, base + cols.offset[0] + col * cols.step(0), cols.step(0), count, out + done);
      done += count;
      col = 0;
      cols.next();
    }
  }
};

bool listed(const std::vector<std::int64_t>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

const char* refuses(const Graph& g, NodeId id) {
  for (const Shape* s : {&in_shape(g, id, 0), &in_shape(g, id, 1), &g.shape(id)})
    if (const char* why = refuse_high_rank(*s)) return why;
  return nullptr;
}

void lower(LowerContext& c) {
  const auto& op = c.op<ops::DotGeneral>();
  const View a = c.in(0), b = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  visit_f64(y.dtype, [&]<class A>(A) {
    auto& s = c.keep<DotStep<A>>();
    std::vector<std::int64_t> row_dims, inner_dims, col_dims;
    std::vector<std::vector<std::int64_t>> row_strides(2), inner_strides(2), col_strides(1);
    const auto add = [](std::vector<std::int64_t>& dims, std::vector<std::vector<std::int64_t>>& strides,
                        std::int64_t dim, std::int64_t sa, std::int64_t sb) {
      dims.push_back(dim);
      strides[0].push_back(sa);
      strides[1].push_back(sb);
    };
    for (std::size_t i = 0; i < op.lhs_batch.size(); ++i) {
      const int la = static_cast<int>(op.lhs_batch[i]), lb = static_cast<int>(op.rhs_batch[i]);
      add(row_dims, row_strides, a.dim(la), a.stride(la), b.stride(lb));
    }
    for (int i = 0; i < a.rank(); ++i)
      if (!listed(op.lhs_batch, i) && !listed(op.lhs_contract, i)) add(row_dims, row_strides, a.dim(i), a.stride(i), 0);
    for (std::size_t i = 0; i < op.lhs_contract.size(); ++i) {
      const int la = static_cast<int>(op.lhs_contract[i]), lb = static_cast<int>(op.rhs_contract[i]);
      add(inner_dims, inner_strides, a.dim(la), a.stride(la), b.stride(lb));
    }
    for (int i = 0; i < b.rank(); ++i)
      if (!listed(op.rhs_batch, i) && !listed(op.rhs_contract, i))
        col_dims.push_back(b.dim(i)), col_strides[0].push_back(b.stride(i));
    s.rows.set(row_dims, row_strides);
    s.inner.set(inner_dims, inner_strides);
    s.cols.set(col_dims, col_strides);
    s.num_rows = product(row_dims);
    s.num_cols = product(col_dims);
    s.depth = product(inner_dims);
    s.blocks = (s.num_cols + kGenericBlock - 1) / kGenericBlock;
    s.units = s.num_rows * s.blocks;
    s.per_chunk = c.grain(std::max<std::int64_t>(
        1, 16384 / std::max<std::int64_t>(1, s.depth * std::min<std::int64_t>(s.num_cols, kGenericBlock))));
    s.load_a = load_block<A>(a.dtype);
    s.load_b = load_block<A>(b.dtype);
    s.store = store_block<A>(y.dtype);
    c.point(s.a, a);
    c.point(s.b, b);
    c.point(s.y, y);
    c.step<DotStep<A>::run>(
        s, (s.units + s.per_chunk - 1) / s.per_chunk,
        1.0 * static_cast<double>(s.num_rows) * static_cast<double>(s.num_cols) * static_cast<double>(s.depth + 1));
  });
}

bool any_strides(const Graph&, NodeId, int) { return true; }

constexpr KernelEntry kRows[] = {{OpKind::DotGeneral, "generic_dot", refuses, lower, any_strides}};

}  // namespace

std::span<const KernelEntry> generic_dot_entries() { return kRows; }

}  // namespace rlx::cpu
