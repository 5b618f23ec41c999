"""Files from strangers cannot run code, leave their folder, or carry a secret away."""

import ast
import gzip
import json
import os
import pickle
import resource
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from fuzz_parts.watching import MEMORY
from safetensors.torch import save_file

from comm_plans import Topology
from comm_plans.errors import PlansError, TopologyError
from comm_plans.readers.reading import read_cluster
from orchestrator.cluster.snapshots import SnapshotStore
from orchestrator.config import recorded_config
from orchestrator.errors import UserError
from orchestrator.journal_file import read_journal
from orchestrator.launch import resume
from orchestrator.monitoring.watch import serve
from orchestrator.recorders.report import write_report
from orchestrator.recorders.secrets import mask
from orchestrator.sweep.command import resume_sweep
from trainers.data.images import read_idx
from trainers.errors import DataError
from trainers.generation.tiers.disk import DiskTier
from trainers.generation.tiers.kept import Kept
from trainers.snapshot import Snapshot

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("orchestrator", "trainers", "comm_plans")
EXECUTING_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "shelve",
    "marshal",
    "joblib",
    "pickletools",
}
EXECUTING_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}
PARSING = {"fromstring", "parse", "iterparse", "XML", "XMLParser"}
WITHIN_ONE_RAY = {
    "orchestrator/sweep/populations.py": {"ray.cloudpickle.loads"}
}  # bytes that the same process has just made


