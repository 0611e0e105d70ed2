// Gather and ScatterAdd: rows read from, and added to, positions given by an index tensor.
#include <algorithm>
#include <cstring>

#include "rlx/ir/ops/indexing.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// x[..axis] ++ indices ++ x[axis+1..]: the shape of gathered rows and of scattered updates.
Dims rows_dims(const Shape& x, const Shape& indices, std::int64_t axis) {
  Dims dims(x.dims().begin(), x.dims().begin() + axis);
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), x.dims().begin() + axis + 1, x.dims().end());
  return dims;
}

// Indices clamped into [0, extent), as the op reads them.
Expr clamped(Graph& g, Expr indices, const Dim& extent) {
  const Expr low = g.max(indices, 0);
  if (extent.is_static()) return g.min(low, extent.value() - 1);
  return g.min(low, dim_value(g, extent) - 1);
}
// True where an index is in [0, extent).
Expr in_range(Graph& g, Expr indices, const Dim& extent) {
  const Expr below = extent.is_static() ? g.lt(indices, extent.value()) : g.lt(indices, dim_value(g, extent));
  return g.bit_and(g.ge(indices, 0), below);
}
// The permutation that brings `axis` to `to`, the others in order.
std::vector<std::int64_t> move_axis(int rank, std::int64_t axis, std::int64_t to) {
  std::vector<std::int64_t> perm = identity_perm(rank);
  perm.erase(perm.begin() + axis);
  perm.insert(perm.begin() + to, axis);
  return perm;
}
// [B, pre.., extent, rest..] -> [B * extent, pre.., rest..], `axis` counted without B.
Expr batch_rows(Graph& g, Expr x, std::int64_t axis) {
  const Expr moved = g.transpose(x, move_axis(x.rank(), axis + 1, 1));
  Dims dims(moved.shape().dims().begin() + 1, moved.shape().dims().end());
  dims[0] = moved.dim(0) * moved.dim(1);
  return g.reshape(moved, std::move(dims));
}
// Indices [B, ..] into one table as indices into the rows of batch_rows, I64.
Expr batch_indices(Graph& g, Expr indices, const Dim& batch, const Dim& extent) {
  return g.cast(indices, DType::I64) + positions(g, batch, 0, indices.rank()) * dim_value(g, extent);
}

