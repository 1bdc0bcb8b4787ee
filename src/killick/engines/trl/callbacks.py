"""What happens around TRL's loop: a log file, a progress bar, and a checkpoint on Ctrl-C."""

import json
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class TrainLog(TrainerCallback):
    """`train_log.jsonl`: one JSON object a logged step. On resume the file is cut back to the checkpoint."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.begun = False  # becomes true when the host has loaded everything and starts to train

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Write the history the checkpoint carries, so that lines after it are not kept twice."""
        self.begun = True
        if state.is_world_process_zero:
            lines = [json.dumps(entry) for entry in state.log_history if "loss" in entry]
            self._path.write_text("".join(line + "\n" for line in lines))

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Append one step."""
        if state.is_world_process_zero and logs and "loss" in logs:
            with self._path.open("a") as file:
                file.write(json.dumps({**logs, "step": state.global_step}) + "\n")


class ProgressBar(TrainerCallback):
    """Steps done, time left, and the three numbers worth watching: reward, failed groups, KL."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("train"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(), TimeRemainingColumn(), console=console,
        )  # fmt: skip
        self._task: Any = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Show the bar."""
        if state.is_world_process_zero:
            self._progress.start()
            self._task = self._progress.add_task("train", total=state.max_steps, completed=state.global_step, note="")

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Move it."""
        if self._task is None or not logs or "reward" not in logs:
            return
        note = f"reward {logs['reward']:.3f}"
        for key, label in (("group/all_wrong_frac", "failed"), ("sage/kl", "kl"), ("sage/q_mean", "q")):
            if logs.get(key) is not None:
                note += f"  {label} {logs[key]:.3f}"
        self._progress.update(self._task, completed=state.global_step, note=note)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Leave the last state on the screen."""
        self._progress.stop()

    def close(self) -> None:
        """Stop drawing (also after an error)."""
        self._progress.stop()


class SaveOnInterrupt(TrainerCallback):
    """First Ctrl-C (or SIGTERM): finish the step, write a checkpoint, stop. Second: stop at once.

    Use as a context manager around `trainer.train()`; `interrupted` tells afterwards. A signal to any process stops all
    of them after the same step. `torchrun` passes Ctrl-C on and kills what still runs 30 s later.
    """

    def __init__(self, console: Console) -> None:
        self.interrupted = False
        self._pressed = False  # in this process; `interrupted` may come from another one
        self._console = console
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "SaveOnInterrupt":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
        self._console.print("Stopping after this step, then writing a checkpoint. Press again to stop at once.")

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Ask the host for a checkpoint and an end, if any process got a signal (a tiny collective a step)."""
        if _anywhere(self._pressed, args.device):
            self.interrupted = True
            control.should_save = True
            control.should_training_stop = True


def _anywhere(flag: bool, device: torch.device) -> bool:
    """Whether the flag is set in any process of the run."""
    if not (dist.is_available() and dist.is_initialized()):
        return flag
    votes = torch.tensor(int(flag), device=device)
    dist.all_reduce(votes, op=dist.ReduceOp.MAX)
    return bool(votes)
