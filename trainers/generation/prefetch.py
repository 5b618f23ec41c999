"""Cache lines asked for before they are read: where runs of slots are short, processors' own look-ahead starts late."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

LINE = 16
"""Floats of a cache line."""

_READ, _SECOND_LEVEL, _DATA = 0, 2, 1  # to the first level, the same hint wins about half as much
_BYTES, _WORD = ir.IntType(8).as_pointer(), ir.IntType(32)
_HINT = ir.FunctionType(ir.VoidType(), [_BYTES, _WORD, _WORD, _WORD])


def _prefetch(_: Any, array: Any, row: Any, column: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, (array, row, column) = signature.args[0], arguments
        struct = context.make_array(kind)(context, builder, array)
        place = cgutils.get_item_pointer(context, builder, kind, struct, [row, column])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], _HINT)
        how = [ir.Constant(_WORD, each) for each in (_READ, _SECOND_LEVEL, _DATA)]
        builder.call(hint, [builder.bitcast(place, _BYTES), *how])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


prefetch = cast(Callable[[NDArray[np.float32], int, int], None], intrinsic(_prefetch))
"""prefetch(array, row, column): for compiled code. A hint, which changes no result and never fails."""
