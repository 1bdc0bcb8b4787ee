"""DAPO-Math-17k, deduplicated (17,398 prompts, English and Chinese): training problems with answers, no solutions."""

from dataclasses import dataclass

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource


@dataclass(frozen=True)
class DAPO17k(DataSetTask):
    """DAPO-Math-17k without its hundredfold repetition, answers only."""

    sources = {
        "train": Source(
            "dapo17k",
            HubSource("open-r1/DAPO-Math-17k-Processed", "31dd309567e3da778038cc87d868b6097a3ccf68", "train", ("all",)),
        )
    }
    columns = {"problem": "prompt", "answer": "solution"}
    drop_unreadable = True
