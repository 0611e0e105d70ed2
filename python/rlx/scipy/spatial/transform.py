"""scipy.spatial.transform: rotations in three dimensions."""

import math as _math
import typing as _typing

from ... import numpy as _rnp
from ... import random as _random
from ..._names import accept_names as _accept_names, getattr_of as _getattr_of
from ...numpy._base import held as _held

_DEGREES = 180 / _math.pi


def _floats(x):
    x = _held(x)
    return x if x.dtype.kind == "f" else _rnp.astype(x, "float32")


def _length(v):
    return _rnp.linalg.norm(v, axis=-1, keepdims=True)


def _product(p, q):
    """The quaternion p q, of (x, y, z, w)."""
    a, b, u, v = p[..., 3:], q[..., 3:], p[..., :3], q[..., :3]
    w = a * b - _rnp.sum(u * v, -1, keepdims=True)
    return _rnp.concatenate([a * v + b * u + _rnp.cross(u, v), w], -1)


def _of_axis(axis, angle):
    """The quaternion of a rotation about x, y or z."""
    half = angle / 2
    parts = [_rnp.zeros_like(half)] * 3
    parts[axis] = _rnp.sin(half)
    return _rnp.stack([*parts, _rnp.cos(half)], -1)


def _axes(seq, what):
    if not isinstance(seq, str) or not 1 <= len(seq) <= 3 or not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ValueError(f"{what}: seq {seq!r}; it must be one to three of xyz (fixed axes) or of XYZ (moving axes)")
    if any(a == b for a, b in zip(seq, seq[1:])):
        raise ValueError(f"{what}: seq {seq!r}; neighbours must differ")
    return ["xyz".index(s) for s in seq.lower()], seq.islower()


