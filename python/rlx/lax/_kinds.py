"""Names of kinds that arguments of jax.lax take."""

import enum


class Precision(enum.Enum):
    """The precision of products in JAX. It has no effect here: products have the precision of the session, which is
    exact by default.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


class FftType(enum.IntEnum):
    """The transforms of lax.fft."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3
