"""What a run was started with besides its configuration: Python, packages, machine, and the state of a Git folder."""

import platform
import subprocess
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_GIT_SECONDS = 5.0
_STATUS = ("-c", "core.fsmonitor=false", "status", "--porcelain")  # a folder's configuration names no program to run


def environment(folder: Path) -> Json:
    """Python, platform and the installed packages' versions, torch's first; `git`: see `git_state`."""
    packages = {each.name: each.version for each in distributions()}
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "torch": packages.get("torch"),
        "git": git_state(folder),
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
    }


def git_state(folder: Path) -> Json | str:
    """`commit`, and whether files differ from it (`dirty`); a few words where there is no commit to tell of."""
    try:
        return {"commit": _git(folder, "rev-parse", "HEAD").strip(), "dirty": bool(_git(folder, *_STATUS))}
    except FileNotFoundError:
        return "git is not installed"
    except subprocess.TimeoutExpired:
        return f"git did not answer within {_GIT_SECONDS:g} s"
    except subprocess.CalledProcessError:
        return f"{folder} belongs to no Git repository with a commit"


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=_GIT_SECONDS).stdout
