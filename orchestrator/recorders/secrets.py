"""Passwords inside URIs never reach a file, a log or a screen: every recorder masks what it writes."""

import re
from typing import Any

_PASSWORD = re.compile(r"(\w://[^\s:/@]*):[^\s/@]+@")


def mask(text: str) -> str:
    """`http://ann:secret@host` becomes `http://ann:***@host`."""
    return _PASSWORD.sub(r"\1:***@", text)


def mask_all(values: Any) -> Any:
    """The same JSON value with every string in it masked."""
    if isinstance(values, str):
        return mask(values)
    if isinstance(values, dict):
        return {key: mask_all(value) for key, value in values.items()}
    if isinstance(values, list):
        return [mask_all(value) for value in values]
    return values