struct GatherRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &table = c.input(0), &indices = c.input(1);
    const std::int64_t axis = c.op<ops::Gather>().axis;
    if (auto error = c.check_axis(axis, table)) return *error;
    if (!is_index(indices.dtype())) return c.dtype_error("indices must be i32 or i64, not ", indices, "; cast them");
    if (c.negative(table.dim(static_cast<int>(axis)) - min(Dim(1), indices.num_elements_dim())))
      return c.error("axis ", axis, " of table ", table, " is empty, nothing can be picked from it");
    return Shapes{Shape(rows_dims(table, indices, axis), table.dtype())};
  }
  static void reference(const RefArgs& a) {
    const auto dims = a.in(0).dims();
    const AxisSplit s = split_at(dims, a.op<ops::Gather>().axis);
    const std::int64_t count = a.in(1).num_elements();
    const DType t = a.out().dtype();
    std::byte* out = a.out().mutable_data();
    const std::vector<std::int64_t> row{s.inner};
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = std::clamp<std::int64_t>(a.in(1).at_i64(i), 0, s.extent - 1);
        copy_strided(t, row, out, {(o * count + i) * s.inner, {1}}, a.in(0).data(),
                     {(o * s.extent + at) * s.inner, {1}});
      }
  }
  // Only the picked rows are touched.
  static Cost cost(const CostContext& c) {
    const auto bytes = static_cast<double>(c.outputs[0].size_bytes());
    return {0, bytes + static_cast<double>(c.inputs[1].size_bytes()), bytes};
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0)) return;
    const std::int64_t axis = c.op<ops::Gather>().axis;
    Graph& g = c.graph();
    const Shape& table = c.input(0).shape();
    c.accumulate(0, g.scatter_add(c.zeros(table), clamped(g, c.input(1), table.dim(static_cast<int>(axis))),
                                  c.cotangent(), axis));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().add(c.box(), {c.tangent(0), c.input(1)}));
  }
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    const std::int64_t axis = c.op<ops::Gather>().axis;
    const Expr table = c.input(0), indices = c.input(1);
    if (!c.is_batched(1)) return c.set_result(g.gather(table, indices, axis + 1));
    if (!c.is_batched(0)) {  // [pre.., B, indices.., rest..]
      const Expr out = g.gather(table, indices, axis);
      return c.set_result(g.transpose(out, move_axis(out.rank(), axis, 0)));
    }
    const Dim& extent = table.dim(static_cast<int>(axis) + 1);
    const Expr out =
        g.gather(batch_rows(g, table, axis), batch_indices(g, clamped(g, indices, extent), c.batch_size(), extent), 0);
    // [B, indices.., pre.., rest..] -> [B, pre.., indices.., rest..]
    const std::int64_t num_index_axes = c.rank(1);
    std::vector<std::int64_t> perm{0};
    for (std::int64_t i = 0; i < axis; ++i) perm.push_back(1 + num_index_axes + i);
    for (std::int64_t i = 0; i < num_index_axes; ++i) perm.push_back(1 + i);
    for (std::int64_t i = 1 + num_index_axes + axis; i < out.rank(); ++i) perm.push_back(i);
    c.set_result(g.transpose(out, perm));
  }
  static void samples(SampleSet& s) {
    const Shape ids({3}, DType::I32);
    s.add("rows", {Shape({4, 2}, DType::F32), SampleInput(ids, Fill::Index, 4)}, ops::Gather{0});
    s.add("matrix of ids", {Shape({4, 2}, DType::F32), SampleInput(Shape({2, 3}, DType::I64), Fill::Index, 4)},
          ops::Gather{0});
    s.add("columns", {Shape({2, 4}, DType::F64), SampleInput(ids, Fill::Index, 4)}, ops::Gather{1});
    s.add("middle axis", {Shape({2, 3, 2}, DType::F32), SampleInput(Shape({2, 1}, DType::I32), Fill::Index, 3)},
          ops::Gather{1});
    s.add("scalar id", {Shape({3, 2}, DType::F32), SampleInput(Shape({}, DType::I64), Fill::Index, 3)}, ops::Gather{0});
    s.add("clamped", {Shape({2, 2}, DType::F32), SampleInput(Shape({6}, DType::I32), Fill::Small)}, ops::Gather{0});
    s.add("half", {Shape({3}, DType::BF16), SampleInput(ids, Fill::Index, 3)}, ops::Gather{0});
    s.add("complex", {Shape({3}, DType::C64), SampleInput(ids, Fill::Index, 3)}, ops::Gather{0});
    s.add_discrete("no ids", {Shape({3, 2}, DType::F32), SampleInput(Shape({0}, DType::I32), Fill::Index, 3)},
                   ops::Gather{0});
    s.add_discrete("i64 table", {SampleInput(Shape({3, 2}, DType::I64), Fill::Small), SampleInput(ids, Fill::Index, 2)},
                   ops::Gather{1});
    s.add_discrete("bool table",
                   {SampleInput(Shape({3}, DType::Bool), Fill::Boolean), SampleInput(ids, Fill::Index, 3)},
                   ops::Gather{0});
  }
  static constexpr AttrField attrs[] = {field<&ops::Gather::axis>("axis")};
};

