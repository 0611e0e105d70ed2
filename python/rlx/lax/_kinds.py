"""Names of kinds that arguments of jax.lax take."""

import enum


class Precision(enum.Enum):
    """The precision of products in JAX. It has no effect here: products have the precision of the session, which is
    exact by default.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


class EigImplementation(enum.Enum):
    """The libraries for eigenvalues in JAX. It has no effect: there is one implementation."""

    CUSOLVER = "cusolver"
    LAPACK = "lapack"
    MAGMA = "magma"


class EighImplementation(enum.Enum):
    """The algorithms for eigenvalues of Hermitian matrices in JAX. It has no effect: there is one implementation."""

    QR = "QR"
    JACOBI = "Jacobi"
    QDWH = "QDWH"


class SvdAlgorithm(enum.Enum):
    """The algorithms for singular values in JAX. It has no effect: there is one implementation."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


class FftType(enum.IntEnum):
    """The transforms of lax.fft."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3
