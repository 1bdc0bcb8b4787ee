"""Keep reinforcement learning with verifiable rewards from stalling or collapsing.

Names are loaded on first use: `import killick` imports neither torch nor trl.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "KillickConfig": "killick.engines.trl.settings",
    "KillickTrainer": "killick.engines.trl.trainer",
}

__all__ = ["KillickConfig", "KillickTrainer", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'killick' has no attribute {name!r}; public names: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
