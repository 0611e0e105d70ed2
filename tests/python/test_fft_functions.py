"""rlx.numpy.fft, rlx.lax.fft, rlx.signal and rlx.scipy.signal against NumPy, JAX and formulas written out here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlx
import rlx.lax
import rlx.numpy as rnp
import rlx.signal
from rlx.scipy import signal

rng = np.random.default_rng(12)
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
NORMS = [None, "backward", "ortho", "forward"]


def reals(*dims, dtype="float64"):
    return rng.standard_normal(dims).astype(dtype)


def complexes(*dims, dtype="float64"):
    return (rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(
        "complex64" if dtype == "float32" else "complex128"
    )


def wide(x):
    return x.astype("complex128" if x.dtype.kind == "c" else "float64")


def near(got, want, eps=2.0**-52, times=4.0):
    """The relative error of the whole, which a fast transform holds to eps sqrt(log n)."""
    got = np.asarray(got)
    assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
    assert np.isfinite(got).all()
    error = np.linalg.norm((got - want).ravel())
    bound = times * eps * np.sqrt(1 + np.log2(max(2, want.size))) * np.linalg.norm(want.ravel())
    assert error <= bound + 1e-300, (error, bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("first", [1, 17, 33, 49])
def test_lengths(first, dtype):
    for n in range(first, first + 16):
        z, x, eps = complexes(3, n, dtype=dtype), reals(3, n, dtype=dtype), EPS[dtype]
        near(rnp.fft.fft(z), np.fft.fft(wide(z)), eps)
        near(rnp.fft.ifft(z), np.fft.ifft(wide(z)), eps)
        near(rnp.fft.rfft(x), np.fft.rfft(wide(x)), eps)
        near(rnp.fft.irfft(z, 2 * n - 1), np.fft.irfft(wide(z), 2 * n - 1), eps)
        near(rnp.fft.irfft(z, 2 * n), np.fft.irfft(wide(z), 2 * n), eps)


@pytest.mark.parametrize("n", [67, 97, 127, 131, 211, 257, 499, 1009, 1024, 2187, 4096, 10007, 65537, 1 << 20])
def test_primes_and_long_lines(n):
    for dtype in ("float32", "float64"):
        z, x, eps = complexes(n, dtype=dtype), reals(n, dtype=dtype), EPS[dtype]
        near(rnp.fft.fft(z), np.fft.fft(wide(z)), eps)
        near(rnp.fft.ifft(z), np.fft.ifft(wide(z)), eps)
        half = np.fft.rfft(wide(x))
        near(rnp.fft.rfft(x), half, eps)
        near(rnp.fft.irfft(half.astype(z.dtype), n), wide(x), eps)


def test_no_points_and_one():
    for empty in (np.zeros(0), np.zeros((2, 0), "complex64")):
        with pytest.raises(rlx.Error, match="no points"):
            rnp.fft.fft(empty)
        with pytest.raises(ValueError):
            np.fft.fft(empty)
    assert rnp.fft.fft(np.zeros((0, 4))).shape == (0, 4)
    assert rnp.fft.rfft(np.zeros((0, 4))).shape == (0, 3)
    assert rnp.fft.fft(np.zeros(0), 3).shape == (3,)
    near(rnp.fft.irfft(np.array([2.0 + 1j]), 1), np.array([2.0]))
    with pytest.raises(rlx.Error, match="at least 1"):
        rnp.fft.fft(np.ones(3), 0)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 4, 7, 12])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arguments(norm, n, axis):
    x, z = reals(5, 6, 7), complexes(5, 6, 7)
    for name, a in [("fft", z), ("fft", x), ("ifft", z), ("rfft", x), ("irfft", z), ("hfft", z), ("ihfft", x)]:
        got, want = getattr(rnp.fft, name)(a, n, axis, norm), getattr(np.fft, name)(a, n, axis, norm)
        near(got, np.asarray(want))


AXES = [None, (0,), (1, 2), (2, 0), (-1, -2, 0), (0, 1, 2)]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axes", AXES)
def test_axes(norm, axes):
    x, z = reals(4, 5, 6), complexes(4, 5, 6)
    for name, a in [("fftn", z), ("fftn", x), ("ifftn", z), ("rfftn", x), ("irfftn", z)]:
        near(getattr(rnp.fft, name)(a, None, axes, norm), getattr(np.fft, name)(a, None, axes, norm))
        s = None if axes is None else tuple(range(3, 3 + len(axes)))
        if s:
            near(getattr(rnp.fft, name)(a, s, axes, norm), getattr(np.fft, name)(a, s, axes, norm))
    for name, a in [("fft2", z), ("ifft2", z), ("rfft2", x), ("irfft2", z)]:
        near(getattr(rnp.fft, name)(a, norm=norm), getattr(np.fft, name)(a, norm=norm))
        near(getattr(rnp.fft, name)(a, (3, 8), norm=norm), getattr(np.fft, name)(a, (3, 8), norm=norm))


def test_shapes_of_lines():
    shapes = [((1000, 3), 0), ((3, 40, 5), 1), ((40, 2, 9), 0), ((2, 33, 64), 1), ((70, 12), 1), ((64, 257), 0)]
    for dims, axis in shapes:
        for dtype in ("float32", "float64"):
            x, z, eps = reals(*dims, dtype=dtype), complexes(*dims, dtype=dtype), EPS[dtype]
            near(rnp.fft.fft(z, axis=axis), np.fft.fft(wide(z), axis=axis), eps)
            near(rnp.fft.rfft(x, axis=axis), np.fft.rfft(wide(x), axis=axis), eps)
            half = np.fft.rfft(wide(x), axis=axis)
            near(rnp.fft.irfft(half.astype(z.dtype), dims[axis], axis), wide(x), eps, 6)


def test_other_dtypes():
    for dtype in ("int32", "uint8", "bool", "float16"):
        x = (reals(3, 10) * 3).astype(dtype)
        got = rnp.fft.fft(x)
        assert got.dtype.name == "complex64"
        near(got, np.fft.fft(x.astype("float64")), EPS["float32"])
    with pytest.raises(rlx.Error, match="complex"):
        rnp.fft.rfft(complexes(4))


def test_frequencies():
    for n in range(1, 12):
        for name in ("fftfreq", "rfftfreq"):  # NumPy multiplies with a rounded reciprocal
            got, want = getattr(rnp.fft, name)(n, 0.5, "float64"), getattr(np.fft, name)(n, 0.5)
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-15)
        x = reals(n, 3)
        for axes in (None, 0, (0, 1), (-1,)):
            np.testing.assert_array_equal(np.asarray(rnp.fft.fftshift(x, axes)), np.fft.fftshift(x, axes))
            np.testing.assert_array_equal(np.asarray(rnp.fft.ifftshift(x, axes)), np.fft.ifftshift(x, axes))
    assert rnp.fft.fftfreq(4).dtype.name == "float32"


def test_derivatives():
    """Of real functions of transforms, against JAX's."""
    weights = reals(5, 9)

    def loss(np_, fft):
        def f(x, z):
            a = fft.rfft(x, axis=1)
            b = fft.irfft(z, 9, axis=1, norm="ortho")
            c = fft.fftn(z, axes=(0, 1), norm="forward")
            d = fft.hfft(z, axis=0)
            return (
                np_.sum(np_.real(a) * np_.imag(a) * 0.5)
                + np_.sum(b * weights)
                + np_.sum(np_.abs(c) ** 2)
                + np_.sum(d**2) * 0.1
            )

        return f

    with jax.enable_x64(True):
        x, z = reals(5, 9), complexes(5, 5)
        want = jax.grad(loss(jnp, jnp.fft), argnums=(0, 1))(jnp.asarray(x), jnp.asarray(z))
        want = [np.asarray(w) for w in want]
    got = rlx.grad(loss(rnp, rnp.fft), argnums=(0, 1))(rlx.array(x), rlx.array(z))
    for g, w in zip(got, want):
        near(g, w, times=16)


