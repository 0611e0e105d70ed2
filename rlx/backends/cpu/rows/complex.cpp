// Complex numbers of two parts, and parts of complex numbers: moves of reals. Arithmetic of C64.
#include <algorithm>
#include <span>

#include "rlx/backends/cpu/kernels/complex.h"
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

// -- sums and products --

std::optional<ComplexFn> complex_fn(const Graph& g, NodeId id) {
  if (g.shape(id).dtype() != DType::C64) return std::nullopt;
  const Node& n = g.node(id);
  if (const auto* op = n.op.get_if<ops::Activation>())
    return op->fn == ActivationKind::Neg ? std::optional(ComplexFn::Neg) : std::nullopt;
  switch (n.op.as<ops::Binary>().fn) {
    case BinaryKind::Add: return ComplexFn::Add;
    case BinaryKind::Sub: return ComplexFn::Sub;
    case BinaryKind::Mul: return ComplexFn::Mul;
    default: return std::nullopt;
  }
}
const char* arithmetic_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(g.shape(id))) return why;
  return refuse_unless(complex_fn(g, id).has_value(), "it is no sum or product of c64");
}

struct ComplexRun {
  ComplexFn fn = ComplexFn::Add;
  const ComplexKernels* kernels = nullptr;
  RowWalk<3> walk;  // two operands and the result
  const float *a = nullptr, *b = nullptr;
  float* y = nullptr;
  std::int64_t block = 1, blocks_per_row = 1, blocks = 0, blocks_per_chunk = 1;

  static void run(const ComplexRun& s, std::int64_t chunk) {
    RowWalk<3> walk = s.walk;
    const std::int64_t begin = chunk * s.blocks_per_chunk, end = std::min(s.blocks, begin + s.blocks_per_chunk);
    walk.seek(begin / s.blocks_per_row);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t col = i % s.blocks_per_row * s.block;
      if (i != begin && col == 0) walk.next();
      const auto at = [&](int operand) { return 2 * (walk.offset[operand] + col * walk.step(operand)); };
      s.kernels->run(s.fn, s.a + at(0), walk.step(0), s.b + at(1), walk.step(1), s.y + at(2),
                     std::min(s.block, walk.cols() - col));
    }
  }
};

void lower_arithmetic(LowerContext& c) {
  const View y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<ComplexRun>();
  s.fn = *complex_fn(c.graph(), c.id());
  s.kernels = &complex_kernels(c.kernels().isa);
  const View a = c.in(0), b = c.in(c.num_inputs() - 1);
  s.walk.set(y.dims, {broadcast_strides(a, y.dims), broadcast_strides(b, y.dims), y.strides});
  c.point(s.a, a);
  c.point(s.b, b);
  c.point(s.y, y);
  constexpr std::int64_t kBlock = 4096;
  s.block = c.grain(kBlock) == 1 ? 64 : kBlock;
  s.blocks_per_row = (s.walk.cols() + s.block - 1) / s.block;
  s.blocks = s.blocks_per_row * s.walk.rows();
  s.blocks_per_chunk = c.grain(std::max<std::int64_t>(1, kBlock / std::min(s.block, s.walk.cols())));
  c.step<ComplexRun::run>(s, (s.blocks + s.blocks_per_chunk - 1) / s.blocks_per_chunk,
                          0.7 * static_cast<double>(y.elements()));
}

constexpr Row kComplexRows[] = {
    {OpKind::Binary, "complex_binary_c64", arithmetic_refuses, lower_arithmetic, any_operand_strides},
    {OpKind::Activation, "complex_activation_c64", arithmetic_refuses, lower_arithmetic, any_operand_strides},
    {OpKind::Complex, "complex", complex_refuses, lower_complex, any_operand_strides},
    {OpKind::ComplexPart, "complex_part", complex_refuses, lower_part, any_operand_strides},
};

}  // namespace

std::span<const Row> complex_rows() { return kComplexRows; }

}  // namespace rlx::cpu
