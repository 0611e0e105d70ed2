// Distributions drawn by rejection sampling. A loop proposes every element again until all are accepted. The random
// bits of a proposal depend on the element's index and on the number of the iteration.
#include <array>
#include <numbers>

#include "rlx/functions/draws.h"
#include "rlx/functions/random.h"

namespace rlx::random {

using namespace draws;

namespace {

// True when any element is true; false for no elements.
Expr any_of(Graph& g, const Expr& x, SourceLoc loc) {
  const Expr most = g.reduce_max(Operand(g.cast(Operand(x, loc), DType::I32), loc));
  return g.gt(Operand(most, loc), Operand(0, loc));
}

// The proposal of one iteration: the values, and which of them are accepted.
struct Proposal {
  Term value, accepted;
};

// `start` where `open` is false; elsewhere the first proposal that is accepted. propose(key of the iteration) is called
// on the graph of the loop's body.
template <class F>
Term until_accepted(const Term& key, const Term& start, const Term& open, F&& propose) {
  Graph& g = key.graph();
  const SourceLoc loc = key.loc();
  const Expr first = g.scalar(0, DType::I32, loc);
  const LoopResult r = g.while_loop(
      {start.value(), open.value(), first}, [&](Graph& body, const ExprList& c) { return any_of(body, c[1], loc); },
      [&](Graph& body, const ExprList& c) {
        const Term was(c[0], loc), waits(c[1], loc), iteration(c[2], loc);
        const Proposal p = propose(Term(body.rng_fold_in(key, iteration), loc));
        const Term takes = both(waits, p.accepted);
        return LoopStep({chosen(takes, p.value, was).value(),
                         both(waits, Term(body.logical_not(p.accepted), loc)).value(), (iteration + 1.0).value()});
      },
      {}, loc);
  return key.at(r.carries[0]);
}

// The dtype in which samples of dtype `t` are computed.
DType f64_or_f32(DType t) { return t == DType::F64 ? DType::F64 : DType::F32; }
Term spread(const Term& x, const Dims& dims) { return x.at(x.graph().expand(x, dims)); }
Term normal(const Term& key, const Dims& dims, DType t) { return key.at(key.graph().rng_normal(key, dims, t)); }
// A parameter broadcast to `dims`, with its gradient stopped.
Term fixed(const Term& key, const Operand& given, const Dims& dims, DType t) {
  return stopped(spread(parameter(key, given, t), dims));
}

// The logarithm of a gamma sample for each element of a, with the gradient stopped.
Term drawn_log_gamma(const Term& key, const Term& a) {
  const Dims dims = a.shape().dims();
  const DType t = a.dtype();
  const std::vector<Term> keys = split(key, 2);
  // For a below 1: a sample for a + 1, times u^(1 / a).
  const Term valid = both(compared(CompareKind::Gt, a, 0.0), compared(CompareKind::Lt, a, HUGE_VAL));
  const Term own = chosen(valid, a, 1.0), small = compared(CompareKind::Lt, own, 1.0);
  const Term d = chosen(small, own + 1.0, own) - 1.0 / 3, c = 1.0 / sqrt(d * 9.0);
  const Term cube = until_accepted(keys[0], spread(a.number(1), dims), valid, [&](const Term& iteration) {
    const std::vector<Term> two = split(iteration, 2);
    const Term x = normal(two[0], dims, t), u = uniform_from(two[1], dims, t, 0, 1);
    const Term root = 1.0 + c * x, v = root * root * root;
    const Term inside = compared(CompareKind::Gt, v, 0.0), log_v = log(chosen(inside, v, 1.0));
    const Term enough = compared(CompareKind::Lt, log(u), 0.5 * square(x) + d - d * v + d * log_v);
    return Proposal{v, both(inside, enough)};
  });
  const Term u = uniform_from(keys[1], dims, t, 0, 1);
  const Term boost = chosen(small, log1p(-u) / own, 0.0);
  const Term drawn = log(d) + log(cube) + boost;
  const Term edge = chosen(compared(CompareKind::Eq, a, 0.0), -HUGE_VAL,
                           chosen(compared(CompareKind::Eq, a, HUGE_VAL), a, a.number(std::nan(""))));
  return chosen(valid, drawn, edge);
}

// {a, z} -> z, where z = log x of a gamma sample x with parameter a. Its derivative by a is the implicit one, which
// keeps P(a, x) constant (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018): dz / da = -(dP /
// da) / (x dP / dx). For x far below 1, P is x^a / Gamma(a + 1), and the quotient is (digamma(a + 1) - z) / a, which
// does not underflow. A second derivative is an error: igamma_grad_a has no derivative by a.
CustomFn implicit_log_gamma() {
  CustomFn fn;
  fn.name = "implicit_log_gamma";
  fn.body = [](Graph&, const ExprList& in) { return ExprList{in[1]}; };
  fn.jvp = [](Graph&, const ExprList& in) {
    // In F64, because for a large `a` the density is a small difference of large logarithms.
    const Term given(in[0], SourceLoc{}), a = given.cast(DType::F64), z = given.at(in[1]).cast(DType::F64);
    const Term valid = both(compared(CompareKind::Gt, a, 0.0), compared(CompareKind::Lt, a, HUGE_VAL));
    const Term own = chosen(valid, a, 1.0), x = exp(z);
    const Term low = compared(CompareKind::Lt, z, std::log(eps_of(a.dtype())));
    const Term near = chosen(low, 1.0, x), near_z = chosen(low, 0.0, z);
    const Term density = exp(own * near_z - near - own(ActivationKind::Lgamma));
    const Term by_density = -combined(BinaryKind::IgammaGradA, own, near) / density;
    const Term by_power = ((own + 1.0)(ActivationKind::Digamma)-z) / own;
    const Term slope = chosen(valid, chosen(low, by_power, by_density), 0.0);
    return ExprList{in[1], (given.at(in[2]) * slope.cast(given.dtype())).value()};
  };
  return fn;
}
Term log_gamma_of(const Term& key, const Term& a) {
  const Term drawn = drawn_log_gamma(key, stopped(a));
  return key.at(key.graph().custom_fn({a.value(), drawn.value()}, implicit_log_gamma(), key.loc())[0]);
}
// A parameter broadcast to `dims`.
Term over(const Term& key, const Operand& given, const Dims& dims, DType t) {
  return spread(parameter(key, given, t), dims);
}
Term log_gamma_at(const Term& key, const Operand& a, const Dims& dims, DType t, const char* what) {
  check_floats(key, what, t);
  return log_gamma_of(key, over(key, a, dims, f64_or_f32(t)));
}

// The error of Stirling's formula, log k! - ((k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2), for integers k >= 0.
Term stirling_tail(const Term& k) {
  constexpr std::array<double, 10> kTail = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.0207906721037650,  0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  Graph& g = k.graph();
  Tensor table = Tensor::zeros(Shape({10}, k.dtype()));
  for (std::size_t i = 0; i < kTail.size(); ++i) table.set(static_cast<std::int64_t>(i), kTail[i]);
  const Term place = larger(smaller(k, 9.0), 0.0).cast(DType::I32);
  const Term known = k.at(g.gather(k.at(g.constant(std::move(table), k.loc())), place, 0));
  const Term n = larger(k, 10.0) + 1.0, nn = n * n;
  return chosen(compared(CompareKind::Lt, k, 10.0), known, (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / nn) / nn) / n);
}
Term log_factorial(const Term& k) {
  return 0.5 * std::log(2 * std::numbers::pi) + (k + 0.5) * log(k + 1.0) - (k + 1.0) + stirling_tail(k);
}

}  // namespace