def test_complex_derivative_convention():
    """The gradient of z conj(z) at 1 + i is 2 - 2i, as in JAX."""
    z = np.array(1 + 1j)
    got = rlx.grad(lambda z: rnp.real(z * rnp.conj(z)))(rlx.array(z))
    assert complex(np.asarray(got)) == 2 - 2j
    with jax.enable_x64(True):
        assert complex(jax.grad(lambda z: jnp.real(z * jnp.conj(z)))(jnp.asarray(z))) == 2 - 2j


def test_vmap_and_jvp():
    x = reals(3, 4, 6)
    near(rlx.vmap(lambda v: rnp.fft.rfft2(v))(rlx.array(x)), np.fft.rfft2(x))
    y, t = rlx.jvp(lambda v: rnp.fft.rfft(v), (rlx.array(x),), (rlx.array(x),))
    near(t, np.fft.rfft(x))


def test_parts_of_complex_numbers():
    z = np.array([1 + 2j, complex(np.inf, -3), complex(np.nan, 4), complex(-0.0, -0.0)])
    for name in ("real", "imag", "conj"):
        got, want = np.asarray(getattr(rnp, name)(z)), getattr(np, name)(z)
        np.testing.assert_array_equal(got.view("float64").view("uint64"), want.copy().view("float64").view("uint64"))


