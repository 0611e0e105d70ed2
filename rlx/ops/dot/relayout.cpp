// Relayout: a matrix in a packed layout that kernels asked for. It has the values of its sources. Only the backend that
// asked for the layout interprets the bytes.
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/tensor/visit.h"

namespace rlx {
namespace {

// The number of elements of a source; -1 when its rows are not whole blocks.
std::int64_t elements_of(const Shape& s, QuantScheme scheme) {
  if (!is_block_scheme(scheme)) return s.num_elements();
  const BlockLayout& l = block_layout(scheme);
  if (s.dtype() != DType::U8 || s.rank() < 1 || s.dim(-1).value() % l.bytes != 0) return -1;
  return s.num_elements() / l.bytes * l.elements;
}
bool on_borders(const ops::Relayout& op, const ops::PackedSource& at) {
  if (!is_block_scheme(op.scheme)) return true;
  const std::int64_t block = block_layout(op.scheme).elements;
  return at.k_stride == 1 && op.k % block == 0 && at.offset % block == 0 && at.n_stride % block == 0;
}

bool holds(DType wide, DType narrow) {
  return wide == narrow || (wide == DType::F32 && (narrow == DType::BF16 || narrow == DType::F16));
}

/// True when a source of `elements` elements holds everything that a layout of `k` rows reads of it. Strides and counts
/// may have any value of their type.
bool reaches(std::int64_t elements, std::int64_t k, const ops::PackedSource& at) {
  std::int64_t left = elements - 1 - at.offset;  // elements after the first one
  if (left < 0) return false;
  if (at.k_stride > 0 && k - 1 > left / at.k_stride) return false;
  left -= (k - 1) * at.k_stride;
  return at.n_stride == 0 || at.columns - 1 <= left / at.n_stride;
}

struct RelayoutRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Relayout>();
    if (op.k < 0 || op.n < 0) return c.attr_error("k and n must not be negative, got ", op.k, ", ", op.n);
    if (op.form.empty() || op.form.bytes < 0 || op.form.count < 1 || op.form.bytes % op.form.count != 0)
      return c.attr_error("needs a valid packed layout such as panels(48);1024, got '", op.form.id, "'");
    if (op.sources.size() != 4 * static_cast<std::size_t>(c.num_inputs()))
      return c.attr_error("has ", c.num_inputs(), " sources but ", op.sources.size(),
                          " numbers for their positions, expected 4 for each");
    std::int64_t columns = 0, matrices = 1;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Shape& s = c.input(i);
      const ops::PackedSource at = op.source(static_cast<std::size_t>(i));
      if (!s.is_static()) return c.error("source ", i, " ", s, " has symbols");
      const std::int64_t elements = elements_of(s, op.scheme);
      if (is_block_scheme(op.scheme)) {
        if (elements < 0 || op.dtype != DType::F32)
          return c.error("source ", i, " ", s, " must have rows of whole ", quant_scheme_name(op.scheme),
                         " blocks that are read as f32");
      } else if (!holds(op.dtype, s.dtype())) {
        return c.error("source ", i, " ", s, " must be ", dtype_name(op.dtype), " or narrower");
      }
      if (at.columns < 0 || at.offset < 0 || at.k_stride < 0 || at.n_stride < 0)
        return c.attr_error("source ", i, " has a negative position");
      if (!on_borders(op, at))
        return c.attr_error("source ", i, " must begin and end its columns at blocks of ",
                            quant_scheme_name(op.scheme));
      if (op.k > 0 && at.columns > 0 && !reaches(elements, op.k, at))
        return c.error("source ", i, " ", s, " has ", elements,
                       " elements, but the packed layout reads past its end: ", op.k, " rows ", at.k_stride,
                       " apart and ", at.columns, " columns ", at.n_stride, " apart from ", at.offset, " on");
      if (columns == op.n && at.columns > 0) columns = 0, ++matrices;
      if (at.columns > op.n - columns) return c.error("the sources together have more columns than n = ", op.n);
      columns += at.columns;
    }
    if (columns != op.n) return c.error("the sources together have ", columns, " columns, but n is ", op.n);
    if (matrices != op.form.count && op.n > 0)
      return c.error("the sources have ", matrices, " matrices, but the packed layout has ", op.form.count);
    Dims dims{op.transposed ? op.n : op.k, op.transposed ? op.k : op.n};
    if (op.form.count > 1) dims.insert(dims.begin(), op.form.count);
    return make_shapes(Shape(std::move(dims), op.dtype));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Relayout>();
    Tensor& out = a.out();
    std::int64_t column = 0;  // over all matrices
    for (std::size_t i = 0; i < a.inputs.size(); ++i) {
      const ops::PackedSource at = op.source(i);
      std::vector<float> decoded;
      if (is_block_scheme(op.scheme)) {
        decoded.resize(static_cast<std::size_t>(elements_of(a.inputs[i].shape(), op.scheme)));
        dequantize_blocks(op.scheme, {a.inputs[i].data(), a.inputs[i].size_bytes()}, decoded);
      }
      const bool coded = is_block_scheme(op.scheme);
      const std::byte* values = coded ? reinterpret_cast<const std::byte*>(decoded.data()) : a.inputs[i].data();
      const DType from = coded ? DType::F32 : a.inputs[i].dtype();
      for (std::int64_t j = 0; j < at.columns; ++j, ++column)
        for (std::int64_t k = 0; k < op.k; ++k)
          store_element(out.mutable_data(), op.dtype,
                        op.transposed ? column * op.k + k : (column / op.n * op.k + k) * op.n + column % op.n,
                        load_element<double>(values, from, at.offset + k * at.k_stride + j * at.n_stride));
    }
  }
  static constexpr NoRule vjp = none("packed layouts are chosen after derivatives are computed");
  static constexpr NoRule jvp = none("packed layouts are chosen after derivatives are computed");
  static constexpr NoRule batch = none("packed layouts are chosen after batching");
  static constexpr AttrField attrs[] = {
      field<&ops::Relayout::form>("form"),    field<&ops::Relayout::k>("k"),
      field<&ops::Relayout::n>("n"),          field<&ops::Relayout::transposed>("transposed"),
      field<&ops::Relayout::dtype>("dtype"),  field<&ops::Relayout::sources>("sources"),
      field<&ops::Relayout::scheme>("scheme")};
};

}  // namespace

constinit const OpDef ops::Relayout::def{.kind = kind,
                                         .name = "relayout",
                                         .what = "A matrix in the packed layout that the kernels that read it need.",
                                         .inputs = variadic_inputs("sources", 1),
                                         .attrs = RelayoutRules::attrs,
                                         .level = Level::Lir,
                                         .leaf = LeafKind::None,
                                         .elementwise = ElementwiseKind::No,
                                         .view = ViewKind::None,
                                         .precision = PrecisionCategory::DataMovement,
                                         .infer = RelayoutRules::infer,
                                         .decompose = none("only the compiler makes it, for one target"),
                                         .vjp = RelayoutRules::vjp,
                                         .jvp = RelayoutRules::jvp,
                                         .batch = RelayoutRules::batch,
                                         .reference = RelayoutRules::reference,
                                         .cost = moves_bytes};

}  // namespace rlx
