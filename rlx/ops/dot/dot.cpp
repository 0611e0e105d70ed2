// Matmuls: MatMul (NumPy's, a composite) and DotGeneral (XLA's dot_general, the primitive).
#include <algorithm>
#include <complex>

#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/dot/dot_dims.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {

std::vector<std::int64_t> free_axes(int rank, const std::vector<std::int64_t>& contract,
                                    const std::vector<std::int64_t>& batch) {
  std::vector<std::int64_t> out;
  for (std::int64_t a = 0; a < rank; ++a)
    if (std::find(contract.begin(), contract.end(), a) == contract.end() &&
        std::find(batch.begin(), batch.end(), a) == batch.end())
      out.push_back(a);
  return out;
}

namespace {

std::optional<Diagnostic> check_side(const InferContext& c, const char* side, const Shape& x,
                                     const std::vector<std::int64_t>& contract,
                                     const std::vector<std::int64_t>& batch) {
  std::vector<bool> seen(static_cast<std::size_t>(x.rank()), false);
  for (const auto* list : {&contract, &batch}) {
    for (std::int64_t a : *list) {
      if (a < 0 || a >= x.rank()) return c.attr_error(side, " axis ", a, " is out of range for ", x);
      if (seen[static_cast<std::size_t>(a)]) return c.attr_error(side, " axis ", a, " is named twice");
      seen[static_cast<std::size_t>(a)] = true;
    }
  }
  return std::nullopt;
}

}  // namespace

namespace {

bool is_byte(DType t) { return t == DType::I8 || t == DType::U8; }
bool is_f8(DType t) { return t == DType::F8E4M3 || t == DType::F8E5M2; }

}  // namespace

std::optional<Diagnostic> check_product_dtypes(const InferContext& c, const std::optional<DType>& out) {
  const DType a = c.input(0).dtype(), b = c.input(1).dtype();
  const bool computes = is_inexact(a) || is_int(a);
  if (out && !(computes && a == b && *out == a)) {
    const bool wide = (*out == DType::I32 && is_byte(a) && is_byte(b)) ||
                      ((*out == DType::F32 || *out == DType::F64) &&
                       ((is_f8(a) && is_f8(b)) || (a == b && (a == DType::BF16 || a == DType::F16))));
    if (wide) return std::nullopt;
    return c.dtype_error("cannot compute ", dtype_name(*out), " of ", dtype_name(a), " and ", dtype_name(b),
                         ": `out` is i32 of i8 and u8, f32 or f64 of two bf16, f16 or f8");
  }
  if (auto e = c.check_same_dtype(0, 2)) return e;
  if (!computes) return c.dtype_error("lhs is ", c.input(0), "; matmuls need floats, complex numbers or integers");
  return std::nullopt;
}

Result<Shape> infer_dot(const InferContext& c, const DotAxes& d) {
  const Shape &a = c.input(0), &b = c.input(1);
  if (auto e = check_product_dtypes(c, d.out)) return *e;
  if (d.lhs_contract.size() != d.rhs_contract.size())
    return c.attr_error("has ", d.lhs_contract.size(), " lhs and ", d.rhs_contract.size(), " rhs contracting axes");
  if (d.lhs_batch.size() != d.rhs_batch.size())
    return c.attr_error("has ", d.lhs_batch.size(), " lhs and ", d.rhs_batch.size(), " rhs batch axes");
  if (auto e = check_side(c, "lhs", a, d.lhs_contract, d.lhs_batch)) return *e;
  if (auto e = check_side(c, "rhs", b, d.rhs_contract, d.rhs_batch)) return *e;
  Dims dims;
  for (std::size_t i = 0; i < d.lhs_batch.size(); ++i) {
    const Dim &x = a.dim(static_cast<int>(d.lhs_batch[i])), &y = b.dim(static_cast<int>(d.rhs_batch[i]));
    if (!(x == y)) return c.error("lhs ", a, " has batch dimension ", x, ", rhs ", b, " has ", y);
    dims.push_back(x);
  }
  for (std::size_t i = 0; i < d.lhs_contract.size(); ++i) {
    const Dim &x = a.dim(static_cast<int>(d.lhs_contract[i])), &y = b.dim(static_cast<int>(d.rhs_contract[i]));
    if (!(x == y)) return c.error("lhs ", a, " contracts over ", x, ", rhs ", b, " over ", y);
  }
  for (std::int64_t axis : free_axes(a.rank(), d.lhs_contract, d.lhs_batch))
    dims.push_back(a.dim(static_cast<int>(axis)));
  for (std::int64_t axis : free_axes(b.rank(), d.rhs_contract, d.rhs_batch))
    dims.push_back(b.dim(static_cast<int>(axis)));
  return Shape(std::move(dims), d.out.value_or(a.dtype()));
}

