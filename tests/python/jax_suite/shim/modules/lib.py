"""jax.lib and jax._src.lib."""

version = (99, 0, 0)
__version__ = version_str = "99.0.0"
jaxlib_extension_version = 999
ifrt_version = 999


cuda_versions = None
gpu_solver = None


class _jax:
    @staticmethod
    def is_optimized_build():
        return True

    is_asan = is_msan = is_tsan = is_sanitized = staticmethod(lambda: False)
