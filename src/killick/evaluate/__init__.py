"""Evaluation: settings -> sampled completions -> records on disk -> estimates with intervals -> comparisons.

Read in this order: `settings` (what was asked), `records` (what came back), `estimators` (what it says), `run` (the
loop), `compare` (several runs side by side). Only `noise`, `sample` and `run` need torch; a report reads the rest.
"""
