"""jax._src.dispatch: programs of single operations are not counted here."""


class xla_primitive_callable:
    @staticmethod
    def cache_clear():
        pass

    @staticmethod
    def cache_info():
        class info:
            misses = 0

        return info
