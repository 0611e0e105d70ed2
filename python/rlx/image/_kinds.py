"""Names of the methods of jax.image."""

KINDS = {
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "triangle": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
    "tricubic": "cubic",
    "cubic-pytorch": "cubic-pytorch",
    "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
}


def name_of(method):
    return method.name.lower().replace("_", "-") if hasattr(method, "name") else str(method).lower()
