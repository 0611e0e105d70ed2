"""jax._src.xla_bridge: one device, the host."""


class _Cpu(str):
    platform = platform_version = device_kind = "cpu"
    id = process_index = 0
    client = None

    def __repr__(self):
        return "CpuDevice(id=0)"


_DEVICE = _Cpu("cpu")


def get_backend(*args):
    return _DEVICE


get_backend.cache_clear = lambda: None


def devices(*args):
    return [_DEVICE]


def local_devices(*args, **kwargs):
    return [_DEVICE]


def device_count(*args):
    return 1


local_device_count = process_count = device_count


def default_backend():
    return "cpu"


def using_pjrt_c_api(*args):
    return False


class num_cpu_devices:
    value = 1


def process_index(*args):
    return 0
