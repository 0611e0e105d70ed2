// Folds a batch axis into the batch axis of an op.
#include "rlx/ops/fold_batch.h"

#include <string>
#include <vector>

#include "rlx/ir/rewrite/body_transforms.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// [N, .., B at `axis`, ..] -> [.., N B, ..]; `axis` counts without N.
Expr folded(Graph& g, Expr e, int axis) {
  std::vector<std::int64_t> perm;
  Dims dims;
  for (int i = 1; i < e.rank(); ++i) {
    if (i == axis + 1) perm.push_back(0);
    perm.push_back(i);
    dims.push_back(i == axis + 1 ? e.dim(0) * e.dim(i) : e.dim(i));
  }
  return g.reshape(g.transpose(e, std::move(perm)), std::move(dims));
}
// The inverse, for a result of unbatched shape `shape`.
Expr unfolded(Graph& g, Expr e, int axis, const Dim& batch, const Shape& shape) {
  Dims dims;
  std::vector<std::int64_t> perm{axis};
  for (int i = 0; i < shape.rank(); ++i) {
    if (i == axis) dims.push_back(batch);
    dims.push_back(shape.dim(i));
    perm.push_back(i < axis ? i : i + 1);
  }
  return g.transpose(g.reshape(e, std::move(dims)), std::move(perm));
}

void batch_decomposition(BatchContext& c) {
  Graph body("batched");
  body.set_symbols(c.graph().symbols());
  std::vector<Expr> inputs;
  Mask batched;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape& s = c.input(i).shape();
    const Shape own = c.is_batched(i) ? Shape(Dims(s.dims().begin() + 1, s.dims().end()), s.dtype()) : s;
    inputs.push_back(body.input(concat_text("x", i), own));
    batched.push_back(c.is_batched(i));
  }
  const std::vector<Expr> outputs = decompose_into(body, c.box(), inputs);
  body.set_outputs(std::vector<Value>(outputs.begin(), outputs.end()));
  const Graph many = body_vmap(body, batched, c.batch_size(), Mask(outputs.size(), true));
  const std::vector<Expr> results = inline_body(c.graph(), many, c.inputs());
  for (std::size_t r = 0; r < results.size(); ++r) c.set_result(static_cast<int>(r), results[r]);
}

}  // namespace

void fold_batch(BatchContext& c, std::initializer_list<std::pair<std::string_view, int>> operands,
                std::initializer_list<int> results) {
  std::vector<int> axis(static_cast<std::size_t>(c.num_inputs()), -1);
  for (const auto& o : operands)
    if (c.has(o.first)) axis[static_cast<std::size_t>(c.index(o.first))] = o.second;
  Graph& g = c.graph();
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const int at = axis[static_cast<std::size_t>(i)];
    if (at < 0 && c.is_batched(i)) return batch_decomposition(c);
    inputs.push_back(at < 0 ? c.input(i) : folded(g, c.lifted(i), at));
  }
  const Expr first = g.add(c.box(), std::move(inputs));
  std::uint32_t r = 0;
  for (int at : results) {
    c.set_result(static_cast<int>(r),
                 unfolded(g, first.result(r), at, c.batch_size(), c.result_shape(static_cast<int>(r))));
    ++r;
  }
}

}  // namespace rlx
