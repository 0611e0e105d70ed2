"""Graphs built by hand: besides the methods of the extension, every op of the table is one, g.softmax(x, axis=-1)."""

from . import _rlx

Graph = _rlx.Graph
parse = _rlx.parse


def _op_method(self, name):
    if name.startswith("_"):
        raise AttributeError(name)
    from . import ops

    try:
        function = getattr(ops, name)
    except AttributeError:
        raise AttributeError(f"a graph has no method and no op {name!r}; dir(rlx.ops) lists the ops") from None

    def call(*operands, **attrs):
        return function(*operands, graph=self, **attrs)

    call.__name__, call.__doc__ = name, function.__doc__
    return call


def _names(self):
    from . import ops

    return sorted({*object.__dir__(self), *dir(ops)})


def _first(function, text):
    def method(self, wrt):
        return function(self, wrt)[0]

    method.__doc__ = text
    return method


async def _on_thread(run, args, kwargs):
    import asyncio

    stop = _rlx.Stop()
    try:
        return await asyncio.to_thread(stop.call, run, *args, **kwargs)
    except asyncio.CancelledError:  # the thread ends too, and the process with it
        stop.set()
        raise


async def _run_async(self, *args, **kwargs):
    """run on another thread, for `await`: the event loop goes on meanwhile."""
    return await _on_thread(self.run, args, kwargs)


async def _call_async(self, *args, **kwargs):
    """The call on another thread, for `await`: the event loop goes on meanwhile."""
    return await _on_thread(self, args, kwargs)


def _load_params(self, source, strict=True):
    """Sets every param from a safetensors file or a dict of arrays; gives how many. strict: no more and no fewer."""
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


class Page:
    """The page that shows a compile: a notebook displays it, save() writes it to a file for a browser."""

    def __init__(self, html, height=720):
        self.html, self.height = html, height

    def save(self, path):
        """Writes the page; it needs no network and no other file."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.html)
        return path

    def _repr_html_(self):
        import html

        frame = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{frame}" style="width: 100%; height: {self.height}px; border: 1px solid #8884"></iframe>'
        )

    def __repr__(self):
        return f"<rlx page of {len(self.html) // 1024} KiB: .save(path), or a notebook shows it>"


def _inspect(self, *inputs, title="", **named):
    """The page of this program: every pass (when it was compiled with keep_stages=True), fusion, memory, kernels; with
    inputs the time of each kernel beside its floor.
    """
    return Page(self._page(title, bool(inputs or named), *inputs, **named))


def install():
    """Gives graphs their ops and transforms, programs what is written in Python."""
    _rlx.CompiledGraph.inspect = _inspect
    _rlx.CompiledGraph.run_async = _run_async
    _rlx.CompiledGraph.load_params = _load_params
    _rlx.JitFunction.run_async = _call_async
    _rlx.JitFunction.__copy__ = lambda self: self
    _rlx.JitFunction.__deepcopy__ = lambda self, memo: self
    _rlx.JitFunction.__repr__ = lambda f: f"<compiled function {getattr(f, '__name__', '')}, {f.cache_size()} programs>"
    Graph.__getattr__ = _op_method
    Graph.__dir__ = _names
    Graph.grad = _first(_rlx.graph_grad, "Outputs: the gradients by the leaves `wrt`; input d_output seeds them.")
    Graph.grad_with_loss = _first(_rlx.graph_grad_with_loss, "Outputs: loss, gradients; input d_output seeds them.")
    Graph.value_and_grad = _first(_rlx.graph_value_and_grad, "Outputs: a scalar loss and its gradients.")
    Graph.vjp = _first(_rlx.graph_vjp, "Outputs: those of the graph, gradients; inputs d_output or d_output_<i>.")
    Graph.jvp = _first(_rlx.graph_jvp, "Outputs: those of the graph, their tangents; inputs tangent_<name>.")
    Graph.hvp = _first(_rlx.graph_hvp, "Outputs: loss, gradients, d_loss, Hessian times tangent_<name>.")
    Graph.jacrev = _first(_rlx.graph_jacrev, "Outputs: Jacobians of output 0 by reverse mode.")
    Graph.jacfwd = _first(_rlx.graph_jacfwd, "Outputs: Jacobians of output 0 by forward mode.")
    Graph.hessian = _first(_rlx.graph_hessian, "Outputs: second derivatives of a scalar output 0.")

    def vmap(self, in_axes, batch, out_axes=None):
        """The graph over a batch: leaves named in in_axes gain an axis there, the others are shared."""
        return _rlx.graph_vmap(self, in_axes, batch, out_axes)[0]

    Graph.vmap = vmap
