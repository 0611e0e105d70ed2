// Derivatives and batching of loops that do not depend on how a loop ends.
#include "rlx/ops/control/loop.h"

#include "rlx/ops/rule_helpers.h"

namespace rlx {

Result<Shapes> loop_results(const InferContext& c, const Shapes& body_results, std::int64_t invariants,
                            std::size_t carries, const Dim& rows, std::string_view step) {
  if (body_results.size() < carries)
    return c.attr_error("the body returns ", body_results.size(), " values, fewer than the ", carries, " carries");
  Shapes out;
  for (std::size_t r = 0; r < body_results.size(); ++r) {
    if (r >= carries) {
      out.push_back(stacked_shape(rows, body_results[r]));
      continue;
    }
    const Shape& before = c.input(static_cast<int>(invariants) + static_cast<int>(r));
    if (!(body_results[r] == before)) {
      Diagnostic d = c.error("carry ", r, " is ", before, " before ", step, " and ", body_results[r], " after it");
      d.hint = "a carry must keep its shape and dtype: cast it in the body, or change the initial value";
      return d;
    }
    out.push_back(before);
  }
  return out;
}

Mask loop_closure(const Graph& body, const LoopParts& p, Mask moving, bool inexact_only) {
  for (bool more = true; more;) {
    more = false;
    const Mask out = body_depends(body, moving, inexact_only);
    for (std::size_t c = 0; c < p.carries; ++c)
      if (out[c] && !moving[p.first_carry() + c]) moving[p.first_carry() + c] = more = true;
  }
  return moving;
}

namespace {
// Which outputs of the body depend on the marked inputs. A marked carry counts as dependent.
Mask outputs_moving(const Graph& body, const LoopParts& p, const Mask& inputs, bool inexact_only) {
  Mask out = body_depends(body, inputs, inexact_only);
  for (std::size_t k = 0; k < p.carries; ++k) out[k] = inputs[p.first_carry() + k];
  return out;
}
}  // namespace

JointLoop joint_loop(const JvpContext& c, const Graph& body, const LoopParts& p) {
  Mask moving;
  for (int i = 0; i < c.num_inputs(); ++i) moving.push_back(c.has_tangent(i));
  const Shapes shapes = input_shapes(body);
  moving = both(loop_closure(body, p, std::move(moving), true), inexact_of(shapes));
  JointLoop out;
  out.wanted = outputs_moving(body, p, moving, true);
  out.places.resize(p.inputs());
  const Graph joint = body_jvp(body, moving, out.wanted);
  // The groups of the joint body: inputs, then tangents of the moving ones; outputs likewise.
  std::vector<std::size_t> in, results;
  std::size_t tangent = p.inputs();
  const auto inputs_of = [&](std::size_t first, std::size_t count) {
    for (std::size_t k = first; k < first + count; ++k) {
      out.places[k] = out.operands.size();
      in.push_back(k);
      out.shapes.push_back(shapes[k]);
      out.operands.push_back(c.input(static_cast<int>(k)));
    }
    for (std::size_t k = first; k < first + count; ++k)
      if (moving[k]) {
        in.push_back(tangent++);
        out.shapes.push_back(shapes[k]);
        out.operands.push_back(c.tangent(static_cast<int>(k)));
      }
  };
  inputs_of(0, p.invariants);
  out.invariants = static_cast<std::int64_t>(out.operands.size());
  inputs_of(p.first_carry(), p.carries);
  out.carries = static_cast<std::int64_t>(out.operands.size()) - out.invariants;
  inputs_of(p.first_x(), p.xs);
  const auto outputs_of = [&](std::size_t first, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) results.push_back(first + k);
  };
  const std::size_t moving_carries = count_of(slice_of(moving, p.first_carry(), p.carries));
  outputs_of(0, p.carries);
  outputs_of(p.outputs(), moving_carries);
  outputs_of(p.carries, p.ys);
  outputs_of(p.outputs() + moving_carries, count_of(out.wanted) - moving_carries);
  out.body = finished(permuted(joint, in, results));
  return out;
}

