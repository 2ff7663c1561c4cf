"""Writes TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def document(table: Mapping[str, Any], path: str = "") -> str:
    """Return a dictionary as TOML. `path` is the path of the table, with a dot at its end."""
    # The values of a table precede its tables.
    lines = [f"{_key(key)} = {value(item)}" for key, item in table.items() if not _tables(item)]
    for key, item in table.items():
        for inner in _tables(item):
            name = path + _key(key)
            head = f"[{name}]" if isinstance(item, Mapping) else f"[[{name}]]"
            lines += ["", head, document(inner, f"{name}.")]
    return "\n".join(lines).strip("\n")


def value(item: Any) -> str:
    """Return a value as TOML on one line."""
    # Numbers and arrays of numpy, and columns of pandas.
    if hasattr(item, "tolist"):
        item = item.tolist()
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, (int, float)):
        return repr(item)
    if isinstance(item, str):
        return _text(item)
    if isinstance(item, (list, tuple)):
        return f"[{', '.join(map(value, item))}]"
    if isinstance(item, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {value(inner)}" for key, inner in item.items()) + " }"
    raise TypeError(f"expected text, a number, a boolean, a list or a dictionary, not {item!r}")


def _tables(item: Any) -> list[Mapping[str, Any]]:
    """Return a table, or a list of tables, as a list; of any other value an empty list."""
    if isinstance(item, Mapping):
        return [item]
    if isinstance(item, (list, tuple)) and all(isinstance(inner, Mapping) for inner in item):
        return list(item)
    return []


def _key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    # JSON does not escape DEL, and TOML requires it.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
