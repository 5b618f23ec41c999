"""Names of runs, actors and experiments, short enough for every system that shows them."""

import hashlib

LONGEST = 64
LONGEST_RUN = 44  # leaves room for "evaluate-", "/replica-12" and "/rank-1023"
_MARK = 8  # hexadecimal digits


def short_name(name: str, longest: int = LONGEST) -> str:
    """The name, or its beginning and a hash of it all where it is longer than `longest` characters."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - _MARK - 1]}-{hashlib.sha256(name.encode()).hexdigest()[:_MARK]}"
