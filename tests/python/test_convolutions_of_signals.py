"""Convolutions, correlations, trends and cross spectra of rlx.scipy.signal, against SciPy."""

import numpy as np
import pytest
import scipy.signal as ss

import rlx
import rlx.scipy.signal as rs

RNG = np.random.default_rng(0)
SHAPES = [((7,), (3,)), ((3,), (7,)), ((4,), (4,)), ((5, 6), (2, 3)), ((5, 6), (3, 2)), ((2, 3), (5, 6)),
          ((4, 3, 5), (2, 2, 2)), ((8,), (1,))]  # fmt: skip
MODES = ("full", "same", "valid")


def draw(shape, complex_=False):
    x = RNG.standard_normal(shape)
    return x + 1j * RNG.standard_normal(shape) if complex_ else x


def same(got, want):
    got = np.asarray(got)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("a, b", SHAPES)
def test_convolve_and_correlate(a, b, complex_):
    x, y = draw(a, complex_), draw(b, complex_)
    for mode in MODES:
        for method in ("direct", "fft", "auto"):
            same(rs.convolve(x, y, mode, method), ss.convolve(x, y, mode, "direct"))
            same(rs.correlate(x, y, mode, method), ss.correlate(x, y, mode, "direct"))


@pytest.mark.parametrize("a, b", [s for s in SHAPES if len(s[0]) == 2])
@pytest.mark.parametrize("boundary, value", [("fill", 0), ("fill", 1.5), ("wrap", 0), ("symm", 0)])
def test_matrices_with_boundaries(a, b, boundary, value):
    if boundary != "fill" and b[0] > a[0]:
        pytest.skip("SciPy repeats a small operand otherwise")
    x, y = draw(a), draw(b)
    for mode in MODES:
        same(rs.convolve2d(x, y, mode, boundary, value), ss.convolve2d(x, y, mode, boundary, value))
        same(rs.correlate2d(x, y, mode, boundary, value), ss.correlate2d(x, y, mode, boundary, value))


def test_detrend():
    x = draw((3, 50))
    for kind in ("constant", "linear"):
        same(rs.detrend(x, -1, kind), ss.detrend(x, -1, kind))
        same(rs.detrend(x, 0, kind), ss.detrend(x, 0, kind))
        same(rs.detrend(x, -1, kind, [10, 30]), ss.detrend(x, -1, kind, [10, 30]))


OPTIONS = [
    {}, dict(nperseg=32), dict(nperseg=32, noverlap=10, nfft=40), dict(nperseg=33, detrend="linear"),
    dict(nperseg=32, detrend=False, scaling="spectrum"), dict(nperseg=32, return_onesided=False),
    dict(nperseg=16, average="median"), dict(nperseg=15, window="hamming", fs=3.0), dict(nperseg=9, average="median"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_spectra(options):
    x, y = draw((2, 100)), draw((2, 100))
    for a, b in ((x, y), (x + 1j * y, y)):
        for got, want in zip(rs.csd(a, b, **options), ss.csd(a, b, **options)):
            same(got, want)
    options = {"nperseg": 50, **options}
    for a in (x, x + 1j * y):
        for got, want in zip(rs.welch(a, **options), ss.welch(a, **options)):
            same(got, want)
    for got, want in zip(rs.csd(x[:, :70], y, axis=-1, nperseg=20), ss.csd(x[:, :70], y, axis=-1, nperseg=20)):
        same(got, want)


def test_segments_without_trend():
    x = draw((2, 100))
    for detrend in ("constant", "linear", lambda v: v - v.mean(-1, keepdims=True)):
        for got, want in zip(rs.stft(x, nperseg=20, detrend=detrend), ss.stft(x, nperseg=20, detrend=detrend)):
            same(got, want)


def test_transforms():
    x, k = draw((4, 30)), draw(5)
    assert rs.convolve(np.arange(4), np.arange(3)).dtype == np.float32
    by = {m: rlx.grad(lambda k, m=m: (rs.convolve(x[0], k, "same", m) ** 2).sum())(k) for m in ("direct", "fft")}
    np.testing.assert_allclose(by["direct"], by["fft"], atol=1e-10)
    np.testing.assert_allclose(rlx.vmap(lambda a: rs.correlate(a, k))(x)[1], ss.correlate(x[1], k), atol=1e-12)
    np.testing.assert_allclose(rlx.jit(rs.csd)(x, x[::-1])[1], ss.csd(x, x[::-1], nperseg=30)[1], atol=1e-12)


def test_refusals():
    x = draw(5)
    for call, text in (
        (lambda: rs.convolve(x, x, "some"), "mode"), (lambda: rs.convolve(x, x, "full", "slow"), "method"),
        (lambda: rs.convolve(x, x[:, None]), "axes"), (lambda: rs.convolve2d(x, x), "both have two"),
        (lambda: rs.detrend(x, type="square"), "type"), (lambda: rs.detrend(x, bp=[9]), "breaks"),
        (lambda: rs.csd(x, x, nperseg=4, noverlap=4), "noverlap"), (lambda: rs.csd(x, x, average="mode"), "average"),
        (lambda: rs.csd(x, x, detrend="square"), "detrend"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            call()