void set_joint_results(JvpContext& c, const LoopParts& p, const JointLoop& joint, const Exprs& results) {
  const std::size_t tangents = static_cast<std::size_t>(joint.carries) - p.carries;
  std::size_t at_carry = p.carries, at_y = p.outputs() + tangents;
  for (std::size_t r = 0; r < p.outputs(); ++r) {
    const bool carry = r < p.carries;
    c.replace_output(static_cast<int>(r), results[carry ? r : r + tangents]);
    if (joint.wanted[r]) c.set_tangent(static_cast<int>(r), results[carry ? at_carry++ : at_y++]);
  }
}

std::shared_ptr<const LoopReverse> loop_reverse(const AugmentContext& c, const Graph& body, const LoopParts& p,
                                                CallSave save) {
  Mask active;
  for (int i = 0; i < c.num_inputs(); ++i) active.push_back(c.is_active(i));
  BodyReverseRequest request;
  request.wanted = both(loop_closure(body, p, std::move(active), true), inexact_of(input_shapes(body)));
  request.seeded = outputs_moving(body, p, request.wanted, true);
  for (std::size_t y = p.carries; y < p.outputs(); ++y)
    request.seeded[y] = request.seeded[y] && c.is_reached(static_cast<int>(y));
  request.save = save;
  request.kept_inputs.assign(p.inputs(), true);
  std::fill_n(request.kept_inputs.begin() + static_cast<std::ptrdiff_t>(p.first_carry()), p.carries, false);
  for (std::size_t r = 0; r < p.outputs(); ++r) request.kept_outputs.push_back(r >= p.carries);
  request.invariant.assign(p.inputs(), false);
  std::fill_n(request.invariant.begin(), p.invariants, true);
  auto out = std::make_shared<LoopReverse>();
  out->body = body_vjp(body, request);
  out->wanted = request.wanted;
  out->seeded = request.seeded;
  return out;
}

void accumulate_loop(VjpContext& c, const LoopParts& p, const Mask& wanted, const Exprs& results) {
  std::size_t at = 0;
  const auto take = [&](std::size_t first, std::size_t count) {
    for (std::size_t k = first; k < first + count; ++k)
      if (wanted[k]) c.accumulate(static_cast<int>(k), results[at++]);
  };
  take(p.first_carry(), p.carries);
  take(0, p.invariants);
  take(p.first_x(), p.xs);
}

Mask batched_inputs(const BatchContext& c, const LoopParts& p, const Graph& body) {
  Mask batched;
  for (int i = 0; i < c.num_inputs(); ++i) batched.push_back(c.is_batched(i));
  return loop_closure(body, p, std::move(batched), false);
}

Mask batched_outputs(const LoopParts& p, const Graph& body, const Mask& batched) {
  Mask lifted = body_depends(body, batched, false);
  for (std::size_t k = 0; k < p.carries; ++k) lifted[k] = batched[p.first_carry() + k];
  return lifted;
}

Exprs batched_operands(const BatchContext& c, const LoopParts& p, const Mask& batched) {
  Exprs out;
  for (std::size_t i = 0; i < p.inputs(); ++i) {
    const int k = static_cast<int>(i);
    if (!batched[i])
      out.push_back(c.input(k));
    else
      out.push_back(i >= p.first_x() ? swap_leading(c.graph(), c.input(k)) : c.lifted(k));
  }
  return out;
}

void set_batched_results(BatchContext& c, const LoopParts& p, const Mask& lifted, const Exprs& results) {
  Graph& g = c.graph();
  for (std::size_t r = 0; r < results.size(); ++r) {
    Expr e = results[r];
    if (r >= lifted.size() || !lifted[r])
      e = g.expand(e, prepend(c.batch_size(), e.shape().dims()));
    else if (r >= p.carries)
      e = swap_leading(g, e);
    c.set_result(static_cast<int>(r), e);
  }
}

}  // namespace rlx