Expr log_gamma(Operand key, Operand a, Dims dims, DType dtype) {
  return log_gamma_at(key_of(key, "log_gamma"), a, dims, dtype, "log_gamma").cast(dtype);
}
Expr gamma(Operand key, Operand a, Dims dims, DType dtype) {
  return exp(log_gamma_at(key_of(key, "gamma"), a, dims, dtype, "gamma")).cast(dtype);
}
Expr beta(Operand key, Operand a, Operand b, Dims dims, DType dtype) {
  const std::vector<Term> keys = split(key_of(key, "beta"), 2);
  const Term x = log_gamma_at(keys[0], a, dims, dtype, "beta"), y = log_gamma_at(keys[1], b, dims, dtype, "beta");
  const Term top = larger(x, y), none = compared(CompareKind::Eq, top, -HUGE_VAL);  // both numbers underflow
  const Term p = chosen(none, 0.5, exp(x - top)), q = chosen(none, 0.5, exp(y - top));
  return (p / (p + q)).cast(dtype);
}
Expr dirichlet(Operand key, Operand alpha, Dims dims, DType dtype) {
  const Term k = key_of(key, "dirichlet");
  check_floats(k, "dirichlet", dtype);
  const Term a = parameter(k, alpha, f64_or_f32(dtype));
  if (a.rank() < 1)
    building::fail(k.loc(), ErrorCode::ShapeMismatch, concat_text("dirichlet: alpha must be [.., K], got ", a.shape()));
  dims.push_back(a.dim(-1));
  const Term logs = log_gamma_of(k, spread(a, dims));
  return k.at(k.graph().softmax(logs, -1)).cast(dtype);
}
Expr chisquare(Operand key, Operand df, Dims dims, DType dtype) {
  const Term k = key_of(key, "chisquare");
  check_floats(k, "chisquare", dtype);
  const Term half = over(k, df, dims, f64_or_f32(dtype)) * 0.5;
  return (2.0 * exp(log_gamma_of(k, half))).cast(dtype);
}
Expr student_t(Operand key, Operand df, Dims dims, DType dtype) {
  const Term k = key_of(key, "student_t");
  check_floats(k, "student_t", dtype);
  const std::vector<Term> keys = split(k, 2);
  const Term half = over(k, df, dims, f64_or_f32(dtype)) * 0.5;
  const Term z = normal(keys[0], dims, half.dtype()), endless = compared(CompareKind::Eq, half, HUGE_VAL);
  const Term own = chosen(endless, 1.0, half);  // without an end of freedom it is the normal distribution
  const Term drawn = z * sqrt(own) * exp(log_gamma_of(keys[1], own) * -0.5);
  return chosen(endless, z, drawn).cast(dtype);
}
Expr ball(Operand key, std::int64_t d, double p, Dims dims, DType dtype) {
  const Term k = key_of(key, "ball");
  check_floats(k, "ball", dtype);
  if (d < 1)
    building::fail(k.loc(), ErrorCode::InvalidArgument,
                   concat_text("ball: the number of dimensions must be at least 1, got ", d));
  if (!(p > 0))
    building::fail(k.loc(), ErrorCode::InvalidArgument, concat_text("ball: the norm p must be above 0, got ", p));
  const DType t = f64_or_f32(dtype);
  if (std::isinf(p)) {
    dims.push_back(Dim(d));
    return uniform_from(k, std::move(dims), t, -1, 1).cast(dtype);
  }
  // Barthe, Guedon, Mendelson and Naor, "A probabilistic approach to the geometry of the l_p^n-ball", 2005: samples
  // with density exp(-|x|^p), divided by the p-th root of the sum of their p-th powers and an exponential sample.
  const std::vector<Term> keys = split(k, 3);
  Dims all = dims;
  all.push_back(Dim(d));
  const Term log_size = log_gamma_of(keys[0], spread(k.at(k.graph().scalar(1 / p, t, k.loc())), all)) * (1 / p);
  const Term minus = compared(CompareKind::Lt, uniform_from(keys[1], all, DType::F32, 0, 1), 0.5);
  const Term e = -log1p(-uniform_from(keys[2], dims, t, 0, 1));
  const Term total = k.at(k.graph().unsqueeze(sum(exp(log_size * p), {-1}) + e, -1));
  const Term size = exp(log_size - log(total) * (1 / p));  // the powers may overflow
  return chosen(minus, -size, size).cast(dtype);
}

