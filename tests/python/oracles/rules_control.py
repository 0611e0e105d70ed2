"""Primitives of the evaluator that have bodies."""

import numpy as np

from .evaluator import rule


@rule("jit", "pjit")
def _pjit(ev, eqn, ins):
    return ev.run(eqn.params["jaxpr"], *ins)


@rule("closed_call", "core_call", "core_closed_call")
def _closed_call(ev, eqn, ins):
    return ev.run(eqn.params["call_jaxpr"], *ins)


@rule("custom_jvp_call")
def _custom_jvp_call(ev, eqn, ins):
    if eqn.params["call_jaxpr"].jaxpr.debug_info.func_name == "exp_neg_sq":
        # Since JAX 0.12; its body takes the bits of a float32 apart.
        return [ev.moved(np.exp(-ins[0] * ins[0]), eqn.outvars[0].aval.dtype.name)]
    return ev.run(eqn.params["call_jaxpr"], *ins)


@rule("custom_vjp_call", "custom_vjp_call_jaxpr")
def _custom_vjp_call(ev, eqn, ins):
    inner = eqn.params.get("call_jaxpr") or eqn.params["fun_jaxpr"]
    return ev.run(inner, *ins)


@rule("remat2", "checkpoint", "remat")
def _remat(ev, eqn, ins):
    return ev.jaxpr(eqn.params["jaxpr"], [], ins)


@rule("custom_lin")
def _custom_lin(ev, eqn, ins):
    raise NotImplementedError("custom_lin")


@rule("optimization_barrier")
def _barrier(ev, eqn, ins):
    return ins


@rule("cond")
def _cond(ev, eqn, ins):
    index, *rest = ins
    branches = eqn.params["branches"]
    return ev.run(branches[min(max(int(index), 0), len(branches) - 1)], *rest)


@rule("while")
def _while(ev, eqn, ins):
    p = eqn.params
    a, b = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    cond_consts, body_consts, carry = ins[:a], ins[a:b], list(ins[b:])
    trips = 0
    while bool(ev.run(p["cond_jaxpr"], *cond_consts, *carry)[0]):
        carry = ev.run(p["body_jaxpr"], *body_consts, *carry)
        trips += 1
        if trips > 10000:
            raise RuntimeError("a loop of more than 10000 trips")
    return carry


@rule("scan")
def _scan(ev, eqn, ins):
    p = eqn.params
    # Since JAX 0.12 the counts of constants and of carried values are the lengths of parts of a tree.
    nums = [len(part) for part in p["ft_in"].unpack()] if "ft_in" in p else [p["num_consts"], p["num_carry"]]
    a, b = nums[0], nums[0] + nums[1]
    consts, carry, xs = list(ins[:a]), list(ins[a:b]), ins[b:]
    length = p["length"]
    rows = [None] * length
    order = range(length - 1, -1, -1) if p["reverse"] else range(length)
    for t in order:
        outs = ev.run(p["jaxpr"], *consts, *carry, *[x[t] for x in xs])
        carry, rows[t] = outs[: nums[1]], outs[nums[1] :]
    ys = []
    for k, v in enumerate(eqn.outvars[nums[1] :]):
        if length:
            ys.append(np.stack([r[k] for r in rows]))
        else:
            kind = v.aval.dtype.kind if v.aval.dtype.name != "bfloat16" else "f"
            ys.append(np.zeros(v.aval.shape, {"f": np.float64, "c": np.complex128}.get(kind, v.aval.dtype)))
    return [*carry, *ys]
