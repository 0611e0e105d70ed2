"""Steps and transforms as rlx and as JAX run them."""

from oracles import catalogue


def run_steps(lib, steps, env):
    """Runs steps over the values of `env`, which gains their results."""
    for s in steps:
        env.update(zip(s.outs, run_step(lib, s, env)))
    return env


def run_step(lib, s, env):
    """The results of one step."""
    args = [env[n] for n in s.args]
    named = {k: env[n] for k, n in s.named.items()}
    if s.bodies:
        functions = {k: _function(lib, b, env) for k, b in s.bodies.items()}
        outs = getattr(lib, s.op.replace("control.", ""))(args, named, dict(s.attrs), functions)
    else:
        outs = lib.op(catalogue.OPS[s.op], args, named, s.attrs)
    return tuple(outs) if isinstance(outs, (tuple, list)) else (outs,)


def _function(lib, body, env):
    def f(*xs):
        inner = run_steps(lib, body.steps, {**env, **dict(zip(body.params, xs))})
        return tuple(inner[n] for n in body.results)

    return f


def function_of(lib, program):
    """The program, without transforms, as a function of its inputs."""
    names = [i.name for i in program.inputs]

    def f(*xs):
        env = run_steps(lib, program.steps, dict(zip(names, xs)))
        return tuple(env[n] for n in program.outputs)

    return f


class Lib:
    """What both libraries spell alike."""

    def op(self, op, args, named, attrs):
        raise NotImplementedError

    def cond(self, args, named, attrs, f):
        pred, *xs = args
        return self.root_cond(pred, f["then"], f["else"], *xs)

    def scan(self, args, named, attrs, f):
        n = attrs["carries"]

        def step(carry, row):
            outs = f["body"](*carry, *row)
            return tuple(outs[:n]), tuple(outs[n:])

        carry, ys = self.root_scan(step, tuple(args[:n]), tuple(args[n:]), attrs)
        return (*carry, *ys)

    def custom_vjp(self, args, named, attrs, f):
        """The body, whose reverse mode gives `factor` times the true cotangents."""
        factor = attrs["factor"]
        g = self.root.custom_vjp(f["body"])

        def forward(*xs):
            return f["body"](*xs), xs

        def backward(xs, cts):
            grads = self.root.vjp(f["body"], *xs)[1](cts)
            return tuple(factor * c for c in grads)

        g.defvjp(forward, backward)
        return g(*args)

    def custom_jvp(self, args, named, attrs, f):
        factor = attrs["factor"]
        g = self.root.custom_jvp(f["body"])

        def rule(primals, tangents):
            outs, ts = self.root.jvp(f["body"], tuple(primals), tuple(tangents))
            return outs, tuple(factor * t for t in ts)

        g.defjvp(rule)
        return g(*args)

    def vmap(self, args, named, attrs, f):
        return self.root.vmap(f["body"], tuple(attrs["in_axes"]), attrs.get("out_axes", 0))(*args)

    def grad(self, args, named, attrs, f):
        loss = lambda *xs: f["body"](*xs)[0]  # noqa: E731
        return self.root.grad(loss, tuple(range(attrs["wrt"])))(*args)

    def jvp(self, args, named, attrs, f):
        n = len(args) // 2
        outs, ts = self.root.jvp(f["body"], tuple(args[:n]), tuple(args[n:]))
        return (*outs, *ts)

    def map(self, args, named, attrs, f):
        return self.root_map(lambda row: f["body"](*row), tuple(args))

    def switch(self, args, named, attrs, f):
        branches = [f[k] for k in sorted(f)]
        return self.root_switch(args[0], branches, *args[1:])


class RlxLib(Lib):
    def __init__(self):
        import rlx

        self.root = rlx
        self.root_cond, self.root_switch = rlx.cond, rlx.switch

    def op(self, op, args, named, attrs):
        return op.run_rlx(args, named, attrs)

    def root_scan(self, step, init, xs, attrs):
        return self.root.scan(
            step, init, xs, length=attrs["length"], reverse=attrs["reverse"], checkpoint=attrs["checkpoint"]
        )

    def root_map(self, f, xs):
        return self.root.map(f, xs)

    def while_(self, args, named, attrs, f):
        limit, *carry = args
        ops = self.root.ops

        def again(state):
            go = ops.lt(state[0], limit)
            if attrs.get("bound") is not None:
                total = ops.cast(ops.reduce_sum(ops.abs(state[1]), axes=list(range(state[1].ndim))), to="float32")
                go = ops.bit_and(go, ops.lt(total, attrs["bound"]))
            return go

        def body(state):
            return (ops.add(state[0], 1), *f["body"](state[0], *state[1:]))

        zero = ops.cast(self.root.numpy.zeros((), "int32"), to="int32")
        return self.root.while_loop(again, body, (zero, *carry), max_iterations=attrs["max_trips"])

    def fori(self, args, named, attrs, f):
        lower, upper = attrs["bounds"]
        if attrs.get("dynamic"):
            upper = args[0]
        return self.root.fori_loop(lower, upper, lambda i, c: f["body"](i, *c), tuple(args[1:]))

    def checkpoint(self, args, named, attrs, f):
        return self.root.checkpoint(f["body"], keep_dots=attrs["keep_dots"])(*args)

    def call(self, args, named, attrs, f):
        rlx = self.root
        return rlx._rlx.call([rlx._rlx.value(a) for a in args], lambda xs: list(f["body"](*xs)), "body")


class JaxLib(Lib):
    def __init__(self):
        import jax

        self.root = jax
        self.root_cond, self.root_switch = jax.lax.cond, jax.lax.switch

    def op(self, op, args, named, attrs):
        # Functions of jax.numpy are traced in place: as calls of their own each new shape costs milliseconds.
        with self.root.disable_jit():
            return op.jax(args, named, attrs)

    def root_scan(self, step, init, xs, attrs):
        return self.root.lax.scan(step, init, xs, length=attrs["length"], reverse=attrs["reverse"])

    def root_map(self, f, xs):
        return self.root.lax.map(f, xs)

    def while_(self, args, named, attrs, f):
        """As a scan of branches, which reverse mode can go through."""
        import jax.numpy as jnp
        from jax import lax

        limit, *carry = args

        def go(state):
            yes = state[0] < limit
            if attrs.get("bound") is not None:
                yes = yes & (jnp.sum(jnp.abs(state[1])).astype(jnp.float32) < attrs["bound"])
            return yes

        def step(state, _):
            moved = lambda s: (s[0] + 1, *f["body"](s[0], *s[1:]))  # noqa: E731
            return lax.cond(go(state), moved, lambda s: s, state), None

        state = (jnp.asarray(0, jnp.int32), *carry)
        return lax.scan(step, state, None, length=attrs["max_trips"])[0]

    def fori(self, args, named, attrs, f):
        from jax import lax

        lower, upper = attrs["bounds"]
        import jax.numpy as jnp

        def step(c, i):
            moved = lambda c: tuple(f["body"](i, *c))  # noqa: E731
            if not attrs.get("dynamic"):
                return moved(c), None
            return lax.cond(i < args[0], moved, lambda c: c, c), None

        return lax.scan(step, tuple(args[1:]), jnp.arange(lower, max(upper, lower), dtype=jnp.int32))[0]

    def checkpoint(self, args, named, attrs, f):
        return self.root.checkpoint(f["body"])(*args)

    def call(self, args, named, attrs, f):
        return f["body"](*args)