class Evil:
    """Whoever unpickles it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mknod, (str(self.path),)


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Every call in the packages: the file, the dotted name of what is called, the call."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    yield path.relative_to(ROOT).as_posix(), ast.unparse(node.func), node


def keyword(call: ast.Call, name: str) -> object:
    return next((ast.literal_eval(each.value) for each in call.keywords if each.arg == name), None)


def test_no_file_is_ever_unpickled_or_evaluated() -> None:
    for place, name, call in calls():
        if name in WITHIN_ONE_RAY.get(place, ()):
            continue
        assert name not in EXECUTING_CALLS, f"{place}:{call.lineno} {name}"
        assert not name.endswith(("pickle.load", "pickle.loads", "Unpickler")), f"{place}:{call.lineno} {name}"
        if name == "torch.load":
            assert keyword(call, "weights_only") is True, f"{place}:{call.lineno}"
        if name in ("np.load", "numpy.load"):
            assert keyword(call, "allow_pickle") in (None, False), f"{place}:{call.lineno}"
        if name.startswith("yaml."):
            assert name in ("yaml.safe_load", "yaml.parse", "yaml.safe_dump"), f"{place}:{call.lineno} {name}"
        if name.startswith("ElementTree."):
            assert name.split(".")[1] not in PARSING, f"{place}:{call.lineno} {name}"
        assert keyword_is_not_shell(call), f"{place}:{call.lineno} shell=True"


def keyword_is_not_shell(call: ast.Call) -> bool:
    return all(each.arg != "shell" for each in call.keywords)


def test_no_module_that_unpickles_is_imported() -> None:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not EXECUTING_MODULES & {name.split(".")[0] for name in names}, path


def test_a_pickle_among_tensors_leaves_no_file(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    bait = pickle.dumps(Evil(mark))
    pickle.loads(bait)
    assert mark.exists()  # the bait works
    mark.unlink()
    for write in (lambda path: path.write_bytes(pickle.dumps(Evil(mark))), lambda path: torch.save(Evil(mark), path)):
        path = tmp_path / "evil.pt"
        write(path)
        with pytest.raises(DataError):
            Snapshot.read(path)
        tier = DiskTier(tmp_path / "tier", 10**6)
        tier.put("a", Kept((1,), torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1), "m"))
        (kept,) = (tmp_path / "tier").iterdir()
        write(kept)
        with pytest.warns(UserWarning, match="damaged"):
            assert tier.get("a") is None
    assert not mark.exists()


def test_a_journal_cannot_choose_code(tmp_path: Path) -> None:
    config = {"task": {"_target_": "os.mknod", "path": str(tmp_path / "mark")}}
    line = {"n": 0, "at": 0.0, "event": "RunStarted", "run_id": "r", "folder": "f", "config": config, "cost": {}}
    (tmp_path / "journal.jsonl").write_text(json.dumps({**line, "started_at": 0.0}) + "\n")
    (started,) = read_journal(tmp_path / "journal.jsonl")
    with pytest.raises(UserError, match=r"task\._target_=os\.mknod, which is not run unasked"):
        recorded_config(started.config)  # type: ignore[union-attr]
    (tmp_path / "journal.jsonl").write_text(json.dumps({**line, "event": "os.mknod"}) + "\n" * 2)
    with pytest.raises(UserError, match="damaged at line 1"):
        read_journal(tmp_path / "journal.jsonl")
    assert not (tmp_path / "mark").exists()


def test_a_journal_whose_fields_are_of_other_types_is_damaged(tmp_path: Path) -> None:
    line = {"n": 0, "at": 0.0, "event": "StepsTrained", "stage": 1, "first_step": 0, "rates": [0.1], "seconds": 1}
    for losses in (["1"], "1", [True], [None], 10**400, [10**400], {"a": 1}):
        path = tmp_path / "journal.jsonl"
        path.write_text(json.dumps({**line, "losses": losses}) + "\n\n")
        with pytest.raises(UserError, match="damaged at line 1"):
            read_journal(path)


@pytest.mark.parametrize("name", ["../escape", "a/../../escape", "/tmp/escape", "nul\0", "x" * 300, "..", ""])
def test_no_name_of_a_conversation_leaves_its_folder(name: str, tmp_path: Path) -> None:
    tier = DiskTier(tmp_path / "tier", 10**6)
    tier.put(name, Kept((1,), torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1), "m"))
    assert tier.get(name) is not None
    assert [path.parent for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "tier"]


@pytest.mark.parametrize("name", ["../outside", "a/b", "/etc/passwd", "nul\0", "x" * 300, ".hidden", "link"])
def test_no_name_in_a_manifest_leaves_its_folder(name: str, tmp_path: Path) -> None:
    from hashlib import sha256

    (tmp_path / "outside").write_bytes(b"outside")
    folder = tmp_path / "step-000100"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "outside")
    files = {name: sha256(b"outside").hexdigest()}
    body = json.dumps({"format": 1, "step": 100, "content": {}, "files": files})
    sealed = {"manifest": body, "sha256": sha256(body.encode()).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(sealed))
    found, skipped = SnapshotStore(tmp_path).newest()
    assert found is None
    assert "is no file of a snapshot" in skipped[0]


LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><system>&b;</system>'
STRANGER = '<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><system>&x;</system>'


@pytest.mark.parametrize("text", [LAUGHS, STRANGER])
def test_xml_has_no_entities(text: str) -> None:
    with pytest.raises(TopologyError, match="DOCTYPE"):
        read_cluster([("a.xml", text.encode())])


@pytest.mark.parametrize("text", ["!!python/object/apply:os.system [id]", "a: &x [1]\nb: *x", "a: !!binary aGk="])
def test_yaml_has_no_tags_and_no_aliases(text: str) -> None:
    with pytest.raises(PlansError, match="YAML"):
        Topology.loads(text)


def test_a_small_archive_of_much_takes_bounded_memory(tmp_path: Path) -> None:
    """20 MB that unpack to 20 GB; half a gigabyte of them is tried here, under a bound of less."""
    path = tmp_path / "images.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(struct.pack(">HBBI", 0, 8, 1, 5))
        for _ in range(64):
            file.write(bytes(8 << 20))
    script = f"""
import trainers.data.images as images
from pathlib import Path
from trainers.errors import DataError
images.LARGEST = 1 << 20
try:
    images.read_idx(Path({str(path)!r}))
