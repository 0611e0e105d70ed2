"""The types of arrays: an instance is an array of rlx or a traced value."""

import rlx


class _ArrayType(type):
    def __instancecheck__(cls, x):
        return isinstance(x, (rlx.Array, rlx.Value))

    def __subclasscheck__(cls, other):
        return other in (rlx.Array, rlx.Value, cls)


class Array(metaclass=_ArrayType):
    pass


ArrayImpl = rlx.Array
