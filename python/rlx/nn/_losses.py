"""Losses. Those of optax give one value for each element or row. Those of torch.nn.functional have a reduction: "mean",
"sum" or "none".
"""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import as_index, axis_of, cast, inexact, node
from .._op import op


def _loss(name, operands, numbers=(), reduction="none"):
    """Calls the C++ function on operands in one floating dtype."""
    dtype, weak = _rlx.result_type(*(inexact(x) for x in operands))
    values = [cast(inexact(x), dtype) for x in operands]
    return _rlx.loss(name, values, [float(n) for n in numbers], reduction)._with_weak(weak)


def _last(x, axis, what):
    """x with this axis last."""
    axis = axis_of(axis, x.ndim, what)
    return x if axis == x.ndim - 1 else rnp.moveaxis(x, axis, -1)


# -- optax --


@op("logits", "labels", "where")
def softmax_cross_entropy(logits, labels, axis=-1, where=None):
    """-sum(labels * log softmax(logits)) along an axis, for labels that are distributions. A label of 0 adds
    nothing.
    """
    logits, labels = inexact(logits), inexact(labels)
    dtype, _ = _rlx.result_type(logits, labels)
    shape = rnp.broadcast_shapes(logits.shape, labels.shape)
    if where is not None:
        logits = rnp.where(where, logits, -float("inf"))
        labels = rnp.where(where, labels, 0)
        shape = rnp.broadcast_shapes(logits.shape, labels.shape)
    logits, labels = (
        _last(rnp.broadcast_to(cast(v, dtype), shape), axis, "softmax_cross_entropy") for v in (logits, labels)
    )
    return node("softmax_cross_entropy", logits, labels)[0]


@op("logits", "labels")
def softmax_cross_entropy_with_integer_labels(logits, labels, axis=-1):
    """logsumexp(logits) - logits[label] along an axis. A label that is not a class gives NaN."""
    logits, labels = inexact(logits), _rlx.value(labels)
    if labels.dtype.kind not in "iu":
        raise TypeError(f"softmax_cross_entropy_with_integer_labels: the labels are {labels.dtype.name}")
    labels = as_index(labels)
    return node("softmax_cross_entropy", _last(logits, axis, "softmax_cross_entropy"), labels)[0]


@op("logits", "labels")
def sigmoid_binary_cross_entropy(logits, labels):
    """-(labels * log sigmoid(logits) + (1 - labels) * log sigmoid(-logits))."""
    return _loss("binary_cross_entropy_with_logits", (logits, labels), (0, 0))


@op("logits", "labels")
def sigmoid_focal_loss(logits, labels, alpha=None, gamma=2.0):
    """Binary cross entropy of logits times (1 - p)^gamma, where p is the probability of the label. alpha: the weight of
    label 1.
    """
    return _loss("sigmoid_focal_loss", (logits, labels), (-1 if alpha is None else alpha, gamma))


@op("predictions", "targets")
def squared_error(predictions, targets=None):
    """(predictions - targets)^2."""
    return _loss("mse_loss", (predictions, 0.0 if targets is None else targets))


@op("predictions", "targets")
def l2_loss(predictions, targets=None):
    """(predictions - targets)^2 / 2."""
    d = inexact(predictions if targets is None else predictions - _rlx.value(targets))
    return d * (0.5 * d)  # squares that are twice as large as the result may overflow


@op("predictions", "targets")
def huber_loss(predictions, targets=None, delta=1.0):
    """d^2 / 2 where d = |predictions - targets| is at most delta, else delta (d - delta / 2)."""
    return _loss("huber_loss", (predictions, 0.0 if targets is None else targets), (delta,))


@op("predictions", "targets")
def log_cosh(predictions, targets=None):
    """log cosh(predictions - targets), about d^2 / 2 near 0 and |d| - log 2 far from it."""
    d = inexact(predictions if targets is None else predictions - _rlx.value(targets))
    near = rnp.less(rnp.abs(d), 1)  # where the logarithm of cosh is log(1 + 2 sinh(d / 2)^2)
    close = node("log1p", 2 * rnp.square(rnp.sinh(0.5 * rnp.where(near, d, 0))))
    size = rnp.where(near, 1, rnp.where(rnp.less(d, 0), -d, d))
    return rnp.where(near, close, size - 0.6931471805599453 + node("softplus", -2 * size))