class Rotation(_typing.NamedTuple):
    """One rotation or several, as unit quaternions (x, y, z, w) [.., 4]. It is a tree of arrays."""

    quat: _typing.Any

    @classmethod
    def from_quat(cls, quat):
        """From quaternions of any length but 0."""
        quat = _floats(quat)
        return cls(quat / _length(quat))

    @classmethod
    def from_matrix(cls, matrix):
        """From orthogonal matrices [.., 3, 3] of determinant 1."""
        m = _floats(matrix)
        d = [m[..., i, i] for i in range(3)]
        trace = d[0] + d[1] + d[2]
        best = _rnp.argmax(_rnp.stack([*d, trace], -1), -1)
        forms = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            parts = [None] * 3
            parts[i] = 1 - trace + 2 * d[i]
            parts[j], parts[k] = m[..., j, i] + m[..., i, j], m[..., k, i] + m[..., i, k]
            forms.append(_rnp.stack([*parts, m[..., k, j] - m[..., j, k]], -1))
        turned = [m[..., (i + 2) % 3, (i + 1) % 3] - m[..., (i + 1) % 3, (i + 2) % 3] for i in range(3)]
        quat = _rnp.stack([*turned, 1 + trace], -1)
        for i, form in enumerate(forms):
            quat = _rnp.where((best == i)[..., None], form, quat)
        return cls.from_quat(quat)

    @classmethod
    def from_rotvec(cls, rotvec, degrees=False):
        """From vectors along the axis, whose length is the angle."""
        v = _floats(rotvec)
        v = v / _DEGREES if degrees else v
        square = _rnp.sum(v * v, -1, keepdims=True)
        small = square < 1e-6
        angle = _rnp.sqrt(_rnp.where(small, 1, square))
        scale = _rnp.where(small, 0.5 - square / 48 + square * square / 3840, _rnp.sin(angle / 2) / angle)
        w = _rnp.where(small, 1 - square / 8 + square * square / 384, _rnp.cos(angle / 2))
        return cls.from_quat(_rnp.concatenate([scale * v, w], -1))

    @classmethod
    def from_euler(cls, seq, angles, degrees=False):
        """From angles about the axes seq, [.., len(seq)] or one number for one axis."""
        axes, fixed = _axes(seq, "from_euler")
        angles = _floats(angles)
        angles = angles / _DEGREES if degrees else angles
        if len(axes) == 1 and (angles.ndim == 0 or angles.shape[-1] != 1 or angles.ndim == 1):
            angles = angles[..., None] if angles.ndim != 1 or angles.shape[0] != 1 else angles
        if angles.shape[-1] != len(axes):
            raise ValueError(f"from_euler: angles of shape {angles.shape} for the axes {seq}")
        quat = None
        for k, axis in enumerate(axes):
            turn = _of_axis(axis, angles[..., k])
            quat = turn if quat is None else _product(turn, quat) if fixed else _product(quat, turn)
        return cls.from_quat(quat)

    @classmethod
    def from_mrp(cls, mrp):
        """From modified Rodrigues parameters: axes of length tan(angle / 4)."""
        m = _floats(mrp)
        square = _rnp.sum(m * m, -1, keepdims=True)
        return cls.from_quat(_rnp.concatenate([2 * m, 1 - square], -1) / (1 + square))

    @classmethod
    def identity(cls, num=None, dtype="float32"):
        """No rotation, or num of these."""
        quat = _rnp.array([0, 0, 0, 1], "float32" if dtype is float else dtype)
        return cls(quat if num is None else _rnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key, num=None):
        """A uniformly random rotation, or num of them."""
        return cls.from_quat(_random.normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    def concatenate(cls, rotations):
        """All rotations of several objects."""
        return cls(_rnp.concatenate([_rnp.reshape(r.quat, (-1, 4)) for r in rotations]))

    @property
    def single(self):
        """True for one rotation."""
        return self.quat.ndim == 1

    def __len__(self):
        if self.single:
            raise TypeError("a single rotation has no length")
        return self.quat.shape[0]

    def __getitem__(self, index):
        if self.single:
            raise TypeError("a single rotation has no entries")
        return Rotation(self.quat[index])

    def __iter__(self):
        return iter((self.quat,)) if self.single else (Rotation(q) for q in self.quat)

    def __mul__(self, other):
        """The rotation `other` and then this one."""
        return Rotation.from_quat(_product(self.quat, other.quat))

    def inv(self):
        """The inverse."""
        return Rotation(self.quat * _rnp.array([-1, -1, -1, 1], self.quat.dtype))

    def apply(self, vectors, inverse=False):
        """The rotated vectors [.., 3]."""
        matrix = self.as_matrix()
        matrix = _rnp.swapaxes(matrix, -1, -2) if inverse else matrix
        return _rnp.einsum("...jk,...k->...j", matrix, _held(vectors))

    def as_quat(self, canonical=False, scalar_first=False):
        """(x, y, z, w), or (w, x, y, z) with scalar_first. canonical: of both signs the one with a positive w; where it
        is 0, the first part that is not.
        """
        q = self.quat
        if canonical:
            order = [q[..., 3], q[..., 0], q[..., 1], q[..., 2]]
            flip = order[3] < 0
            for part in reversed(order[:3]):
                flip = _rnp.where(part == 0, flip, part < 0)
            q = _rnp.where(flip[..., None], -q, q)
        return _rnp.roll(q, 1, -1) if scalar_first else q

    def as_matrix(self):
        """Matrices [.., 3, 3]."""
        x, y, z, w = (self.quat[..., k] for k in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return _rnp.stack([_rnp.stack(r, -1) for r in rows], -2)

    def as_rotvec(self, degrees=False):
        """Vectors along the axis, whose length is the angle."""
        q = _rnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        v, w = q[..., :3], q[..., 3:]
        square = _rnp.sum(v * v, -1, keepdims=True)
        small = square < 1e-6
        sine = _rnp.sqrt(_rnp.where(small, 1, square))
        angle = 2 * _rnp.arctan2(sine, w)
        scale = _rnp.where(small, 2 + square / 3 + 3 * square * square / 20, angle / sine)
        return v * scale * (_DEGREES if degrees else 1)

    def as_euler(self, seq, degrees=False):
        """Angles about three axes, in SciPy's ranges. Where two axes coincide the third angle is 0."""
        axes, fixed = _axes(seq, "as_euler")
        if len(axes) != 3:
            raise ValueError(f"as_euler: seq {seq!r}; it must name three axes")
        i, j, k = axes if fixed else axes[::-1]
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = [self.quat[..., n] for n in range(4)]
        a, b, c, d = q[3], q[i], q[j], q[k] * sign
        if not symmetric:
            a, b, c, d = a - c, b + d, c + a, d - b
        middle = 2 * _rnp.arctan2(_rnp.hypot(c, d), _rnp.hypot(a, b))
        total, rest = _rnp.arctan2(b, a), _rnp.arctan2(d, c)
        eps = 1e-7 if self.quat.dtype.name == "float64" else 1e-6
        straight, turned = _rnp.abs(middle) <= eps, _rnp.abs(middle - _math.pi) <= eps
        locked = _rnp.logical_or(straight, turned)
        first, third = total - rest, total + rest
        alone = _rnp.where(straight, 2 * total, 2 * rest * (-1 if fixed else 1))
        angles = [first, middle, third] if fixed else [third, middle, first]
        if not symmetric:
            angles[2 if fixed else 0] = angles[2 if fixed else 0] * sign
            alone = alone * (1 if fixed else sign)
            angles[1] = middle - _math.pi / 2
        angles[0] = _rnp.where(locked, alone, angles[0])
        angles[2] = _rnp.where(locked, 0, angles[2])
        out = _rnp.stack(angles, -1)
        out = _rnp.where(out < -_math.pi, out + 2 * _math.pi, _rnp.where(out > _math.pi, out - 2 * _math.pi, out))
        return out * _DEGREES if degrees else out

    def as_mrp(self):
        """Modified Rodrigues parameters of the shorter way round."""
        q = _rnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def magnitude(self):
        """The angles, from 0 to pi."""
        return 2 * _rnp.arctan2(_length(self.quat[..., :3])[..., 0], _rnp.abs(self.quat[..., 3]))

    def mean(self, weights=None):
        """The rotation with the least sum of squared distances."""
        q = _rnp.reshape(self.quat, (-1, 4))
        w = _rnp.ones_like(q[:, 0]) if weights is None else _held(weights)
        _, vectors = _rnp.linalg.eigh((q * w[:, None]).T @ q)
        return Rotation.from_quat(vectors[:, -1])


class Slerp(_typing.NamedTuple):
    """Rotations between given ones, at a constant angular speed: Slerp.init(times, rotations)(time)."""

    times: _typing.Any
    rotations: Rotation
    turns: _typing.Any

    @classmethod
    def init(cls, times, rotations):
        """Between rotations at ascending times."""
        times = _floats(times)
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            raise ValueError("Slerp: it needs at least two rotations")
        if times.shape != (len(rotations),):
            raise ValueError(f"Slerp: times of shape {times.shape} for {len(rotations)} rotations")
        return cls(times, rotations, (rotations[:-1].inv() * rotations[1:]).as_rotvec())

    def __call__(self, times):
        t = _floats(times)
        at = _rnp.clip(_rnp.searchsorted(self.times, t, side="right") - 1, 0, self.times.shape[0] - 2)
        share = (t - self.times[at]) / (self.times[at + 1] - self.times[at])
        return self.rotations[at] * Rotation.from_rotvec(self.turns[at] * share[..., None])


__all__ = ["Rotation", "Slerp"]
__getattr__ = _getattr_of("rlx.scipy.spatial.transform", {})

_accept_names(globals())
