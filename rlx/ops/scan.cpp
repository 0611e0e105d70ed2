// Scan: a body run once for every row of its xs, with values carried from step to step.
#include "rlx/ops/body.h"
#include "rlx/ops/control.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// How the operands of a Scan and the inputs of its body divide into invariants, carries and xs; its results and the
// outputs of its body into carries and ys.
struct Parts {
  std::size_t invariants, carries, xs, ys;
  explicit Parts(const ops::Scan& op)
      : invariants(static_cast<std::size_t>(op.invariants)),
        carries(static_cast<std::size_t>(op.carries)),
        xs(num_body_inputs(*op.body) - invariants - carries),
        ys(op.body->outputs().size() - carries) {}
  std::size_t inputs() const { return invariants + carries + xs; }
  std::size_t outputs() const { return carries + ys; }
  Mask invariants_of(const Mask& m) const { return slice_of(m, 0, invariants); }
  Mask carries_of(const Mask& m) const { return slice_of(m, invariants, carries); }
  Mask xs_of(const Mask& m) const { return slice_of(m, invariants + carries, xs); }
};

// The inputs that change, given those that do before the first step: a carry does when a step makes it.
Mask closure(const ops::Scan& op, Mask moving, bool inexact_only) {
  const Parts p(op);
  for (bool more = true; more;) {
    more = false;
    const Mask out = body_depends(*op.body, moving, inexact_only);
    for (std::size_t c = 0; c < p.carries; ++c)
      if (out[c] && !moving[p.invariants + c]) moving[p.invariants + c] = more = true;
  }
  return moving;
}

// Positions, group by group.
struct Order {
  std::vector<std::size_t> order;
  void group(std::size_t first, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) order.push_back(first + k);
  }
};

struct ReverseNotes {
  BodyReverse body;
  Mask wanted;  // operands whose cotangents the backward scan gives
  Mask seeded;  // outputs of the body whose cotangents it takes
};

