// Losses. Formulas and reductions are those of torch.nn.functional. The first operand is a value of a graph, which the
// ops of the loss are added to. Operands broadcast and are cast as in arithmetic. Every loss has derivatives of every
// order. InvalidArgument for parameters out of range.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// How the losses of elements are reduced: not at all, to their mean, or to their sum.
enum class Reduction : std::uint8_t { None, Mean, Sum };

/// Options of cross_entropy and nll_loss. Reduction::Mean divides by the sum of the weights of the labels that are not
/// ignored; for distributions it divides by the number of rows.
struct CrossEntropyOptions {
  std::optional<Expr> weight{};                // [C], one per class
  std::optional<std::int64_t> ignore_index{};  // labels of this value have loss 0; integer labels only
  double label_smoothing = 0;                  // the part of a label that is spread over all classes, in [0, 1]
  std::int64_t axis = -1;                      // the axis of classes; in PyTorch it is 1
  Reduction reduction = Reduction::Mean;
};
/// The cross entropy of softmax(logits). Integer labels [.. without axis]: -log_softmax(logits)[label]; a label that is
/// no class gives NaN. Float labels with the dims of the logits are distributions: -sum of labels *
/// log_softmax(logits).
Expr cross_entropy(Operand logits, Operand labels, const CrossEntropyOptions& options = {});
/// The negative log-likelihood -log_probs[label] of integer labels [.. without axis]; a label that is no class gives
/// NaN. InvalidArgument for label_smoothing, DTypeMismatch for float labels.
Expr nll_loss(Operand log_probs, Operand labels, const CrossEntropyOptions& options = {});

/// -(t log p + (1 - t) log(1 - p)) for probabilities p, where logarithms are at least -100, as in PyTorch.
Expr binary_cross_entropy(Operand p, Operand target, std::optional<Operand> weight = std::nullopt,
                          Reduction reduction = Reduction::Mean);
/// binary_cross_entropy of p = sigmoid(logits). pos_weight multiplies the term of t.
Expr binary_cross_entropy_with_logits(Operand logits, Operand target, std::optional<Operand> weight = std::nullopt,
                                      std::optional<Operand> pos_weight = std::nullopt,
                                      Reduction reduction = Reduction::Mean);
/// The focal loss (Lin et al., "Focal loss for dense object detection", 2017): binary cross entropy of logits times (1
/// - p_t)^gamma, where p_t is the probability of the target class. If alpha is not negative, it is also multiplied by
/// alpha t + (1 - alpha)(1 - t).
Expr sigmoid_focal_loss(Operand logits, Operand target, double alpha = 0.25, double gamma = 2,
                        Reduction reduction = Reduction::None);

/// The squared error (x - t)^2.
Expr mse_loss(Operand x, Operand target, Reduction reduction = Reduction::Mean);
/// The absolute error |x - t|.
Expr l1_loss(Operand x, Operand target, Reduction reduction = Reduction::Mean);
/// With d = |x - t|: d^2 / (2 beta) if d < beta, else d - beta / 2; beta >= 0.
Expr smooth_l1_loss(Operand x, Operand target, double beta = 1, Reduction reduction = Reduction::Mean);
/// The Huber loss. With d = |x - t|: d^2 / 2 if d <= delta, else delta (d - delta / 2); delta > 0.
Expr huber_loss(Operand x, Operand target, double delta = 1, Reduction reduction = Reduction::Mean);

/// The Kullback-Leibler divergence t (log t - x) for log-probabilities x, 0 where t is 0. With log_target the target is
/// log t.
Expr kl_div(Operand x, Operand target, bool log_target = false, Reduction reduction = Reduction::Mean);
/// a . b / max(|a| |b|, eps) along `axis`; eps >= 0. 0 where a vector is 0.
Expr cosine_similarity(Operand a, Operand b, std::int64_t axis = -1, double eps = 1e-8);
/// For a, b [.., D]: 1 - cosine(a, b) where target is 1, max(0, cosine(a, b) - margin) where it is -1. As in PyTorch,
/// 1e-12 is added to each squared norm.
Expr cosine_embedding_loss(Operand a, Operand b, Operand target, double margin = 0,
                           Reduction reduction = Reduction::Mean);
/// max(0, 1 - x t) for t in {-1, 1}.
Expr hinge_loss(Operand x, Operand target, Reduction reduction = Reduction::Mean);
/// x where target is 1, max(0, margin - x) where it is -1.
Expr hinge_embedding_loss(Operand x, Operand target, double margin = 1, Reduction reduction = Reduction::Mean);
/// max(0, -t (a - b) + margin) for t in {-1, 1}.
Expr margin_ranking_loss(Operand a, Operand b, Operand target, double margin = 0,
                         Reduction reduction = Reduction::Mean);
/// log(1 + exp(-t x)) for t in {-1, 1}.
Expr soft_margin_loss(Operand x, Operand target, Reduction reduction = Reduction::Mean);

/// Options of triplet_margin_loss. With `swap` the distance of positive and negative replaces that of anchor and
/// negative where it is smaller. margin and p are above 0, eps is at least 0.
struct TripletOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  Reduction reduction = Reduction::Mean;
};
/// max(0, d(anchor, positive) - d(anchor, negative) + margin), with the distance d(a, b) = |a - b + eps|_p along the
/// last axis.
Expr triplet_margin_loss(Operand anchor, Operand positive, Operand negative, const TripletOptions& options = {});

/// The Poisson negative log-likelihood: exp(x) - t x if x is the logarithm of the rate, x - t log(x + eps) if x is the
/// rate. `full` adds Stirling's approximation of log t! where t > 1.
Expr poisson_nll_loss(Operand x, Operand target, bool log_input = true, bool full = false, double eps = 1e-8,
                      Reduction reduction = Reduction::Mean);
/// The Gaussian negative log-likelihood (log v + (x - t)^2 / v) / 2 with v = max(var, eps); eps > 0. The derivative by
/// var ignores the max. `full` adds log(2 pi) / 2.
Expr gaussian_nll_loss(Operand x, Operand target, Operand var, bool full = false, double eps = 1e-6,
                       Reduction reduction = Reduction::Mean);

/// Options of ctc_loss. Reduction::Mean first divides each loss by its target length, or by 1 if that is 0.
/// zero_infinity replaces infinite losses by 0.
struct CtcOptions {
  std::int64_t blank = 0;
  bool zero_infinity = false;
  Reduction reduction = Reduction::Mean;
};
/// The connectionist temporal classification loss of log_probs [T, N, C]; see ops::CtcLoss.
Expr ctc_loss(Operand log_probs, Operand targets, Operand input_lengths, Operand target_lengths,
              const CtcOptions& options = {});

}  // namespace rlx::nn