def test_lax_fft():
    x, z = reals(3, 4, 6, dtype="float32"), complexes(3, 4, 6, dtype="float32")
    for kind, a, lengths in [("FFT", z, (4, 6)), ("IFFT", z, (6,)), ("RFFT", x, (3, 4, 6)), ("IRFFT", z, (4, 11))]:
        near(rlx.lax.fft(a, kind, lengths), np.asarray(jax.lax.fft(a, kind, lengths)), EPS["float32"], 8)
    with pytest.raises(ValueError, match="not one of"):
        rlx.lax.fft(z, "DCT", (6,))
    with pytest.raises(ValueError, match="needs"):
        rlx.lax.fft(z, "FFT", (5,))
    with pytest.raises(TypeError, match="RFFT takes floats"):
        rlx.lax.fft(z, "RFFT", (6,))


# -- signals, against what the definitions give --


def frames(x, n, hop):
    return np.stack([x[..., i : i + n] for i in range(0, x.shape[-1] - n + 1, hop)], -2)


@pytest.mark.parametrize("hop", [4, 5, 16])
@pytest.mark.parametrize("center", [True, False])
def test_stft(hop, center):
    x, w = reals(2, 70), np.hamming(12)
    padded = np.pad(x, [(0, 0), (8, 8)], mode="reflect") if center else x
    window = np.pad(w, (2, 2))
    want = np.swapaxes(np.fft.rfft(frames(padded, 16, hop) * window), -1, -2)
    got = rlx.signal.stft(x, 16, hop, 12, w, center=center)
    near(got, want)
    near(rlx.signal.stft(x, 16, hop, 12, w, center=center, normalized=True), want / 4)
    if hop < 12 and center:
        back = rlx.signal.istft(got, 16, hop, 12, w, center=center)
        near(back, x[..., : back.shape[-1]], times=16)
        assert rlx.signal.istft(got, 16, hop, 12, w, length=90).shape == (2, 90)
    two = rlx.signal.stft(x + 1j * x, 16, hop, 12, w, center=center)
    near(two, np.swapaxes(np.fft.fft(frames(padded * (1 + 1j), 16, hop) * window), -1, -2))


def test_stft_padding_and_gradient():
    x = reals(40)
    for mode in ("reflect", "edge", "constant"):
        want = np.fft.rfft(frames(np.pad(x, 4, mode=mode), 8, 2)).T
        near(rlx.signal.stft(x, 8, 2, pad_mode=mode), want)
    got = rlx.grad(lambda v: rnp.sum(rnp.abs(rlx.signal.stft(v, 8, 3)) ** 2))(rlx.array(x))
    h, at = 1e-3, np.zeros(40)
    f = lambda v: (np.abs(np.fft.rfft(frames(np.pad(v, 4, mode="reflect"), 8, 3))) ** 2).sum()  # noqa: E731
    for i in range(40):
        step = np.eye(40)[i] * h
        at[i] = (f(x + step) - f(x - step)) / (2 * h)
    np.testing.assert_allclose(np.asarray(got), at, rtol=1e-8, atol=1e-8)


