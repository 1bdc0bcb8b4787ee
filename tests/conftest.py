"""Runs `killick.maths` and `killick.methods` under jaxtyping with beartype: a wrong shape or dtype fails the test.

The check exists during tests only; an installed killick pays nothing for it.
"""

import sys
import types

import hypothesis
from beartype import BeartypeConf, beartype
from jaxtyping import install_import_hook

# The hook takes the checker by import string. Plain beartype refuses `gamma = 1` where a float is annotated, which
# Python's own rules and TOML allow; hence a configured one under a name of its own.
_checker = types.ModuleType("killick_typecheck")
_checker.check = beartype(conf=BeartypeConf(is_pep484_tower=True))
sys.modules[_checker.__name__] = _checker

install_import_hook(["killick.maths", "killick.methods"], "killick_typecheck.check")

# The same examples on every machine: a property test that fails only sometimes is a test nobody trusts.
hypothesis.settings.register_profile("killick", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.load_profile("killick")
