"""Mathematical answers: finding, reading and comparing them. `killick.verifiers.latex` is the way in."""
