"""Minerva mathematics: 272 university problems in physics, chemistry, astronomy and mathematics."""

from dataclasses import dataclass

from killick.tasks.dataset import DataSetTask, Source
from killick.tasks.reading import HubSource


@dataclass(frozen=True)
class Minerva(DataSetTask):
    """Minerva mathematics (OCWCourses), 272 problems; the local file has reference solutions, the hub has none."""

    sources = {
        "test": Source("minerva", HubSource("math-ai/minervamath", "ee46ddc498933b1977577953250ca5c66be64f96", "test"))
    }
    columns = {"problem": "question", "answer": "answer"}