double dot_flops(const Shape& lhs, const Shape& result, const DotAxes& axes) {
  double k = 1;
  for (std::int64_t a : axes.lhs_contract) k *= static_cast<double>(lhs.dim(static_cast<int>(a)).value());
  return 2 * k * static_cast<double>(result.num_elements());
}

namespace {

// The elements of x in the axis order `perm`, converted to T.
template <class T>
std::vector<T> load_permuted(const Tensor& x, const std::vector<std::int64_t>& perm) {
  const auto n = static_cast<std::size_t>(x.num_elements());
  std::vector<T> plain(n);
  const std::byte* p = x.data();
  if (is_storage_only(x.dtype())) {
    for (std::size_t i = 0; i < n; ++i) plain[i] = load_element<T>(p, x.dtype(), static_cast<std::int64_t>(i));
  } else
    visit_dtype(x.dtype(), [&](auto tag) {
      using E = decltype(tag);
      for (std::size_t i = 0; i < n; ++i) {
        if constexpr (std::is_same_v<E, float> || std::is_same_v<E, double>) {
          E e;
          std::memcpy(&e, p + i * sizeof(E), sizeof(E));
          plain[i] = convert_element<T>(static_cast<double>(e));
        } else {
          plain[i] = load_element<T>(p, x.dtype(), static_cast<std::int64_t>(i));
        }
      }
    });
  if (std::is_sorted(perm.begin(), perm.end()) || n == 0) return plain;
  const std::vector<std::int64_t> dims = x.dims(), strides = row_major_strides(dims);
  const std::size_t rank = perm.size();
  std::vector<std::int64_t> index(rank, 0);
  std::vector<T> out(n);
  std::int64_t from = 0;
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = plain[static_cast<std::size_t>(from)];
    for (std::size_t d = rank; d-- > 0;) {
      const auto axis = static_cast<std::size_t>(perm[d]);
      from += strides[axis];
      if (++index[d] < dims[axis]) break;
      from -= strides[axis] * dims[axis];
      index[d] = 0;
    }
  }
  return out;
}

std::vector<std::int64_t> joined(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                                 const std::vector<std::int64_t>& c) {
  std::vector<std::int64_t> out = a;
  out.insert(out.end(), b.begin(), b.end());
  out.insert(out.end(), c.begin(), c.end());
  return out;
}

std::size_t extent(const Tensor& x, const std::vector<std::int64_t>& axes) {
  std::size_t n = 1;
  for (std::int64_t a : axes) n *= static_cast<std::size_t>(x.dim(static_cast<int>(a)));
  return n;
}

