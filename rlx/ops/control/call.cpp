// Call: a named body, with the choice of what reverse mode keeps of it, or with custom derivatives.
#include "rlx/ir/rewrite.h"
#include "rlx/ops/body.h"
#include "rlx/ops/control/control.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

Shapes joined(Shapes a, const Shapes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Shapes inexact_among(const Shapes& shapes) { return marked(shapes, inexact_of(shapes)); }

// The error when `got` is not what `what` must return; none when it is.
std::optional<Diagnostic> compare(const InferContext& c, const Shapes& got, const Shapes& wanted, std::size_t count,
                                  std::string_view what) {
  if (got.size() < wanted.size() || (count != 0 && got.size() != count))
    return c.error(what, " gives ", got.size(), " values, not ", wanted.size());
  for (std::size_t k = 0; k < wanted.size(); ++k)
    if (!(got[k] == wanted[k])) return c.error("value ", k, " of ", what, " is ", got[k], ", not ", wanted[k]);
  return std::nullopt;
}

struct CallNotes {
  BodyReverse body;
  Mask wanted, seeded;
  // outputs of body.forward between the results and the new residuals; the augmented op drops them
  std::size_t skipped = 0;
};

struct CallRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Call>();
    const Shapes operands = c.inputs();
    Result<Shapes> results = infer_body(c, *op.body, operands, "the body");
    if (!results) return results;
    if (op.forward && !op.backward) return c.attr_error("has a forward body, but no backward body");
    Shapes residuals = joined(operands, *results);
    if (op.forward) {
      const Result<Shapes> given = infer_body(c, *op.forward, operands, "forward");
      if (!given) return given;
      if (auto problem = compare(c, *given, *results, 0, "forward")) return *std::move(problem);
      residuals.assign(given->begin() + static_cast<std::ptrdiff_t>(results->size()), given->end());
    }
    const Shapes tangents = inexact_among(operands);
    if (op.backward) {
      const Result<Shapes> given = infer_body(c, *op.backward, joined(residuals, inexact_among(*results)), "backward");
      if (!given) return given;
      if (auto problem = compare(c, *given, tangents, tangents.size(), "backward")) return *std::move(problem);
    }
    if (op.jvp) {
      const Result<Shapes> given = infer_body(c, *op.jvp, joined(operands, tangents), "jvp");
      if (!given) return given;
      const Shapes wanted = joined(*results, inexact_among(*results));
      if (auto problem = compare(c, *given, wanted, wanted.size(), "jvp")) return *std::move(problem);
    }
    return results;
  }

  static void decompose(DecomposeContext& c) {
    const Exprs outputs = inline_body(c.graph(), *c.op<ops::Call>().body, c.inputs());
    for (std::size_t r = 0; r < outputs.size(); ++r) c.set_result(static_cast<int>(r), outputs[r]);
  }
  static void reference(const RefArgs& a) {
    std::vector<Tensor> results = run_body(*a.op<ops::Call>().body, a.inputs);
    for (std::size_t r = 0; r < results.size(); ++r) a.out(static_cast<int>(r)) = std::move(results[r]);
  }
  static Cost cost(const CostContext& c) { return body_cost(*c.op<ops::Call>().body); }

  static Exprs operands_of(const BuildContext& c) { return {c.inputs().begin(), c.inputs().end()}; }

  static void jvp(JvpContext& c) {
    const auto& op = c.op<ops::Call>();
    Exprs operands = operands_of(c);
    Mask moving, wanted;
    if (op.jvp) {
      for (int i = 0; i < c.num_inputs(); ++i)
        if (is_inexact(c.input(i).dtype())) operands.push_back(c.tangent(i));
      wanted = inexact_of(output_shapes(*op.body));
    } else if (op.backward) {
      throw Error(ErrorCode::Unsupported,
                  concat_text("jvp: '", op.body->name(), "' has a custom backward body, but no jvp body"),
                  "give custom_fn a jvp body too, or use reverse mode");
    } else {
      for (int i = 0; i < c.num_inputs(); ++i) {
        moving.push_back(c.has_tangent(i));
        if (c.has_tangent(i)) operands.push_back(c.tangent(i));
      }
      wanted = both(body_depends(*op.body, moving, true), inexact_of(output_shapes(*op.body)));
    }
    ops::Call form;
    form.save = op.save;
    form.body = op.jvp ? op.jvp : finished(body_jvp(*op.body, moving, wanted));
    const Exprs results = add_node(c.graph(), std::move(form), operands);
    std::size_t at = wanted.size();
    for (std::size_t r = 0; r < wanted.size(); ++r) {
      c.replace_output(static_cast<int>(r), results[r]);
      if (wanted[r]) c.set_tangent(static_cast<int>(r), results[at++]);
    }
  }

  static Augmented augment(const AugmentContext& c) {
    const auto& op = c.op<ops::Call>();
    if (op.backward) {
      if (!op.forward) return {c.box()};
      ops::Call form;
      form.body = op.forward;
      return {std::move(form)};
    }
    auto notes = std::make_shared<CallNotes>();
    for (int i = 0; i < c.num_inputs(); ++i) notes->wanted.push_back(c.is_active(i));
    for (int r = 0; r < c.num_results(); ++r)
      notes->seeded.push_back(c.is_reached(r) && is_inexact(c.result_shape(r).dtype()));
    const std::size_t operands = notes->wanted.size(), results = notes->seeded.size();
    BodyReverseRequest request{notes->wanted,        notes->seeded,       op.save,
                               Mask(operands, true), Mask(results, true), Mask(operands, false)};
    ops::Call form;
    form.save = op.save;
    if (op.jvp) {  // reverse mode of the jvp's tangents, which are linear in its tangent operands
      const Mask inexact = inexact_of(output_shapes(*op.body));
      Mask tangents;
      for (std::size_t i = 0; i < operands; ++i)
        if (is_inexact(c.input(static_cast<int>(i)).dtype())) tangents.push_back(notes->wanted[i]);
      request.wanted.assign(operands, false);
      append(request.wanted, tangents);
      request.seeded.assign(results, false);
      append(request.seeded, marked(notes->seeded, inexact));
      request.kept_inputs.resize(request.wanted.size(), true);
      request.kept_outputs.resize(request.seeded.size(), false);
      request.invariant.resize(request.wanted.size(), false);
      notes->body = body_vjp(*op.jvp, request);
      notes->skipped = count_of(inexact);
      Graph body = like_body(notes->body.forward);
      const Shapes shapes = input_shapes(*op.jvp);
      Exprs inputs =
          add_inputs(body, Shapes(shapes.begin(), shapes.begin() + static_cast<std::ptrdiff_t>(operands)), "x");
      for (std::size_t k = operands; k < shapes.size(); ++k) inputs.push_back(zeros_in(body, shapes[k]));
      Exprs outputs = inline_body(body, notes->body.forward, inputs);
      outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(results),
                    outputs.begin() + static_cast<std::ptrdiff_t>(results + notes->skipped));
      form.body = finished(body, outputs);
    } else {
      notes->body = body_vjp(*op.body, request);
      form.body = finished(Graph(notes->body.forward));
    }
    return {std::move(form), std::move(notes)};
  }

  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::Call>();
    if (op.backward) return custom_vjp(c, op);
    const auto& notes = c.notes<CallNotes>();
    const BodyReverse& r = notes.body;
    Graph& g = c.graph();
    Exprs operands;
    const Shapes inputs = input_shapes(r.backward);
    for (std::uint32_t k : r.inputs)  // the transpose does not depend on a tangent of a jvp body, so any value serves
      operands.push_back(k < notes.wanted.size() ? c.input(static_cast<int>(k)) : c.zeros(inputs[operands.size()]));
    const std::size_t results = notes.seeded.size();
    for (std::uint32_t k : r.residuals)
      operands.push_back(k < results ? c.output(static_cast<int>(k))
                                     : c.residual(static_cast<int>(k - results - notes.skipped)));
    for (std::size_t k = 0; k < results; ++k)
      if (notes.seeded[k]) operands.push_back(c.cotangent(static_cast<int>(k)));
    // Recomputed nodes wait for the cotangents and must not be merged with the first computation.
    if (op.save != CallSave::All) operands = add_node(g, ops::OptimizationBarrier{}, operands);
    ops::Call back;
    back.save = op.save;
    back.body = finished(Graph(r.backward));
    const Exprs out = add_node(g, std::move(back), operands);
    std::size_t at = 0;
    for (std::size_t k = 0; k < notes.wanted.size(); ++k) {
      if (!notes.wanted[k]) continue;
      // Nothing flows further from the constant 0, where 0 times an infinite slope is NaN. The 0 of a user's rule does:
      // an operand whose derivative is an error is told so.
      const bool still = !op.jvp && constant_scalar(r.backward, r.backward.outputs()[at]) == 0.0;
      if (!still) c.accumulate(static_cast<int>(k), out[at]);
      ++at;
    }
  }

  static void custom_vjp(VjpContext& c, const ops::Call& op) {
    Exprs operands;
    if (op.forward) {
      for (int k = 0; k < c.num_residuals(); ++k) operands.push_back(c.residual(k));
    } else {
      operands = operands_of(c);
      for (int r = 0; r < c.num_results(); ++r) operands.push_back(c.output(r));
    }
    for (int r = 0; r < c.num_results(); ++r)
      if (is_inexact(c.result_shape(r).dtype())) operands.push_back(c.cotangent(r));
    ops::Call back;
    back.body = op.backward;
    const Exprs out = add_node(c.graph(), std::move(back), operands);
    std::size_t at = 0;
    for (int i = 0; i < c.num_inputs(); ++i)
      if (is_inexact(c.input(i).dtype())) c.accumulate(i, out[at++]);
  }

  static void batch(BatchContext& c) {
    const auto& op = c.op<ops::Call>();
    const Dim batch = c.batch_size();
    Mask batched, tangents;
    for (int i = 0; i < c.num_inputs(); ++i) {
      batched.push_back(c.is_batched(i));
      if (is_inexact(c.input(i).dtype())) tangents.push_back(c.is_batched(i));
    }
    const auto all_of = [](const Graph& body) { return Mask(body.outputs().size(), true); };
    ops::Call form;
    form.save = op.save;
    form.body = finished(body_vmap(*op.body, batched, batch, all_of(*op.body)));
    if (op.forward) form.forward = finished(body_vmap(*op.forward, batched, batch, all_of(*op.forward)));
    if (op.jvp) {
      Mask inputs = batched;
      append(inputs, tangents);
      form.jvp = finished(body_vmap(*op.jvp, inputs, batch, all_of(*op.jvp)));
    }
    if (op.backward) {
      Mask inputs(num_body_inputs(*op.backward), true);
      if (!op.forward) std::copy(batched.begin(), batched.end(), inputs.begin());
      const Graph each = body_vmap(*op.backward, inputs, batch, all_of(*op.backward));
      Graph body = like_body(each);
      Exprs outputs = inline_body(body, each, add_inputs(body, input_shapes(each), "x"));
      for (std::size_t k = 0; k < outputs.size(); ++k)
        if (!tangents[k]) outputs[k] = body.sum(outputs[k], {0});  // all examples share the operand
      form.backward = finished(body, outputs);
    }
    const Exprs results = add_node(c.graph(), std::move(form), operands_of(c));
    for (std::size_t r = 0; r < results.size(); ++r) c.set_result(static_cast<int>(r), results[r]);
  }

  static constexpr AttrField attrs[] = {
      field<&ops::Call::save>("save"), field<&ops::Call::body>("body"), optional_body<&ops::Call::forward>("forward"),
      optional_body<&ops::Call::backward>("backward"), optional_body<&ops::Call::jvp>("jvp")};
};

}  // namespace

constinit const OpDef ops::Call::def{
    .kind = kind,
    .name = "call",
    .what = "A named body: a function, a checkpoint, or a function with custom derivatives.",
    .inputs = variadic_inputs("x", 0),
    .attrs = CallRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = CallRules::infer,
    .decompose = CallRules::decompose,
    .vjp = CallRules::vjp,
    .jvp = CallRules::jvp,
    .batch = CallRules::batch,
    .reference = CallRules::reference,
    .cost = CallRules::cost,
    .augment = CallRules::augment,
    .bodies = BodyKind::Programs};

}  // namespace rlx
