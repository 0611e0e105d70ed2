// Losses: how far predictions are from what was wanted, with the formulas and the reductions of PyTorch's functional
// losses. The first operand is a value of a graph, which the loss is built in; operands broadcast and are cast as in
// arithmetic. All have derivatives of every order.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// What becomes of the losses of elements: kept, averaged, or added up.
enum class Reduction : std::uint8_t { None, Mean, Sum };

/// Of a cross entropy. Mean divides by the sum of the weights of the labels that count (distributions: by the number
/// of rows).
struct CrossEntropyOptions {
  std::optional<Expr> weight{};                // [C], of each class
  std::optional<std::int64_t> ignore_index{};  // labels with this number add nothing; integer labels alone
  double label_smoothing = 0;                  // how much of a label is spread over all classes, in [0, 1]
  std::int64_t axis = -1;                      // of the classes; PyTorch has it at 1
  Reduction reduction = Reduction::Mean;
};
/// -log softmax(logits)[label] of integer labels [.. without axis], or - sum of labels log softmax(logits) of
/// distributions with the dims of the logits. An integer that is no class gives NaN.
Expr cross_entropy(Operand logits, Operand labels, const CrossEntropyOptions& options = {});
/// The same of logarithms of probabilities and integer labels; without smoothing.
Expr nll_loss(Operand log_probs, Operand labels, const CrossEntropyOptions& options = {});

/// -(t log p + (1 - t) log(1 - p)) of probabilities p, with logarithms of at least -100.
Expr binary_cross_entropy(Operand p, Operand target, std::optional<Operand> weight = std::nullopt,
                          Reduction reduction = Reduction::Mean);
/// The same of logits; pos_weight multiplies the part of t.
Expr binary_cross_entropy_with_logits(Operand logits, Operand target, std::optional<Operand> weight = std::nullopt,
                                      std::optional<Operand> pos_weight = std::nullopt,
                                      Reduction reduction = Reduction::Mean);
/// Binary cross entropy of logits times (1 - p_t)^gamma, p_t the probability of what was wanted, and, unless alpha is
/// negative, times alpha t + (1 - alpha)(1 - t): Lin et al., "Focal loss for dense object detection", 2017.
Expr sigmoid_focal_loss(Operand logits, Operand target, double alpha = 0.25, double gamma = 2,
                        Reduction reduction = Reduction::None);

/// (x - t)^2.
Expr mse_loss(Operand x, Operand target, Reduction reduction = Reduction::Mean);
/// |x - t|.
Expr l1_loss(Operand x, Operand target, Reduction reduction = Reduction::Mean);
/// d^2 / (2 beta) where d = |x - t| < beta, else d - beta / 2; beta >= 0.
Expr smooth_l1_loss(Operand x, Operand target, double beta = 1, Reduction reduction = Reduction::Mean);
/// d^2 / 2 where d = |x - t| <= delta, else delta (d - delta / 2); delta > 0.
Expr huber_loss(Operand x, Operand target, double delta = 1, Reduction reduction = Reduction::Mean);

/// t (log t - x) of logarithms x of probabilities, 0 where t is 0; log_target: t is given as its logarithm.
Expr kl_div(Operand x, Operand target, bool log_target = false, Reduction reduction = Reduction::Mean);
/// a . b / max(|a| |b|, eps) along an axis.
Expr cosine_similarity(Operand a, Operand b, std::int64_t axis = -1, double eps = 1e-8);
/// 1 - cosine(a, b) where target is 1, max(0, cosine(a, b) - margin) where it is -1; a, b [.., D].
Expr cosine_embedding_loss(Operand a, Operand b, Operand target, double margin = 0,
                           Reduction reduction = Reduction::Mean);
/// max(0, 1 - x t), t in {-1, 1}.
Expr hinge_loss(Operand x, Operand target, Reduction reduction = Reduction::Mean);
/// x where target is 1, max(0, margin - x) where it is -1.
Expr hinge_embedding_loss(Operand x, Operand target, double margin = 1, Reduction reduction = Reduction::Mean);
/// max(0, -t (a - b) + margin).
Expr margin_ranking_loss(Operand a, Operand b, Operand target, double margin = 0,
                         Reduction reduction = Reduction::Mean);
/// log(1 + exp(-t x)).
Expr soft_margin_loss(Operand x, Operand target, Reduction reduction = Reduction::Mean);

/// Of distances |a - b + eps|_p along the last axis: max(0, d(anchor, positive) - d(anchor, negative) + margin); swap
/// takes d(positive, negative) where that is the smaller one.
struct TripletOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  Reduction reduction = Reduction::Mean;
};
Expr triplet_margin_loss(Operand anchor, Operand positive, Operand negative, const TripletOptions& options = {});

/// exp(x) - t x of the logarithm x of a rate, or x - t log(x + eps) of the rate; full adds Stirling's approximation of
/// log t! where t > 1.
Expr poisson_nll_loss(Operand x, Operand target, bool log_input = true, bool full = false, double eps = 1e-8,
                      Reduction reduction = Reduction::Mean);
/// (log v + (x - t)^2 / v) / 2 with v = max(var, eps), whose derivative is that of var; full adds log(2 pi) / 2.
Expr gaussian_nll_loss(Operand x, Operand target, Operand var, bool full = false, double eps = 1e-6,
                       Reduction reduction = Reduction::Mean);

/// See ops::CtcLoss. Mean: of the losses over their target lengths (at least 1). zero_infinity makes infinite losses 0.
struct CtcOptions {
  std::int64_t blank = 0;
  bool zero_infinity = false;
  Reduction reduction = Reduction::Mean;
};
Expr ctc_loss(Operand log_probs, Operand targets, Operand input_lengths, Operand target_lengths,
              const CtcOptions& options = {});

}  // namespace rlx::nn