Expr poisson(Operand key, Operand rate, Dims dims, DType dtype) {
  const Term k = key_of(key, "poisson");
  if (!is_int(dtype))
    building::fail(k.loc(), ErrorCode::DTypeMismatch, concat_text("poisson draws integers, not ", dtype_name(dtype)));
  Graph& g = k.graph();
  const std::vector<Term> keys = split(k, 2);
  const Term lam = fixed(k, rate, dims, DType::F32);
  const Term valid = both(compared(CompareKind::Ge, lam, 0.0), compared(CompareKind::Lt, lam, HUGE_VAL));
  const Term large = both(valid, compared(CompareKind::Ge, lam, 10.0)),
             small = both(valid, compared(CompareKind::Lt, lam, 10.0));
  // Multiplies uniform samples until their product is below exp(-rate).
  const Term zero = spread(lam.number(0), dims);
  const Term floor_of_log = -chosen(small, lam, 0.0);
  const SourceLoc loc = k.loc();
  const LoopResult few = g.while_loop(
      {zero.value(), zero.value(), small.value(), g.scalar(0, DType::I32, loc)},
      [&](Graph& body, const ExprList& c) { return any_of(body, c[2], loc); },
      [&](Graph& body, const ExprList& c) {
        const Term count(c[0], loc), product(c[1], loc), goes_on(c[2], loc), iteration(c[3], loc);
        const Term u = uniform_from(Term(body.rng_fold_in(keys[0], iteration), loc), dims, DType::F32, 0, 1);
        const Term next = product + log1p(-u);
        const Term still = both(goes_on, compared(CompareKind::Gt, next, floor_of_log));
        return LoopStep(
            {chosen(still, count + 1.0, count).value(), next.value(), still.value(), (iteration + 1.0).value()});
      },
      {}, loc);
  const Term own = chosen(large, lam, 10.0), root = sqrt(own), log_lam = log(own);
  const Term b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b, inverse = 1.1239 + 1.1328 / (b - 3.4);
  const Term v_r = 0.9277 - 3.6224 / (b - 2.0);
  const Term many = until_accepted(keys[1], k.at(few.carries[0]), large, [&](const Term& iteration) {
    const std::vector<Term> two = split(iteration, 2);
    const Term u = uniform_from(two[0], dims, DType::F32, 0, 1) - 0.5,
               v = uniform_from(two[1], dims, DType::F32, tiny_of(DType::F32), 1);
    const Term us = 0.5 - abs(u), n = floor((2.0 * a / us + b) * u + own + 0.43);
    const Term at_once = both(compared(CompareKind::Ge, us, 0.07), compared(CompareKind::Le, v, v_r));
    const Term never = either(compared(CompareKind::Lt, n, 0.0),
                              both(compared(CompareKind::Lt, us, 0.013), compared(CompareKind::Gt, v, us)));
    const Term s = log(v * inverse / (a / square(us) + b)), whole = larger(n, 0.0);
    const Term enough = compared(CompareKind::Le, s, whole * log_lam - own - log_factorial(whole));
    return Proposal{n, either(at_once, both(Term(iteration.graph().logical_not(never), loc), enough))};
  });
  return chosen(valid, many, -1.0).cast(dtype);
}

