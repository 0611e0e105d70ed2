// Binds functions of rlx/functions: losses, random draws, Einstein sums.
#include <functional>
#include <map>
#include <string>

#include "python/bindings/call_operands.h"
#include "python/bindings/functions.h"
#include "rlx/functions/einsum.h"
#include "rlx/functions/losses.h"
#include "rlx/functions/random.h"

namespace rlx::python {
namespace {

template <class Function>
const Function& named(const std::map<std::string, Function>& table, const std::string& name) {
  const auto it = table.find(name);
  if (it == table.end()) raise(ErrorCode::NotFound, concat_text("there is no function '", name, "'"));
  return it->second;
}

nn::Reduction reduction_from(const std::string& name, std::string_view what) {
  if (name == "none") return nn::Reduction::None;
  if (name == "mean") return nn::Reduction::Mean;
  if (name == "sum") return nn::Reduction::Sum;
  raise(ErrorCode::InvalidArgument, concat_text(what, ": reduction '", name, "' is not known"),
        "reduction is 'none', 'mean' or 'sum'");
}

// -- losses: operands, numbers and a reduction --
using Numbers = std::vector<double>;
using LossFn = std::function<Expr(const CallOperands&, const Numbers&, nn::Reduction)>;
const std::map<std::string, LossFn>& losses() {
  using O = const CallOperands&;
  using N = const Numbers&;
  using R = nn::Reduction;
  static const std::map<std::string, LossFn> all{
      {"binary_cross_entropy", [](O x, N, R r) { return nn::binary_cross_entropy(x[0], x[1], x.maybe(2), r); }},
      {"binary_cross_entropy_with_logits",
       [](O x, N n, R r) {  // numbers: flags for weight and pos_weight
         const bool weight = n.at(0) != 0, pos = n.at(1) != 0;
         return nn::binary_cross_entropy_with_logits(x[0], x[1], weight ? x.maybe(2) : std::nullopt,
                                                     pos ? x.maybe(weight ? 3 : 2) : std::nullopt, r);
       }},
      {"sigmoid_focal_loss", [](O x, N n, R r) { return nn::sigmoid_focal_loss(x[0], x[1], n.at(0), n.at(1), r); }},
      {"mse_loss", [](O x, N, R r) { return nn::mse_loss(x[0], x[1], r); }},
      {"l1_loss", [](O x, N, R r) { return nn::l1_loss(x[0], x[1], r); }},
      {"smooth_l1_loss", [](O x, N n, R r) { return nn::smooth_l1_loss(x[0], x[1], n.at(0), r); }},
      {"huber_loss", [](O x, N n, R r) { return nn::huber_loss(x[0], x[1], n.at(0), r); }},
      {"kl_div", [](O x, N n, R r) { return nn::kl_div(x[0], x[1], n.at(0) != 0, r); }},
      {"cosine_similarity",
       [](O x, N n, R) { return nn::cosine_similarity(x[0], x[1], static_cast<std::int64_t>(n.at(0)), n.at(1)); }},
      {"cosine_embedding_loss", [](O x, N n, R r) { return nn::cosine_embedding_loss(x[0], x[1], x[2], n.at(0), r); }},
      {"hinge_loss", [](O x, N, R r) { return nn::hinge_loss(x[0], x[1], r); }},
      {"hinge_embedding_loss", [](O x, N n, R r) { return nn::hinge_embedding_loss(x[0], x[1], n.at(0), r); }},
      {"margin_ranking_loss", [](O x, N n, R r) { return nn::margin_ranking_loss(x[0], x[1], x[2], n.at(0), r); }},
      {"soft_margin_loss", [](O x, N, R r) { return nn::soft_margin_loss(x[0], x[1], r); }},
      {"triplet_margin_loss",
       [](O x, N n, R r) {
         return nn::triplet_margin_loss(x[0], x[1], x[2], {n.at(0), n.at(1), n.at(2), n.at(3) != 0, r});
       }},
      {"poisson_nll_loss",
       [](O x, N n, R r) { return nn::poisson_nll_loss(x[0], x[1], n.at(0) != 0, n.at(1) != 0, n.at(2), r); }},
      {"gaussian_nll_loss",
       [](O x, N n, R r) { return nn::gaussian_nll_loss(x[0], x[1], x[2], n.at(0) != 0, n.at(1), r); }},
      {"ctc_loss",
       [](O x, N n, R r) {
         return nn::ctc_loss(x[0], x[1], x[2], x[3], {static_cast<std::int64_t>(n.at(0)), n.at(1) != 0, r});
       }},
  };
  return all;
}

// -- draws: the key and parameters, the dims and the dtype of the result --
using DrawFn = std::function<Expr(const CallOperands&, Dims, DType)>;
const std::map<std::string, DrawFn>& draws() {
  using O = const CallOperands&;
  namespace r = rlx::random;
  static const std::map<std::string, DrawFn> all{
      {"gumbel", [](O x, Dims d, DType t) { return r::gumbel(x[0], std::move(d), t); }},
      {"exponential", [](O x, Dims d, DType t) { return r::exponential(x[0], std::move(d), t); }},
      {"laplace", [](O x, Dims d, DType t) { return r::laplace(x[0], std::move(d), t); }},
      {"logistic", [](O x, Dims d, DType t) { return r::logistic(x[0], std::move(d), t); }},
      {"cauchy", [](O x, Dims d, DType t) { return r::cauchy(x[0], std::move(d), t); }},
      {"rademacher", [](O x, Dims d, DType t) { return r::rademacher(x[0], std::move(d), t); }},
      {"uniform", [](O x, Dims d, DType t) { return r::uniform(x[0], x[1], x[2], std::move(d), t); }},
      {"truncated_normal", [](O x, Dims d, DType t) { return r::truncated_normal(x[0], x[1], x[2], std::move(d), t); }},
      {"weibull", [](O x, Dims d, DType t) { return r::weibull(x[0], x[1], x[2], std::move(d), t); }},
      {"pareto", [](O x, Dims d, DType t) { return r::pareto(x[0], x[1], std::move(d), t); }},
      {"randint", [](O x, Dims d, DType t) { return r::randint(x[0], x[1], x[2], std::move(d), t); }},
      {"gamma", [](O x, Dims d, DType t) { return r::gamma(x[0], x[1], std::move(d), t); }},
      {"log_gamma", [](O x, Dims d, DType t) { return r::log_gamma(x[0], x[1], std::move(d), t); }},
      {"beta", [](O x, Dims d, DType t) { return r::beta(x[0], x[1], x[2], std::move(d), t); }},
      {"dirichlet", [](O x, Dims d, DType t) { return r::dirichlet(x[0], x[1], std::move(d), t); }},
      {"chisquare", [](O x, Dims d, DType t) { return r::chisquare(x[0], x[1], std::move(d), t); }},
      {"student_t", [](O x, Dims d, DType t) { return r::student_t(x[0], x[1], std::move(d), t); }},
      {"poisson", [](O x, Dims d, DType t) { return r::poisson(x[0], x[1], std::move(d), t); }},
      {"binomial", [](O x, Dims d, DType t) { return r::binomial(x[0], x[1], x[2], std::move(d), t); }},
      {"philox_bits", [](O x, Dims d, DType) { return r::philox_bits(x[0], std::move(d)); }},
  };
  return all;
}

}  // namespace

void bind_functions(nb::module_& m) {
  m.def("loss", [](const std::string& name, nb::sequence xs, const Numbers& numbers, const std::string& reduction) {
    const CallOperands x(xs);
    return x.one(named(losses(), name)(x, numbers, reduction_from(reduction, name)));
  });
  m.def(
      "cross_entropy",
      [](nb::sequence xs, std::optional<std::int64_t> ignore_index, double label_smoothing, std::int64_t axis,
         const std::string& reduction, bool of_log_probs) {
        const CallOperands x(xs);
        nn::CrossEntropyOptions o;
        if (const auto weight = x.maybe(2)) o.weight = weight->expr();
        o.ignore_index = ignore_index, o.label_smoothing = label_smoothing, o.axis = axis;
        o.reduction = reduction_from(reduction, of_log_probs ? "nll_loss" : "cross_entropy");
        return x.one(of_log_probs ? nn::nll_loss(x[0], x[1], o) : nn::cross_entropy(x[0], x[1], o));
      },
      nb::arg("xs"), nb::arg("ignore_index").none(), nb::arg("label_smoothing"), nb::arg("axis"), nb::arg("reduction"),
      nb::arg("of_log_probs"));
  m.def("draw", [](const std::string& name, nb::sequence xs, nb::handle dims, nb::handle dtype) {
    const CallOperands x(xs);
    return x.one(named(draws(), name)(x, dims_from(dims), dtype_from(dtype)));
  });
  m.def("einsum", [](const std::string& spec, nb::sequence xs, bool cheapest_first) {
    const CallOperands x(xs);
    ExprList operands;
    for (std::size_t i = 0; i < x.size(); ++i) operands.push_back(x[i].expr());
    return x.one(einsum(spec, operands, cheapest_first, x.loc()));
  });
  m.def("einsum_path", [](const std::string& spec, nb::sequence shapes) {
    std::vector<Dims> dims;
    for (std::size_t i = 0; i < nb::len(shapes); ++i) dims.push_back(dims_from(shapes[i]));
    return einsum_path(spec, dims, user_line());
  });
  m.def("draw_permutation", [](nb::sequence xs, std::int64_t n) {
    const CallOperands x(xs);
    return x.one(random::permutation(x[0], n));
  });
  m.def("draw_shuffle", [](nb::sequence xs, std::int64_t axis, bool independent) {
    const CallOperands x(xs);
    return x.one(random::shuffle(x[0], x[1], axis, independent));
  });
  m.def("draw_categorical", [](nb::sequence xs, std::int64_t axis, nb::handle draws) {
    const CallOperands x(xs);
    return x.one(random::categorical(x[0], x[1], axis, dims_from(draws)));
  });
  m.def("draw_categorical_distinct", [](nb::sequence xs, std::int64_t count, std::int64_t axis) {
    const CallOperands x(xs);
    return x.one(random::categorical_distinct(x[0], x[1], count, axis));
  });
  m.def("draw_ball", [](nb::sequence xs, std::int64_t d, double p, nb::handle dims, nb::handle dtype) {
    const CallOperands x(xs);
    return x.one(random::ball(x[0], d, p, dims_from(dims), dtype_from(dtype)));
  });
}

}  // namespace rlx::python
