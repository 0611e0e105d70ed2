"""vmap of a model that is written for one example: predictions, per-example gradients, clipped gradients."""

import rlx
import rlx.numpy as rnp

Params = dict[str, rlx.Array]


def predict(params: Params, x: rlx.Array) -> rlx.Array:
    """The prediction, a scalar, for one example x [3]."""
    return rnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"]


def loss(params: Params, x: rlx.Array, y: rlx.Array) -> rlx.Array:
    return rnp.square(predict(params, x) - y)


# One gradient per example: the parameters are shared, x and y get a batch axis.
gradients = rlx.jit(rlx.vmap(rlx.grad(loss), in_axes=(None, 0, 0)))


@rlx.jit
def clipped_mean(params: Params, x: rlx.Array, y: rlx.Array, limit: float) -> tuple[Params, rlx.Array]:
    """The mean of the per-example gradients, each clipped to norm `limit`, and their norms before clipping."""
    each = gradients(params, x, y)
    squares = [rnp.sum(rnp.square(g), axis=tuple(range(1, g.ndim))) for g in rlx.tree.leaves(each)]
    lengths = rnp.sqrt(sum(squares))
    scale = rnp.minimum(1.0, limit / lengths)
    return rlx.tree.map(lambda g: rnp.tensordot(scale, g, axes=1) / len(scale), each), lengths


k1, k2, k3, k4 = rlx.random.split(rlx.random.key(3), 4)
params = {"w1": rlx.random.normal(k1, (3, 8)), "b1": rnp.zeros(8), "w2": rlx.random.normal(k2, (8,))}
x, y = rlx.random.normal(k3, (5, 3)), rlx.random.normal(k4, (5,))

print("predictions", rlx.vmap(predict, in_axes=(None, 0))(params, x).shape)
each = gradients(params, x, y)
print("gradients  ", {name: g.shape for name, g in each.items()})

whole = rlx.grad(lambda p: rnp.mean(rlx.vmap(loss, in_axes=(None, 0, 0))(p, x, y)))(params)
same = all(rnp.allclose(rnp.mean(each[name], axis=0), whole[name], atol=1e-5) for name in whole)
print("their mean is the gradient of the mean:", same)

clipped, lengths = clipped_mean(params, x, y, 1.0)
print("longer than 1:", int(rnp.sum(lengths > 1)), "of", len(lengths))
length = rnp.sqrt(sum(rnp.sum(rnp.square(g)) for g in rlx.tree.leaves(clipped)))
print("the clipped mean is shorter:", bool(length <= 1))
