// Gather and ScatterAdd: rows read from, and added to, positions given by an index tensor.
#include <algorithm>
#include <cstring>

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

struct GatherRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &table = c.input(0), &indices = c.input(1);
    const std::int64_t axis = c.op<ops::Gather>().axis;
    if (auto error = c.check_axis(axis, table)) return *error;
    if (!is_index(indices.dtype())) return c.dtype_error("indices must be i32 or i64, not ", indices, "; cast them");
    if (table.dim(static_cast<int>(axis)).is_static(0) && !indices.num_elements_dim().is_static(0))
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
        copy_strided(t, row, out, {(o * count + i) * s.inner, {1}}, a.in(0).data(), {(o * s.extent + at) * s.inner, {1}});
      }
  }
  // Only the picked rows are touched.
  static Cost cost(const CostContext& c) {
    const auto bytes = static_cast<double>(c.outputs[0].size_bytes());
    return {0, bytes + static_cast<double>(c.inputs[1].size_bytes()), bytes};
  }
  static void samples(SampleSet& s) {
    const Shape ids({3}, DType::I32);
    s.add("rows", {Shape({4, 2}, DType::F32), SampleInput(ids, Fill::Index, 4)}, ops::Gather{0});
    s.add("matrix of ids", {Shape({4, 2}, DType::F32), SampleInput(Shape({2, 3}, DType::I64), Fill::Index, 4)}, ops::Gather{0});
    s.add("columns", {Shape({2, 4}, DType::F64), SampleInput(ids, Fill::Index, 4)}, ops::Gather{1});
    s.add("middle axis", {Shape({2, 3, 2}, DType::F32), SampleInput(Shape({2, 1}, DType::I32), Fill::Index, 3)}, ops::Gather{1});
    s.add("scalar id", {Shape({3, 2}, DType::F32), SampleInput(Shape({}, DType::I64), Fill::Index, 3)}, ops::Gather{0});
    s.add("clamped", {Shape({2, 2}, DType::F32), SampleInput(Shape({6}, DType::I32), Fill::Small)}, ops::Gather{0});
    s.add("half", {Shape({3}, DType::BF16), SampleInput(ids, Fill::Index, 3)}, ops::Gather{0});
    s.add("complex", {Shape({3}, DType::C64), SampleInput(ids, Fill::Index, 3)}, ops::Gather{0});
    s.add_discrete("no ids", {Shape({3, 2}, DType::F32), SampleInput(Shape({0}, DType::I32), Fill::Index, 3)}, ops::Gather{0});
    s.add_discrete("i64 table", {SampleInput(Shape({3, 2}, DType::I64), Fill::Small), SampleInput(ids, Fill::Index, 2)}, ops::Gather{1});
    s.add_discrete("bool table", {SampleInput(Shape({3}, DType::Bool), Fill::Boolean), SampleInput(ids, Fill::Index, 3)}, ops::Gather{0});
  }
  static constexpr AttrField attrs[] = {field<&ops::Gather::axis>("axis")};
};

struct ScatterAddRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &operand = c.input(0), &indices = c.input(1), &updates = c.input(2);
    const std::int64_t axis = c.op<ops::ScatterAdd>().axis;
    if (auto error = c.check_axis(axis, operand)) return *error;
    if (!is_index(indices.dtype())) return c.dtype_error("indices must be i32 or i64, not ", indices, "; cast them");
    if (operand.dtype() == DType::Bool || is_storage_only(operand.dtype())) return c.dtype_error("cannot add values of ", operand);
    if (operand.dtype() != updates.dtype()) return c.dtype_error("updates ", updates, " must have the dtype of operand ", operand);
    const Dims expected = rows_dims(operand, indices, axis);
    if (!(updates.dims() == expected))
      return c.error("updates ", updates, " must be ", dims_text(expected), " for operand ", operand, ", indices ", indices, " and axis ", axis);
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
  static void samples(SampleSet& s) {
    const Shape ids({3}, DType::I32);
    s.add("rows", {Shape({4, 2}, DType::F32), SampleInput(ids, Fill::Index, 4), Shape({3, 2}, DType::F32)}, ops::ScatterAdd{0});
    s.add("duplicates", {Shape({3}, DType::F32), SampleInput(Shape({5}, DType::I64), Fill::Index, 2), Shape({5}, DType::F32)},
          ops::ScatterAdd{0});
    s.add("dropped", {Shape({2}, DType::F64), SampleInput(Shape({6}, DType::I32), Fill::Small), Shape({6}, DType::F64)},
          ops::ScatterAdd{0});
    s.add("columns", {Shape({2, 3}, DType::F32), SampleInput(Shape({2, 2}, DType::I32), Fill::Index, 3), Shape({2, 2, 2}, DType::F32)},
          ops::ScatterAdd{1});
    s.add("scalar id", {Shape({3, 2}, DType::F32), SampleInput(Shape({}, DType::I64), Fill::Index, 3), Shape({2}, DType::F32)},
          ops::ScatterAdd{0});
    s.add("half", {Shape({3}, DType::BF16), SampleInput(ids, Fill::Index, 3), Shape({3}, DType::BF16)}, ops::ScatterAdd{0});
    s.add("complex", {Shape({3}, DType::C64), SampleInput(ids, Fill::Index, 3), Shape({3}, DType::C64)}, ops::ScatterAdd{0});
    s.add("no updates", {Shape({2, 2}, DType::F32), SampleInput(Shape({0}, DType::I32), Fill::Index), Shape({0, 2}, DType::F32)},
          ops::ScatterAdd{0});
    s.add_discrete("i32", {SampleInput(Shape({3}, DType::I32), Fill::Small), SampleInput(ids, Fill::Index, 3),
                           SampleInput(Shape({3}, DType::I32), Fill::Small)}, ops::ScatterAdd{0});
  }
  static constexpr AttrField attrs[] = {field<&ops::ScatterAdd::axis>("axis")};
};

}  // namespace

constinit const OpDef ops::Gather::def{
    .kind = kind, .name = "gather", .inputs = inputs("table", "indices"), .attrs = GatherRules::attrs, .level = Level::Mir,
    .infer = GatherRules::infer, .decompose = none("a primitive"), .reference = GatherRules::reference, .cost = GatherRules::cost,
    .samples = GatherRules::samples};

constinit const OpDef ops::ScatterAdd::def{
    .kind = kind, .name = "scatter_add", .inputs = inputs("operand", "indices", "updates"), .attrs = ScatterAddRules::attrs,
    .level = Level::Mir, .infer = ScatterAddRules::infer, .decompose = none("a primitive"), .reference = ScatterAddRules::reference,
    .cost = ScatterAddRules::cost, .samples = ScatterAddRules::samples};

}  // namespace rlx
