"""The native module."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

def call(
    arguments: Sequence[str],
    input: tuple[str, str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[str, list[str]]:
    """Run a command with the arguments of its command line; return its standard output and its notes.

    `input` is the name and the text of the file `-`.
    """

def marks(path: str | os.PathLike[str], flow: int) -> str:
    """Return the marks of a flow as a JSON array."""
