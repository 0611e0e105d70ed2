"""The tensors of a safetensors file in NumPy, for peers that have no reader of their own."""

import json

import numpy as np


def read_safetensors(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    types = {"F32": np.float32, "I64": np.int64}
    return {
        name: np.frombuffer(raw[8 + size :][slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(
            entry["shape"]
        )
        for name, entry in json.loads(raw[8 : 8 + size]).items()
        if name != "__metadata__"
    }