struct ScanRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Scan>();
    const std::int64_t n = c.num_inputs();
    if (op.length.size() != 1) return c.attr_error("its length is one dimension, not ", dims_text(op.length));
    const Dim& length = op.length[0];
    if (c.negative(length)) return c.attr_error("its length is ", length);
    if (op.invariants < 0 || op.carries < 0 || op.invariants > n || op.carries > n - op.invariants)
      return c.attr_error("takes ", op.invariants, " invariants, then ", op.carries, " carries, then xs; got ", n,
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
        return c.error("x ", i - xs, " is ", s, "; its axis 0 holds the ", length, " steps");
      operands.push_back(row_shape(s));
    }
    Result<Shapes> results = infer_body(c, *op.body, operands, "the body");
    if (!results) return results;
    if (results->size() < static_cast<std::size_t>(op.carries))
      return c.attr_error("the body gives ", results->size(), " values, its carries alone are ", op.carries);
    Shapes out;
    for (std::size_t r = 0; r < results->size(); ++r) {
      if (r >= static_cast<std::size_t>(op.carries)) {
        out.push_back(stacked_shape(length, (*results)[r]));
        continue;
      }
      const Shape& before = c.input(static_cast<int>(op.invariants) + static_cast<int>(r));
      if (!((*results)[r] == before)) {
        Diagnostic d = c.error("carry ", r, " is ", before, " before a step and ", (*results)[r], " after it");
        d.hint = "a carry keeps its shape and its dtype; cast it in the body, or start from a value of that type";
        return d;
      }
      out.push_back(before);
    }
    return out;
  }

  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Scan>();
    const Parts p(op);
    const std::int64_t length = op.length[0].value();
    std::vector<Tensor> inputs(a.inputs.begin(), a.inputs.end());
    for (std::int64_t step = 0; step < length; ++step) {
      const std::int64_t t = op.reverse ? length - 1 - step : step;
      for (std::size_t x = p.invariants + p.carries; x < p.inputs(); ++x)
        inputs[x] = row_of(a.in(static_cast<int>(x)), t);
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

  // One scan carries values and tangents.
  static void jvp(JvpContext& c) {
    const auto& op = c.op<ops::Scan>();
    const Parts p(op);
    Mask moving;
    for (int i = 0; i < c.num_inputs(); ++i) moving.push_back(c.has_tangent(i));
    moving = both(closure(op, std::move(moving), true), inexact_of(input_shapes(*op.body)));
    Mask wanted = body_depends(*op.body, moving, true);
    for (std::size_t k = 0; k < p.carries; ++k) wanted[k] = moving[p.invariants + k];
    const Graph joint = body_jvp(*op.body, moving, wanted);
    // Groups of the joint body: inputs, then tangents of the moving ones; outputs likewise.
    Order in, out;
    std::size_t tangent = p.inputs();
    Exprs operands;
    const auto inputs_of = [&](std::size_t first, std::size_t count) {
      in.group(first, count);
      for (std::size_t k = first; k < first + count; ++k) operands.push_back(c.input(static_cast<int>(k)));
      for (std::size_t k = first; k < first + count; ++k)
        if (moving[k]) {
          in.group(tangent++, 1);
          operands.push_back(c.tangent(static_cast<int>(k)));
        }
    };
    inputs_of(0, p.invariants);
    inputs_of(p.invariants, p.carries);
    inputs_of(p.invariants + p.carries, p.xs);
    const std::size_t moving_carries = count_of(p.carries_of(moving)), moving_ys = count_of(wanted) - moving_carries;
    out.group(0, p.carries);
    out.group(p.outputs(), moving_carries);
    out.group(p.carries, p.ys);
    out.group(p.outputs() + moving_carries, moving_ys);
    ops::Scan both_op = op;
    both_op.invariants += static_cast<std::int64_t>(count_of(p.invariants_of(moving)));
    both_op.carries += static_cast<std::int64_t>(moving_carries);
    both_op.body = finished(permuted(joint, in.order, out.order));
    const Exprs results = add_node(c.graph(), std::move(both_op), operands);
    std::size_t at_carry = p.carries, at_y = p.outputs() + moving_carries;
    for (std::size_t r = 0; r < p.outputs(); ++r) {
      const bool carry = r < p.carries;
      c.replace_output(static_cast<int>(r), results[carry ? r : r + moving_carries]);
      if (wanted[r]) c.set_tangent(static_cast<int>(r), results[carry ? at_carry++ : at_y++]);
    }
  }

  // The same scan, which also stacks what the derivative of its body reads.
  static Augmented augment(const AugmentContext& c) {
    const auto& op = c.op<ops::Scan>();
    const Parts p(op);
    Mask active;
    for (int i = 0; i < c.num_inputs(); ++i) active.push_back(c.is_active(i));
    BodyReverseRequest request;
    request.wanted = both(closure(op, std::move(active), true), inexact_of(input_shapes(*op.body)));
    const Mask depends = body_depends(*op.body, request.wanted, true);
    for (std::size_t k = 0; k < p.carries; ++k) request.seeded.push_back(request.wanted[p.invariants + k]);
    for (std::size_t y = p.carries; y < p.outputs(); ++y)
      request.seeded.push_back(depends[y] && c.is_reached(static_cast<int>(y)));
    request.save = op.checkpoint ? CallSave::Nothing : CallSave::All;
    request.kept_inputs.assign(p.inputs(), true);
    for (std::size_t k = 0; k < p.carries; ++k) request.kept_inputs[p.invariants + k] = false;
    for (std::size_t r = 0; r < p.outputs(); ++r) request.kept_outputs.push_back(r >= p.carries);
    request.invariant.assign(p.inputs(), false);
    std::fill_n(request.invariant.begin(), p.invariants, true);
    auto notes = std::make_shared<ReverseNotes>();
    notes->body = body_vjp(*op.body, request);
    notes->wanted = request.wanted;
    notes->seeded = request.seeded;
    ops::Scan form = op;
    form.body = finished(Graph(notes->body.forward));
    return {std::move(form), std::move(notes)};
  }

  // The steps the other way round: carries are the cotangents of the carries and the sums of those of the invariants.
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::Scan>();
    const Parts p(op);
    const auto& notes = c.notes<ReverseNotes>();
    const BodyReverse& r = notes.body;
    Graph& g = c.graph();
    const Mask wanted_invariants = p.invariants_of(notes.wanted), wanted_carries = p.carries_of(notes.wanted),
               wanted_xs = p.xs_of(notes.wanted);

    // Operands of the backward scan, and the inputs of its body in the same order.
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

    std::size_t at = 0;
    for (std::size_t k = 0; k < p.carries; ++k)
      if (wanted_carries[k]) c.accumulate(static_cast<int>(p.invariants + k), out[at++]);
    for (std::size_t k = 0; k < p.invariants; ++k)
      if (wanted_invariants[k]) c.accumulate(static_cast<int>(k), out[at++]);
    for (std::size_t k = 0; k < p.xs; ++k)
      if (wanted_xs[k]) c.accumulate(static_cast<int>(p.invariants + p.carries + k), out[at++]);
  }

  static void batch(BatchContext& c) {
    const auto& op = c.op<ops::Scan>();
    const Parts p(op);
    Mask batched;
    for (int i = 0; i < c.num_inputs(); ++i) batched.push_back(c.is_batched(i));
    batched = closure(op, std::move(batched), false);
    Mask lifted = body_depends(*op.body, batched, false);
    for (std::size_t k = 0; k < p.carries; ++k) lifted[k] = batched[p.invariants + k];
    Graph& g = c.graph();
    ops::Scan form = op;
    form.body = finished(body_vmap(*op.body, batched, c.batch_size(), lifted));
    Exprs operands;
    for (std::size_t i = 0; i < p.inputs(); ++i) {
      const int k = static_cast<int>(i);
      if (i >= p.invariants + p.carries)
        operands.push_back(batched[i] ? swap_leading(g, c.input(k)) : c.input(k));
      else
        operands.push_back(batched[i] ? c.lifted(k) : c.input(k));
    }
    const Exprs results = add_node(g, std::move(form), operands);
    for (std::size_t r = 0; r < p.outputs(); ++r) {
      Expr e = results[r];
      if (!lifted[r])
        e = g.expand(e, prepend(c.batch_size(), e.shape().dims()));
      else if (r >= p.carries)
        e = swap_leading(g, e);
      c.set_result(static_cast<int>(r), e);
    }
  }

  static void samples(SampleSet& s);
  static constexpr AttrField attrs[] = {
      field<&ops::Scan::invariants>("invariants"), field<&ops::Scan::carries>("carries"),
      field<&ops::Scan::length>("length"),         field<&ops::Scan::reverse>("reverse"),
      field<&ops::Scan::checkpoint>("checkpoint"), field<&ops::Scan::body>("body")};
};