Expr binomial(Operand key, Operand n, Operand p, Dims dims, DType dtype) {
  const Term k = key_of(key, "binomial");
  check_floats(k, "binomial", dtype);
  const DType t = f64_or_f32(dtype);
  Graph& g = k.graph();
  const SourceLoc loc = k.loc();
  const std::vector<Term> keys = split(k, 2);
  const Term trials = fixed(k, n, dims, t), chance = fixed(k, p, dims, t);
  const auto within = [&](const Term& x, double low, double high) {
    return both(compared(CompareKind::Ge, x, low), compared(CompareKind::Le, x, high));
  };
  const Term valid = both(both(compared(CompareKind::Ge, trials, 0.0), compared(CompareKind::Lt, trials, HUGE_VAL)),
                          within(chance, 0, 1));
  const Term flips = compared(CompareKind::Gt, chance, 0.5);
  const Term count = chosen(valid, floor(trials), 0.0), q = chosen(valid, chosen(flips, 1.0 - chance, chance), 0.0);
  const Term expected = count * q;
  const Term large = compared(CompareKind::Ge, expected, 10.0);
  const Term small =
      both(compared(CompareKind::Lt, expected, 10.0), both(compared(CompareKind::Gt, expected, 0.0), valid));
  // Adds geometric samples, the distances between successes, as long as they fit into the trials.
  const Term log_fail = log1p(-chosen(small, q, 0.25)), zero = spread(trials.number(0), dims);
  const LoopResult few = g.while_loop(
      {zero.value(), zero.value(), small.value(), g.scalar(0, DType::I32, loc)},
      [&](Graph& body, const ExprList& c) { return any_of(body, c[2], loc); },
      [&](Graph& body, const ExprList& c) {
        const Term successes(c[0], loc), at(c[1], loc), goes_on(c[2], loc), iteration(c[3], loc);
        const Term u = uniform_from(Term(body.rng_fold_in(keys[0], iteration), loc), dims, t, 0, 1);
        const Term next = at + floor(log1p(-u) / log_fail) + 1.0;
        const Term still = both(goes_on, Term(body.le(next, count), loc));
        return LoopStep({chosen(still, successes + 1.0, successes).value(), next.value(), still.value(),
                         (iteration + 1.0).value()});
      },
      {}, loc);
  const Term own_n = chosen(large, count, 40.0), own_p = chosen(large, q, 0.5), fail = 1.0 - own_p;
  const Term deviation = sqrt(own_n * own_p * fail), b = 1.15 + 2.53 * deviation,
             a = -0.0873 + 0.0248 * b + 0.01 * own_p;
  const Term c = own_n * own_p + 0.5, v_r = 0.92 - 4.2 / b, r = own_p / fail, alpha = (2.83 + 5.1 / b) * deviation;
  const Term m = floor((own_n + 1.0) * own_p);
  const Term many = until_accepted(keys[1], k.at(few.carries[0]), large, [&](const Term& iteration) {
    const std::vector<Term> two = split(iteration, 2);
    const Term u = uniform_from(two[0], dims, t, 0, 1) - 0.5, v = uniform_from(two[1], dims, t, tiny_of(t), 1);
    const Term us = 0.5 - abs(u), drawn = floor((2.0 * a / us + b) * u + c);
    const Term inside = both(compared(CompareKind::Ge, drawn, 0.0), Term(iteration.graph().le(drawn, own_n), loc));
    const Term at_once = both(compared(CompareKind::Ge, us, 0.07), compared(CompareKind::Le, v, v_r));
    const Term x = chosen(inside, drawn, 0.0), s = log(v * alpha / (a / square(us) + b));
    const Term upper = (m + 0.5) * log((m + 1.0) / (r * (own_n - m + 1.0))) +
                       (own_n + 1.0) * log((own_n - m + 1.0) / (own_n - x + 1.0)) +
                       (x + 0.5) * log(r * (own_n - x + 1.0) / (x + 1.0)) + stirling_tail(m) +
                       stirling_tail(own_n - m) - stirling_tail(x) - stirling_tail(own_n - x);
    return Proposal{drawn, both(inside, either(at_once, compared(CompareKind::Le, s, upper)))};
  });
  const Term result = chosen(flips, count - many, many);
  return chosen(valid, result, std::nan("")).cast(dtype);
}

}  // namespace rlx::random
