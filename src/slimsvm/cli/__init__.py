"""The command line: ``slimsvm train | predict | info | export | datasets | demo | bench``.

Results go to standard output, progress and notes to standard error. Exit codes: 0 done, 1 bad input or failed work
(one sentence on standard error), 2 wrong usage. Nothing here imports the library before the command is known, so that
``slimsvm --help`` answers at once.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from slimsvm.cli.output import describe_error, one_line_warnings, say

# Each is a module of this package with `add_arguments(parser)` and `run(args) -> int`, except the last one.
COMMANDS = {
    "train": "train a model on a data file and save it",
    "predict": "predict the labels of a data file",
    "info": "print what is in a model file",
    "export": "write a model as C, ONNX, WebAssembly or JSON",
    "datasets": "list the benchmark sets and where their files are",
    "demo": "train on a few sets and print a table, or write a web page in which a browser scores models",
    "bench": "say where the benchmarks went: `python -m benchmarks` in a checkout",
}
# What follows each command, in one line: its help lists the options.
USAGE = {
    "train": "[options] DATA MODEL",
    "predict": "[options] MODEL DATA",
    "info": "[options] MODEL [DATA]",
    "export": "[options] --to c|onnx|wasm|json MODEL",
    "datasets": "[--json]",
    "demo": "[options]",
    "bench": "NAME",
}
MODULES = {"datasets": "data"}  # a module that has not its command's name
EXAMPLES = """\
examples:
  slimsvm train train.csv model.slim --test test.csv
  slimsvm predict model.slim new.csv --output labels.txt
  slimsvm export model.slim --to c

`slimsvm COMMAND --help` lists the options of a command. Exit codes: 0 done, 1 bad input or failed work, 2 wrong usage.
"""
WRONG_USAGE = 2
TRACEBACK = "SLIMSVM_TRACEBACK"


def build_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser of the whole command line; only the command that ``argv`` begins with knows its arguments."""
    parser = argparse.ArgumentParser(
        prog="slimsvm",
        description="Kernel machines that stay small.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in COMMANDS.items():
        known = commands.add_parser(
            name, help=text, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )
        known.usage = f"%(prog)s {USAGE[name]}"
        if name not in argv[:1]:
            continue
        if name == "bench":
            add_bench(known)
            continue
        module = import_module(f"slimsvm.cli.{MODULES.get(name, name)}")
        known.description = getattr(module, "DESCRIPTION", module.__doc__)
        module.add_arguments(known)
        known.set_defaults(run=module.run, parser=known)
    return parser


def add_bench(parser: argparse.ArgumentParser) -> None:
    """Add ``slimsvm bench``, which ran benchmarks once: it takes any arguments and says where the benchmarks went."""

    def run(args: argparse.Namespace) -> int:
        words = " ".join([args.name or "NAME", *args.options])
        say(f"error: benchmarks run from a checkout of the sources: `python -m benchmarks {words}`")
        return WRONG_USAGE

    parser.description = (
        "Benchmarks are no part of the installed package: run `python -m benchmarks NAME` in a checkout of the sources."
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a benchmark")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="its options")
    parser.set_defaults(run=run)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on the given words, or on those of this process, and return 0, 1 for bad input or failed
    work, or 2 for wrong usage.
    """
    if argv is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # letters that its encoding has not are shown by their codes
    return exit_code(dispatch, sys.argv[1:] if argv is None else list(argv))


def exit_code(work: Callable[[list[str]], int], argv: list[str]) -> int:
    """Run ``work(argv)`` and return its exit code; errors and warnings are one sentence each."""
    if sys.stdout is None:
        say("error: standard output is closed")
        return 1
    try:
        with one_line_warnings():
            code = work(argv)
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:  # the reader of standard output has closed it (`| head`)
        drop_output()
        return 1
    except KeyboardInterrupt as error:
        say(f"error: interrupted{f': {error}' if error.args else ''}")
        return 1
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        say(f"error: {describe_error(error)}")
        drop_output()
        return 1


def drop_output() -> None:
    """Discard pending output that cannot be written: Python would complain about it again at its exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def dispatch(argv: list[str]) -> int:
    """Parse and run one command."""
    parser = build_parser(argv)
    args = parser.parse_args(argv)
    if args.version:
        from slimsvm import __version__

        print(f"slimsvm {__version__}")
        return 0
    if args.command is None:
        parser.error("say what to do: " + ", ".join(COMMANDS))
    return args.run(args)
