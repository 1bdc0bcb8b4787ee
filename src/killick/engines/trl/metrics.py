"""Where the trainer records our numbers: undivided statistics of slices and processes meet and are divided once."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from killick.maths import Stat


class MetricSink:
    """Keeps undivided statistics between two log calls; `flush` makes numbers of them.

    A mean is over all tokens of the interval and a minimum is the least of all, whatever the slices' sizes. (TRL's own
    store averages what it is given without weights.)

    Args:
        store: `trainer._metrics`: mode -> name -> list of numbers; takes what is already a number.
        accelerator: to gather over processes; one collective and one synchronisation a `flush`.
    """

    def __init__(self, store: Mapping[str, Any], accelerator: Any) -> None:
        self._store = store
        self._accelerator = accelerator
        self._kept: dict[bool, dict[str, Stat]] = {True: {}, False: {}}

    def add(self, stats: Mapping[str, Stat], train: bool) -> None:
        """Keep the statistics of one slice, on their device; neither collective nor synchronisation.

        Between two calls of `flush`, every process must add the same names, in any order and number of calls.
        """
        kept = self._kept[train]
        for name, stat in stats.items():
            kept[name] = Stat.combine([kept[name], stat]) if name in kept else stat

    def add_scalar(self, name: str, value: Tensor | float, train: bool) -> None:
        """Record a number that is already the same on every process; the host averages it over the interval."""
        self._store["train" if train else "eval"][name].append(float(value))

    def flush(self, train: bool) -> dict[str, float]:
        """Name -> number over everything added since the last flush on all processes, and start anew.

        To be called on all processes together. One that saw no token on any of them is left out.
        """
        kept, self._kept[train] = self._kept[train], {}
        if not kept:
            return {}
        names = sorted(kept)
        local = torch.stack([torch.stack([kept[n].value.float(), kept[n].num.float()]) for n in names])
        gathered = self._accelerator.gather(local.unsqueeze(0))  # [processes, metrics, 2]
        numbers = torch.stack(
            [
                Stat.combine(Stat(value, num, kept[name].reduce) for value, num in gathered[:, index]).result()
                for index, name in enumerate(names)
            ]
        ).tolist()
        return {name: number for name, number in zip(names, numbers, strict=True) if number == number}  # NaN: empty
