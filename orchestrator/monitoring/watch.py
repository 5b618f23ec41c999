"""`orchestrate watch`: a run's charts while it goes, on a page served to this machine alone, or as one file."""

import json
from collections.abc import Callable
from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template

from comm_plans.files import write_atomically
from orchestrator.compare import find_runs
from orchestrator.errors import UserError
from orchestrator.journal_file import JOURNAL
from orchestrator.monitoring.series import Json, document

_HERE = Path(__file__).parent
_HOST = "127.0.0.1"  # whoever wants it elsewhere has ssh
_NAMES = (_HOST, "localhost")
_LAST_PORT = 65535
_PAGE, _DATA = "/", "/data.json"


def watch(folder: Path | None, port: int, file: Path | None) -> None:
    """Serve the page of a run until Ctrl-C, or write it to `file`. Without a folder: of the newest run here."""
    folder = folder or newest_run(Path("outputs"))
    if file is not None:
        print(write_watch_page(folder, file))
        return
    serve(
        folder,
        port,
        ready=lambda address: print(f"{folder}\n{address}   (Ctrl-C ends the page, not the run)", flush=True),
    )


def newest_run(outputs: Path) -> Path:
    """The run folder whose journal was written last. UserError if there is none."""
    return max(find_runs(outputs), key=lambda folder: (folder / JOURNAL).stat().st_mtime)


def watch_page(content: Json, live: bool) -> str:
    """One HTML page that needs no network. `live`: it asks the server that it comes from for what is new."""
    style = (_HERE.parent / "recorders" / "report.css").read_text() + (_HERE / "watch.css").read_text()
    data = json.dumps(_finite(content), allow_nan=False).replace("<", "\\u003c")  # no tag can come out of it
    return Template((_HERE / "watch.html").read_text()).substitute(
        title=escape(content["title"]),
        style=style,
        script=(_HERE / "watch.js").read_text(),
        data=data,
        live=json.dumps(live),
    )


def write_watch_page(folder: Path, path: Path) -> Path:
    """The page as a file, all of it or nothing. UserError where it cannot be written."""
    text = watch_page(document(folder), live=False)
    try:
        write_atomically(path, text.encode())
        return path
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}); name another file") from error


def serve(folder: Path, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until interrupted; `ready` is told its address. Port 0: a free one. UserError: port taken."""
    document(folder)  # a wrong folder is told here, not to the browser
    if not 0 <= port <= _LAST_PORT:
        raise UserError(f"--port is {port}, and must be at most {_LAST_PORT}, or 0 for a free one")
    try:
        server = ThreadingHTTPServer((_HOST, port), partial(_Handler, folder))
    except OSError as error:
        raise UserError(f"port {port} cannot be had ({error.strerror}); name another by --port, or none") from error
    with server:
        ready(f"http://{_HOST}:{server.server_port}/")
        server.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    """Answers two addresses about one run folder, and nothing else."""

    def __init__(self, folder: Path, *connection: object) -> None:
        self._folder = folder
        super().__init__(*connection)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """The page, or what it draws; to a stranger's page, which reaches this server by a name of its own, nothing."""
        if self.headers.get("Host", "").partition(":")[0] not in _NAMES:
            self._answer(403, "text/plain; charset=utf-8", "this page is at an address of this machine only\n")
        elif self.path == _PAGE:
            self._answer(200, "text/html; charset=utf-8", watch_page(document(self._folder), live=True))
        elif self.path == _DATA:
            self._answer(200, "application/json", json.dumps(_finite(document(self._folder))))
        else:
            self._answer(404, "text/plain; charset=utf-8", f"only {_PAGE} and {_DATA} are here\n")

    def log_message(self, format: str, *arguments: object) -> None:
        """Nobody asked for a line a request."""

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)


def _finite(content: Json) -> Json:
    """JSON has no NaN and no infinity: a chart has a gap there."""
    found: Json = json.loads(json.dumps(content), parse_constant=lambda _: None)
    return found
