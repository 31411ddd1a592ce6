# SPDX-License-Identifier: Apache-2.0
"""The command line: `tmagen emit`, `explain`, `explain-check`, `verify`, `check`, `timeline`, `run`, `bench` and
`list`.

Each command is a module of its own that is imported when it runs. Exit codes: 0 done or verified; 1 verified and found
wrong; 2 nothing could be done or judged; 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from tmagen import __version__
from tmagen.cli_output import Terminated, drop_stdout, open_closed_streams, orderly_end, print_error, reason_of
from tmagen.errors import Diagnostic, TmagenError

EXIT_MISUSE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141  # as a process that SIGPIPE ended
EXIT_SIGNAL = 128  # and the number of the signal that asked for the end

COMMANDS = {
    "emit": "cli_emit",
    "explain": "cli_explain",
    "explain-check": "cli_explain_check",
    "verify": "cli_verify",
    "diff": "cli_diff",
    "check": "cli_check",
    "timeline": "cli_timeline",
    "run": "cli_run",
    "bench": "cli_bench",
    "list": "cli_list",
}


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"tmagen.{COMMANDS[cmd_name]}"), "command")  # noqa: B009 - for the type checker
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  tmagen emit --pipe-depth 2 --persistent > kernel.cu
  tmagen explain --preset step6 --shape 4096,4096,4096
  tmagen verify --preset step6 --shape 512,512,512 --shape 129,136,72
  tmagen check main.cu --host
  tmagen timeline --preset step5 -o step5.svg
  tmagen run --preset step6 --target sm_90a
  tmagen list
""",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def tmagen() -> None:
    """Writes readable CUDA GEMM kernels (TMA, mbarriers, tcgen05) from a specification, explains them, and proves them
    on an emulator: no GPU is needed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code. Nothing that a user can cause ends in a traceback."""
    open_closed_streams()
    try:
        with orderly_end():
            code = _run(sys.argv[1:] if arguments is None else arguments)
            sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()
        return EXIT_BROKEN_PIPE
    except Terminated as ended:
        drop_stdout()
        return EXIT_SIGNAL + ended.number
    except OSError as error:
        drop_stdout()
        print_error(str(_diagnostic(error)))
        return EXIT_MISUSE
    return code


def _diagnostic(error: OSError) -> Diagnostic:
    """What is wrong with the system: the disk behind stdout is full, or the terminal is gone."""
    if isinstance(error, FileNotFoundError) and "temporary directory" in str(error):
        return Diagnostic("there is no directory for temporary files", hint="TMPDIR, set to one that can be written")
    if error.filename is not None:
        return Diagnostic(f"cannot use {str(error.filename)!r}: {error.strerror or error}")
    return Diagnostic(f"writing the output failed: {reason_of(error)}")


def _run(arguments: Sequence[str]) -> int:
    # Not tmagen.main(): that writes a line on an interrupt, and has its own idea of a closed pipe.
    try:
        with tmagen.make_context("tmagen", list(arguments)) as context:
            result: Any = tmagen.invoke(context)
    except click.exceptions.Exit as done:  # --help and --version
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        print_error(error.format_message())
    except click.ClickException as error:
        command = next((f"tmagen {word}" for word in arguments[:1] if word in COMMANDS), "tmagen")
        print_error(str(Diagnostic(error.format_message(), hint=f"{command} --help")))
    except TmagenError as error:
        print_error(error.report())
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    else:
        return result if isinstance(result, int) else 0
    return EXIT_MISUSE


if __name__ == "__main__":
    sys.exit(main())
