// If: runs one of two bodies.
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ops/body.h"
#include "rlx/ops/control/control.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

const Graph& branch_of(const ops::If& op, int b) { return b == 0 ? *op.then : *op.otherwise; }

Mask either(Mask a, const Mask& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] || b[i];
  return a;
}

Mask results_depending(const ops::If& op, const Mask& operands, bool inexact_only) {
  return either(body_depends(*op.then, operands, inexact_only), body_depends(*op.otherwise, operands, inexact_only));
}

// The residuals of both branches share results. Each slot holds a value of the branch that runs, or zeros.
struct IfNotes {
  BodyReverse branch[2];
  std::vector<std::size_t> slots[2];  // by branch: the slot of each of its residuals
  Mask wanted, seeded;                // `wanted` by operand after pred, `seeded` by result
};

struct IfRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::If>();
    if (c.num_inputs() < 1) return c.attr_error("needs pred as its first operand");
    if (!(c.input(0) == Shape({}, DType::Bool))) {
      Diagnostic d = c.error("pred must be a Bool scalar, got ", c.input(0));
      d.hint = "compare or reduce to one Bool; use where(cond, a, b) to choose element by element";
      return d;
    }
    Shapes operands = c.inputs();
    operands.erase(operands.begin());
    Result<Shapes> yes = infer_body(c, *op.then, operands, "then");
    if (!yes) return yes;
    Result<Shapes> no = infer_body(c, *op.otherwise, operands, "else");
    if (!no) return no;
    if (yes->size() != no->size())
      return c.error("the branch then returns ", yes->size(), " values, but else returns ", no->size());
    for (std::size_t r = 0; r < yes->size(); ++r)
      if (!((*yes)[r] == (*no)[r]))
        return c.error("result ", r, " is ", (*yes)[r], " in the branch then, but ", (*no)[r], " in else");
    return yes;
  }

  static void reference(const RefArgs& a) {
    const Graph& branch = branch_of(a.op<ops::If>(), a.in(0).at_i64(0) != 0 ? 0 : 1);
    std::vector<Tensor> results = run_body(branch, a.inputs.subspan(1));
    for (std::size_t r = 0; r < results.size(); ++r) a.out(static_cast<int>(r)) = std::move(results[r]);
  }

  // The cost of the more expensive branch.
  static Cost cost(const CostContext& c) {
    const Cost a = body_cost(*c.op<ops::If>().then), b = body_cost(*c.op<ops::If>().otherwise);
    return {std::max(a.flops, b.flops), std::max(a.read_bytes, b.read_bytes), std::max(a.write_bytes, b.write_bytes)};
  }

  static void jvp(JvpContext& c) {
    const auto& op = c.op<ops::If>();
    Mask moving;
    Exprs operands = c_operands(c), tangents;
    for (int i = 1; i < c.num_inputs(); ++i) {
      moving.push_back(c.has_tangent(i));
      if (c.has_tangent(i)) tangents.push_back(c.tangent(i));
    }
    const Mask wanted = both(results_depending(op, moving, true), inexact_of(output_shapes(*op.then)));
    const ops::If form{finished(body_jvp(*op.then, moving, wanted)), finished(body_jvp(*op.otherwise, moving, wanted))};
    const Exprs results = add_node(c.graph(), form, concat_exprs({operands, tangents}));
    std::size_t at = wanted.size();
    for (std::size_t r = 0; r < wanted.size(); ++r) {
      c.replace_output(static_cast<int>(r), results[r]);
      if (wanted[r]) c.set_tangent(static_cast<int>(r), results[at++]);
    }
  }

  static Augmented augment(const AugmentContext& c) {
    const auto& op = c.op<ops::If>();
    auto notes = std::make_shared<IfNotes>();
    for (int i = 1; i < c.num_inputs(); ++i) notes->wanted.push_back(c.is_active(i));
    for (int r = 0; r < c.num_results(); ++r)
      notes->seeded.push_back(c.is_reached(r) && is_inexact(c.result_shape(r).dtype()));
    BodyReverseRequest request{notes->wanted,
                               notes->seeded,
                               CallSave::All,
                               Mask(notes->wanted.size(), true),
                               Mask(notes->seeded.size(), true),
                               Mask(notes->wanted.size(), false)};
    Shapes slots;
    for (int b : {0, 1}) {
      BodyReverse& r = notes->branch[b] = body_vjp(branch_of(op, b), request);
      std::vector<bool> taken(slots.size(), false);
      const Shapes outputs = output_shapes(r.forward);
      for (std::size_t k = notes->seeded.size(); k < outputs.size(); ++k) {
        std::size_t s = 0;
        while (s < slots.size() && (taken[s] || !(slots[s] == outputs[k]))) ++s;
        if (s == slots.size()) slots.push_back(outputs[k]), taken.push_back(false);
        taken[s] = true;
        notes->slots[b].push_back(s);
      }
    }
    ops::If form;
    for (int b : {0, 1}) {
      Graph body = like_body(notes->branch[b].forward);
      const Exprs inputs = add_inputs(body, input_shapes(branch_of(op, b)), "x");
      const Exprs outputs = inline_body(body, notes->branch[b].forward, inputs);
      const auto results = outputs.begin() + static_cast<std::ptrdiff_t>(notes->seeded.size());
      Exprs all(outputs.begin(), results), residuals(slots.size());
      for (std::size_t k = 0; k < notes->slots[b].size(); ++k)
        residuals[notes->slots[b][k]] = results[static_cast<std::ptrdiff_t>(k)];
      for (std::size_t s = 0; s < slots.size(); ++s)
        all.push_back(residuals[s].valid() ? residuals[s] : zeros_in(body, slots[s]));
      (b == 0 ? form.then : form.otherwise) = finished(body, all);
    }
    return {std::move(form), std::move(notes)};
  }

  static void vjp(VjpContext& c) {
    const auto& notes = c.notes<IfNotes>();
    // All operands that a branch reads, all slots, and the cotangents.
    Exprs operands{c.input(0)};
    std::vector<std::size_t> place_of_input(notes.wanted.size(), 0), place_of_result(notes.seeded.size(), 0);
    const auto take = [&](std::size_t& place, Expr e) {
      if (place == 0) operands.push_back(e), place = operands.size() - 1;  // place 0 is pred
    };
    for (const BodyReverse& r : notes.branch) {
      for (std::uint32_t k : r.inputs) take(place_of_input[k], c.input(static_cast<int>(k) + 1));
      for (std::uint32_t k : r.residuals)
        if (k < notes.seeded.size()) take(place_of_result[k], c.output(static_cast<int>(k)));
    }
    const std::size_t first_slot = operands.size();
    for (int k = 0; k < c.num_residuals(); ++k) operands.push_back(c.residual(k));
    const std::size_t first_seed = operands.size();
    for (std::size_t k = 0; k < notes.seeded.size(); ++k)
      if (notes.seeded[k]) operands.push_back(c.cotangent(static_cast<int>(k)));
    Shapes shapes;
    for (std::size_t k = 1; k < operands.size(); ++k) shapes.push_back(operands[k].shape());
    ops::If back;
    for (int b : {0, 1}) {
      const BodyReverse& r = notes.branch[b];
      Graph body = like_body(r.backward);
      const Exprs inputs = add_inputs(body, shapes, "x");  // for operands 1 ..
      Exprs given;
      for (std::uint32_t k : r.inputs) given.push_back(inputs[place_of_input[k] - 1]);
      for (std::uint32_t k : r.residuals)
        given.push_back(k < notes.seeded.size() ? inputs[place_of_result[k] - 1]
                                                : inputs[first_slot + notes.slots[b][k - notes.seeded.size()] - 1]);
      given.insert(given.end(), inputs.begin() + static_cast<std::ptrdiff_t>(first_seed) - 1, inputs.end());
      (b == 0 ? back.then : back.otherwise) = finished(body, inline_body(body, r.backward, given));
    }
    const Exprs out = add_node(c.graph(), std::move(back), operands);
    std::size_t at = 0;
    for (std::size_t k = 0; k < notes.wanted.size(); ++k)
      if (notes.wanted[k]) c.accumulate(static_cast<int>(k) + 1, out[at++]);
  }

  // Examples may take different branches. Then both branches run, and each example selects its result.
  static void batch(BatchContext& c) {
    const auto& op = c.op<ops::If>();
    Graph& g = c.graph();
    Mask batched;
    for (int i = 1; i < c.num_inputs(); ++i) batched.push_back(c.is_batched(i));
    const Mask all(op.then->outputs().size(), true);
    Exprs operands = c_operands(c);
    if (c.is_batched(0)) {
      if (is_ordered(c.box()))
        throw Error(ErrorCode::Unsupported, "vmap: a branch has an ordered op, which cannot run for only some examples",
                    "move the op out of the branch, or use the same pred for the whole batch");
      const Exprs inputs(operands.begin() + 1, operands.end());
      const auto run = [&](const Graph& branch, Expr taken) {
        return inline_body(g, body_vmap(branch, batched, c.batch_size(), all),
                           operands_of_kept(g, taken, inputs, batched));
      };
      const Exprs yes = run(*op.then, c.input(0)), no = run(*op.otherwise, g.logical_not(c.input(0)));
      for (std::size_t r = 0; r < all.size(); ++r)
        c.set_result(static_cast<int>(r), select_examples(g, c.input(0), yes[r], no[r]));
      return;
    }
    const ops::If form{finished(body_vmap(*op.then, batched, c.batch_size(), all)),
                       finished(body_vmap(*op.otherwise, batched, c.batch_size(), all))};
    const Exprs results = add_node(g, form, operands);
    for (std::size_t r = 0; r < all.size(); ++r) c.set_result(static_cast<int>(r), results[r]);
  }

  static Exprs c_operands(const BuildContext& c) { return {c.inputs().begin(), c.inputs().end()}; }

  static constexpr AttrField attrs[] = {field<&ops::If::then>("then"), field<&ops::If::otherwise>("else")};
};

}  // namespace

constinit const OpDef ops::If::def{.kind = kind,
                                   .name = "if",
                                   .what = "Runs one of two bodies, selected by a Bool scalar.",
                                   .inputs = InputSpec{{"pred", "operand"}, 2, 1, true},
                                   .attrs = IfRules::attrs,
                                   .level = Level::Mir,
                                   .leaf = LeafKind::None,
                                   .elementwise = ElementwiseKind::No,
                                   .view = ViewKind::None,
                                   .precision = PrecisionCategory::Stated,
                                   .infer = IfRules::infer,
                                   .decompose = none("only one branch may run"),
                                   .vjp = IfRules::vjp,
                                   .jvp = IfRules::jvp,
                                   .batch = IfRules::batch,
                                   .reference = IfRules::reference,
                                   .cost = IfRules::cost,
                                   .augment = IfRules::augment,
                                   .bodies = BodyKind::Programs};

}  // namespace rlx
