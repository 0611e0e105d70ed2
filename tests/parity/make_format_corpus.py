#!/usr/bin/env python3
"""Writes the small files of tests/fuzz/corpus that NumPy and the PyPI package `safetensors` make; unit tests read
them too.

make_format_corpus.py CORPUS_FOLDER
"""

import io
import os
import struct
import sys

import numpy as np
from numpy.lib import format as npy
from safetensors.numpy import save


def put(folder, name, data):
    path = os.path.join(sys.argv[1], folder)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as f:
        f.write(data)


def npy_bytes(array, version=None):
    out = io.BytesIO()
    npy.write_array(out, array, version=version, allow_pickle=False)
    return out.getvalue()


def npz_bytes(save_function, **arrays):
    out = io.BytesIO()
    save_function(out, **arrays)
    return out.getvalue()


a = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 4
put("npy", "f4_v1.npy", npy_bytes(a))
put("npy", "f4_v2.npy", npy_bytes(a, (2, 0)))
put("npy", "f4_v3.npy", npy_bytes(a, (3, 0)))
put("npy", "f4_fortran.npy", npy_bytes(np.asfortranarray(a)))
put("npy", "f8_big_endian.npy", npy_bytes(a.astype(">f8")))
put("npy", "c16_big_endian_fortran.npy", npy_bytes(np.asfortranarray((a[0] + 1j * a[1]).astype(">c16"))))
put("npy", "i8_scalar.npy", npy_bytes(np.array(-5, np.int64)))
put("npy", "bool_vector.npy", npy_bytes(np.array([True, False, True])))
put("npy", "u2_empty.npy", npy_bytes(np.zeros((0, 3), np.uint16)))
put("npy", "f2.npy", npy_bytes(np.array([0.5, -2, np.inf], np.float16)))
put("npy", "string.npy", npy_bytes(np.array(["ab", "c"])))
put("npy", "record.npy", npy_bytes(np.zeros(2, dtype=[("x", "<f4"), ("y", "<i4")])))
pair = {"a": a, "ids": np.array([[1, -2]], np.int32)}
put("npy", "stored.npz", npz_bytes(np.savez, **pair))
put("npy", "deflated.npz", npz_bytes(np.savez_compressed, zeros=np.zeros(5000), **pair))
put(
    "safetensors",
    "mixed.safetensors",
    save(
        {
            "weight": a,
            "ids": np.array([1, 2, 3], np.int64),
            "flag": np.array([True, False]),
            "empty": np.zeros((0, 4), np.float32),
            "scalar": np.array(2.5, np.float64),
            "half": np.array([1, 2], np.float16),
            "bytes": np.array([7, 8, 9], np.uint8),
        },
        metadata={"format": "np"},
    ),
)
put("safetensors", "empty.safetensors", save({}))
header = b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'  # 54 bytes: the data is not aligned
put(
    "safetensors",
    "unaligned.safetensors",
    struct.pack("<Q", len(header)) + header + np.array([1.5, -2], np.float32).tobytes(),
)
