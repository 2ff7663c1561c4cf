"""Simulate TCP over links that lose packets.

Each function is a command of the program `airtcp`, with the same options, results and errors:

- `compare`: senders on one link (`airtcp compare`);
- `simulate`: a network (`airtcp sim run`);
- `sweep`: every combination of some values with many seeds (`airtcp sweep`);
- `read_trace`: the flows of a trace or a capture (`airtcp plot`).

Results are lists of dictionaries, one for each row of a table, which pandas.DataFrame takes. Times are in seconds, rates
in bit/s. The same seed gives the same numbers as on the command line.

A mistake raises ValueError, a value of a wrong type TypeError, a file that cannot be read or written OSError. The functions
use all cores and release the interpreter's lock. Ctrl-C ends simulations within a second; `read_trace` and `Trace.marks`
read their file to its end first.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional, Union

from . import _airtcp, _toml

__all__ = ["Comparison", "Simulation", "Trace", "compare", "read_trace", "simulate", "sweep"]

#: A row of a table.
Row = dict[str, Any]
#: The path of a TOML file, or its content as a dictionary.
Source = Union[str, "os.PathLike[str]", Mapping[str, Any]]
#: Called with the number of finished runs and of all runs, ten times a second. An exception ends the call.
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Simulation:
    """The results of `simulate`."""

    #: A row for each copy of each flow and each seed.
    flows: list[Row] = field(repr=False)
    #: A row for each direction of each link and each seed.
    links: list[Row] = field(repr=False)
    #: What `airtcp sim run --json` prints: the same values as they are nested, the means with their confidence intervals,
    #: and the results of a base station.
    record: Row = field(repr=False)


@dataclass(frozen=True)
class Comparison:
    """The results of `compare`."""

    #: A row for each combination, the one with the highest goodput first. `NAME_mean` is a mean over the seeds, and
    #: `NAME_half_width` that of its 95 % confidence interval.
    combinations: list[Row] = field(repr=False)
    #: The recommended combination, its cost for other flows, and those with a higher goodput that are rejected.
    recommendation: Optional[Row]
    #: What `airtcp compare --json` prints.
    record: Row = field(repr=False)


@dataclass(frozen=True)
class Trace:
    """A trace or a capture; see `read_trace`."""

    path: str
    #: A row for each flow, a direction of a connection that carried data; the one with the most bytes first.
    flows: list[Row] = field(repr=False)

    def marks(self, flow: int = 1) -> list[Row]:
        """Return the marks of the time-sequence graph of a flow, in the order of time.

        Each row has the keys `time`, `mark`, `from`, `to`, `value` and `srtt`; a key without a meaning for the mark is
        None. Sequence numbers are relative to the initial one. `flow` is a number of the list `flows`.
        """
        if flow < 1:
            raise ValueError(f"flow {flow}: flows are numbered from 1")
        rows: list[Row] = json.loads(_airtcp.marks(self.path, flow))
        return rows


def simulate(
    scenario: Source,
    *,
    settings: Optional[Mapping[str, Any]] = None,
    seeds: Optional[int] = None,
    seed: Optional[int] = None,
    threads: Optional[int] = None,
    out: Union[str, os.PathLike[str], None] = None,
    trace: Union[str, os.PathLike[str], None] = None,
    progress: Optional[Progress] = None,
) -> Simulation:
    """Simulate a network with some seeds.

    scenario: a scenario file, or its content as a dictionary.
    settings: replaces values of the scenario, as in {"flow.0.congestion": "reno"}.
    seeds: the number of seeds, 1 by default; a scenario without random elements runs once.
    seed: the first seed; that of the scenario by default.
    threads: the number of threads; one for each core by default.
    out: a new directory for the results, for `airtcp report`.
    trace: a new directory for a trace of the first seed, for `read_trace`.
    """
    path, text = _source(scenario, "scenario")
    sets = [f"--set={key}={_toml.value(value)}" for key, value in (settings or {}).items()]
    options = _options(seeds=seeds, seed=seed, threads=threads, out=out, trace=trace)
    record = json.loads(_call(["sim", "run", "--json", *sets, *options, "--", path], text, progress))
    flows, links = (
        _table({"seed": run["seed"], **row} for run in record["runs"] for row in run[name])
        for name in ("flows", "links")
    )
    return Simulation(flows, links, record)


def compare(
    link: str,
    combinations: Union[str, Iterable[str], None] = None,
    *,
    back: Optional[str] = None,
    seeds: Optional[int] = None,
    seconds: Optional[float] = None,
    flows: Optional[int] = None,
    pacing: bool = False,
    threads: Optional[int] = None,
    out: Union[str, os.PathLike[str], None] = None,
    progress: Optional[Progress] = None,
) -> Comparison:
    """Compare senders on a link.

    link: a description such as "rate 10mbit delay 20ms limit 50 loss 1%", or the name of a link such as "weak-4g".
    combinations: senders such as ["rack/cubic", "sack/reno"], or the list "usual" (the default) or "all".
    back: the link in the direction of the ACKs, if it differs.
    seeds: the number of seeds, 10 by default; a link without random elements runs once.
    seconds: the simulated time of a run; the first fifth is not measured.
    flows: the number of flows that share the link, 1 by default.
    pacing: pace all flows.
    threads: the number of threads; one for each core by default.
    out: a new directory for the results and a picture, for `airtcp report`.
    """
    if combinations is not None and not isinstance(combinations, str):
        combinations = ",".join(combinations)
    options = _options(
        **{"with": combinations},
        back=back, seeds=seeds, seconds=seconds, flows=flows, threads=threads, out=out,
    )
    options += ["--pacing"] if pacing else []
    record = json.loads(_call(["compare", "--json", *options, "--", link], None, progress))
    return Comparison(_table(record["combinations"]), record["recommendation"], record)


def sweep(
    experiment: Source,
    *,
    vary: Optional[Mapping[str, Sequence[Any]]] = None,
    seeds: Optional[int] = None,
    threads: Optional[int] = None,
    out: Union[str, os.PathLike[str], None] = None,
    progress: Optional[Progress] = None,
) -> list[Row]:
    """Simulate every combination of the values of some axes with every seed. Return a row for each run.

    experiment: an experiment file with axes, or its content as a dictionary; with `vary`, a scenario.
    vary: keys of the scenario and their values, as in {"flow.0.strategies": ["rack/cubic", "sack/reno"]}.
    seeds: the number of seeds of each combination; that of the file by default, or 10 with `vary`.
    threads: the number of threads; one for each core by default.
    out: a directory for the records, the means and the pictures. A sweep that was interrupted is resumed from it.
    """
    path, text = _source(experiment, "experiment")
    varied = [f"--vary={key}={_list(key, values)}" for key, values in (vary or {}).items()]
    options = _options(seeds=seeds, threads=threads)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory if out is None else out)
        # Without `out`, nobody sees the pictures.
        hidden = "note: no pictures" if out is None else None
        _call(["sweep", f"--out={folder}", *varied, *options, "--", path], text, progress, hidden)
        with open(folder / "records.jsonl", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


def read_trace(path: Union[str, os.PathLike[str]]) -> Trace:
    """List the flows of a trace: a directory that `trace` of `simulate` or `--trace` of a command wrote, its
    `events.sqlog`, or a `.pcap` or `.pcapng` file of another program.

    A file that ends within a record is read up to that record, and a warning says so.
    """
    path = os.fspath(path)
    flows = json.loads(_call(["plot", "--list", "--json", "--", path], None, None))
    return Trace(path, flows)


def _call(
    arguments: list[str],
    text: Optional[tuple[str, str]],
    progress: Optional[Progress],
    hidden: Optional[str] = None,
) -> str:
    """Run a command, and return what it prints. Its notes are warnings, except those that begin with `hidden`."""
    output, notes = _airtcp.call(arguments, text, progress)
    for note in notes:
        if hidden is None or not note.startswith(hidden):
            warnings.warn(note[len("note: "):] if note.startswith("note: ") else note, stacklevel=3)
    return output


def _source(source: Source, name: str) -> tuple[str, Optional[tuple[str, str]]]:
    """Return the path of a source, and the name and the text that replace the file `-`."""
    if isinstance(source, Mapping):
        return "-", (name, _toml.document(source))
    path = os.fspath(source)
    # The file of this name, and not the standard input.
    return ("./-" if path == "-" else path), None


def _options(**options: Any) -> list[str]:
    return [f"--{name}={_path(value)}" for name, value in options.items() if value is not None]


def _path(value: Any) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _list(key: str, values: Sequence[Any]) -> str:
    """Return values as in `--vary KEY=A,B`."""
    if isinstance(values, str):
        raise ValueError(f"{key}: expected a list of values: write [{json.dumps(values, ensure_ascii=False)}]")
    # Text needs no quotes here, and with them the value in the records would differ from that of the command.
    texts = [value if isinstance(value, str) else _toml.value(value) for value in values]
    if any("," in text for text in texts):
        raise ValueError(f"{key}: a value of `vary` cannot have a comma: use an axis of an experiment")
    return ",".join(texts)


def _table(rows: Iterable[Row]) -> list[Row]:
    """Return rows without nested dictionaries: the key `rtt` with the key `mean` becomes `rtt_mean`."""
    nested: set[str] = set()

    def flat(row: Row, prefix: str) -> Iterator[tuple[str, Any]]:
        for key, value in row.items():
            if isinstance(value, dict):
                nested.add(prefix + key)
                yield from flat(value, f"{prefix}{key}_")
            else:
                yield prefix + key, value

    table = [dict(flat(row, "")) for row in rows]
    # Where one row has a dictionary and another nothing, there is no column of that name.
    return [{key: value for key, value in row.items() if value is not None or key not in nested} for row in table]