void ScanRules::samples(SampleSet& s) {
  const auto f64 = [](Dims dims) { return Shape(std::move(dims), DType::F64); };
  const auto cell = [&](bool reverse, bool checkpoint) {
    Graph b("cell");
    Expr w = b.input("w", f64({3, 3})), h = b.input("h", f64({2, 3})), x = b.input("x", f64({2, 3}));
    Expr next = b.tanh(b.matmul(h, w) + x);
    return ops::Scan{1, 1, {4}, reverse, checkpoint, finished(b, {next, next * h})};
  };
  const std::vector<SampleInput> cell_inputs{f64({3, 3}), f64({2, 3}), f64({4, 2, 3})};
  s.add("recurrent cell", cell_inputs, cell(false, false));
  s.add("backwards", cell_inputs, cell(true, false));
  s.add("checkpointed", cell_inputs, cell(false, true));
  {
    Graph b("sums");  // a carry that the others do not touch, integers among them
    Expr n = b.input("n", Shape({}, DType::I32)), total = b.input("total", Shape({2}, DType::F32)),
         x = b.input("x", Shape({2}, DType::F32));
    Expr sum = total + b.sin(x);
    s.add("a counter and a running sum",
          {{Shape({}, DType::I32), Fill::Small}, Shape({2}, DType::F32), Shape({3, 2}, DType::F32)},
          ops::Scan{0, 2, {3}, false, false, finished(b, {n + 1, sum, sum * b.cast(n, DType::F32)})});
  }
  {
    Graph b("map");
    Expr a = b.input("a", f64({2})), x = b.input("x", f64({2}));
    s.add("no carries", {f64({2}), f64({3, 2})}, ops::Scan{1, 0, {3}, false, false, finished(b, {b.sin(a * x)})});
  }
  {
    Graph b("powers");
    Expr x = b.input("x", f64({2}));
    s.add("no xs", {f64({2})}, ops::Scan{0, 1, {3}, false, false, finished(b, {b.sin(x), x * x})});
  }
  {
    Graph b("nothing");
    Expr h = b.input("h", f64({2})), x = b.input("x", f64({2}));
    s.add("no steps", {f64({2}), f64({0, 2})}, ops::Scan{0, 1, {0}, false, false, finished(b, {h * x, x})});
  }
  {
    Graph inner("inner"), b("outer");
    Expr u = inner.input("u", f64({})), v = inner.input("v", f64({}));
    const Subgraph body = finished(inner, {inner.sin(u * v) + u});
    Expr h = b.input("h", f64({})), x = b.input("x", f64({2}));
    Expr last = add_node(b, ops::Scan{0, 1, {2}, false, false, body}, {h, x})[0];
    s.add("a scan in a scan", {f64({}), f64({3, 2})},
          ops::Scan{0, 1, {3}, false, false, finished(b, {last, last * h})});
  }
}

}  // namespace

constinit const OpDef ops::Scan::def{.kind = kind,
                                     .name = "scan",
                                     .what = "A body run once per row of its xs, carrying values from step to step.",
                                     .inputs = variadic_inputs("x", 0),
                                     .attrs = ScanRules::attrs,
                                     .level = Level::Mir,
                                     .leaf = LeafKind::None,
                                     .elementwise = ElementwiseKind::No,
                                     .view = ViewKind::None,
                                     .precision = PrecisionCategory::Stated,
                                     .infer = ScanRules::infer,
                                     .decompose = none("a loop is not written out"),
                                     .vjp = ScanRules::vjp,
                                     .jvp = ScanRules::jvp,
                                     .batch = ScanRules::batch,
                                     .reference = ScanRules::reference,
                                     .cost = ScanRules::cost,
                                     .samples = ScanRules::samples,
                                     .augment = ScanRules::augment,
                                     .bodies = BodyKind::Programs};

}  // namespace rlx
