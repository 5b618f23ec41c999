"""Files are replaced as a whole; links, pipes and devices stay what they are; the umask decides who may read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from comm_plans.files import write_atomically


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    for content in (b"old", b"new"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert sorted(tmp_path.iterdir()) == [link, target]


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"plan")
    assert os.read(reader, 10) == b"plan"
    os.close(reader)
    assert pipe.is_fifo()


def test_the_umask_decides_who_may_read(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "shared", b"")
        write_atomically(tmp_path / "private", b"", mode=0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Is a directory") as caught:
        write_atomically(tmp_path, b"")
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
