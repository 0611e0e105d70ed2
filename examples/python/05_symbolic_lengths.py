"""One program for sequences of any length: symbolic extents, planned once for the longest sequence."""

import numpy as np
import rlx
import rlx.numpy as rnp

WIDTH, LONGEST = 16, 128


def attend(x: rlx.Array, w: rlx.Array) -> rlx.Array:
    """Self-attention over the rows of x [length, width]."""
    scores = (x @ w) @ x.T / WIDTH**0.5
    return rlx.nn.softmax(scores) @ x


# dims names the symbolic axes, bounds gives their range. With "runtime" the program is compiled and planned once, and
# each run uses its own extent. The default, "specialise", compiles once for every new length.
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

# Shapes in the graph are expressions over the symbol.
print(next(line for line in program.lower(x, w).as_text().splitlines() if "matmul" in line).strip())

# A length beyond the bound is an error before the run.
try:
    program(np.zeros((LONGEST + 1, WIDTH), np.float32), w)
except rlx.InvalidArgument as error:
    print(error.message)


def mean_row(x: rlx.Array) -> rlx.Array:
    """The mean row. rnp.size_of gives the extent as a value of the program; in Python it is a symbol, not an int."""
    return rnp.sum(x, axis=0) / rnp.astype(rnp.size_of(x, 0), "float32")


print(rlx.jit(mean_row, dims={"x": ("rows", None)})(np.array([[1, 2], [3, 6]], np.float32)))
