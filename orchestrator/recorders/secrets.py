"""Passwords inside URIs never reach a file, a log or a screen: every recorder masks what it writes."""

import re
from typing import Any

_PASSWORD = re.compile(r"(\w://[^\s:/@]*):[^\s/\"]+@")
_IN_QUERY = re.compile(r"([?&](?:[\w-]*(?:password|passwd|secret|token)|pwd|api_?key)=)[^\s&#\"']+", re.IGNORECASE)


def mask(text: str) -> str:
    """`http://ann:secret@host?token=secret` becomes `http://ann:***@host?token=***`."""
    return _IN_QUERY.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))


def mask_all(values: Any) -> Any:
    """The same JSON value with every string in it masked."""
    if isinstance(values, str):
        return mask(values)
    if isinstance(values, dict):
        return {key: mask_all(value) for key, value in values.items()}
    if isinstance(values, list):
        return [mask_all(value) for value in values]
    return values