// out[b, m, n] = sum over k, in order, of lhs[b, m, k] * rhs[b, k, n], accumulated in T.
template <class T>
void dot_reference(const RefArgs& args, const DotAxes& d) {
  const Tensor &x = args.in(0), &y = args.in(1);
  const auto x_free = free_axes(x.rank(), d.lhs_contract, d.lhs_batch),
             y_free = free_axes(y.rank(), d.rhs_contract, d.rhs_batch);
  const std::vector<T> a = load_permuted<T>(x, joined(d.lhs_batch, x_free, d.lhs_contract));
  const std::vector<T> b = load_permuted<T>(y, joined(d.rhs_batch, d.rhs_contract, y_free));
  const std::size_t num_batches = extent(x, d.lhs_batch), rows = extent(x, x_free), depth = extent(x, d.lhs_contract),
                    cols = extent(y, y_free);
  std::byte* out = args.out().mutable_data();
  const DType dtype = args.out().dtype();
  std::vector<T> row(cols);
  for (std::size_t batch = 0; batch < num_batches; ++batch) {
    for (std::size_t m = 0; m < rows; ++m) {
      std::fill(row.begin(), row.end(), T{});
      const T* a_row = a.data() + (batch * rows + m) * depth;
      for (std::size_t k = 0; k < depth; ++k) {
        const T scale = a_row[k];
        const T* b_row = b.data() + (batch * depth + k) * cols;
        for (std::size_t n = 0; n < cols; ++n) row[n] += scale * b_row[n];
      }
      const std::size_t first = (batch * rows + m) * cols;
      for (std::size_t n = 0; n < cols; ++n) store_element(out, dtype, static_cast<std::int64_t>(first + n), row[n]);
    }
  }
}

// The cotangent of one side (`mine`) of a dot product, given the other side and the positions of each side's free axes
// in the result.
struct DotSide {
  Expr x;
  const std::vector<std::int64_t>&contract, &batch;
  std::int64_t first_free;  // index in the result
  std::vector<std::int64_t> free() const { return free_axes(x.rank(), contract, batch); }
};
Expr dot_cotangent(Graph& g, Expr cotangent, const DotSide& mine, const DotSide& other) {
  const auto num_batch = static_cast<std::int64_t>(mine.batch.size());
  const std::vector<std::int64_t> my_free = mine.free(), other_free = other.free();
  std::vector<std::int64_t> summed, batch;
  for (std::size_t i = 0; i < other_free.size(); ++i) summed.push_back(other.first_free + static_cast<std::int64_t>(i));
  for (std::int64_t i = 0; i < num_batch; ++i) batch.push_back(i);
  // The axes of mine in the order of the other side's contracting axes.
  std::vector<std::int64_t> ascending = other.contract, contracted;
  std::sort(ascending.begin(), ascending.end());
  for (std::int64_t axis : ascending) {
    const auto pair = std::find(other.contract.begin(), other.contract.end(), axis) - other.contract.begin();
    contracted.push_back(mine.contract[static_cast<std::size_t>(pair)]);
  }
  const auto order = [&](const std::vector<std::int64_t>& first, const std::vector<std::int64_t>& second) {
    std::vector<std::int64_t> axis_of(mine.batch);
    axis_of.insert(axis_of.end(), first.begin(), first.end());
    axis_of.insert(axis_of.end(), second.begin(), second.end());
    return inverse_perm(axis_of);
  };
  // The result of dot_general is batch ++ free axes of its left ++ of its right operand. Use the operand order that
  // gives the axes of mine directly; if neither does, transpose.
  const std::vector<std::int64_t> left = order(my_free, contracted), right = order(contracted, my_free);
  const auto in_order = [](const std::vector<std::int64_t>& perm) { return std::is_sorted(perm.begin(), perm.end()); };
  if (!in_order(left) && in_order(right))
    return g.dot_general(other.x, cotangent, ops::DotGeneral{other_free, summed, other.batch, batch});
  Expr d = g.dot_general(cotangent, other.x, ops::DotGeneral{summed, other_free, batch, other.batch});
  return in_order(left) ? d : g.transpose(d, left);
}

// x with `axis` moved to the front.
Expr to_front(Expr x, std::int64_t axis) {
  if (axis == 0) return x;
  std::vector<std::int64_t> perm{axis};
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) perm.push_back(i);
  return x.graph().transpose(x, perm);
}

