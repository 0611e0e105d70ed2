"""Gradients of holomorphic functions, and with respect to integers."""

from . import _rlx, tree
from ._nodes import filled


def gradient_of(fun, what, argnums, has_aux, holomorphic, allow_int, positions, opened_with):
    """The function of value_and_grad. A complex function is holomorphic: the gradient is its complex derivative. The
    gradient of an integer is 0. positions and opened_with are the helpers of the transforms: the positions of argnums,
    and a function traced with its pullback.
    """

    def inner(*args, **kwargs):
        nums = positions(argnums, args, "grad", fun)
        parts = [args[n] for n in nums]
        for v in tree.leaves(parts):
            kind = _rlx.value(v).dtype.kind
            if kind not in "fc" and not allow_int:
                raise TypeError(f"grad of {what}: an argument is no floating number; allow_int=True takes it")
            if holomorphic and kind != "c":
                raise TypeError(f"grad of {what}: holomorphic=True needs complex arguments")

        def only(*given):
            new = list(args)
            for n, part in zip(nums, given):
                new[n] = part
            result = fun(*new, **kwargs)
            loss, aux = result if has_aux else (result, None)
            loss = _rlx.value(loss)
            if loss.shape != () or loss.dtype.kind != ("c" if holomorphic else "f"):
                raise TypeError(
                    f"grad of {what}: it returns {loss.dtype.name}{list(loss.shape)}; a gradient needs a "
                    f"{'complex' if holomorphic else 'real floating'} scalar"
                )
            return loss, aux

        only.__name__ = what
        opened = opened_with(only, parts)
        loss, aux = opened.results()
        zeros = tree.map(lambda x: filled(x.shape, 0, x.dtype), aux)
        grads = opened.pull((filled((), 1, loss.dtype), zeros))
        grads = grads[0] if isinstance(argnums, int) else grads
        return ((loss, aux) if has_aux else loss), grads

    return inner
