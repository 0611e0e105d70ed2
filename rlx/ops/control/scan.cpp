// Scan: runs a body once for every row of its xs, with values carried from step to step.
#include "rlx/ops/body.h"
#include "rlx/ops/control/loop.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

struct ScanRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Scan>();
    const std::int64_t n = c.num_inputs();
    if (op.length.size() != 1) return c.attr_error("length must be one dimension, got ", dims_text(op.length));
    const Dim& length = op.length[0];
    if (c.negative(length)) return c.attr_error("length must not be negative, got ", length);
    if (op.invariants < 0 || op.carries < 0 || op.invariants > n || op.carries > n - op.invariants)
      return c.attr_error("needs ", op.invariants, " invariants, then ", op.carries, " carries, then xs; got ", n,
                          " operands");
    const auto xs = static_cast<std::size_t>(op.invariants + op.carries);
    Shapes operands;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const Shape& s = c.input(static_cast<int>(i));
      if (i < xs) {
        operands.push_back(s);
        continue;
      }
      if (s.rank() == 0 || !(s.dim(0) == length))
        return c.error("axis 0 of x ", i - xs, " must have the length ", length, ", got ", s);
      operands.push_back(row_shape(s));
    }
    Result<Shapes> results = infer_body(c, *op.body, operands, "the body");
    if (!results) return results;
    return loop_results(c, *results, op.invariants, static_cast<std::size_t>(op.carries), length, "a step");
  }

  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Scan>();
    const LoopParts p = *loop_parts(a.box);
    const std::int64_t length = op.length[0].value();
    std::vector<Tensor> inputs(a.inputs.begin(), a.inputs.end());
    for (std::int64_t step = 0; step < length; ++step) {
      const std::int64_t t = op.reverse ? length - 1 - step : step;
      for (std::size_t x = p.first_x(); x < p.inputs(); ++x) inputs[x] = row_of(a.in(static_cast<int>(x)), t);
      std::vector<Tensor> results = run_body(*op.body, inputs);
      for (std::size_t y = 0; y < p.ys; ++y) set_row(a.out(static_cast<int>(p.carries + y)), t, results[p.carries + y]);
      for (std::size_t k = 0; k < p.carries; ++k) inputs[p.invariants + k] = std::move(results[k]);
    }
    for (std::size_t k = 0; k < p.carries; ++k) a.out(static_cast<int>(k)) = inputs[p.invariants + k];
  }

  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::Scan>();
    return repeated(body_cost(*op.body), static_cast<double>(op.length[0].value()));
  }

  // One scan carries values and tangents together.
  static void jvp(JvpContext& c) {
    const auto& op = c.op<ops::Scan>();
    const LoopParts p = *loop_parts(c.box());
    const JointLoop joint = joint_loop(c, *op.body, p);
    ops::Scan form = op;
    form.invariants = joint.invariants;
    form.carries = joint.carries;
    form.body = joint.body;
    set_joint_results(c, p, joint, add_node(c.graph(), std::move(form), joint.operands));
  }

  // The same scan, which also stacks the residuals of its body's derivative.
  static Augmented augment(const AugmentContext& c) {
    const auto& op = c.op<ops::Scan>();
    const auto notes =
        loop_reverse(c, *op.body, *loop_parts(c.box()), op.checkpoint ? CallSave::Nothing : CallSave::All);
    ops::Scan form = op;
    form.body = finished(Graph(notes->body.forward));
    return {std::move(form), notes, {}};
  }

  // A scan over the steps in reverse. Its carries are the cotangents of the carries, and the sums of the cotangents of
  // the invariants.
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::Scan>();
    const LoopParts p = *loop_parts(c.box());
    const auto& notes = c.notes<LoopReverse>();
    const BodyReverse& r = notes.body;
    Graph& g = c.graph();
    const Mask wanted_invariants = slice_of(notes.wanted, 0, p.invariants),
               wanted_carries = slice_of(notes.wanted, p.first_carry(), p.carries);

    // The operands of the backward scan, which are the inputs of its body in the same order.
    Graph body = like_body(r.backward);
    const Shapes inputs = input_shapes(*op.body), outputs = output_shapes(r.forward);
    Exprs given(r.inputs.size() + r.residuals.size() + count_of(notes.seeded));  // inputs of r.backward
    Exprs operands, sums, body_sums;
    ops::Scan back;
    const auto take = [&](Expr operand, const Shape& shape) {
      operands.push_back(operand);
      return body.input(concat_text("x", operands.size() - 1), shape);
    };
    const std::size_t first_seed = r.inputs.size() + r.residuals.size();
    std::vector<std::size_t> seed_of(p.outputs(), 0);
    for (std::size_t k = 0, at = first_seed; k < p.outputs(); ++k)
      if (notes.seeded[k]) seed_of[k] = at++;
    for (std::size_t k = 0; k < r.inputs.size(); ++k)
      if (r.inputs[k] < p.invariants) given[k] = take(c.input(static_cast<int>(r.inputs[k])), inputs[r.inputs[k]]);
    back.invariants = static_cast<std::int64_t>(operands.size());
    for (std::size_t k = 0; k < p.carries; ++k)
      if (wanted_carries[k]) given[seed_of[k]] = take(c.cotangent(static_cast<int>(k)), outputs[k]);
    for (std::size_t k = 0; k < p.invariants; ++k)
      if (wanted_invariants[k]) body_sums.push_back(take(c.zeros(inputs[k]), inputs[k]));
    back.carries = static_cast<std::int64_t>(operands.size()) - back.invariants;
    for (std::size_t k = 0; k < r.inputs.size(); ++k)
      if (r.inputs[k] >= p.invariants) given[k] = take(c.input(static_cast<int>(r.inputs[k])), inputs[r.inputs[k]]);
    for (std::size_t k = 0; k < r.residuals.size(); ++k) {
      const std::size_t at = r.residuals[k];
      given[r.inputs.size() + k] =
          take(at < p.outputs() ? c.output(static_cast<int>(at)) : c.residual(static_cast<int>(at - p.outputs())),
               outputs[at]);
    }
    for (std::size_t y = p.carries; y < p.outputs(); ++y)
      if (notes.seeded[y]) given[seed_of[y]] = take(c.cotangent(static_cast<int>(y)), outputs[y]);

    const Exprs cotangents = inline_body(body, r.backward, given);  // of the wanted inputs
    const std::size_t num_sums = count_of(wanted_invariants), num_carries = count_of(wanted_carries);
    Exprs results(cotangents.begin() + static_cast<std::ptrdiff_t>(num_sums),
                  cotangents.begin() + static_cast<std::ptrdiff_t>(num_sums + num_carries));
    for (std::size_t k = 0; k < num_sums; ++k) results.push_back(body.add(body_sums[k], cotangents[k]));
    results.insert(results.end(), cotangents.begin() + static_cast<std::ptrdiff_t>(num_sums + num_carries),
                   cotangents.end());
    back.length = op.length;
    back.reverse = !op.reverse;
    back.checkpoint = op.checkpoint;
    back.body = finished(body, results);
    const Exprs out = add_node(g, std::move(back), operands);
    accumulate_loop(c, p, notes.wanted, out);
  }

  static void batch(BatchContext& c) {
    const auto& op = c.op<ops::Scan>();
    const LoopParts p = *loop_parts(c.box());
    const Mask batched = batched_inputs(c, p, *op.body), lifted = batched_outputs(p, *op.body, batched);
    ops::Scan form = op;
    form.body = finished(body_vmap(*op.body, batched, c.batch_size(), lifted));
    set_batched_results(c, p, lifted, add_node(c.graph(), std::move(form), batched_operands(c, p, batched)));
  }

  static constexpr AttrField attrs[] = {
      field<&ops::Scan::invariants>("invariants"), field<&ops::Scan::carries>("carries"),
      field<&ops::Scan::length>("length"),         field<&ops::Scan::reverse>("reverse"),
      field<&ops::Scan::checkpoint>("checkpoint"), field<&ops::Scan::body>("body")};
};

}  // namespace

constinit const OpDef ops::Scan::def{.kind = kind,
                                     .name = "scan",
                                     .what = "Runs a body for each row of xs, and carries values from step to step.",
                                     .inputs = variadic_inputs("x", 0),
                                     .attrs = ScanRules::attrs,
                                     .level = Level::Mir,
                                     .leaf = LeafKind::None,
                                     .elementwise = ElementwiseKind::No,
                                     .view = ViewKind::None,
                                     .precision = PrecisionCategory::Stated,
                                     .infer = ScanRules::infer,
                                     .decompose = none("a loop is not unrolled"),
                                     .vjp = ScanRules::vjp,
                                     .jvp = ScanRules::jvp,
                                     .batch = ScanRules::batch,
                                     .reference = ScanRules::reference,
                                     .cost = ScanRules::cost,
                                     .augment = ScanRules::augment,
                                     .bodies = BodyKind::Programs};

}  // namespace rlx
