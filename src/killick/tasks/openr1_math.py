"""OpenR1-Math (default subset, 93,733 problems): training problems with answers and reference solutions."""

from dataclasses import dataclass

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource


@dataclass(frozen=True)
class OpenR1Math(DataSetTask):
    """OpenR1-Math-220k, the default subset: problems of NuminaMath with their solutions."""

    sources = {
        "train": Source(
            "openr1_math",
            HubSource("open-r1/OpenR1-Math-220k", "e4e141ec9dea9f8326f4d347be56105859b2bd68", "train", ("default",)),
        )
    }
    columns = {"problem": "problem", "answer": "answer", "solution": "solution"}
    extras = ("problem_type", "question_type", "source", "uuid")
    drop_unreadable = True
