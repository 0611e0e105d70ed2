"""Values whose derivative is an error, such as those that custom derivative rules use without being given them."""

from . import _rlx
from ._custom import custom_op

_messages = []


def _itself(x, number):
    return _rlx.value(x)


def _is_differentiated(*operands, number):
    raise TypeError(_messages[number])


_op = custom_op(
    "rlx.without_derivative",
    decompose=_itself,
    vjp=_is_differentiated,
    jvp=_is_differentiated,
    batch=lambda operands, batched, size, number: _op(*operands, number=number),
    doc="A value whose derivative is an error.",
)


def without_derivative(x, message):
    """x, whose derivative is an error with this message."""
    if message not in _messages:
        _messages.append(message)
    return _op(x, number=_messages.index(message))


def closed_over(x, name):
    """x, whose derivative is an error that names the function that closes over it."""
    return without_derivative(
        x,
        f"{name}: a derivative with respect to a value that the function closes over: its rules know nothing of it; "
        "pass it as an argument, so that they can return its cotangent",
    )
