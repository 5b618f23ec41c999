"""Python reads this when it starts, where this folder is on its path: the wall clock jumps some seconds later."""

import os
import time

_true_time, _began, _DAY = time.time, time.monotonic(), 86_400
_AFTER = 12.0  # seconds


def _jumped() -> float:
    jump = float(os.environ.get("JUMP_DAYS", "0")) * _DAY
    return _true_time() + (jump if time.monotonic() - _began > _AFTER else 0.0)


time.time = _jumped
