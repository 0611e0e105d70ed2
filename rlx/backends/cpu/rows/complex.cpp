// Complex numbers of two parts, and parts of complex numbers: moves of reals.
#include <span>

#include "rlx/backends/cpu/kernels/generic.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx::cpu {
namespace {

struct ComplexMove {
  GenericMove move;
  const void* x = nullptr;
  void* y = nullptr;
};
void run_complex_move(const ComplexMove& s, std::int64_t chunk) { s.move.run(s.x, s.y, chunk); }

std::vector<std::int64_t> complex_strides(std::vector<std::int64_t> strides) {
  for (std::int64_t& s : strides) s *= 2;
  return strides;
}

// Reals of x, `x_start` on, to those of y from `y_start` on.
void add_complex_move(LowerContext& c, const View& x, const std::vector<std::int64_t>& x_strides, std::int64_t x_start,
                      const std::vector<std::int64_t>& y_strides, std::int64_t y_start) {
  const View y = c.out();
  const int bits = is_complex(y.dtype) ? dtype_bits(y.dtype) / 2 : dtype_bits(y.dtype);
  auto& s = c.keep<ComplexMove>();
  s.move = GenericMove(bits, y.dims, x_strides, y_strides, x_start, y_start);
  if (c.finest()) s.move.cut_finest();
  c.point(s.x, x);
  c.point(s.y, y);
  c.step<run_complex_move>(s, s.move.chunks(), static_cast<double>(y.elements()));
}

void lower_complex(LowerContext& c) {
  const View y = c.out();
  if (y.elements() == 0) return;
  for (int part = 0; part < 2; ++part)
    add_complex_move(c, c.in(part), broadcast_strides(c.in(part), y.dims), 0, complex_strides(y.strides), part);
}
void lower_part(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  add_complex_move(c, x, complex_strides(x.strides), c.op<ops::ComplexPart>().imag ? 1 : 0, y.strides, 0);
}

const char* complex_refuses(const Graph& g, NodeId id) { return refuse_high_rank(g.shape(id)); }
bool any_operand_strides(const Graph&, NodeId, int) { return true; }

constexpr Row kComplexRows[] = {
    {OpKind::Complex, "complex", complex_refuses, lower_complex, any_operand_strides},
    {OpKind::ComplexPart, "complex_part", complex_refuses, lower_part, any_operand_strides},
};

}  // namespace

std::span<const Row> complex_rows() { return kComplexRows; }

}  // namespace rlx::cpu
