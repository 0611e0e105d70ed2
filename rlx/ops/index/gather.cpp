// Gather: elements selected by index tensors, one for each indexed axis.
#include "rlx/ir/ops/indexing.h"
#include "rlx/ops/index/indexed.h"

namespace rlx {
namespace {

struct GatherRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Gather>();
    const Shape& table = c.input(0);
    if (auto error = check_indexed(c, table, op.axes, 0)) return *error;
    if (op.mode == IndexMode::Drop) return c.attr_error("does not support mode drop: use clamp, or fill with a value");
    if (op.mode == IndexMode::Clamp) {
      if (auto error = check_clamped(c, table, op.axes, c.input(1))) return *error;
      if (op.fill != 0) return c.attr_error("has a fill value ", op.fill, ", which mode clamp does not use");
    } else if (table.dtype() == DType::Bool ? op.fill != 0 && op.fill != 1
                                            : detail::not_held(table.dtype(), op.fill).has_value()) {
      return c.dtype_error("the fill value ", op.fill, " is not a value of ", dtype_name(table.dtype()));
    }
    return make_shapes(Shape(picked_dims(table, c.input(1).dims(), op.axes), table.dtype()));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Gather>();
    const auto dims = a.in(0).dims();
    const IndexedBlocks blocks(dims, op.axes);
    const std::int64_t count = a.in(1).num_elements();
    const DType t = a.out().dtype();
    std::byte* out = a.out().mutable_data();
    const std::vector<std::int64_t> run{blocks.run};
    for (std::int64_t o = 0; o < blocks.outer; ++o)
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t to = (o * count + i) * blocks.size();
        const auto from = block_at(blocks, a.inputs.subspan(1), i, op.mode == IndexMode::Clamp);
        for (std::size_t r = 0; from && r < blocks.rows.size(); ++r)
          copy_strided(t, run, out, {to + static_cast<std::int64_t>(r) * blocks.run, {1}}, a.in(0).data(),
                       {o * blocks.outer_stride + *from + blocks.rows[r], {1}});
        for (std::int64_t k = 0; !from && k < blocks.size(); ++k) store_element(out, t, to + k, op.fill);
      }
  }
  // Only the selected elements are read.
  static Cost cost(const CostContext& c) {
    const auto bytes = static_cast<double>(c.outputs[0].size_bytes());
    double read = bytes;
    for (std::size_t i = 1; i < c.inputs.size(); ++i) read += static_cast<double>(c.inputs[i].size_bytes());
    return {0, read, bytes};
  }
  static std::vector<Value> with_indices(const BuildContext& c, Expr first) {
    std::vector<Value> operands{first};
    for (int i = 1; i < c.num_inputs(); ++i) operands.push_back(c.input(i));
    return operands;
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0)) return;
    const auto& op = c.op<ops::Gather>();
    std::vector<Value> operands = with_indices(c, c.zeros(c.input(0).shape()));
    operands.push_back(c.cotangent());
    const IndexMode mode = op.mode == IndexMode::Clamp ? IndexMode::Clamp : IndexMode::Drop;
    c.accumulate(0, c.graph().add(ops::Scatter{ScatterKind::Add, op.axes, mode}, std::move(operands)));
  }
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    ops::Gather op = c.op<ops::Gather>();
    op.fill = 0;
    c.set_tangent(c.graph().add(op, with_indices(c, c.tangent(0))));
  }
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    ops::Gather op = c.op<ops::Gather>();
    const std::int64_t first = op.axes.front();
    bool indices_batched = false;
    for (int i = 1; i < c.num_inputs(); ++i) indices_batched = indices_batched || c.is_batched(i);
    if (!indices_batched) {
      op.axes = shifted(op.axes);
      return c.set_result(g.add(op, with_indices(c, c.input(0))));
    }
    if (!c.is_batched(0)) {  // [pre.., B, indices.., rest..]
      std::vector<Value> operands{c.input(0)};
      for (int i = 1; i < c.num_inputs(); ++i) operands.push_back(c.lifted(i));
      const Expr out = g.add(op, std::move(operands));
      return c.set_result(g.transpose(out, move_axis(out.rank(), first, 0)));
    }
    op.axes = shifted(op.axes);
    op.axes.insert(op.axes.begin(), 0);
    std::vector<Value> operands = batched_indices(c, 1, c.num_inputs());
    operands.insert(operands.begin(), c.input(0));
    const Expr out = g.add(op, std::move(operands));
    // [B, indices.., pre.., rest..] -> [B, pre.., indices.., rest..]
    const std::int64_t num_index_axes = c.rank(1);
    std::vector<std::int64_t> perm{0};
    for (std::int64_t i = 0; i < first; ++i) perm.push_back(1 + num_index_axes + i);
    for (std::int64_t i = 0; i < num_index_axes; ++i) perm.push_back(1 + i);
    for (std::int64_t i = 1 + num_index_axes + first; i < out.rank(); ++i) perm.push_back(i);
    c.set_result(g.transpose(out, perm));
  }
  static constexpr AttrField attrs[] = {field<&ops::Gather::axes>("axes"), field<&ops::Gather::mode>("mode"),
                                        field<&ops::Gather::fill>("fill")};
};

}  // namespace

constinit const OpDef ops::Gather::def{
    .kind = kind,
    .name = "gather",
    .what =
        "Elements of a table selected along some axes by integer indices, which are clamped, or filled out of range.",
    .inputs = inputs("table", "indices").more(),
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
    .cost = GatherRules::cost};

}  // namespace rlx
