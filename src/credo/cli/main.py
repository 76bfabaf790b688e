"""The entry of the console script: run a command, and turn whatever happens into an exit status."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence

from credo.core.errors import CredoError
from credo.core.text import visible

__all__ = ["INTERRUPTED", "USAGE", "main"]

USAGE = 2
INTERRUPTED = 130
COMPILING = ("learn", "predict", "keyed", "reproduce", "bandit", "flow")
"""The commands that compile programs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Arguments:
        argv: the words after `credo`; None takes them from `sys.argv`.

    Returns:
        The exit status: 0, 2 for a request that cannot be carried out, 130 after Ctrl-C, 1 for an error of
            credo itself.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        if words and words[0] in COMPILING:
            from credo.cli.compile_cache import keep_compiled_programs

            keep_compiled_programs()
        from credo.cli.app import run_words

        return run_words(words)
    except CredoError as error:
        from credo.cli.app import flags_of
        from credo.cli.flags import refusal

        return _fail(refusal(error, flags_of(words)), USAGE, debug)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written.", INTERRUPTED, debug, "credo: ")
    except BrokenPipeError:
        # The reader of our output is gone (`credo ... | head`): say nothing, not even while Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (RuntimeError, MemoryError) as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and not isinstance(error, MemoryError):
            return _unexpected(error, debug)
        return _fail(
            "there is not enough memory for this model; try a smaller --model, or --posterior diagonal.",
            USAGE,
            debug,
        )
    except Exception as error:
        return _unexpected(error, debug)


def _fail(sentence: str, status: int, debug: bool, start: str = "credo: error: ") -> int:
    if debug:
        traceback.print_exc()
    _print(start + " ".join(sentence.split()))
    return status


def _unexpected(error: Exception, debug: bool) -> int:
    words = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    more = (
        "" if debug else " Run it again with --debug to see where; this is a bug in credo, please report it."
    )
    return _fail(f"{words}.{more}".replace("..", "."), 1, debug, "credo: internal error: ")


def _print(text: str) -> None:
    with contextlib.suppress(OSError):
        print(visible(text), file=sys.stderr, flush=True)
