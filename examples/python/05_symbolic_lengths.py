"""One program for sentences of any length: extents that are symbols, planned once for the longest."""

import numpy as np
import rlx
import rlx.numpy as rnp

WIDTH, LONGEST = 16, 128


def attend(x: rlx.Array, w: rlx.Array) -> rlx.Array:
    """Each row [length, width] becomes a mean of all rows, weighted by how alike they are."""
    scores = (x @ w) @ x.T / WIDTH**0.5
    return rlx.nn.softmax(scores) @ x


# dims names the axes that are symbols, bounds says how far they go. "runtime": compiled and planned once, each run
# computes its own extent; without it every new length compiles once ("specialise").
program = rlx.jit(
    attend,
    dims={"x": ("length", None)},
    bounds={"length": (1, LONGEST)},
    symbol_modes={"length": "runtime"},
)
plain = rlx.jit(attend)

numbers = np.random.default_rng(0)
w = numbers.normal(size=(WIDTH, WIDTH)).astype(np.float32)
for length in (3, 17, 64, 128):
    x = numbers.normal(size=(length, WIDTH)).astype(np.float32)
    equal = np.allclose(program(x, w), plain(x, w), atol=1e-5)
    print(f"length {length:3}: {program(x, w).shape}, equal to the program of that length: {equal}")
print(f"compiled {program.misses} time with symbols, {plain.misses} times without")

# The symbol is in the graph, where shapes are expressions over it.
print(next(line for line in program.lower(x, w).as_text().splitlines() if "matmul" in line).strip())

# A length beyond the bound is an error, before anything runs.
try:
    program(np.zeros((LONGEST + 1, WIDTH), np.float32), w)
except rlx.InvalidArgument as error:
    print(error.message)


def mean_row(x: rlx.Array) -> rlx.Array:
    """The extent of an axis as a number of the program: in Python it is a symbol, not an int."""
    return rnp.sum(x, axis=0) / rnp.astype(rnp.size_of(x, 0), "float32")


print(rlx.jit(mean_row, dims={"x": ("rows", None)})(np.array([[1, 2], [3, 6]], np.float32)))