struct DotGeneralRules {
  static Result<Shapes> infer(const InferContext& c) {
    auto shape = infer_dot(c, dot_axes(c.op<ops::DotGeneral>()));
    if (!shape) return shape.error();
    return make_shapes(std::move(shape).value());
  }
  static void reference(const RefArgs& a) {
    const DotAxes d = dot_axes(a.op<ops::DotGeneral>());
    const DType t = a.out().dtype();
    // uint64 wraps, and its low bits are those of the signed result.
    if (is_int(t))
      dot_reference<std::uint64_t>(a, d);
    else if (is_complex(t))
      dot_reference<std::complex<double>>(a, d);
    else
      dot_reference<double>(a, d);
  }
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::DotGeneral>();
    const auto num_batch = static_cast<std::int64_t>(op.lhs_batch.size());
    const auto num_lhs_free = c.input(0).rank() - static_cast<std::int64_t>(op.lhs_contract.size()) - num_batch;
    const DotSide lhs{c.input(0), op.lhs_contract, op.lhs_batch, num_batch};
    const DotSide rhs{c.input(1), op.rhs_contract, op.rhs_batch, num_batch + num_lhs_free};
    // Computed in the dtype of the result. When that is wider than the operand's dtype, the cotangent is rounded once.
    const auto side = [&](int i, const DotSide& mine, const DotSide& other) {
      if (c.wants(i))
        c.accumulate(i, c.graph().cast(dot_cotangent(c.graph(), c.cotangent(), mine, other), mine.x.dtype()));
    };
    side(0, lhs, rhs);
    side(1, rhs, lhs);
  }
  static void jvp(JvpContext& c) {
    const auto& op = c.op<ops::DotGeneral>();
    if (c.has_tangent(0)) c.add_tangent(0, c.graph().dot_general(c.tangent(0), c.input(1), op));
    if (c.has_tangent(1)) c.add_tangent(0, c.graph().dot_general(c.input(0), c.tangent(1), op));
  }
  static void batch(BatchContext& c) {
    ops::DotGeneral op = c.op<ops::DotGeneral>();
    const auto num_batch = static_cast<std::int64_t>(op.lhs_batch.size());
    const auto num_lhs_free = c.rank(0) - static_cast<std::int64_t>(op.lhs_contract.size()) - num_batch;
    if (c.is_batched(0)) op.lhs_contract = shifted(op.lhs_contract), op.lhs_batch = shifted(op.lhs_batch);
    if (c.is_batched(1)) op.rhs_contract = shifted(op.rhs_contract), op.rhs_batch = shifted(op.rhs_batch);
    if (c.is_batched(0) && c.is_batched(1)) {
      op.lhs_batch.insert(op.lhs_batch.begin(), 0);
      op.rhs_batch.insert(op.rhs_batch.begin(), 0);
      c.set_result(c.graph().dot_general(c.input(0), c.input(1), op));
      return;
    }
    // One side is batched: the batch axis is that side's first free axis, and the other side is read once for all.
    Expr y = c.graph().dot_general(c.input(0), c.input(1), op);
    c.set_result(to_front(y, c.is_batched(0) ? num_batch : num_batch + num_lhs_free));
  }
  static Cost cost(const CostContext& c) {
    return c.with_flops(dot_flops(c.inputs[0], c.outputs[0], dot_axes(c.op<ops::DotGeneral>())));
  }
  static constexpr AttrField attrs[] = {
      field<&ops::DotGeneral::lhs_contract>("lhs_contract"), field<&ops::DotGeneral::rhs_contract>("rhs_contract"),
      field<&ops::DotGeneral::lhs_batch>("lhs_batch"), field<&ops::DotGeneral::rhs_batch>("rhs_batch"),
      field<&ops::DotGeneral::out>("out")};
};

