#!/usr/bin/env python3
"""The tables of docs/performance.md for MiniLM, `rlx embed` and matmul, from the --json files of bench/minilm,
bench/embed and bench/gemm.

bench/report.py [--minilm FILE] [--embed FILE] [--gemm FILE]      Markdown on the standard output
"""

import argparse
import json
import pathlib

PEERS = {"openvino": "OpenVINO", "onnxruntime": "ONNX Runtime", "torch": "PyTorch"}


def minilm_tables(results):
    """One table of all shapes. A shape reaches its goal by its ratio to OpenVINO or by its share of the FMA peak."""
    rows = [(str(row["threads"]), row) for row in results.get("shapes", [])]
    rows += [(f"{row['threads']}, AVX2 only", row) for row in results.get("avx2", [])]
    peers = [p for p in PEERS if any(p in row["ratios"] for _, row in rows)]
    versions = ", ".join(results.get("versions", {}).values())
    yield f"MiniLM-L6-v2 in f32, median ms; {results['machine']}{'; ' + versions if versions else ''}.\n"
    head = [
        "batch x tokens",
        "threads",
        "rlx",
        *(PEERS[p] for p in peers),
        *(f"rlx / {PEERS[p]}" for p in peers),
        "goal",
        "of the FMA peak",
        "matmuls, of the best tile",
    ]
    yield from table_head(head)
    for threads, row in rows:
        ms = [f"{row['peers_ms'][p]:.4g}" if p in row["peers_ms"] else "–" for p in peers]
        ratios = [f"{row['ratios'][p]:.2f}" if p in row["ratios"] else "–" for p in peers]
        goal = (
            "–"
            if row["goal"] is None
            else f"{row['goal']:.2f}, " + {"NO": "missed", "ratio": "reached"}.get(row["passes"], "by the peak")
        )
        yield line(
            [
                row["shape"],
                threads,
                f"{row['rlx_ms']:.4g}",
                *ms,
                *ratios,
                goal,
                f"{row['floor']:.0%}",
                f"{row['tile']:.0%}",
            ]
        )
    if results.get("odd"):
        yield ""
        yield from table_head(["odd shape", "time per FLOP over its neighbours'", "goal"])
        for row in results["odd"]:
            yield line(
                [
                    row["shape"],
                    f"{row['ratio']:.2f}",
                    "1.10"
                    + ("" if row["ratio"] <= 1.1 else ", by the peak of memory" if row["passes"] else ", missed"),
                ]
            )
    if results.get("other"):
        yield ""
        yield from table_head(["figure", "value", "goal"])
        for row in results["other"]:
            yield line([row["figure"], f"{row['value']:.2f} {row['unit']}".strip(), f"{row['goal']:g}"])


def table_head(names):
    return [line(names), "|" + "---|" * len(names)]


def line(cells):
    return "| " + " | ".join(cells) + " |"


def gemm_table(results):
    yield f"Packed f32 products beside oneDNN's; {results['machine']}.\n"
    yield from table_head(["M x N x K", "threads", "rlx µs", "oneDNN µs", "speed over oneDNN"])
    for row in results["rows"]:
        shape = "x".join(map(str, row["shape"]))
        yield line(
            [shape, str(row["threads"]), f"{row['rlx_us']:.1f}", f"{row['onednn_us']:.1f}", f"{row['speed']:.2f}"]
        )


def embed_table(results):
    yield f"`rlx embed` over 4,000 mixed lines, process start and load included; {results['machine']}.\n"
    yield from table_head(["threads", "tokens/s", "speed over OpenVINO", "of the rate of 8x32"])
    for row in results["rows"]:
        rate = row["tokens"] / row["seconds"]
        yield line([str(row["threads"]), f"{rate:.0f}", f"{row['speed']['openvino']:.2f}", f"{row['of_8x32']:.2f}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minilm", type=pathlib.Path)
    parser.add_argument("--embed", type=pathlib.Path)
    parser.add_argument("--gemm", type=pathlib.Path)
    args = parser.parse_args()
    parts = []
    for path, lines in ((args.minilm, minilm_tables), (args.embed, embed_table), (args.gemm, gemm_table)):
        if path:
            parts.append("\n".join(lines(json.loads(path.read_text()))))
    print("\n\n".join(parts))


if __name__ == "__main__":
    main()
