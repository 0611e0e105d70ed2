"""Graphs built by hand. Every op of the op table is a method of a graph: g.softmax(x, axis=-1)."""

import contextvars

from . import _rlx, ops

Graph = _rlx.Graph
nan_check = contextvars.ContextVar("rlx.nan_check", default=None)  # that of debug_nans, which run_async passes on
parse = _rlx.parse


def _op_method(self, name):
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        function = getattr(ops, name)
    except AttributeError:
        raise AttributeError(f"a graph has no method and no op {name!r}; dir(rlx.ops) lists the ops") from None

    def call(*operands, **attrs):
        return function(*operands, graph=self, **attrs)

    call.__name__, call.__doc__ = name, function.__doc__
    return call


def _names(self):
    return sorted({*object.__dir__(self), *dir(ops)})


def _first(function, text):
    def method(self, wrt):
        return function(self, wrt)[0]

    method.__doc__ = text
    return method


def _checked(run, check):
    def call(*args, **kwargs):
        scope = _rlx.NanCheckScope(check)
        try:
            return run(*args, **kwargs)
        finally:
            scope.close()

    return call


async def _on_thread(run, args, kwargs):
    import asyncio

    stop, check = _rlx.Stop(), nan_check.get()
    try:
        return await asyncio.to_thread(stop.call, _checked(run, check) if check else run, *args, **kwargs)
    except asyncio.CancelledError:  # stops the run, so that its thread ends before the process does
        stop.set()
        raise


async def _run_async(self, *args, **kwargs):
    """Runs the program on another thread, for `await`; the event loop continues meanwhile."""
    return await _on_thread(self.run, args, kwargs)


async def _call_async(self, *args, **kwargs):
    """Calls the function on another thread, for `await`; the event loop continues meanwhile."""
    return await _on_thread(self, args, kwargs)


def _load_params(self, source, strict=True):
    """Sets the params from a safetensors file or a dict of arrays, and returns their number. strict: the names must
    match exactly; without it, extra names are ignored.
    """
    if not isinstance(source, dict):
        return _rlx.load_params(self, str(source), strict)
    names = [name for name, _, _ in self.params]
    missing = [n for n in names if n not in source]
    extra = [n for n in source if n not in names]
    if missing or (strict and extra):
        raise _rlx.NotFound(
            f"load_params: no array for param {missing[0]!r}"
            if missing
            else f"load_params: the program has no param {extra[0]!r}; strict=False ignores it"
        )
    for n in names:
        self.set_param(n, source[n])
    return len(names)


class Report:
    """The HTML report of a compile. A notebook displays it; save() writes it to a file for a browser."""

    def __init__(self, html, height=720):
        self.html, self.height = html, height

    def save(self, path):
        """Writes the report to a file. The file needs no network and no other file."""
        _rlx.write_file(path, self.html.encode())
        return path

    def _repr_html_(self):
        import html

        frame = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{frame}" style="width: 100%; height: {self.height}px; border: 1px solid #8884"></iframe>'
        )

    def __repr__(self):
        return f"<rlx report of {len(self.html) // 1024} KiB: .save(path) writes it, a notebook shows it>"


def _inspect(self, *inputs, title="", **named):
    """The report of this program: passes (if it was compiled with keep_stages=True), fusion, memory and kernels.

    With inputs, the report also has the time of each kernel beside its lower bound.
    """
    return Report(self._report(title, bool(inputs or named), *inputs, **named))


def install():
    """Adds ops and transforms to the class of graphs, and the methods written in Python to the classes of programs."""
    _rlx.CompiledGraph.inspect = _inspect
    _rlx.CompiledGraph.run_async = _run_async
    _rlx.CompiledGraph.load_params = _load_params
    _rlx.JitFunction.run_async = _call_async
    _rlx.JitFunction.__copy__ = lambda self: self
    _rlx.JitFunction.__deepcopy__ = lambda self, memo: self
    _rlx.JitFunction.__repr__ = lambda f: f"<compiled function {getattr(f, '__name__', '')}, {f.cache_size()} programs>"
    Graph.__getattr__ = _op_method
    Graph.__dir__ = _names
    Graph.grad = _first(
        _rlx.graph_grad, "Outputs: the gradients with respect to the leaves `wrt`. Input d_output is the cotangent."
    )
    Graph.grad_with_loss = _first(
        _rlx.graph_grad_with_loss, "Outputs: loss, gradients. Input d_output is the cotangent."
    )
    Graph.value_and_grad = _first(_rlx.graph_value_and_grad, "Outputs: a scalar loss and its gradients.")
    Graph.vjp = _first(
        _rlx.graph_vjp,
        "Outputs: those of the graph, then gradients. Inputs d_output or d_output_<i> are the cotangents.",
    )
    Graph.jvp = _first(
        _rlx.graph_jvp, "Outputs: those of the graph, then their tangents. Inputs tangent_<name> are the tangents."
    )
    Graph.hvp = _first(
        _rlx.graph_hvp, "Outputs: loss, gradients, d_loss, and the Hessian times the inputs tangent_<name>."
    )
    Graph.jacrev = _first(_rlx.graph_jacrev, "Outputs: Jacobians of output 0 by reverse mode.")
    Graph.jacfwd = _first(_rlx.graph_jacfwd, "Outputs: Jacobians of output 0 by forward mode.")
    Graph.hessian = _first(_rlx.graph_hessian, "Outputs: second derivatives of a scalar output 0.")

    def vmap(self, in_axes, batch, out_axes=None):
        """The graph over a batch. Leaves named in in_axes have a batch axis there; the others are shared."""
        return _rlx.graph_vmap(self, in_axes, batch, out_axes)[0]

    Graph.vmap = vmap
