"""Settings of the Python tests: hypothesis in two sizes (HYPOTHESIS_PROFILE=full for the long one), JAX with 64 bits."""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

from hypothesis import HealthCheck, settings  # noqa: E402

_quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25, suppress_health_check=_quiet)
settings.register_profile("full", deadline=None, max_examples=400, suppress_health_check=_quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