struct ScatterAddRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &operand = c.input(0), &indices = c.input(1), &updates = c.input(2);
    const std::int64_t axis = c.op<ops::ScatterAdd>().axis;
    if (auto error = c.check_axis(axis, operand)) return *error;
    if (!is_index(indices.dtype())) return c.dtype_error("indices must be i32 or i64, not ", indices, "; cast them");
    if (operand.dtype() == DType::Bool || is_storage_only(operand.dtype()))
      return c.dtype_error("cannot add values of ", operand);
    if (operand.dtype() != updates.dtype())
      return c.dtype_error("updates ", updates, " must have the dtype of operand ", operand);
    const Dims expected = rows_dims(operand, indices, axis);
    if (!(updates.dims() == expected))
      return c.error("updates ", updates, " must be ", dims_text(expected), " for operand ", operand, ", indices ",
                     indices, " and axis ", axis);
    return Shapes{operand};
  }
  static void reference(const RefArgs& a) {
    const AxisSplit s = split_at(a.in(0).dims(), a.op<ops::ScatterAdd>().axis);
    const std::int64_t count = a.in(1).num_elements();
    visit_accumulator(a.out().dtype(), [&]<class A>(A) {
      std::vector<A> sum = load_all<A>(a.in(0));
      const std::vector<A> updates = load_all<A>(a.in(2));
      for (std::int64_t o = 0; o < s.outer; ++o)
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t at = a.in(1).at_i64(i);
          if (at < 0 || at >= s.extent) continue;
          for (std::int64_t k = 0; k < s.inner; ++k) {
            A& to = sum[static_cast<std::size_t>((o * s.extent + at) * s.inner + k)];
            to = wrapping_add(to, updates[static_cast<std::size_t>((o * count + i) * s.inner + k)]);
          }
        }
      store_all(a.out(), sum);
    });
  }
  static Cost cost(const CostContext& c) { return c.with_flops(static_cast<double>(c.inputs[2].num_elements())); }
  static void vjp(VjpContext& c) {
    if (!c.wants(0)) return;
    Graph& g = c.graph();
    const std::int64_t axis = c.op<ops::ScatterAdd>().axis;
    const Expr ct = c.cotangent(), indices = c.input(1);
    const Dim& extent = ct.dim(static_cast<int>(axis));
    c.accumulate(0, ct);
    if (extent.is_static(0)) return;  // every update was dropped
    // The row of each update, or zeros where its index was dropped.
    Dims mask_dims(static_cast<std::size_t>(axis), Dim(1));
    mask_dims.insert(mask_dims.end(), indices.shape().dims().begin(), indices.shape().dims().end());
    mask_dims.insert(mask_dims.end(), static_cast<std::size_t>(ct.rank() - axis - 1), Dim(1));
    c.accumulate(2, g.where(g.reshape(in_range(g, indices, extent), mask_dims), g.gather(ct, indices, axis), 0));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(2))
      c.set_tangent(c.graph().add(c.box(), {c.tangent(0), c.input(1), c.tangent(2)}));
    else if (c.has_tangent(0))
      c.set_tangent(c.tangent(0));
  }
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    const std::int64_t axis = c.op<ops::ScatterAdd>().axis;
    const Expr operand = c.lifted(0), indices = c.input(1), updates = c.lifted(2);
    if (!c.is_batched(1)) return c.set_result(g.scatter_add(operand, indices, updates, axis + 1));
    const Dim& extent = operand.dim(static_cast<int>(axis) + 1);
    const Expr rows = g.where(in_range(g, indices, extent), batch_indices(g, indices, c.batch_size(), extent), -1);
    // updates [B, pre.., indices.., rest..] -> [B, indices.., pre.., rest..]
    const std::int64_t num_index_axes = c.rank(1);
    std::vector<std::int64_t> perm{0};
    for (std::int64_t i = 0; i < num_index_axes; ++i) perm.push_back(1 + axis + i);
    for (std::int64_t i = 0; i < axis; ++i) perm.push_back(1 + i);
    for (std::int64_t i = 1 + axis + num_index_axes; i < updates.rank(); ++i) perm.push_back(i);
    const Expr sum = g.scatter_add(batch_rows(g, operand, axis), rows, g.transpose(updates, perm), 0);
    // [B * extent, pre.., rest..] -> [B, extent, pre.., rest..] -> [B, pre.., extent, rest..]
    Dims dims = sum.shape().dims();
    dims[0] = extent;
    c.set_result(g.transpose(g.reshape(sum, prepend(c.batch_size(), dims)), move_axis(operand.rank(), 1, axis + 1)));
  }
  static void samples(SampleSet& s) {
    const Shape ids({3}, DType::I32);
    s.add("rows", {Shape({4, 2}, DType::F32), SampleInput(ids, Fill::Index, 4), Shape({3, 2}, DType::F32)},
          ops::ScatterAdd{0});
    s.add("duplicates",
          {Shape({3}, DType::F32), SampleInput(Shape({5}, DType::I64), Fill::Index, 2), Shape({5}, DType::F32)},
          ops::ScatterAdd{0});
    s.add("dropped", {Shape({2}, DType::F64), SampleInput(Shape({6}, DType::I32), Fill::Small), Shape({6}, DType::F64)},
          ops::ScatterAdd{0});
    s.add("columns",
          {Shape({2, 3}, DType::F32), SampleInput(Shape({2, 2}, DType::I32), Fill::Index, 3),
           Shape({2, 2, 2}, DType::F32)},
          ops::ScatterAdd{1});
    s.add("scalar id",
          {Shape({3, 2}, DType::F32), SampleInput(Shape({}, DType::I64), Fill::Index, 3), Shape({2}, DType::F32)},
          ops::ScatterAdd{0});
    s.add("half", {Shape({3}, DType::BF16), SampleInput(ids, Fill::Index, 3), Shape({3}, DType::BF16)},
          ops::ScatterAdd{0});
    s.add("complex", {Shape({3}, DType::C64), SampleInput(ids, Fill::Index, 3), Shape({3}, DType::C64)},
          ops::ScatterAdd{0});
    s.add("no updates",
          {Shape({2, 2}, DType::F32), SampleInput(Shape({0}, DType::I32), Fill::Index), Shape({0, 2}, DType::F32)},
          ops::ScatterAdd{0});
    s.add_discrete("i32",
                   {SampleInput(Shape({3}, DType::I32), Fill::Small), SampleInput(ids, Fill::Index, 3),
                    SampleInput(Shape({3}, DType::I32), Fill::Small)},
                   ops::ScatterAdd{0});
  }
  static constexpr AttrField attrs[] = {field<&ops::ScatterAdd::axis>("axis")};
};

}  // namespace

constinit const OpDef ops::Gather::def{
    .kind = kind,
    .name = "gather",
    .what = "Rows of a table picked by integer indices, which are clamped into range.",
    .inputs = inputs("table", "indices"),
    .attrs = GatherRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::DataMovement,
    .infer = GatherRules::infer,
    .decompose = none("a primitive"),
    .vjp = GatherRules::vjp,
    .jvp = GatherRules::jvp,
    .batch = GatherRules::batch,
    .reference = GatherRules::reference,
    .cost = GatherRules::cost,
    .samples = GatherRules::samples};

constinit const OpDef ops::ScatterAdd::def{
    .kind = kind,
    .name = "scatter_add",
    .what = "Updates added to the rows that integer indices name; out-of-range rows are dropped.",
    .inputs = inputs("operand", "indices", "updates"),
    .attrs = ScatterAddRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Reduction,
    .infer = ScatterAddRules::infer,
    .decompose = none("a primitive"),
    .vjp = ScatterAddRules::vjp,
    .jvp = ScatterAddRules::jvp,
    .batch = ScatterAddRules::batch,
    .reference = ScatterAddRules::reference,
    .cost = ScatterAddRules::cost,
    .samples = ScatterAddRules::samples};

}  // namespace rlx
