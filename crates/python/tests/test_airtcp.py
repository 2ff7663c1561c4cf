"""Tests of the package. `AIRTCP` is the program `airtcp`, whose results and errors are the expected ones."""

import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

import airtcp

SCENARIO = {
    "name": "one",
    "duration": "2s",
    "warm_up": "500ms",
    "bottleneck": {"forth": "rate 5mbit delay 5ms limit 20 loss 1%", "back": "rate 5mbit delay 5ms"},
    "flow": [{"name": "bulk", "strategies": "sack/reno", "count": 2}, {"name": "other", "strategies": "rack/cubic"}],
}

SCENARIO_FILE = """\
name = "one"
duration = "2s"
warm_up = "500ms"

[bottleneck]
forth = "rate 5mbit delay 5ms limit 20 loss 1%"
back = "rate 5mbit delay 5ms"

[[flow]]
name = "bulk"
strategies = "sack/reno"
count = 2

[[flow]]
name = "other"
strategies = "rack/cubic"
"""

EXPERIMENT = {
    "seeds": 3,
    "measures": ["goodput", "retransmissions", "time"],
    "axis": [
        {"name": "sender", "values": ["sack/reno", "rack/cubic"]},
        {"name": "loss", "values": [0, 0.5, 2]},
    ],
    "scenario": {
        "duration": "1s",
        "wire": ["rate 5mbit delay 5ms limit 20 loss {loss}%"],
        "flow": [{"strategies": "{sender}"}],
    },
}

EXPERIMENT_FILE = """\
seeds = 3
measures = ["goodput", "retransmissions", "time"]

[[axis]]
name = "sender"
values = ["sack/reno", "rack/cubic"]

[[axis]]
name = "loss"
values = [0, 0.5, 2]

[scenario]
duration = "1s"
wire = ["rate 5mbit delay 5ms limit 20 loss {loss}%"]

[[scenario.flow]]
strategies = "{sender}"
"""

LINK = "rate 5mbit delay 5ms limit 20 loss 1%"

#: A run that takes hours.
LONG = {**SCENARIO, "duration": "900000s"}


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    """A directory with the files, which is the current one."""
    (tmp_path / "scenario.toml").write_text(SCENARIO_FILE)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT_FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments):
    return subprocess.run([os.environ["AIRTCP"], *arguments], capture_output=True, text=True, check=False)


def printed(*arguments):
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def files(folder):
    folder = Path(folder)
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_simulate_has_the_results_of_the_command():
    expected = printed("sim", "run", "scenario.toml", "--seeds", "3", "--json", "--out", "command")
    result = airtcp.simulate("scenario.toml", seeds=3, threads=1, out="package")
    assert result.record == expected
    assert files("package") == files("command") != {}
    assert airtcp.simulate(SCENARIO, seeds=3).record == expected
    changed = printed("sim", "run", "scenario.toml", "--set", "flow.0.count=1", "--set", "duration=1s", "--seed", "7", "--json")
    assert airtcp.simulate(Path("scenario.toml"), settings={"flow.0.count": 1, "duration": "1s"}, seed=7).record == changed


def test_compare_has_the_results_of_the_command():
    options = ["--with", "sack/reno,rack/cubic,rrtp", "--seeds", "3", "--seconds", "2"]
    expected = printed("compare", LINK, *options, "--json", "--out", "command")
    senders = ["sack/reno", "rack/cubic", "rrtp"]
    result = airtcp.compare(LINK, senders, seeds=3, seconds=2, threads=1, out="package")
    assert result.record == expected
    assert files("package") == files("command") != {}
    options = ["--with", "sack/reno", "--seeds", "2", "--seconds", "1", "--flows", "2", "--pacing", "--back", "weak-4g"]
    expected = printed("compare", LINK, *options, "--json")
    result = airtcp.compare(LINK, "sack/reno", seeds=2, seconds=1, flows=2, pacing=True, back="weak-4g")
    assert result.record == expected


