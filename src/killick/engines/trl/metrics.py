"""Where the trainer records our numbers: undivided statistics meet over the processes and are divided once."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from killick.maths import Stat


class MetricSink:
    """Adds our metrics to TRL's own store, which averages them over a logging interval.

    Args:
        store: `trainer._metrics`: mode -> name -> list of numbers.
        accelerator: to gather over processes; one collective and one synchronisation a call.
    """

    def __init__(self, store: Mapping[str, Any], accelerator: Any) -> None:
        self._store = store
        self._accelerator = accelerator

    def add(self, stats: Mapping[str, Stat], train: bool) -> None:
        """Record token statistics; one that saw no token on any process is left out."""
        if not stats:
            return
        names = sorted(stats)
        local = torch.stack([torch.stack([stats[n][0].float(), stats[n][1].float()]) for n in names])
        gathered = self._accelerator.gather(local.unsqueeze(0))  # [processes, metrics, 2]
        numbers = torch.stack(
            [
                Stat.combine(Stat(value, count, stats[name].reduce) for value, count in gathered[:, index]).result()
                for index, name in enumerate(names)
            ]
        ).tolist()
        for name, number in zip(names, numbers, strict=True):
            if number == number:  # NaN: nothing went in
                self._mode(train)[name].append(number)

    def add_scalar(self, name: str, value: Tensor, train: bool) -> None:
        """Record a number that is already the same on every process."""
        self._mode(train)[name].append(float(value))

    def _mode(self, train: bool) -> Any:
        return self._store["train" if train else "eval"]
