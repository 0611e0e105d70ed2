#!/usr/bin/env python3
"""The tables of the README from what bench/minilm --json and bench/gemm --json wrote.

    bench/report.py [--minilm FILE] [--gemm FILE]      Markdown on the standard output
"""
import argparse
import json
import pathlib


def minilm_tables(results):
    yield f"MiniLM-L6-v2 in f32, median ms; {results['machine']}."
    rows = [("", row) for row in results.get("shapes", [])] + [(", AVX2 only", row) for row in results.get("avx2", [])]
    for title in dict.fromkeys((row["threads"], note) for note, row in rows):
        threads, note = title
        yield f"\n{threads} thread{'s' * (threads > 1)}{note}:\n"
        yield "| batch x tokens | rlx | OpenVINO | rlx / OpenVINO | goal | rlx's share of the FMA floor |"
        yield "|---|---|---|---|---|---|"
        for where, row in rows:
            if (row["threads"], where) != title:
                continue
            goal = "–" if row["goal"] is None else f"{row['goal']:.2f}" + (", missed" if row["passes"] == "NO" else "")
            peer, ratio = row["peers_ms"].get("openvino"), row["ratios"].get("openvino")
            yield (f"| {row['shape']} | {row['rlx_ms']:.3g} | {'–' if peer is None else f'{peer:.3g}'} | "
                   f"{'–' if ratio is None else f'{ratio:.2f}'} | {goal} | {row['floor']:.0%} |")
    if results.get("odd"):
        yield "\n| odd shape | time per FLOP over its neighbours' |\n|---|---|"
        for row in results["odd"]:
            yield f"| {row['shape']} | {row['ratio']:.2f} |"
    if results.get("other"):
        yield "\n| figure | value | goal |\n|---|---|---|"
        for row in results["other"]:
            yield f"| {row['figure']} | {row['value']:.2f} | {row['goal']:g} |"


def gemm_table(results):
    yield f"Packed f32 products beside oneDNN's; {results['machine']}.\n"
    yield "| M x N x K | threads | rlx µs | oneDNN µs | speed over oneDNN |\n|---|---|---|---|---|"
    for row in results["rows"]:
        shape = "x".join(map(str, row["shape"]))
        yield f"| {shape} | {row['threads']} | {row['rlx_us']:.1f} | {row['onednn_us']:.1f} | {row['speed']:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minilm", type=pathlib.Path)
    parser.add_argument("--gemm", type=pathlib.Path)
    args = parser.parse_args()
    parts = []
    for path, lines in ((args.minilm, minilm_tables), (args.gemm, gemm_table)):
        if path:
            parts.append("\n".join(lines(json.loads(path.read_text()))))
    print("\n\n".join(parts))


if __name__ == "__main__":
    main()