def test_sweep_has_the_records_of_the_command():
    assert command("sweep", "experiment.toml", "--out", "command").returncode == 0
    records = airtcp.sweep("experiment.toml", threads=1, out="package")
    assert files("package") == files("command")
    assert records == [json.loads(line) for line in Path("command/records.jsonl").read_text().splitlines()]
    assert len(records) == 18
    assert airtcp.sweep(EXPERIMENT) == records
    vary = ["--vary", "flow.0.count=1,3", "--vary", "flow.0.strategies=sack/reno", "--seeds", "2"]
    assert command("sweep", "scenario.toml", *vary, "--out", "varied").returncode == 0
    axes = {"flow.0.count": [1, 3], "flow.0.strategies": ["sack/reno"]}
    airtcp.sweep(Path("scenario.toml"), vary=axes, seeds=2, out="varied-by-package")
    assert files("varied-by-package") == files("varied")


def test_tables_are_flat():
    result = airtcp.simulate(SCENARIO, seeds=2)
    assert [(row["seed"], row["name"], row["copy"]) for row in result.flows] == [
        (seed, name, copy) for seed in (1, 2) for name, copy in [("bulk", 0), ("bulk", 1), ("other", 0)]
    ]
    assert result.flows[0]["rtt_mean"] == result.record["runs"][0]["flows"][0]["rtt"]["mean"]
    assert {row["way"] for row in result.links} == {"forth", "back"}
    rows = airtcp.compare(LINK, ["sack/reno", "rrtp"], seeds=2, seconds=1).combinations
    assert not any(isinstance(value, dict) for row in [*rows, *result.flows, *result.links] for value in row.values())
    # RRTP counts no time-outs.
    by_name = {row["combination"]: row for row in rows}
    assert "timeouts_mean" in by_name["sack/reno"]
    assert not any(key.startswith("timeouts") for key in by_name["rrtp"])


@pytest.mark.parametrize(
    ("function", "arguments", "line"),
    [
        (airtcp.compare, ("rate 5mbit", "sack/vega"), ["compare", "rate 5mbit", "--with", "sack/vega"]),
        (airtcp.compare, ("delay 5ms",), ["compare", "delay 5ms"]),
        (airtcp.simulate, ("experiment.toml",), ["sim", "run", "experiment.toml"]),
        (airtcp.simulate, ("/no/such/file",), ["sim", "run", "/no/such/file"]),
        (airtcp.sweep, ("scenario.toml",), ["sweep", "scenario.toml", "--out", "out"]),
        (airtcp.sweep, ("/no/such/file",), ["sweep", "/no/such/file", "--out", "out"]),
        (airtcp.read_trace, ("scenario.toml",), ["plot", "scenario.toml", "--list"]),
        (airtcp.read_trace, ("/no/such/file",), ["plot", "/no/such/file", "--list"]),
    ],
)
def test_errors_are_those_of_the_command(function, arguments, line):
    kind = FileNotFoundError if "/no/such/file" in line else ValueError
    with pytest.raises(kind) as error:
        function(*arguments)
    assert f"error: {error.value}\n" == command(*line).stderr


def test_a_mistake_in_a_dictionary_has_its_place():
    with pytest.raises(ValueError, match=r"^scenario:2:1: unknown field `duratio`.* did you mean `duration`\?"):
        airtcp.simulate({"name": "one", "duratio": "1s"})
    with pytest.raises(TypeError, match="not None"):
        airtcp.simulate({"name": None})
    with pytest.raises(ValueError, match="cannot have a comma"):
        airtcp.sweep(SCENARIO, vary={"name": ["a,b"]})
    with pytest.raises(ValueError, match=r'^duration: expected a list of values: write \["5s"\]$'):
        airtcp.sweep(SCENARIO, vary={"duration": "5s"})


@pytest.mark.parametrize("name", ["1", "true", 'a "b"', "a\\b", "a\x7fb\x1f", "é"])
def test_text_stays_text(name):
    named = {**SCENARIO, "flow": [{"name": name, "strategies": "sack/reno"}]}
    assert airtcp.simulate(named).flows[0]["name"] == name
    settings = {"flow.0.name": name, "duration": "1s"}
    assert airtcp.simulate(SCENARIO, settings=settings).flows[0]["name"] == name


