"""Oracles: what every op of rlx means in JAX, and how far a result may be off.

catalogue.py    one Op per function of rlx.ops (and some of rlx.numpy): draws a call, and its meaning in JAX (ops_*.py)
evaluator.py    runs what JAX traces, with derivatives and batches, by NumPy in float64, exactly or with errors of a few
                units on every inexact result: how far such runs go is the bound of a comparison (rules_*.py)
single.py       programs of one call, for the tests of single ops
dice.py         random choices that are the same everywhere

A new op fails test_ops.py::test_every_op_has_an_oracle until it is added to an ops_*.py. A new device is judged by

    python -m pytest tests/python --device NAME [--plugin PATH]      # or --full NAME
    python tests/python/run_programs.py --device NAME --count 20000
"""