def welch_formula(x, fs, w, step, nfft, scaling, average):
    y = frames(x, len(w), step)
    y = (y - y.mean(-1, keepdims=True)) * w
    p = np.abs(np.fft.rfft(y, nfft)) ** 2 / ((w * w).sum() * fs if scaling == "density" else w.sum() ** 2)
    p[..., 1 : -1 if nfft % 2 == 0 else None] *= 2
    if average == "mean":
        return p.mean(-2)
    n, k = p.shape[-2], np.arange(1, (p.shape[-2] - 1) // 2 + 1)
    return np.median(p, -2) / (1 + (1 / (2 * k + 1) - 1 / (2 * k)).sum()), n


@pytest.mark.parametrize("average", ["mean", "median"])
@pytest.mark.parametrize("scaling", ["density", "spectrum"])
def test_welch(scaling, average):
    x = reals(2, 300)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(32) / 32)
    for nfft in (32, 45):
        freqs, power = signal.welch(x, 2.0, nperseg=32, noverlap=20, nfft=nfft, scaling=scaling, average=average)
        want = welch_formula(x, 2.0, hann, 12, nfft, scaling, average)
        near(power, want if average == "mean" else want[0], times=16)
        np.testing.assert_allclose(np.asarray(freqs), np.fft.rfftfreq(nfft, 0.5))
    tone = np.cos(2 * np.pi * np.arange(512) * 0.25) + 0.3 * np.cos(2 * np.pi * np.arange(512) * 0.125)
    f, p = rlx.signal.welch_peaks(tone, 2, nperseg=64)
    np.testing.assert_allclose(np.asarray(f), [0.25, 0.125])
    assert np.asarray(p)[0] > np.asarray(p)[1] > 0


def test_scipy_stft():
    """SciPy's frames begin half a segment before the signal, are scaled by the window's sum, and come back."""
    x = reals(100)
    w = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)
    freqs, times, z = signal.stft(x, 4.0, nperseg=16)
    padded = np.pad(x, (8, 8))
    padded = np.pad(padded, (0, -(len(padded) - 16) % 8))
    near(z, np.fft.rfft(frames(padded, 16, 8) * w).T / w.sum())
    np.testing.assert_allclose(np.asarray(times), np.arange(z.shape[1]) * 2.0)
    np.testing.assert_allclose(np.asarray(freqs), np.fft.rfftfreq(16, 0.25))
    t, y = signal.istft(z, 4.0, nperseg=16)
    near(np.asarray(y)[:100], x, times=16)
    np.testing.assert_allclose(np.asarray(t)[:3], [0, 0.25, 0.5])


@pytest.mark.parametrize("kind", [np.asarray, rlx.array, list])
def test_arrays_as_windows(kind):
    """A window that is an array says how long a segment is; it may be traced."""
    x = reals(100)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)
    odd = np.linspace(0.5, 1.5, 15)
    for w in (hann, odd):
        n, half = len(w), len(w) // 2
        calls = [lambda f, x, n=n, w=kind(w): f(x, 4.0, window=w)]
        if kind is not list:
            calls.append(lambda f, x, w=kind(w): rlx.jit(lambda x, w: f(x, 4.0, window=w))(x, w))
        for call in calls:
            freqs, power = call(signal.welch, x)
            near(power, welch_formula(x, 4.0, w, n - half, n, "density", "mean"), times=16)
            np.testing.assert_allclose(np.asarray(freqs), np.fft.rfftfreq(n, 0.25))
            padded = np.pad(x, (half, half))
            padded = np.pad(padded, (0, -(len(padded) - n) % (n - half)))
            freqs, times, z = call(signal.stft, x)
            near(z, np.fft.rfft(frames(padded, n, n - half) * w).T / w.sum(), times=4)
            np.testing.assert_allclose(np.asarray(times), np.arange(z.shape[1]) * (n - half) / 4.0)
            near(np.asarray(call(signal.istft, z)[1])[:100], x, times=32)
    assert signal.welch(x, window=kind([1, 2, 1]), nperseg=3)[1].shape == (2,)
    refused = [
        (lambda: signal.welch(x, window=kind(hann), nperseg=32), "welch: nperseg is 32 and the window has 16"),
        (lambda: signal.stft(x, window=kind([[1.0]])), r"stft: a window of shape \(1, 1\)"),
        (lambda: signal.stft(x, window=kind([])), r"stft: a window of shape \(0,\)"),
        (lambda: signal.stft(x, window=kind([1j])), "stft: a window of complex"),
        (lambda: signal.welch(x[:8], window=kind(hann)), "shorter than a frame of 16"),
        (lambda: signal.istft(rnp.zeros((5, 3)), window=kind(hann)), "nperseg 16, noverlap 8, nfft 8"),
        (lambda: signal.welch(x, window=None), "welch: a window must be a name"),
        (lambda: signal.welch(x, window=("kaiser", 1.0, 2.0)), "at most one parameter"),
    ]
    for call, words in refused:
        with pytest.raises((ValueError, TypeError), match=words):
            call()


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_fftconvolve(mode):
    a, b = reals(20), reals(7)
    near(signal.fftconvolve(a, b, mode), np.convolve(a, b, mode), times=8)
    near(signal.fftconvolve(a + 1j * a, b, mode), np.convolve(a + 1j * a, b, mode), times=8)
    near(rlx.signal.fft_conv1d(a, b, mode), np.convolve(a, b, mode), times=8)
    c, d = reals(6, 7), reals(3, 2)
    whole = np.zeros((8, 8))
    for i in range(3):
        for j in range(2):
            whole[i : i + 6, j : j + 7] += c * d[i, j]
    cut = {"full": whole, "same": whole[1:7, 0:7], "valid": whole[2:6, 1:7]}[mode]
    near(signal.fftconvolve(c, d, mode), cut, times=8)


