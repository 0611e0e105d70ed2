#!/usr/bin/env python3
"""Timelines that RLX_TRACE writes, checked against the documented form of Chrome trace events.

usage: trace_test.py --rlx build/dev/rlx [--model DIR] [--trace-processor PROGRAM]

The PyPI package perfetto holds no trace processor, it fetches one from the web. Where PROGRAM is one, and the package
is there, the files are also opened with it and its answers compared.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import graphs


def fail(what):
    raise SystemExit(f"trace_test: {what}")


def check(path):
    """The events of a file; every one has what its phase asks for, and those of a thread nest."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    if set(trace) != {"displayTimeUnit", "traceEvents"} or trace["displayTimeUnit"] != "ns":
        fail(f"{path}: members {sorted(trace)}")
    names, tracks = {}, collections.defaultdict(list)
    for event in trace["traceEvents"]:
        for key, kind in (("ph", str), ("name", str), ("pid", int), ("tid", int)):
            if type(event.get(key)) is not kind:
                fail(f"{path}: {key} is missing: {event}")
        if event["ph"] == "M":
            if event["name"] not in ("process_name", "thread_name") or not event["args"]["name"]:
                fail(f"{path}: metadata {event}")
            names[event["pid"], event["tid"], event["name"]] = event["args"]["name"]
        elif event["ph"] == "X":
            unknown = set(event) - {"ph", "ts", "dur", "pid", "tid", "name", "cat", "args"}
            times = (event["ts"], event["dur"])
            if unknown or not event["cat"] or any(type(t) not in (int, float) or t < 0 for t in times):
                fail(f"{path}: event {event}")
            begin, length = round(event["ts"] * 1000), round(event["dur"] * 1000)
            tracks[event["pid"], event["tid"]].append((begin, -(begin + length), event))
        else:
            fail(f"{path}: phase {event['ph']}")
    for (pid, tid), events in tracks.items():
        if (pid, tid, "thread_name") not in names or (pid, 0, "process_name") not in names:
            fail(f"{path}: the track {pid}, {tid} has no name")
        stack = []
        for begin, end, event in sorted(events, key=lambda e: e[:2]):
            while stack and stack[-1] <= begin:
                stack.pop()
            if stack and -end > stack[-1]:
                fail(f"{path}: {event} ends behind what it lies in")
            stack.append(-end)
    return [event for events in tracks.values() for _, _, event in events]


def check_with(processor, path, events):
    """The same events, as a trace processor has them; nothing was dropped."""
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    with TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=processor)) as opened:
        rows = {row.name: row.n for row in opened.query("select name, count(*) as n from slice group by name")}
        if rows != dict(collections.Counter(event["name"] for event in events)):
            fail(f"{path}: the trace processor has other slices")
        problems = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
        if found := [(row.name, row.value) for row in opened.query(problems)]:
            fail(f"{path}: the trace processor reports {found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rlx", required=True, help="the program rlx")
    parser.add_argument("--model", type=pathlib.Path, help="folder of a sentence encoder")
    parser.add_argument("--trace-processor", help="a trace processor of Perfetto")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "hostile.rlx").write_text(graphs.hostile(), encoding="utf-8")
        commands = {
            "hostile": ["bench", str(folder / "hostile.rlx"), "--threads", "2", "--runs", "3", "--seconds", "0.01"]
        }
        commands["inspect"] = ["inspect", str(folder / "hostile.rlx"), "--list"]
        if arguments.model:
            model = ["bench", "--model", str(arguments.model), "--shapes", "2x32", "--runs", "3", "--seconds", "0.1"]
            commands["one"], commands["two"] = model + ["--threads", "1"], model + ["--threads", "2"]
        for name, command in commands.items():
            path = folder / f"{name}.json"
            environment = {**os.environ, "RLX_TRACE": str(path)}
            subprocess.run([arguments.rlx, *command], check=True, env=environment, stdout=subprocess.DEVNULL)
            events = check(path)
            counts = collections.Counter(event["cat"] for event in events)
            wanted = ["compile"] if name == "inspect" else ["compile", "weights", "bind", "run", "step"]
            if missing := [category for category in wanted if not counts[category]]:
                fail(f"{name}: no event of {missing}")
            if len({event["tid"] for event in events if event["cat"] == "step"}) > 1 and name == "one":
                fail("one thread has steps on several tracks")
            if arguments.trace_processor:
                check_with(arguments.trace_processor, path, events)
            print(f"{name}: {len(events)} events, " + ", ".join(f"{n} {c}" for c, n in sorted(counts.items())))
    print("traces: all passed")


if __name__ == "__main__":
    sys.exit(main())
