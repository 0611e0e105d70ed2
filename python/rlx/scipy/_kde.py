"""scipy.stats.gaussian_kde."""

import math as _math

from .. import _rlx, tree
from .. import numpy as rnp
from .._nodes import cast, inexact
from .._op import op


class gaussian_kde:
    """The density of data [dimensions, points], estimated as a mean of normal densities around the points.

    bw_method: "scott" (the default), "silverman", a number, or a function of this object: the factor of the width.
    weights: of the points.
    """

    def __init__(self, dataset, bw_method=None, weights=None):
        data = rnp.asarray(dataset)
        if data.dtype.kind not in "iufb":
            raise NotImplementedError(f"gaussian_kde of {data.dtype.name}: real numbers only")
        self.dataset = rnp.atleast_2d(data if data.dtype.kind == "f" else data.astype("float32"))
        d, n = self.dataset.shape
        if n < 2:
            raise ValueError(f"gaussian_kde: {n} points; at least two are needed")
        if weights is None:
            self.weights = rnp.full((n,), 1 / n, self.dataset.dtype)
        else:
            given = rnp.asarray(weights)
            if given.shape != (n,):
                raise ValueError(f"gaussian_kde: weights of shape {given.shape} for {n} points")
            self.weights = (given / rnp.sum(given)).astype(self.dataset.dtype)
        self.d, self.n = d, n
        if bw_method in (None, "scott"):
            self.factor = self.scotts_factor()
        elif isinstance(bw_method, str):
            if bw_method != "silverman":
                raise ValueError(
                    f'gaussian_kde: bw_method {bw_method!r}; it must be "scott", "silverman", a number or a function'
                )
            self.factor = self.silverman_factor()
        else:
            self.factor = bw_method(self) if callable(bw_method) else bw_method
        self._data_covariance = rnp.atleast_2d(rnp.cov(self.dataset, bias=False, aweights=self.weights))
        self.covariance = self._data_covariance * self.factor**2
        self.inv_cov = rnp.linalg.inv(self.covariance)

    @property
    def neff(self):
        """The number of points of equal weights that would be as good."""
        return 1 / rnp.sum(rnp.square(self.weights))

    def scotts_factor(self):
        """neff^(-1 / (d + 4))."""
        return self.neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self):
        """(neff (d + 2) / 4)^(-1 / (d + 4))."""
        return (self.neff * (self.d + 2) / 4.0) ** (-1.0 / (self.d + 4))

    def set_bandwidth(self, bw_method=None):
        """An error: make a new estimate."""
        raise NotImplementedError("gaussian_kde.set_bandwidth: make a new gaussian_kde with this bw_method")

    def _points(self, points):
        points = rnp.atleast_2d(points)
        d, m = points.shape
        if d != self.d:
            if d == 1 and m == self.d:
                return rnp.reshape(points, (self.d, 1))
            raise ValueError(f"gaussian_kde: points with {d} dimensions, the data have {self.d}")
        return points

    def logpdf(self, x):
        """The logarithm of the density at points [dimensions, M]."""
        return _log_density(self.dataset, self.weights, self.covariance, self._points(x))

    def evaluate(self, points):
        """The density at points [dimensions, M]."""
        return rnp.exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x):
        """The density at points [dimensions, M]."""
        return self.evaluate(x)

    def integrate_gaussian(self, mean, cov):
        """The integral of the density times a normal density."""
        mean = rnp.atleast_1d(mean)
        cov = rnp.atleast_2d(cov)
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ValueError(f"integrate_gaussian: mean of shape {mean.shape} and cov of shape {cov.shape}")
        total = self.covariance + cov
        return rnp.exp(_log_density(self.dataset, self.weights, total, mean[:, None]))[0]

    def integrate_box_1d(self, low, high):
        """The integral between two numbers, of one dimension."""
        if self.d != 1:
            raise ValueError(f"integrate_box_1d: the data have {self.d} dimensions")
        return _between(self.dataset, self.weights, self.covariance, low, high)

    def integrate_kde(self, other):
        """The integral of the product of two estimates."""
        if other.d != self.d:
            raise ValueError(f"integrate_kde: {self.d} and {other.d} dimensions")
        total = self.covariance + other.covariance
        values = rnp.exp(_log_density(self.dataset, self.weights, total, other.dataset))
        return rnp.sum(values * other.weights)

    def resample(self, key, shape=()):
        """Random points of the estimate, [dimensions, *shape]."""
        from .. import random

        of_point, of_noise = random.split(key)
        dtype = self.dataset.dtype
        places = random.choice(of_point, self.n, shape, p=self.weights)
        factor = rnp.linalg.cholesky(self.covariance)
        noise = random.normal(of_noise, (self.d, *shape), dtype)
        return rnp.take(self.dataset, places, axis=1) + rnp.tensordot(factor, noise, 1)


@op("data", "weights", "covariance", "points")
def _log_density(data, weights, covariance, points):
    points = inexact(points)
    dtype = _rlx.result_type(data, points)[0]
    data, weights, covariance, points = (cast(v, dtype) for v in (data, weights, covariance, points))
    d = data.shape[0]
    factor = rnp.linalg.cholesky(covariance)
    whitened = lambda x: rnp.linalg.solve(factor, x)  # noqa: E731
    apart = rnp.expand_dims(whitened(data), 2) - rnp.expand_dims(whitened(points), 1)  # [d, n, m]
    energy = -0.5 * rnp.sum(rnp.square(apart), 0) + rnp.expand_dims(rnp.log(weights), 1)
    from ..nn import logsumexp

    norm = 0.5 * d * _math.log(2 * _math.pi) + rnp.sum(rnp.log(rnp.diagonal(factor)))
    return logsumexp(energy, 0) - norm


@op("data", "weights", "covariance", "low", "high")
def _between(data, weights, covariance, low, high):
    from .special import ndtr

    width = rnp.sqrt(covariance[0, 0])
    return rnp.sum(weights * (ndtr((high - data[0]) / width) - ndtr((low - data[0]) / width)))


def _flatten(k):
    names = ("dataset", "weights", "_data_covariance", "covariance", "inv_cov", "factor")
    return [getattr(k, n) for n in names], (k.d, k.n)


def _unflatten(static, children):
    k = object.__new__(gaussian_kde)
    names = ("dataset", "weights", "_data_covariance", "covariance", "inv_cov", "factor")
    vars(k).update(zip(names, children), d=static[0], n=static[1])
    return k


tree.register(gaussian_kde, _flatten, _unflatten)