def mel_formula(sr, n_fft, n_mels, fmin, fmax, htk, norm):
    """librosa.filters.mel, from its documentation."""
    if htk:
        to_mel, to_hz = (lambda f: 2595 * np.log10(1 + f / 700)), (lambda m: 700 * (10 ** (m / 2595) - 1))
    else:
        step = np.log(6.4) / 27

        def to_mel(f):
            return f * 3 / 200 if f < 1000 else 15 + np.log(f / 1000) / step

        def to_hz(m):
            return np.where(m < 15, m * 200 / 3, 1000 * np.exp(step * (m - 15)))

    edges = to_hz(np.linspace(to_mel(fmin), to_mel(fmax), n_mels + 2))
    freqs = np.fft.rfftfreq(n_fft, 1 / sr)
    up = (freqs - edges[:-2, None]) / np.diff(edges)[:-1, None]
    down = (edges[2:, None] - freqs) / np.diff(edges)[1:, None]
    out = np.maximum(0, np.minimum(up, down))
    return out * (2 / (edges[2:] - edges[:-2]))[:, None] if norm == "slaney" else out


@pytest.mark.parametrize("htk", [True, False])
@pytest.mark.parametrize("norm", ["slaney", None])
def test_mel(htk, norm):
    want = mel_formula(16000, 400, 24, 20.0, 7000.0, htk, norm)
    got = rlx.signal.mel_filterbank(16000, 400, 24, 20.0, 7000.0, htk, norm, dtype="float64")
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-12)
    x = reals(3000)
    w = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    power = np.abs(np.fft.rfft(frames(np.pad(x, 200), 400, 160) * w).T) ** 2
    db = 10 * np.log10(np.maximum(1e-10, want @ power))
    db = np.maximum(db, db.max() - 80)
    got = rlx.signal.log_mel(x, 16000, 400, 160, n_mels=24, fmin=20.0, fmax=7000.0, htk=htk, norm=norm)
    np.testing.assert_allclose(np.asarray(got), db, rtol=1e-9, atol=1e-7)


def test_windows():
    for n in (1, 2, 5, 8):
        for name, of in [("hann", np.hanning), ("hamming", np.hamming), ("blackman", np.blackman)]:
            f = getattr(rlx.signal, name + "_window")
            np.testing.assert_allclose(np.asarray(f(n, True, "float64")), of(n), atol=1e-15)
            np.testing.assert_allclose(np.asarray(f(n, dtype="float64")), of(n + 1)[:n] if n > 1 else [1.0], atol=1e-15)
        np.testing.assert_allclose(np.asarray(rlx.signal.kaiser_window(n, 8.6, True, "float64")), np.kaiser(n, 8.6))


def test_refusals():
    x = reals(20)
    for call, text in [
        (lambda: rnp.fft.fft(x, axis=1), "axis"),
        (lambda: rnp.fft.fft(x, norm="unit"), "unit"),
        (lambda: rnp.fft.fftn(x, (2, 3), (0,)), "differ"),
        (lambda: rlx.signal.stft(x, 64), "mirror"),
        (lambda: rlx.signal.stft(x, 64, center=False), "shorter"),
        (lambda: rlx.signal.stft(x, 8, 0), "below"),
        (lambda: rlx.signal.stft(x, 8, pad_mode="wrap"), "wrap"),
        (lambda: signal.welch(x[:8], window=np.ones(16)), "shorter"),
        (lambda: signal.fftconvolve(x, x, "half"), "half"),
        (lambda: rlx.signal.mel_filterbank(0, 400), "above 0"),
    ]:
        with pytest.raises((rlx.Error, ValueError), match=text):
            call()