def test_notes_are_warnings():
    quiet = {**SCENARIO, "bottleneck": {"forth": "rate 5mbit delay 5ms limit 20"}}
    with pytest.warns(UserWarning, match="nothing is random"):
        airtcp.sweep(quiet, vary={"flow.0.count": [1, 2]}, seeds=2)


def test_a_sweep_without_a_directory_has_no_note_about_pictures():
    vary = {"flow.0.strategies": ["sack/reno", "rack/cubic"]}
    with pytest.warns(UserWarning, match="no pictures"):
        airtcp.sweep(SCENARIO, vary=vary, seeds=1, out="out")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        airtcp.sweep(SCENARIO, vary=vary, seeds=1)


def test_progress_is_reported():
    calls = []
    airtcp.simulate(SCENARIO, seeds=4, progress=lambda done, runs: calls.append((done, runs)))
    assert calls[-1] == (4, 4)


def test_other_threads_run_meanwhile_and_an_exception_of_progress_ends_the_call():
    begun, enough = threading.Event(), threading.Event()

    def progress(done, runs):
        begun.set()
        if enough.is_set():
            raise KeyError("enough")

    def work():
        with pytest.raises(KeyError, match="enough"):
            airtcp.simulate(LONG, progress=progress)

    thread = threading.Thread(target=work)
    thread.start()
    # With the interpreter's lock held, this thread would not get here.
    assert begun.wait(60)
    enough.set()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "call",
    [
        "airtcp.simulate(LONG, progress=progress)",
        "airtcp.simulate(LONG, trace='trace', progress=progress)",
        "airtcp.sweep(LONG, vary={'flow.0.count': [1, 2]}, progress=progress)",
        f"airtcp.compare({LINK!r}, seconds=900000, progress=progress)",
    ],
)
def test_ctrl_c_ends_a_call(call):
    # A shell starts commands in the background with SIGINT ignored.
    program = f"""
import signal
import airtcp
signal.signal(signal.SIGINT, signal.default_int_handler)
LONG = {LONG!r}
def progress(done, runs):
    print("begun", flush=True)
{call}
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in error
    assert process.returncode == -signal.SIGINT


def test_a_cancelled_sweep_is_resumed():
    class Enough(Exception):
        pass

    def progress(done, runs):
        if done > 0:
            raise Enough

    with pytest.raises(Enough):
        airtcp.sweep("experiment.toml", seeds=200, threads=1, out="package", progress=progress)
    partial = Path("package/shards/shard-1-of-1.jsonl.partial").read_text()
    assert 0 < len(partial.splitlines()) < 1200
    records = airtcp.sweep("experiment.toml", seeds=200, out="package")
    assert len(records) == 1200
    assert all(json.loads(line)["hash"] == record["hash"] for line, record in zip(partial.splitlines(), records))


def test_a_trace_has_the_flows_of_the_command_and_their_marks():
    airtcp.simulate(SCENARIO, trace="trace")
    trace = airtcp.read_trace("trace")
    assert trace.flows == printed("plot", "trace", "--list", "--json")
    assert len(trace.flows) == 3
    marks = trace.marks(2)
    sent = [row for row in marks if row["mark"] in ("data", "retransmission", "out-of-order")]
    assert sum(row["to"] - row["from"] for row in sent) == trace.flows[1]["bytes"]
    assert [row["time"] for row in marks] == sorted(row["time"] for row in marks)
    assert {"ack", "cwnd", "rtt", "dropped"} <= {row["mark"] for row in marks}
    with pytest.raises(ValueError, match="flows 1 to 3"):
        trace.marks(4)
    with pytest.raises(ValueError, match="flow -1: flows are numbered from 1"):
        trace.marks(-1)
    with pytest.raises(TypeError):
        trace.marks("1")


def test_the_examples_of_the_page_run():
    page = Path(__file__).resolve().parents[3] / "docs" / "python.md"
    blocks = page.read_text().split("```python\n")[1:]
    assert len(blocks) == 5
    names = {}
    for block in blocks:
        exec(block.split("```")[0], names)
    assert len(names["runs"]) == 9
    assert names["cwnd"].max() > 0
