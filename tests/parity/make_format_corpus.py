#!/usr/bin/env python3
"""Writes the small files of tests/fuzz/corpus that NumPy and the PyPI packages `safetensors` and
`gguf` (0.19.0) make; unit tests read them too.

make_format_corpus.py CORPUS_FOLDER
"""

import io
import os
import struct
import sys

import gguf
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


def write_gguf():
    """Every kind of value, and tensors of several types."""
    os.makedirs(os.path.join(sys.argv[1], "gguf"), exist_ok=True)
    w = gguf.GGUFWriter(os.path.join(sys.argv[1], "gguf", "mixed.gguf"), "llama")
    w.add_custom_alignment(64)
    w.add_uint8("t.u8", 255)
    w.add_int8("t.i8", -128)
    w.add_uint16("t.u16", 65535)
    w.add_int16("t.i16", -32768)
    w.add_uint32("t.u32", 2**32 - 1)
    w.add_int32("t.i32", -(2**31))
    w.add_uint64("t.u64", 2**64 - 1)
    w.add_int64("t.i64", -(2**63))
    w.add_float32("t.f32", 0.5)
    w.add_float64("t.f64", 0.1)
    w.add_bool("t.bool", True)
    w.add_string("t.string", "é\n")
    w.add_array("t.strings", ["a", "", "Ġthe"])
    w.add_array("t.floats", [-1.5, 2.0])
    w.add_array("t.ints", [3, -4])
    w.add_array("t.bools", [True, False])
    w.add_array("t.nested", [[1], [2, 3]])
    w.add_tensor("plain", (np.arange(6, dtype=np.float32) / 2).reshape(2, 3))
    w.add_tensor("half", np.array([1, -2, 0, 65504], dtype=np.float16))
    w.add_tensor("brain", np.array([0x3FC0, 0xC000, 0, 1], dtype=np.uint16), raw_dtype=gguf.GGMLQuantizationType.BF16)
    blocks = np.tile(np.array([0, 127], dtype=np.float32), 64).reshape(2, 64)
    q8_0 = gguf.GGMLQuantizationType.Q8_0
    w.add_tensor("blocks", gguf.quantize(blocks, q8_0), raw_dtype=q8_0)
    w.add_tensor("ids", np.array([7, 8, 9], dtype=np.int32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_blocks():
    """A drawn block of each type that the package decodes."""
    w = gguf.GGUFWriter(os.path.join(sys.argv[1], "gguf", "blocks.gguf"), "blocks")
    rng = np.random.default_rng(5)
    for scheme, (elements, size) in gguf.GGML_QUANT_SIZES.items():
        if elements > 1 and scheme.name != "Q8_1":
            w.add_tensor(scheme.name, rng.integers(0, 256, (1, size), dtype=np.uint8), raw_dtype=scheme)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


write_gguf()
write_blocks()
