"""The compiled replay behind the cluster verifier: where the bytes of every pair of ranks are, step by step."""

import numpy as np

from comm_plans.all_to_all.cluster import Bytes, Places
from comm_plans.compiled import compiled

ARRIVED, NOT_HELD, NOT_ARRIVED = 0, 1, 2


@compiled
def replay(
    first: Bytes, step: Places, source: Places, target: Places, low: Bytes, high: Bytes, sizes: Bytes, origin: int
) -> tuple[int, int, int]:
    """What went wrong (a code above), with which pair, in which transfer.

    sizes: bytes as [origins, ranks], from rank `origin` on; pair p, counted row by row, makes the transfers `first[p] …
    first[p + 1]`, in order of steps. Bytes received in a step can leave in a later one; they leave no copy behind.
    """
    ranks = sizes.shape[1]
    begin, end = np.empty(8, np.int64), np.empty(8, np.int64)
    holder, since = np.empty(8, np.int64), np.empty(8, np.int64)
    for pair in range(sizes.size):
        size = sizes[pair // ranks, pair % ranks]
        begin[0], end[0], holder[0], since[0], parts = 0, size, origin + pair // ranks, -1, 1
        for transfer in range(first[pair], first[pair + 1]):
            found = 0
            for part in range(parts):
                start, stop = max(begin[part], low[transfer]), min(end[part], high[transfer])
                if start >= stop:
                    continue
                if holder[part] != source[transfer] or since[part] >= step[transfer]:
                    return NOT_HELD, pair, transfer
                if parts + 2 > len(begin):
                    begin, end = np.append(begin, begin), np.append(end, end)
                    holder, since = np.append(holder, holder), np.append(since, since)
                if begin[part] < start:
                    begin[parts], end[parts] = begin[part], start
                    holder[parts], since[parts] = holder[part], since[part]
                    parts += 1
                if stop < end[part]:
                    begin[parts], end[parts] = stop, end[part]
                    holder[parts], since[parts] = holder[part], since[part]
                    parts += 1
                begin[part], end[part], holder[part], since[part] = start, stop, target[transfer], step[transfer]
                found += stop - start
            if found == 0 or found != high[transfer] - low[transfer]:
                return NOT_HELD, pair, transfer
        for part in range(parts):
            if begin[part] < end[part] and holder[part] != pair % ranks:
                return NOT_ARRIVED, pair, 0
    return ARRIVED, 0, 0