except DataError as error:
    print(error)
"""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, 4 * MEMORY))

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, preexec_fn=bounded)
    assert "holds more than 1 MB" in shown.stdout, shown.stderr


@pytest.mark.parametrize("shape", [(2**31, 2**31, 4), (2**32 - 1, 2**32 - 1, 0), (1,) * 200])
def test_a_shape_that_overflows_is_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape))
    with pytest.raises(DataError):
        read_idx(path)


@pytest.mark.parametrize("name", ["snapshots", "journal.jsonl", "result.json", "figures", "report.html"])
def test_no_link_in_a_run_folder_leads_out_of_it(name: str, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    folder.mkdir()
    journal = (ROOT / "tests" / "data" / "journal_cosine.jsonl").read_bytes()
    begun = b"".join(journal.splitlines(keepends=True)[:-1])  # interrupted
    (outside / "file").write_bytes(begun)
    (folder / "journal.jsonl").write_bytes(begun)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside if name in ("snapshots", "figures") else outside / "file")
    for act in (lambda: resume(folder, ()), lambda: write_report(folder), lambda: resume_sweep(folder, ())):
        with pytest.raises(UserError, match=f"{name} is a symbolic link, .* remove it"):
            act()
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_bytes() == begun


@pytest.mark.parametrize(
    ("uri", "masked"),
    [
        ("http://ann:secret@host/x", "http://ann:***@host/x"),
        ("http://ann:se@cret@host", "http://ann:***@host"),
        ("postgresql://host/db?user=ann&password=secret", "postgresql://host/db?user=ann&password=***"),
        ("https://host/?access_token=secret#x", "https://host/?access_token=***#x"),
        ("two http://a:secret@b and http://c:secret@d", "two http://a:***@b and http://c:***@d"),
        ("http://host:5000/a?b=c", "http://host:5000/a?b=c"),
    ],
)
def test_no_secret_of_a_uri_is_shown(uri: str, masked: str) -> None:
    assert mask(uri) == masked


def test_the_page_of_a_run_is_for_this_machine_alone(tmp_path: Path) -> None:
    journal = (ROOT / "tests" / "data" / "journal_cosine.jsonl").read_bytes()
    (tmp_path / "journal.jsonl").write_bytes(journal)
    told, ready = list[str](), threading.Event()

    def note(address: str) -> None:
        told.append(address)
        ready.set()

    threading.Thread(target=serve, args=(tmp_path, 0, note), daemon=True).start()
    assert ready.wait(60)
    port = int(told[0].rsplit(":", 1)[1].strip("/"))
    assert listening_on(port) == {"127.0.0.1"}


def listening_on(port: int) -> set[str]:
    """The addresses on which somebody of this machine listens at a port, as the kernel tells them."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    places = [row[1].split(":") for row in rows if row[3] == "0A"]
    return {socket.inet_ntoa(bytes.fromhex(place)[::-1]) for place, at in places if int(at, 16) == port}


@pytest.mark.slow
def test_no_password_is_in_a_run_folder_or_on_the_terminal(tmp_path: Path) -> None:
    from commands import orchestrate

    uri = "http://ann:hunter2secret@127.0.0.1:9"  # where nobody listens: its errors are recorded, too
    run = ["task=tabular", "steps=20", "lr=constant", "cluster.workers=1", f"tracking.uri={uri}"]
    ended = orchestrate(tmp_path, "run", *run, f"hydra.run.dir={tmp_path / 'run'}", f"outputs={tmp_path / 'outputs'}")
    assert ended.returncode == 0, ended.stderr
    assert "hunter2secret" not in ended.stdout + ended.stderr
    leaks = [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2secret" in path.read_bytes()]
    assert leaks == []


def test_weights_are_tensors_and_nothing_else(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "w.safetensors", metadata={"values": "[]"})
    assert Snapshot.read(tmp_path / "w.safetensors").tensors["a"].tolist() == [1.0, 1.0]
