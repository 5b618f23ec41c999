"""Writes the state of the lab where all can read it; the first to write it has the lab."""

from __future__ import annotations

import json
import os
from secrets import token_hex

from comm_plans.files import write_atomically
from comm_plans.lab_state import LabError, LabState


def claim(state: LabState) -> None:
    """Write the state of a lab that is to be made. Raises LabError where another one was quicker."""
    path = LabState.path()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{token_hex(8)}")
    draft.write_bytes(_document(state))
    try:
        os.link(draft, path)  # in one step, and never over one that is there
    except FileExistsError:
        raise LabError(f"a lab is up already ({path}); run down first") from None
    finally:
        draft.unlink()


def save(state: LabState) -> LabState:
    """Replace the state, and give it back."""
    write_atomically(LabState.path(), _document(state))
    return state


def _document(state: LabState) -> bytes:
    return json.dumps(state.to_document(), indent=1).encode()
