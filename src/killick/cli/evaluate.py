"""`killick evaluate`: sample a model on a task, or on a suite of tasks, and estimate pass@k."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from killick.cli.console import SetOption, err, out, quiet_transformers, written
from killick.cli.tasks import parse_settings
from killick.config import EvaluateSection, Recipe, load_recipe
from killick.errors import ConfigError, DataError
from killick.evaluate.backends import BACKENDS
from killick.evaluate.backends.types import Backend
from killick.evaluate.cautions import cautions
from killick.evaluate.settings import Performance, SamplingSettings, describe, evaluation_settings
from killick.models import load_config, resolve
from killick.provenance import write_json
from killick.tasks import TASKS
from killick.tasks.types import Task

if TYPE_CHECKING:
    from killick.evaluate.run import EvaluationResult

_LOCAL = ("transformers", "vllm")  # backends that load the model in this process

HELP = """Sample a model on a task or a suite and estimate pass@k with intervals. Run the same command again to resume.

MODEL_OR_RUN is `nano`, a local model folder, a hub name, or a run folder of `killick train`; with `--backend openai`,
the name the server knows. A sampler setting that is not given is that of the recipe or suite, else the default named.

Examples:

    killick evaluate nano --task countdown --split mixed --samples 256
    killick evaluate runs/nano-1f2e3d4c5b6a --task countdown --split hard --samples 256 --out runs/hard256
    killick evaluate models/smollm2 --task gsm8k --task-set path=data --split test --problems 50 --samples 16
    killick evaluate nano --task jsonl --task-set path=mine.jsonl --task-set columns.problem=question
    killick evaluate nano --recipe nano --out runs/base
    killick evaluate runs/nano-1f2e3d4c5b6a --suite sage --task-set path=data
    killick evaluate runs/nano-1f2e3d4c5b6a --suite sort --task-set path=data --skip-missing --limit 20 --samples 4
    killick evaluate mine --backend openai --base-url http://127.0.0.1:8000/v1 --suite sort
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(evaluate)


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL_OR_RUN", help="What to sample.")],
    task: Annotated[str | None, typer.Option(help="Registered task (see `killick tasks list`).")] = None,
    split: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Split (repeatable). Default: the only one.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Test sets of a paper: sage, sage-long, sort; or a file.")] = None,
    skip_missing: Annotated[bool, typer.Option("--skip-missing", help="Leave out sets that are not there.")] = False,
    samples: Annotated[int | None, typer.Option(min=1, help="Completions a problem (N). Default: 128.")] = None,
    problems: Annotated[
        int | None, typer.Option("--problems", "--limit", min=1, help="First problems of each split. Default: all.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="0 is greedy. Default: 1.")] = None,
    top_p: Annotated[float | None, typer.Option(help="1 keeps every token, the default.")] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Longest completion, tokens. Default: 256, or half the positions of a small model."),
    ] = None,
    stop: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="Stop string (repeatable).")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Names the random streams. Default: 0.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows decoded together (speed only).")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 (default) or bfloat16; or as the recipe says.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Take task and settings from this recipe.")] = None,
    set_: SetOption = None,
    task_set: Annotated[
        list[str] | None,
        typer.Option("--task-set", metavar="KEY=VALUE", help="A setting of the task, e.g. path=mine.jsonl."),
    ] = None,
    backend: Annotated[
        str, typer.Option(help="transformers, vllm or openai (any compatible server).")
    ] = "transformers",
    base_url: Annotated[str | None, typer.Option(help="Of the server, e.g. http://127.0.0.1:8000/v1.")] = None,
    backend_set: Annotated[
        list[str] | None, typer.Option("--backend-set", metavar="KEY=VALUE", help="A setting of the backend.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--out", help="Folder; one subfolder a split. Default: in the run, else below runs/eval."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """See HELP."""
    given: dict[str, Any] = {
        "splits": tuple(split) if split else None,
        "num_problems": problems,
        "num_samples": samples,
        "temperature": temperature,
        "top_p": top_p,
        "max_tokens": max_tokens,
        "stop": tuple(stop) if stop else None,
        "seed": seed,
    }
    given = {key: value for key, value in given.items() if value is not None}
    server = {"base_url": base_url} if base_url else {}
    speed = {key: value for key, value in (("dtype", dtype), ("batch_size", batch_size)) if value is not None}
    asked = _Sampled(model, backend, {**speed, **server, **parse_settings(backend_set)})
    tasks = parse_settings(task_set)
    if suite is not None:
        if recipe is not None or set_ or task is not None or split:
            raise ConfigError("--suite names tasks and splits: leave out --task, --split, --recipe and --set.")
        _evaluate_suite(asked, suite, tasks, given, skip_missing, output, as_json)
        return
    if skip_missing:
        raise ConfigError("--skip-missing leaves out sets of a --suite.")
    if recipe is not None:
        resolved = load_recipe(recipe, set_)
        name, settings, section = resolved.task.name, resolved.task.settings, resolved.evaluate
        asked = asked.by_default(dtype=resolved.model.dtype, batch_size=section.batch_size)
    elif set_:
        raise ConfigError("--set overrides keys of a recipe; say which with --recipe.")
    elif task is None:
        raise ConfigError(
            "Say what to evaluate: --task NAME --split SPLIT, --suite NAME, or --recipe NAME. See `killick tasks list`."
        )
    else:
        name, settings, section = task, {}, EvaluateSection()
    if task is not None and task != name:
        settings = {}  # those of the recipe's task
    name, settings = task or name, {**settings, **tasks}
    built: Task = TASKS.build(name, **settings)
    section = dataclasses.replace(section, **given)
    if not section.splits:
        section = dataclasses.replace(section, splits=_only_split(name, built))
    if max_tokens is None and recipe is None:
        section = dataclasses.replace(section, max_tokens=asked.default_max_tokens())
    _evaluate_splits(asked.backend(), name, built, section, output or asked.folder(name, "eval"), as_json)


def _only_split(name: str, task: Task) -> tuple[str]:
    """The split of a task that has one.

    Raises:
        ConfigError: it has several.
    """
    if len(task.splits) != 1:
        raise ConfigError(f"--split is missing; {name} has: {', '.join(task.splits)}.")
    return (task.splits[0],)


@dataclasses.dataclass(frozen=True)
class _Sampled:
    """What the command line says of model and backend."""

    model: str
    name: str
    settings: dict[str, Any]

    def by_default(self, **defaults: Any) -> "_Sampled":
        """With values for settings the backend has and the command line does not name."""
        known = {f.name for f in dataclasses.fields(BACKENDS.get(self.name))}
        fitting = {key: value for key, value in defaults.items() if key in known}
        return dataclasses.replace(self, settings={**fitting, **self.settings})

    def backend(self) -> Backend:
        """The backend; nothing is loaded yet."""
        if self.name in _LOCAL:
            quiet_transformers()
        cls = BACKENDS.get(self.name)
        needed = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING} - {"model"}
        if needed - self.settings.keys():
            raise ConfigError(
                f"The backend {self.name!r} needs {', '.join(sorted(needed))}: give --base-url, or --backend-set."
            )
        made: Backend = BACKENDS.build(self.name, model=self.model, **self.settings)
        return made

    def default_max_tokens(self) -> int:
        """256, or half the positions of a small model here: the other half is for the prompt."""
        if self.name not in _LOCAL:
            return 256
        source = resolve(self.model)
        if source.kind == "hub":
            err.print(f"asking the hub for {source.name} …", highlight=False, markup=False)
        quiet_transformers()
        positions = getattr(load_config(source).get_text_config(), "max_position_embeddings", None)
        return min(256, positions // 2) if positions else 256

    def folder(self, what: str, in_run: str) -> Path:
        """Where results go: into a run of ours, else under `runs/eval`; another backend has another folder."""
        path = Path(self.model)
        suffix = "" if self.name == "transformers" else f"-{self.name}"
        if (path / "resolved.json").exists():
            return path / f"{in_run}{suffix}"
        return Path("runs") / "eval" / f"{path.name or self.model}-{what}{suffix}"


def check_evaluation(recipe: Recipe) -> None:
    """Everything of `[evaluate]` that can be wrong without a model, so that it shows before training and not after.

    Raises:
        ConfigError, DataError: a setting out of range, an unknown split, unreadable problems.
    """
    evaluation_settings(recipe.evaluate)
    Performance(batch_size=recipe.evaluate.batch_size, dtype=recipe.model.dtype)
    task = TASKS.build(recipe.task.name, **recipe.task.settings)
    for split in recipe.evaluate.splits:
        task.rows(split, recipe.evaluate.num_problems)


def evaluate_splits(run: str, recipe: Recipe, folder: Path) -> None:
    """Evaluate a trained run as its recipe says."""
    if recipe.run.threads:
        import torch

        torch.set_num_threads(recipe.run.threads)
    asked = _Sampled(run, "transformers", {"dtype": recipe.model.dtype, "batch_size": recipe.evaluate.batch_size})
    task = TASKS.build(recipe.task.name, **recipe.task.settings)
    _evaluate_splits(asked.backend(), recipe.task.name, task, recipe.evaluate, folder)


def _evaluate_splits(
    backend: Backend, name: str, task: Task, section: EvaluateSection, folder: Path, as_json: bool = False
) -> None:
    """All splits of a section, a table, and the paths."""
    sampling = evaluation_settings(section)
    table = Table("split", "problems", "samples", "pass@k", "estimate", "95% interval")
    results = {}
    for split in section.splits:
        result = _evaluate_one(backend, name, task, split, section.num_problems, sampling, folder / split)
        results[f"{name}/{split}"] = result
        for k, entry in result.summary["pass_at"].items():
            interval = f"{entry['low']:.3f} … {entry['high']:.3f}"
            counts = str(result.spec.num_problems), str(sampling.num_samples)
            table.add_row(split, *counts, f"pass@{k}", f"{entry['mean']:.3f}", interval)
        table.add_section()
    _show({result.spec.split: result.summary for result in results.values()}, [table], as_json)
    written(*(folder / split / "summary.json" for split in section.splits))
    _warn(results)


def _evaluate_suite(
    asked: _Sampled,
    name: str,
    task_settings: dict[str, Any],
    given: dict[str, Any],
    skip_missing: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """All benchmarks of a suite, a table as in the papers, and the path of its JSON."""
    from killick.evaluate.suite_table import REPORT, model_of, paper_table, suite_table
    from killick.evaluate.suites import find_data, load_suite, suite_report

    suite = load_suite(name)
    limit = given.pop("num_problems", None)
    sampling = dataclasses.replace(suite.sampling, **given)
    found, left_out = find_data(suite, task_settings, limit)
    for one in left_out:
        err.print(f"{one.benchmark.label} is missing: {one.reason}", highlight=False, markup=False, soft_wrap=True)
    if left_out and not skip_missing:
        raise DataError(
            f"{len(left_out)} of {len(suite.benchmarks)} sets of the suite {name!r} are missing, see above. Bring them "
            "(--task-set path=FOLDER reads local files), or leave them out with --skip-missing."
        )
    folder = output or asked.folder(Path(name).stem, f"suites/{Path(name).stem}")
    backend = asked.backend()
    results = [
        (one, _evaluate_one(backend, one.task, task, one.split, limit, sampling, folder / one.folder))
        for one, task in found
    ]
    report = suite_report(suite, results, left_out)
    write_json(folder / REPORT, report)
    _show(report, [paper_table([(model_of(report), report)]), suite_table(report)], as_json)
    written(folder / REPORT)
    _warn({one.label: result for one, result in results})


def _evaluate_one(
    backend: Backend, name: str, task: Task, split: str, limit: int | None, sampling: SamplingSettings, folder: Path
) -> "EvaluationResult":
    from killick.evaluate.run import evaluate_with

    spec = describe(name, task, split, limit, sampling, backend.identity())
    performance = Performance(batch_size=getattr(backend, "batch_size", 1), dtype=backend.dtype)
    spec = dataclasses.replace(spec, performance=performance, backend=backend.defining())
    err.print(f"{spec.model.name} on {name}/{split}", highlight=False)
    try:
        return evaluate_with(backend, task, spec, folder)
    except KeyboardInterrupt:
        err.print("Stopped; the same command resumes.")
        raise


def _warn(results: "Mapping[str, EvaluationResult]") -> None:
    """Say what of the numbers above is not the model's doing; exit code 1 where all of it is the judge's.

    Raises:
        typer.Exit: every verdict of an evaluation is `error`.
    """
    for name, result in results.items():
        for line in cautions(result):
            err.print(f"{name}: {line}", markup=False, highlight=False, soft_wrap=True)
    broken = [result for result in results.values() if result.summary["reason_frac"]["error"] == 1.0]
    for result in broken:
        err.print(
            f"The judge failed on every completion, so {result.folder} says nothing about the model. Mend the judge, "
            "remove that folder, and run the command again.",
            style="bold red",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    if broken:
        raise typer.Exit(1)


def _show(data: Any, tables: Sequence[Table], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(data, indent=2))
    else:
        out.print(*tables)
