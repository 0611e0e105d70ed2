"""Recurrent layers with the weights of PyTorch, state space scans, causal convolution."""

from .. import _rlx
from .._nodes import inexact
from .._op import op


def _layers(weights, what):
    """The weights as a list with a tuple for each layer."""
    if not isinstance(weights, (list, tuple)):
        raise TypeError(f"{what}: weights must be (w_ih, w_hh) or (w_ih, w_hh, b_ih, b_hh), or a list of these")
    return weights if weights and isinstance(weights[0], (list, tuple)) else [weights]


def _check_name(nonlinearity, what):
    if not isinstance(nonlinearity, str):
        raise TypeError(f"{what}: nonlinearity {nonlinearity!r}; it must be a name, for example 'tanh' or 'relu'")


def _recurrent(kind, x, weights, h0, c0, lengths, bidirectional, batch_first, fn="tanh"):
    _check_name(fn, kind)
    operands = {"x": inexact(x), "h0": h0, "c0": c0, "lengths": lengths}
    return tuple(_rlx.recurrent(kind, operands, _layers(weights, kind), bidirectional, batch_first, fn))


@op("x", "*weights", "h0", "c0", "lengths")
def lstm(x, weights, h0=None, c0=None, *, lengths=None, bidirectional=False, batch_first=False):
    """(y, h, c) of torch.nn.LSTM: y [S, B, D H] for x [S, B, I]; h and c [layers D, B, H] after the last step.

    weights: (w_ih [4 H, I], w_hh [4 H, H]), or with the biases b_ih, b_hh [4 H]; gates i, f, g, o. A list has one tuple
        for each layer; with bidirectional, the forward and then the reverse one of each layer. batch_first: x is [B, S,
        I] and y [B, S, D H]. lengths [B]: the steps of each sequence; y is 0 after them. h0, c0: zeros by default.
    """
    return _recurrent("lstm", x, weights, h0, c0, lengths, bidirectional, batch_first)


@op("x", "*weights", "h0", "lengths")
def gru(x, weights, h0=None, *, lengths=None, bidirectional=False, batch_first=False):
    """(y, h) of torch.nn.GRU; see lstm. Gates r, z, n."""
    return _recurrent("gru", x, weights, h0, None, lengths, bidirectional, batch_first)


@op("x", "*weights", "h0", "lengths")
def rnn(x, weights, h0=None, *, lengths=None, bidirectional=False, batch_first=False, nonlinearity="tanh"):
    """(y, h) of torch.nn.RNN; see lstm. h' = nonlinearity(x w_ih^T + h w_hh^T + b_ih + b_hh)."""
    return _recurrent("rnn", x, weights, h0, None, lengths, bidirectional, batch_first, nonlinearity)


def _cell(kind, x, states, weights, fn="tanh"):
    rows = [_rlx.reshape([v], (1, *v.shape)) for v in (inexact(x), *map(inexact, states))]
    _check_name(fn, kind + "_cell")
    operands = {"x": rows[0], "h0": rows[1], "c0": rows[2] if len(rows) > 2 else None}
    out = _rlx.recurrent(kind, operands, _layers(weights, kind + "_cell"), False, False, fn)[1:]
    return tuple(_rlx.reshape([v], tuple(v.shape[1:])) for v in out)


@op("x", "h", "c", "*weights")
def lstm_cell(x, h, c, weights):
    """(h, c) after one step of lstm: x [B, I], h and c [B, H]."""
    return _cell("lstm", x, (h, c), weights)


@op("x", "h", "*weights")
def gru_cell(x, h, weights):
    """h after one step of gru: x [B, I], h [B, H]."""
    return _cell("gru", x, (h,), weights)[0]


@op("x", "h", "*weights")
def rnn_cell(x, h, weights, nonlinearity="tanh"):
    """h after one step of rnn: x [B, I], h [B, H]."""
    return _cell("rnn", x, (h,), weights, nonlinearity)[0]


@op("x", "delta", "a", "b", "c", "d", "z", "delta_bias", "state")
def selective_scan(x, delta, a, b, c, d=None, z=None, delta_bias=None, state=None, *, delta_softplus=False):
    """(y, state) of the scan of Mamba: h_t = exp(delta_t a) h_{t-1} + delta_t b_t x_t, y_t = c_t h_t + d x_t, times
    silu(z).

    x, delta, z [B, S, H], a [H, N], b, c [B, S, N], d, delta_bias [H], state [B, H, N]: the initial state, and the last
    one in the result. delta_bias is added to delta; delta_softplus then applies softplus.
    """
    operands = {"x": inexact(x), "delta": delta, "a": a, "b": b, "c": c}
    operands |= {"d": d, "z": z, "delta_bias": delta_bias, "state": state}
    return tuple(_rlx.state_space("selective_scan", operands, delta_softplus))


@op("x", "dt", "a", "b", "c", "d", "z", "dt_bias", "state")
def mamba2(x, dt, a, b, c, d=None, z=None, dt_bias=None, state=None, *, dt_softplus=False, chunk=64):
    """(y, state) of the scan of Mamba-2, with h [P, N] for each head: h_t = exp(dt_t a) h_{t-1} + dt_t x_t b_t^T, y_t =
    h_t c_t.

    x, z [B, S, H, P], dt [B, S, H], a, dt_bias [H], b, c [B, S, G, N] with H a multiple of G, d [H] or [H, P], state
    [B, H, P, N]. d x_t is added to y, and y is multiplied by silu(z). Derivatives process the steps in chunks of
    `chunk`.
    """
    operands = {"x": inexact(x), "dt": dt, "a": a, "b": b, "c": c, "d": d, "z": z, "dt_bias": dt_bias, "state": state}
    return tuple(_rlx.state_space("mamba2", operands, dt_softplus, chunk))


@op("q", "k", "v", "g", "beta", "state")
def gated_delta_net(q, k, v, g, beta, state=None, *, scale=None, chunk=32):
    """(y, state) of the gated delta rule: s = exp(g) s, s += k ((v - k^T s) beta)^T, y = scale q^T s, step by step.

    q, k [B, S, G, K], v [B, S, H, V] with H a multiple of G, g, beta [B, S, H], state [B, H, K, V]. scale: K^-1/2 by
    default. The caller normalizes q and k. Derivatives process the steps in chunks of `chunk`, a power of two.
    """
    operands = {"q": inexact(q), "k": k, "v": v, "g": g, "beta": beta, "state": state}
    return tuple(_rlx.state_space("gated_delta_net", operands, False, chunk, scale))


@op("x", "w", "context", "bias")
def causal_conv1d(x, w, context=None, bias=None):
    """(y, context): convolves each channel of x [B, S, C] with its row of w [C, K], over the current and earlier steps
    only.

    context [B, K - 1, C]: the rows before x, zeros by default; the result has that of the next call.
    """
    return tuple(_rlx.causal_conv({"x": inexact(x), "w": w, "context": context, "bias": bias}))