@op("predictions", "targets")
def cosine_similarity(predictions, targets, epsilon=0.0, axis=-1):
    """The cosine similarity of vectors along an axis. epsilon: the least product of norms. 0 where a vector is 0."""
    return _loss("cosine_similarity", (predictions, targets), (axis, float(epsilon)))


@op("predictions", "targets")
def cosine_distance(predictions, targets, epsilon=0.0, axis=-1):
    """1 - cosine_similarity."""
    return 1 - cosine_similarity(predictions, targets, epsilon, axis)


@op("predictor_outputs", "targets")
def hinge_loss(predictor_outputs, targets):
    """max(0, 1 - outputs * targets) for targets -1 and 1."""
    return _loss("hinge_loss", (predictor_outputs, targets))


@op("log_predictions", "targets")
def kl_divergence(log_predictions, targets, axis=-1):
    """The sum of targets * (log targets - log_predictions) along an axis; a target of 0 adds nothing."""
    return rnp.sum(_loss("kl_div", (log_predictions, targets), (0,)), axis)


@op("log_predictions", "log_targets")
def kl_divergence_with_log_targets(log_predictions, log_targets, axis=-1):
    """kl_divergence with logarithms of targets."""
    return rnp.sum(_loss("kl_div", (log_predictions, log_targets), (1,)), axis)


@op("labels")
def smooth_labels(labels, alpha):
    """(1 - alpha) * labels + alpha / classes, with the classes along the last axis."""
    labels = inexact(labels)
    if labels.ndim == 0 or labels.shape[-1] == 0:
        raise ValueError(f"smooth_labels: labels of shape {labels.shape} have no classes along their last axis")
    return (1 - alpha) * labels + alpha / labels.shape[-1]


@op("logits", "logit_paddings", "labels", "label_paddings")
def ctc_loss(logits, logit_paddings, labels, label_paddings, blank_id=0):
    """Connectionist temporal classification: the negative log-likelihood [B] of labels [B, N] given logits [B, T, K].

    logit_paddings [B, T] and label_paddings [B, N] are 1 for padding. Labels that do not fit into the steps have an
    infinite loss.
    """
    logits, labels = inexact(logits), _rlx.value(labels)
    for name, x, of, axes in (("logit", logit_paddings, logits, "B, T"), ("label", label_paddings, labels, "B, N")):
        if of.ndim < 2 or _rlx.value(x).shape != of.shape[:2]:
            shapes = f"{tuple(_rlx.value(x).shape)} beside {name}s {tuple(of.shape)}"
            raise ValueError(f"ctc_loss: {name}_paddings {shapes}: they must be [{axes}], 1 for padding")
    log_probs = rnp.swapaxes(node("log_softmax", logits, axis=-1), 0, 1)
    counts = [rnp.sum(rnp.equal(_rlx.value(p), 0), 1, dtype="int32") for p in (logit_paddings, label_paddings)]
    return node("ctc_loss", log_probs, cast(labels, "int32"), *counts, blank=blank_id)


# -- torch.nn.functional --


def _entropy(logits, labels, weight, ignore_index, label_smoothing, axis, reduction, of_log_probs):
    logits, labels = inexact(logits), _rlx.value(labels)
    if labels.dtype.kind in "iu":
        labels = as_index(labels)
    operands = [logits, labels] if weight is None else [logits, labels, cast(weight, logits.dtype)]
    return _rlx.cross_entropy(operands, ignore_index, float(label_smoothing), axis, reduction, of_log_probs)


@op("logits", "labels", "weight")
def cross_entropy(logits, labels, weight=None, *, ignore_index=None, label_smoothing=0.0, axis=-1, reduction="mean"):
    """Cross entropy of logits, with the classes along an axis, and labels that are integers or distributions.

    weight: a weight for each class. ignore_index: labels with this value are ignored. label_smoothing: the part of each
        label that is spread over all classes. The mean divides by the sum of the weights of the labels that count.
    """
    return _entropy(logits, labels, weight, ignore_index, label_smoothing, axis, reduction, False)


