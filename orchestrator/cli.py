"""The command `orchestrate`: run, resume, watch, compare, report, attention, doctor.

`run` takes Hydra overrides, so Hydra composes the configuration and makes the run folder; everything heavier than that
is imported once the configuration has been found right, and a mistake costs a second, not a Ray start.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from orchestrator.errors import UserError
from orchestrator.word_files import expanded

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from orchestrator.config import Config

_KILLED = 128  # exit statuses above it name a signal
_HYDRAS_DETAILS = ("Config search path", "provider=", "full_key", "object_type")

_METHODS = "tactic,oracle_top_p,quest,snapkv,streamingllm"

_EPILOG = """examples:
  orchestrate run                                  two workers, a small language model, its rate found on the way
  orchestrate run task=image_classification lr=cosine lr.rate=0.01
  orchestrate run dry_run=true                     what would run, and at what cost
  orchestrate run -m lr=autolrs,cosine seed=1,2    several runs, one after another, and a table
  orchestrate run --quiet                          one line, when it has ended
  orchestrate run evaluate=outputs/…/…             score a finished run
  orchestrate run --help                           every option of the configuration tree"""


_SWEEP_EPILOG = """search:  bayes (if nothing else is said), random, grid, asha, pb2
ranges:  lr.rate=1e-4..1e-1  log(1e-3,1)  even(0,1)  1e-4..1e-1/4 (four values)  [32,64,128]  lr=[autolrs,cosine]

  orchestrate sweep task=tabular lr=cosine trials=20 'lr.rate=1e-4..1e-1' 'batch_size=[32,64,128]' seed=1
  orchestrate resume SWEEP_FOLDER                  go on after any kill
  orchestrate run @SWEEP_FOLDER/best.yaml          the winner once more"""


def main() -> NoReturn:
    """Entry point of the console script."""
    try:
        status = _dispatch(sys.argv[1:])
    except UserError as error:
        print(f"orchestrate: {error}", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def _dispatch(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["run"]:  # everything behind it belongs to Hydra
        return _run(expanded(arguments[1:]))
    if arguments[:1] == ["sweep"] and not {"-h", "--help"} & set(arguments):
        return _sweep(expanded(arguments[1:]))
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    return command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="orchestrate",
        description="Train a PyTorch model on a Ray cluster, its learning rate found while training.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("run", help="train; takes configuration overrides such as task=tabular seed=3")

    commands.add_parser(
        "sweep",
        help="search for the best values of any keys over many runs, as in lr.rate=1e-4..1e-1",
        description="orchestrate sweep [search=NAME] [trials=N] KEY=RANGE … [KEY=VALUE …]",
        epilog=_SWEEP_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    resume = commands.add_parser("resume", help="go on with a run that was interrupted")
    resume.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    resume.add_argument("grants", nargs="*", metavar="KEY._target_=CLASS", help="code of your own that the run names")
    resume.set_defaults(command=_resume)

    watch = commands.add_parser("watch", help="charts of a run while it goes, on a page for this machine's browser")
    watch.add_argument("folder", type=Path, nargs="?", metavar="RUN_FOLDER", help="default: the newest under ./outputs")
    watch.add_argument("--port", type=int, default=0, help="of the page on 127.0.0.1 (default: a free one)")
    watch.add_argument("--file", type=Path, help="write the page as it is now to a file, and end")
    watch.set_defaults(command=_watch)

    compare = commands.add_parser("compare", help="table and figure of runs side by side")
    compare.add_argument("folders", type=Path, nargs="*", metavar="RUN_FOLDER", help="default: all under ./outputs")
    compare.set_defaults(command=_compare)

    report = commands.add_parser("report", help="write report.html and the figures of a run again")
    report.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    report.set_defaults(command=_report)

    attention = commands.add_parser("attention", help="compare ways to attend on a language model: tokens, mass, time")
    attention.add_argument("model", metavar="MODEL", help="smollm2, a GGUF file, or the folder of a finished run")
    attention.add_argument("--context", type=int, default=2048, help="tokens of a text that are stored (default 2048)")
    attention.add_argument("--steps", type=int, default=64, help="tokens that are decoded after them (default 64)")
    attention.add_argument("--methods", default=_METHODS, help=f"joined by commas, or all (default {_METHODS})")
    attention.add_argument(
        "--target", type=float, nargs="+", default=[0.9], help="shares of attention mass (default 0.9)"
    )
    attention.add_argument("--texts", nargs="+", help="UTF-8 files, or kjv; of a run folder also its validation split")
    attention.add_argument("--json", action="store_true", help="print one JSON value instead of the table")
    attention.add_argument("--figure", type=Path, metavar="FILE", help="write mass against tokens read as a PNG")
    attention.set_defaults(command=_attention)

    doctor = commands.add_parser("doctor", help="what is installed, reachable, sized right; how to mend what is not")
    doctor.set_defaults(command=_doctor)
    return parser


def _run(overrides: Sequence[str]) -> int:
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us, who turn them into one sentence
    import hydra
    from omegaconf import DictConfig

    from orchestrator.config import CONF

    folders: list[Path] = []
    statuses: list[int] = []
    together: Path | None = None  # the folder of all runs, where there may be several

    def one(composed: DictConfig) -> None:
        """Called by Hydra for each run of the launch; never raises, for Hydra would tell of it in its own words."""
        nonlocal together
        together = _folder_of_all_runs()
        folders.append(_folder_of_this_run())
        statuses.append(_one_run(composed, folders[-1], together))
        if statuses[-1] > _KILLED:
            sys.exit(statuses[-1])  # told to stop: the runs that would follow are not started

    sys.argv = ["orchestrate run", *map(quoted, overrides)]
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(one)()
    except Exception as error:
        if len(statuses) < len(folders):  # not while composing, but in a run: a fault of ours, to be seen whole
            raise
        raise UserError(sentence_of_hydra(error)) from error
    if together is not None and (held := list(filter(_holds_a_run, folders))):
        _conclude(together, held, "FAILED" if any(statuses) else "FINISHED")
    return max(statuses, default=0)


def _conclude(together: Path, runs: Sequence[Path], state: str) -> None:
    from orchestrator.multirun import conclude

    conclude(together, runs, state)


def quoted(override: str) -> str:
    """`topology=torus:shape=4x4` in quotes, for `=` and `(` mean something to Hydra; `--quiet` as an override."""
    if override == "--quiet":
        return "terminal=quiet"
    key, _, value = override.partition("=")
    bare = key == "topology" and not value.startswith(("'", '"'))
    return f"topology='{value}'" if bare and {"=", "("} & set(value) else override


def _holds_a_run(folder: Path) -> bool:
    from orchestrator.journal_file import JOURNAL

    return (folder / JOURNAL).is_file()


def _folder_of_this_run() -> Path:
    from hydra.core.hydra_config import HydraConfig

    return Path(HydraConfig.get().runtime.output_dir)


def _folder_of_all_runs() -> Path | None:
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    hydra = HydraConfig.get()
    return Path(hydra.sweep.dir).absolute() if hydra.mode is RunMode.MULTIRUN else None


def _one_run(composed: "DictConfig", folder: Path, together: Path | None) -> int:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from orchestrator.config import config_from, sentence_of

    try:
        composed.outputs = str(Path(composed.outputs).absolute())  # a run may be taken up from elsewhere
        values: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
        values |= {"search_paths": [str(Path.cwd())], "parent": str(together) if together else None}
        return _launch(config_from(values), folder)
    except (UserError, OmegaConfBaseException) as error:
        _remove_if_empty(folder, Path(composed.outputs))
        message = str(error) if isinstance(error, UserError) else sentence_of(error)
        print(f"orchestrate: {message}", file=sys.stderr)
        return 2


def _launch(config: "Config", folder: Path) -> int:
    if config.dry_run:
        from orchestrator.dry_run import print_dry_run

        print_dry_run(config, folder)
        _remove_if_empty(folder, Path(config.outputs))
        return 0
    if config.evaluate is not None:
        from orchestrator.evaluate import evaluate

        return evaluate(config, folder)
    from orchestrator.launch import launch

    return launch(config, folder)


def _sweep(words: Sequence[str]) -> int:
    from orchestrator.sweep.command import sweep

    return sweep(words)


def _resume(options: argparse.Namespace) -> int:
    if (options.folder / "sweep.json").is_file():
        from orchestrator.sweep.command import resume_sweep

        return resume_sweep(options.folder, options.grants)
    from orchestrator.launch import resume

    return resume(options.folder, options.grants)


def _watch(options: argparse.Namespace) -> int:
    from orchestrator.monitoring.watch import watch

    watch(options.folder, options.port, options.file)
    return 0


def _compare(options: argparse.Namespace) -> int:
    _show_comparison(options.folders)
    return 0


def _show_comparison(folders: Sequence[Path]) -> None:
    from orchestrator.compare import compare

    compare(list(folders))


def _report(options: argparse.Namespace) -> int:
    from orchestrator.recorders.report import write_report

    print(write_report(options.folder))
    return 0


def _attention(options: argparse.Namespace) -> int:
    from orchestrator.attention import attention

    return attention(options)


def _doctor(options: argparse.Namespace) -> int:
    from orchestrator.doctor import examine

    return examine()


def _remove_if_empty(folder: Path, outputs: Path) -> None:
    """Hydra made the folder, and those above it, before it was known whether anything would run."""
    for each in (folder, *folder.parents):
        if each != folder and not each.is_relative_to(outputs):
            return
        try:
            each.rmdir()
        except OSError:
            return


def sentence_of_hydra(error: Exception) -> str:
    """Hydra's several lines as one, without what only Hydra's own people need."""
    if isinstance(error, OSError) and error.filename:  # the run folder is all that Hydra makes
        return f"{error.filename} cannot be made ({error.strerror}); choose another place by hydra.run.dir= or outputs="
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and not line.startswith(_HYDRAS_DETAILS))
