// While: runs a body as long as a condition on its carries holds.
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ops/body.h"
#include "rlx/ops/control/loop.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// `body` with Inputs of all `shapes`; it reads those at `places`.
Graph embedded(const Graph& body, const Shapes& shapes, const std::vector<std::size_t>& places) {
  Graph out = like_body(body);
  const Exprs inputs = add_inputs(out, shapes, "x");
  Exprs given;
  for (std::size_t k : places) given.push_back(inputs[k]);
  out.set_outputs(inline_body(out, body, given));
  return out;
}

// The index of the result that counts iterations.
int iterations_result(const LoopParts& p) { return static_cast<int>(p.outputs()); }

Expr any_example(Graph& g, Expr flags) { return g.gt(g.reduce(ReduceKind::Max, g.cast(flags, DType::I32), {}), 0); }

struct WhileRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::While>();
    const std::int64_t n = c.num_inputs();
    if (op.invariants < 0 || op.invariants > n)
      return c.attr_error("needs ", op.invariants, " invariants, then carries; got ", n, " operands");
    if (op.max_trips && *op.max_trips < 0)
      return c.attr_error("max_iterations (attribute max_trips) must not be negative, got ", *op.max_trips);
    const Result<Shapes> cond = infer_body(c, *op.cond, c.inputs(), "cond");
    if (!cond) return cond;
    if (cond->size() != 1 || !(cond->front() == Shape({}, DType::Bool))) {
      Diagnostic d = cond->size() == 1 ? c.error("cond must return a Bool scalar, got ", cond->front())
                                       : c.error("cond must return one Bool scalar, got ", cond->size(), " values");
      d.hint = "compare or reduce to one Bool";
      return d;
    }
    const Result<Shapes> results = infer_body(c, *op.body, c.inputs(), "the body");
    if (!results) return results;
    const auto carries = static_cast<std::size_t>(n - op.invariants);
    if (results->size() > carries && !op.max_trips) {
      Diagnostic d = c.attr_error("the body returns ", results->size() - carries,
                                  " ys, but without max_iterations their number of rows is not known");
      d.hint = "set max_iterations (attribute max_trips), or return the values as carries";
      return d;
    }
    Result<Shapes> out =
        loop_results(c, *results, op.invariants, carries, Dim(op.max_trips.value_or(0)), "an iteration");
    if (!out) return out;
    out->emplace_back(Dims{}, DType::I64);
    return out;
  }

  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::While>();
    const LoopParts p = *loop_parts(a.box);
    std::vector<Tensor> inputs(a.inputs.begin(), a.inputs.end());
    std::int64_t iterations = 0;
    for (; !op.max_trips || iterations < *op.max_trips; ++iterations) {
      if (run_body(*op.cond, inputs)[0].at_i64(0) == 0) break;
      std::vector<Tensor> results = run_body(*op.body, inputs);
      for (std::size_t y = p.carries; y < p.outputs(); ++y) set_row(a.out(static_cast<int>(y)), iterations, results[y]);
      for (std::size_t k = 0; k < p.carries; ++k) inputs[p.invariants + k] = std::move(results[k]);
    }
    for (std::size_t k = 0; k < p.carries; ++k) a.out(static_cast<int>(k)) = inputs[p.invariants + k];
    a.out(iterations_result(p)).set_i64(0, iterations);
  }

  // The cost of max_trips iterations, or of one when max_trips is not set.
  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::While>();
    Cost once = body_cost(*op.body);
    const Cost test = body_cost(*op.cond);
    once.flops += test.flops, once.read_bytes += test.read_bytes, once.write_bytes += test.write_bytes;
    return repeated(once, op.max_trips ? static_cast<double>(*op.max_trips) : 1.0);
  }

  static void jvp(JvpContext& c) {
    const auto& op = c.op<ops::While>();
    const LoopParts p = *loop_parts(c.box());
    const JointLoop joint = joint_loop(c, *op.body, p);
    ops::While form = op;
    form.invariants = joint.invariants;
    form.body = joint.body;
    form.cond = finished(embedded(*op.cond, joint.shapes, joint.places));
    const Exprs results = add_node(c.graph(), std::move(form), joint.operands);
    set_joint_results(c, p, joint, results);
    c.replace_output(iterations_result(p), results.back());
  }

  static Augmented augment(const AugmentContext& c) {
    const auto& op = c.op<ops::While>();
    if (!op.max_trips)
      throw Error(ErrorCode::Unsupported,
                  "grad: reverse mode of while needs a bound on its iterations, whose values it stores",
                  "give it max_iterations (attribute max_trips: the loop stops after that many iterations), or use "
                  "scan or forward mode");
    const LoopParts p = *loop_parts(c.box());
    const auto notes = loop_reverse(c, *op.body, p, CallSave::All);
    ops::While form = op;
    form.body = finished(Graph(notes->body.forward));
    Augmented out{std::move(form), notes, {}};
    for (std::size_t r = 0; r < p.outputs(); ++r) out.results.push_back(static_cast<std::uint32_t>(r));
    out.results.push_back(static_cast<std::uint32_t>(notes->body.forward.outputs().size()));  // iteration count
    return out;
  }

  // A backward scan over all rows up to max_trips. It does nothing for rows of iterations that did not run.
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::While>();
    const LoopParts p = *loop_parts(c.box());
    const auto& notes = c.notes<LoopReverse>();
    const BodyReverse& r = notes.body;
    Graph& g = c.graph();
    const Mask wanted_invariants = slice_of(notes.wanted, 0, p.invariants),
               wanted_carries = slice_of(notes.wanted, p.first_carry(), p.carries);
    const Shapes inputs = input_shapes(*op.body), outputs = output_shapes(r.forward);

    Exprs operands;
    Shapes shapes;  // shapes of the inputs of the scan's body
    std::vector<std::size_t> given(r.inputs.size() + r.residuals.size() + count_of(notes.seeded));
    const auto take = [&](Expr operand, const Shape& shape) {
      operands.push_back(operand), shapes.push_back(shape);
      return operands.size() - 1;
    };
    std::vector<std::size_t> seed_of(p.outputs(), 0), carried;
    for (std::size_t k = 0, at = r.inputs.size() + r.residuals.size(); k < p.outputs(); ++k)
      if (notes.seeded[k]) seed_of[k] = at++;
    const Dim rows(*op.max_trips);
    const Shape count({}, count_dtype(g, {{rows}}));
    const std::size_t iterations = take(g.cast(c.output(iterations_result(p)), count.dtype()), count);
    for (std::size_t k = 0; k < r.inputs.size(); ++k)
      given[k] = take(c.input(static_cast<int>(r.inputs[k])), inputs[r.inputs[k]]);
    ops::Scan back;
    back.invariants = static_cast<std::int64_t>(operands.size());
    for (std::size_t k = 0; k < p.carries; ++k)
      if (wanted_carries[k]) carried.push_back(given[seed_of[k]] = take(c.cotangent(static_cast<int>(k)), outputs[k]));
    for (std::size_t k = 0; k < p.invariants; ++k)
      if (wanted_invariants[k]) carried.push_back(take(c.zeros(inputs[k]), inputs[k]));
    back.carries = static_cast<std::int64_t>(carried.size());
    const std::size_t step = take(positions(g, rows, 0, 1, count.dtype()), count);
    for (std::size_t k = 0; k < r.residuals.size(); ++k) {
      const std::size_t at = r.residuals[k];
      given[r.inputs.size() + k] =
          take(at < p.outputs() ? c.output(static_cast<int>(at)) : c.residual(static_cast<int>(at - p.outputs())),
               outputs[at]);
    }
    for (std::size_t y = p.carries; y < p.outputs(); ++y)
      if (notes.seeded[y]) given[seed_of[y]] = take(c.cotangent(static_cast<int>(y)), outputs[y]);

    Graph happened = like_body(r.backward), skipped = like_body(r.backward);
    skipped.set_name("skipped");
    Exprs in = add_inputs(happened, shapes, "x"), unread = add_inputs(skipped, shapes, "x"), values, same;
    for (std::size_t k : given) values.push_back(in[k]);
    const Exprs cotangents = inline_body(happened, r.backward, values);  // of the wanted invariants, then of carries
    const std::size_t sums = count_of(wanted_invariants), carries = count_of(wanted_carries);
    Exprs next(cotangents.begin() + static_cast<std::ptrdiff_t>(sums), cotangents.end());
    for (std::size_t k = 0; k < sums; ++k) next.push_back(happened.add(in[carried[carries + k]], cotangents[k]));
    for (std::size_t k : carried) same.push_back(unread[k]);
    const ops::If choice{finished(happened, next), finished(skipped, same)};
    Graph body = like_body(r.backward);
    const Exprs all = add_inputs(body, shapes, "x");
    Exprs choice_operands{body.lt(all[step], all[iterations])};
    choice_operands.insert(choice_operands.end(), all.begin(), all.end());
    back.body = finished(body, add_node(body, choice, choice_operands));
    back.length = {rows};
    back.reverse = true;
    const Exprs out = add_node(g, std::move(back), operands);
    accumulate_loop(c, p, notes.wanted, out);
  }

  static void batch(BatchContext& c) {
    const auto& op = c.op<ops::While>();
    const LoopParts p = *loop_parts(c.box());
    Mask batched = batched_inputs(c, p, *op.body);
    if (body_depends(*op.cond, batched, false)[0]) return batch_masked(c, op, p, std::move(batched));
    const Mask lifted = batched_outputs(p, *op.body, batched);
    ops::While form = op;
    form.cond = finished(body_vmap(*op.cond, batched, c.batch_size(), {false}));
    form.body = finished(body_vmap(*op.body, batched, c.batch_size(), lifted));
    set_batched_results(c, p, lifted, add_node(c.graph(), std::move(form), batched_operands(c, p, batched)));
  }

  // Examples end one by one. The loop runs while any example runs, and the carries of ended examples do not change.
  static void batch_masked(BatchContext& c, const ops::While& op, const LoopParts& p, Mask batched) {
    Graph& g = c.graph();
    if (is_ordered(c.box()))
      throw Error(ErrorCode::Unsupported, "vmap: the loop has an ordered op, which cannot run for only some examples",
                  "move the op out of the loop, or end the loop for the whole batch at once");
    for (std::size_t k = 0; k < p.carries; ++k) batched[p.invariants + k] = true;
    const Dim batch = c.batch_size();
    const Shape counts({batch}, op.max_trips ? count_dtype(g, {{*op.max_trips}}) : DType::I64);
    const Graph test = body_vmap(*op.cond, batched, batch, {true});
    const Graph step = body_vmap(*op.body, batched, batch, Mask(p.outputs(), true));
    Exprs operands;
    for (std::size_t i = 0; i < p.inputs(); ++i)
      operands.push_back(batched[i] ? c.lifted(static_cast<int>(i)) : c.input(static_cast<int>(i)));
    const Exprs inputs = operands;
    operands.push_back(inline_body(g, test, inputs)[0]);  // which examples run
    operands.push_back(c.zeros(counts));                  // iterations of each
    Shapes shapes = input_shapes(step);
    shapes.emplace_back(Dims{batch}, DType::Bool);
    shapes.push_back(counts);

    ops::While form = op;
    Graph cond = like_body(test), body = like_body(step);
    const Exprs seen = add_inputs(cond, shapes, "x");
    form.cond = finished(cond, {any_example(cond, seen[p.inputs()])});
    const Exprs in = add_inputs(body, shapes, "x");
    const Expr runs = in[p.inputs()], iterations = in[p.inputs() + 1];
    Exprs given(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(p.inputs()));
    if (op.max_trips) given = operands_of_kept(body, runs, given, batched);  // else there is no reverse mode
    const Exprs stepped = inline_body(body, step, given);
    Exprs next, ys, after(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(p.invariants));
    for (std::size_t r = 0; r < p.outputs(); ++r) {
      const bool carry = r < p.carries;
      (carry ? next : ys)
          .push_back(select_examples(body, runs, stepped[r],
                                     carry ? in[p.invariants + r] : zeros_in(body, stepped[r].shape())));
    }
    after.insert(after.end(), next.begin(), next.end());
    next.push_back(body.bit_and(runs, inline_body(body, test, after)[0]));
    next.push_back(body.add(iterations, body.cast(runs, counts.dtype())));
    next.insert(next.end(), ys.begin(), ys.end());
    form.body = finished(body, next);
    const Exprs results = add_node(g, std::move(form), operands);
    for (std::size_t k = 0; k < p.carries; ++k) c.set_result(static_cast<int>(k), results[k]);
    for (std::size_t y = 0; y < p.ys; ++y)
      c.set_result(static_cast<int>(p.carries + y), swap_leading(g, results[p.carries + 2 + y]));
    c.set_result(iterations_result(p), g.cast(results[p.carries + 1], DType::I64));
  }

  static constexpr AttrField attrs[] = {field<&ops::While::invariants>("invariants"),
                                        field<&ops::While::max_trips>("max_trips"), field<&ops::While::cond>("cond"),
                                        field<&ops::While::body>("body")};
};

}  // namespace

constinit const OpDef ops::While::def{.kind = kind,
                                      .name = "while",
                                      .what = "Runs a body while a condition on its carries holds.",
                                      .inputs = variadic_inputs("x", 0),
                                      .attrs = WhileRules::attrs,
                                      .level = Level::Mir,
                                      .leaf = LeafKind::None,
                                      .elementwise = ElementwiseKind::No,
                                      .view = ViewKind::None,
                                      .precision = PrecisionCategory::Stated,
                                      .infer = WhileRules::infer,
                                      .decompose = none("a loop is not unrolled"),
                                      .vjp = WhileRules::vjp,
                                      .jvp = WhileRules::jvp,
                                      .batch = WhileRules::batch,
                                      .reference = WhileRules::reference,
                                      .cost = WhileRules::cost,
                                      .augment = WhileRules::augment,
                                      .bodies = BodyKind::Programs};

}  // namespace rlx