@op("log_probs", "labels", "weight")
def nll_loss(log_probs, labels, weight=None, *, ignore_index=None, axis=-1, reduction="mean"):
    """-log_probs[label], with a weight for each class."""
    return _entropy(log_probs, labels, weight, ignore_index, 0.0, axis, reduction, True)


@op("probs", "targets", "weight")
def binary_cross_entropy(probs, targets, weight=None, *, reduction="mean"):
    """-(targets * log probs + (1 - targets) * log(1 - probs)), with logarithms clamped to -100."""
    operands = (probs, targets) if weight is None else (probs, targets, weight)
    return _loss("binary_cross_entropy", operands, (), reduction)


@op("logits", "targets", "weight", "pos_weight")
def binary_cross_entropy_with_logits(logits, targets, weight=None, pos_weight=None, *, reduction="mean"):
    """binary_cross_entropy of sigmoid(logits). pos_weight: a factor for the part of positive targets."""
    given = [v for v in (weight, pos_weight) if v is not None]
    numbers = (weight is not None, pos_weight is not None)
    return _loss("binary_cross_entropy_with_logits", (logits, targets, *given), numbers, reduction)


@op("x", "targets")
def mse_loss(x, targets, *, reduction="mean"):
    """(x - targets)^2."""
    return _loss("mse_loss", (x, targets), (), reduction)


@op("x", "targets")
def l1_loss(x, targets, *, reduction="mean"):
    """|x - targets|."""
    return _loss("l1_loss", (x, targets), (), reduction)


@op("x", "targets")
def smooth_l1_loss(x, targets, *, beta=1.0, reduction="mean"):
    """d^2 / (2 beta) where d = |x - targets| is below beta, else d - beta / 2."""
    return _loss("smooth_l1_loss", (x, targets), (beta,), reduction)


@op("x", "targets")
def kl_div(x, targets, *, log_target=False, reduction="mean"):
    """targets * (log targets - x), where x are log-probabilities."""
    return _loss("kl_div", (x, targets), (log_target,), reduction)


@op("a", "b", "targets")
def cosine_embedding_loss(a, b, targets, *, margin=0.0, reduction="mean"):
    """1 - cosine(a, b) where a target is 1, max(0, cosine - margin) where it is -1; vectors along the last axis. As in
    PyTorch, 1e-12 is added to each squared norm, so the cosine of a vector of 0 is 0.
    """
    return _loss("cosine_embedding_loss", (a, b, targets), (margin,), reduction)


@op("x", "targets")
def hinge_embedding_loss(x, targets, *, margin=1.0, reduction="mean"):
    """x where a target is 1, max(0, margin - x) where it is -1."""
    return _loss("hinge_embedding_loss", (x, targets), (margin,), reduction)


@op("a", "b", "targets")
def margin_ranking_loss(a, b, targets, *, margin=0.0, reduction="mean"):
    """max(0, -targets * (a - b) + margin)."""
    return _loss("margin_ranking_loss", (a, b, targets), (margin,), reduction)


@op("x", "targets")
def soft_margin_loss(x, targets, *, reduction="mean"):
    """log(1 + exp(-targets * x))."""
    return _loss("soft_margin_loss", (x, targets), (), reduction)


@op("anchor", "positive", "negative")
def triplet_margin_loss(anchor, positive, negative, *, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) of distances of norm p along the last axis."""
    return _loss("triplet_margin_loss", (anchor, positive, negative), (margin, p, eps, swap), reduction)


@op("x", "targets")
def poisson_nll_loss(x, targets, *, log_input=True, full=False, eps=1e-8, reduction="mean"):
    """exp(x) - targets * x, where x is the logarithm of a rate. full: adds Stirling's approximation of log targets!."""
    return _loss("poisson_nll_loss", (x, targets), (log_input, full, eps), reduction)


@op("x", "targets", "var")
def gaussian_nll_loss(x, targets, var, *, full=False, eps=1e-6, reduction="mean"):
    """(log v + (x - targets)^2 / v) / 2 with v = max(var, eps). full: adds log(2 pi) / 2."""
    return _loss("gaussian_nll_loss", (x, targets, var), (full, eps), reduction)