struct MatMulRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &a = c.input(0), &b = c.input(1);
    if (auto e = c.check_same_dtype(0, 2)) return *e;
    if (!is_inexact(a.dtype()) && !is_int(a.dtype()))
      return c.dtype_error("lhs is ", a, "; matmuls need floats, complex numbers or integers");
    if (a.rank() < 2 || b.rank() < 2) return c.error("needs two matrices, got lhs ", a, " and rhs ", b);
    if (!(a.dim(-1) == b.dim(-2)))
      return c.error("lhs ", a, " has ", a.dim(-1), " columns, rhs ", b, " has ", b.dim(-2), " rows");
    auto batch = broadcast_dims(Dims(a.dims().begin(), a.dims().end() - 2), Dims(b.dims().begin(), b.dims().end() - 2));
    if (!batch) return c.error("the leading dimensions of lhs ", a, " and rhs ", b, " do not broadcast");
    batch->push_back(a.dim(-2));
    batch->push_back(b.dim(-1));
    return make_shapes(Shape(std::move(*batch), a.dtype()));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    Expr a = c.input(0), b = c.input(1);
    const Dims& out = c.result_shape().dims();
    const int num_batch = c.result_shape().rank() - 2;
    auto all_ones = [](const Shape& s) {
      return std::all_of(s.dims().begin(), s.dims().end() - 2, [](const Dim& d) { return d.is_static(1); });
    };
    if (a.rank() >= b.rank() && all_ones(b.shape())) {  // one matrix for all rows: no batch axes
      if (b.rank() > 2) b = g.reshape(b, {b.dim(-2), b.dim(-1)});
      c.set_result(g.dot_general(a, b, ops::DotGeneral{{a.rank() - 1}, {0}, {}, {}}));
      return;
    }
    std::vector<std::int64_t> axes;
    Dims lead(out.begin(), out.end() - 2);
    for (int i = 0; i < num_batch; ++i) axes.push_back(i);
    auto spread = [&](Expr x) {
      Dims dims = lead;
      dims.push_back(x.dim(-2));
      dims.push_back(x.dim(-1));
      return x.shape().dims() == dims ? x : g.expand(x, dims);
    };
    c.set_result(g.dot_general(spread(a), spread(b), ops::DotGeneral{{num_batch + 1}, {num_batch}, axes, axes}));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static void batch(BatchContext& c) {
    const int rank = std::max(c.rank(0), c.rank(1));
    c.set_result(c.graph().matmul(c.aligned(0, rank), c.aligned(1, rank)));
  }
  static Cost cost(const CostContext& c) {
    return c.with_flops(2 * static_cast<double>(c.inputs[0].dim(-1).value()) * c.elements());
  }
};

}  // namespace

constinit const OpDef ops::MatMul::def{.kind = kind,
                                       .name = "matmul",
                                       .what = "NumPy's matmul: matrices in the last two axes, leading axes broadcast.",
                                       .inputs = inputs("lhs", "rhs"),
                                       .attrs = {},
                                       .level = Level::Mir,
                                       .leaf = LeafKind::None,
                                       .elementwise = ElementwiseKind::No,
                                       .view = ViewKind::None,
                                       .precision = PrecisionCategory::Compute,
                                       .infer = MatMulRules::infer,
                                       .decompose = MatMulRules::decompose,
                                       .vjp = MatMulRules::vjp,
                                       .jvp = MatMulRules::jvp,
                                       .batch = MatMulRules::batch,
                                       .reference = by_decomposition,
                                       .cost = MatMulRules::cost};

constinit const OpDef ops::DotGeneral::def{.kind = kind,
                                           .name = "dot_general",
                                           .what = "A matmul over any contracting and batch axes (dot_general of XLA).",
                                           .inputs = inputs("lhs", "rhs"),
                                           .attrs = DotGeneralRules::attrs,
                                           .level = Level::Mir,
                                           .leaf = LeafKind::None,
                                           .elementwise = ElementwiseKind::No,
                                           .view = ViewKind::None,
                                           .precision = PrecisionCategory::Compute,
                                           .infer = DotGeneralRules::infer,
                                           .decompose = none("a primitive"),
                                           .vjp = DotGeneralRules::vjp,
                                           .jvp = DotGeneralRules::jvp,
                                           .batch = DotGeneralRules::batch,
                                           .reference = DotGeneralRules::reference,
                                           .cost = DotGeneralRules::cost};

}  // namespace rlx
