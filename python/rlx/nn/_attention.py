"""Multi-head attention."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import inexact, node
from .._op import op


def _positions(t, s):
    """Positions of queries [t, 1] and of keys [s]."""
    return rnp.expand_dims(rnp.arange(t), 1), rnp.arange(s)


def _window(size):
    return size if isinstance(size, (tuple, list)) else (size, size)


def _allowed(mask, t, s, causal, query_lengths, key_lengths, window):
    """A bool mask of the keys that each query sees, broadcastable to [B, N, T, S]; None if it sees all keys."""
    rows, columns = _positions(t, s)
    parts = [] if mask is None else [mask]
    if causal:
        parts.append(rnp.greater_equal(rows, columns))
    if window is not None:
        left, right = _window(window)
        parts += [rnp.less_equal(rows - columns, left), rnp.less_equal(columns - rows, right)]
    for lengths, places in ((query_lengths, rows), (key_lengths, columns)):
        if lengths is not None:
            parts.append(rnp.less(places, rnp.reshape(lengths, (-1, 1, 1, 1))))
    out = None
    for part in parts:
        out = part if out is None else rnp.logical_and(out, part)
    return out


def _four(x, what):
    x = _rlx.value(x)
    if x.ndim not in (3, 4):
        raise ValueError(
            f"dot_product_attention: {what} has shape {x.shape}; it must have 4 axes, or 3 without a batch axis"
        )
    return x if x.ndim == 4 else rnp.expand_dims(x, 0)


@op("query", "key", "value", "bias", "mask", "query_seq_lengths", "key_value_seq_lengths")
def dot_product_attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    *,
    scale=None,
    is_causal=False,
    query_seq_lengths=None,
    key_value_seq_lengths=None,
    local_window_size=None,
    return_residual=False,
    implementation=None,
):
    """Attention: softmax(query key^T * scale + bias) value for each head.

    query is [B, T, N, H], key and value are [B, S, K, H], where N is a multiple of K.

    mask: True where a query sees a key, broadcastable to [B, N, T, S]. A query that sees no key gives zeros.
    is_causal: query i sees keys 0 to i.
    query_seq_lengths, key_value_seq_lengths: the number of valid queries and keys, [B].
    local_window_size: the number of keys that are seen to the left and to the right.
    return_residual: also returns the log-sum-exp of the scores, [B, T, N].
    implementation: None or "xla"; both are the one that rlx has.
    """
    if implementation not in (None, "xla"):
        raise NotImplementedError(f"dot_product_attention: implementation {implementation!r}; leave it out")
    single = _rlx.value(query).ndim == 3
    q, k, v = (_four(inexact(x), what) for x, what in ((query, "query"), (key, "key"), (value, "value")))
    (_, t, heads, size), (_, s, kv_heads, key_size) = q.shape, k.shape
    if key_size != size or v.shape[:3] != k.shape[:3] or q.shape[0] != k.shape[0] or not kv_heads or heads % kv_heads:
        raise ValueError(
            f"dot_product_attention: query {q.shape}, key {k.shape}, value {v.shape}; they must be [B, T, N, H], "
            "[B, S, K, H] and [B, S, K, H], where K divides N and is not 0"
        )
    more = {}
    if mask is not None:
        mask = _rlx.value(mask)
        if mask.dtype.kind != "b":
            raise TypeError(f"dot_product_attention: the mask is {mask.dtype.name}; it must be bool; see bias")
    lengths = (query_seq_lengths, key_value_seq_lengths)
    if is_causal and t == s and mask is None and bias is None and local_window_size is None and lengths == (None, None):
        more["mask"] = "causal"
    else:
        mask = _allowed(mask, t, s, is_causal, *lengths, local_window_size)
        if bias is not None:
            more["mask"] = inexact(bias) if mask is None else rnp.where(mask, inexact(bias), -float("inf"))
        elif mask is not None:
            more["mask"] = mask
    q, k, v = (rnp.swapaxes(x, 1, 2) for x in (q, k, v))
    out, sums = node(
        "attention",
        *(q, k, v),
        num_heads=heads,
        kv_heads=kv_heads,
        head_dim=size,
        v_head_dim=v.shape[3],
        scale=scale,
        layout="heads_first",
        **more,
    )
    out, sums = (rnp.swapaxes(x, 1, 2) for x in (out, sums))
    if query_seq_lengths is not None:
        here = rnp.less(rnp.arange(t), rnp.expand_dims(query_seq_lengths, 1))
        out = rnp.where(rnp.expand_dims(here, (2, 3)), out, 0)
    if single:
        out, sums = out[0], sums[0]
    return (out, sums) if return_residual else out
