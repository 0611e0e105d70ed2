// Makes complex numbers from real and imaginary parts, and extracts these, by strided copies of reals; C64 arithmetic.
#include <algorithm>
#include <span>

#include "rlx/backends/cpu/elementwise/complex_kernels.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic.h"
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

// Moves reals of x, from `x_start` on, to reals of y, from `y_start` on.
void add_complex_move(LowerContext& c, const View& x, const std::vector<std::int64_t>& x_strides, std::int64_t x_start,
                      const std::vector<std::int64_t>& y_strides, std::int64_t y_start) {
  const View y = c.out();
  const int bits = is_complex(y.dtype) ? dtype_bits(y.dtype) / 2 : dtype_bits(y.dtype);
  auto& s = c.keep<ComplexMove>();
  s.move = GenericMove(bits, y.dims, x_strides, y_strides, x_start, y_start);
  if (c.finest()) s.move.tile_finest();
  c.point(s.x, x);
  c.point(s.y, y);
  c.step<run_complex_move>(s, s.move.chunks(), static_cast<double>(y.elements()));
}

// Kernel runs for dense operands, or one element broadcast to all.
struct ComplexJoin {
  const ComplexKernels* kernels = nullptr;
  bool wide = false, joins = false;
  int part = 0;
  const void *a = nullptr, *b = nullptr;
  void* y = nullptr;
  std::int64_t a_step = 1, b_step = 1, n = 0, per_chunk = 1;

  template <class T>
  void run_as(std::int64_t begin, std::int64_t count) const {
    const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
    T* out = static_cast<T*>(y);
    if constexpr (sizeof(T) == 4) {
      if (joins)
        return kernels->join_32(p + begin * a_step, a_step, q + begin * b_step, b_step, out + 2 * begin, count);
      kernels->part_32(p + 2 * begin, part, out + begin, count);
    } else {
      if (joins)
        return kernels->join_64(p + begin * a_step, a_step, q + begin * b_step, b_step, out + 2 * begin, count);
      kernels->part_64(p + 2 * begin, part, out + begin, count);
    }
  }
  static void run(const ComplexJoin& s, std::int64_t chunk) {
    const std::int64_t begin = chunk * s.per_chunk, count = std::min(s.per_chunk, s.n - begin);
    if (s.wide)
      s.run_as<double>(begin, count);
    else
      s.run_as<float>(begin, count);
  }
};

void add_dense(LowerContext& c, ComplexJoin& s) {
  const View y = c.out();
  s.kernels = &complex_kernels(c.kernels().isa);
  s.wide = real_dtype(y.dtype) == DType::F64;
  s.n = y.elements();
  s.per_chunk = c.grain(1 << 14);
  c.point(s.y, y);
  c.step<ComplexJoin::run>(s, (s.n + s.per_chunk - 1) / s.per_chunk, 0.3 * static_cast<double>(s.n));
}

void lower_complex(LowerContext& c) {
  const View y = c.out(), re = c.in(0), im = c.in(1);
  if (y.elements() == 0) return;
  const auto runs = [&](const View& v) { return v.elements() == 1 || (v.dense() && v.elements() == y.elements()); };
  if (runs(re) && runs(im)) {
    auto& s = c.keep<ComplexJoin>();
    s.joins = true;
    s.a_step = re.elements() == 1 ? 0 : 1, s.b_step = im.elements() == 1 ? 0 : 1;
    c.point(s.a, re);
    c.point(s.b, im);
    return add_dense(c, s);
  }
  for (int part = 0; part < 2; ++part)
    add_complex_move(c, c.in(part), broadcast_strides(c.in(part), y.dims), 0, complex_strides(y.strides), part);
}
void lower_part(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  const int part = c.op<ops::ComplexPart>().imag ? 1 : 0;
  if (x.dense()) {
    auto& s = c.keep<ComplexJoin>();
    s.part = part;
    c.point(s.a, x);
    return add_dense(c, s);
  }
  add_complex_move(c, x, complex_strides(x.strides), part, y.strides, 0);
}

const char* complex_refuses(const Graph& g, NodeId id) { return refuse_high_rank(g.shape(id)); }
bool any_operand_strides(const Graph&, NodeId, int) { return true; }

// -- arithmetic --

std::optional<ComplexFn> complex_fn(const Graph& g, NodeId id) {
  if (g.shape(id).dtype() != DType::C64) return std::nullopt;
  const Node& n = g.node(id);
  if (const auto* op = n.op.get_if<ops::Activation>())
    return op->fn == ActivationKind::Neg ? std::optional(ComplexFn::Neg) : std::nullopt;
  switch (n.op.as<ops::Binary>().fn) {
    case BinaryKind::Add: return ComplexFn::Add;
    case BinaryKind::Sub: return ComplexFn::Sub;
    case BinaryKind::Mul: return ComplexFn::Mul;
    case BinaryKind::Div: return ComplexFn::Div;
    default: return std::nullopt;
  }
}
const char* arithmetic_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(g.shape(id))) return why;
  return refuse_unless(complex_fn(g, id).has_value(), "it is not a sum, product or quotient of c64 values");
}

struct ComplexRun {
  ComplexFn fn = ComplexFn::Add;
  const ComplexKernels* kernels = nullptr;
  RowIterator<3> walk;  // two operands, the result
  const float *a = nullptr, *b = nullptr;
  float* y = nullptr;
  std::int64_t block = 1, blocks_per_row = 1, blocks = 0, blocks_per_chunk = 1;

  static void run(const ComplexRun& s, std::int64_t chunk) {
    RowIterator<3> walk = s.walk;
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

// -- exponentials --

struct ComplexExp {
  const ComplexKernels* kernels = nullptr;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t n = 0, per_chunk = 1;
  static void run(const ComplexExp& s, std::int64_t chunk) {
    const std::int64_t begin = chunk * s.per_chunk;
    s.kernels->exp(s.x + 2 * begin, s.y + 2 * begin, std::min(s.per_chunk, s.n - begin));
  }
};
const char* exp_refuses(const Graph& g, NodeId id) {
  const bool is_exp = g.node(id).op.as<ops::Activation>().fn == ActivationKind::Exp;
  return refuse_unless(is_exp && g.shape(id).dtype() == DType::C64, "it is not an exponential of c64 values");
}
void lower_exp(LowerContext& c) {
  const View y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<ComplexExp>();
  s.kernels = &complex_kernels(c.kernels().isa);
  s.n = y.elements();
  s.per_chunk = c.grain(2048);
  c.point(s.x, c.in(0));
  c.point(s.y, y);
  c.step<ComplexExp::run>(s, (s.n + s.per_chunk - 1) / s.per_chunk, 3.0 * static_cast<double>(s.n));
}

constexpr KernelEntry kComplexEntries[] = {
    {OpKind::Binary, "complex_binary_c64", arithmetic_refuses, lower_arithmetic, any_operand_strides},
    {OpKind::Activation, "complex_activation_c64", arithmetic_refuses, lower_arithmetic, any_operand_strides},
    {OpKind::Activation, "complex_exp_c64", exp_refuses, lower_exp},
    {OpKind::Complex, "complex", complex_refuses, lower_complex, any_operand_strides},
    {OpKind::ComplexPart, "complex_part", complex_refuses, lower_part, any_operand_strides},
};

}  // namespace

std::span<const KernelEntry> complex_entries() { return kComplexEntries; }

}  // namespace rlx::cpu
