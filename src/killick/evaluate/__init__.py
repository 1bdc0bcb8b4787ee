"""Evaluation: settings -> sampled completions -> records on disk -> estimates with intervals -> comparisons.

Read in this order: `settings` (what was asked), `records` (what came back), `estimators` (what it says), `run` (the
loop), `compare` (several runs side by side), with `paired`, `support`, `majority` for what it compares and `macro` for
several benchmarks. `backends` draw the samples, `suites` run the test sets of papers. Only `noise`, `sample` and the
local backends need torch; a report reads the rest.
"""
