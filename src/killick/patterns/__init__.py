"""How completions reason: which of ten patterns of argument a text shows, by rules or by a judging model.

Read `names` (what the patterns are), `rules` (the classifier), `judge` (a model behind an OpenAI-compatible endpoint
instead), `labelled` (texts with labels, precision and recall), `shares` (numbers of an evaluation).
"""
