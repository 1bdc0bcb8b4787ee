"""The documentation is complete, its links resolve, and its code runs. The site itself is built by `make docs`."""

import ast
import dataclasses
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import typing
from pathlib import Path

import pytest
import typer

from killick import config, registry, study
from killick.evaluate.records import Record
from killick.methods.guides import GUIDES
from killick.methods.repairs import REPAIRS
from killick.report.panels import PANELS
from killick.study import definition
from killick.tasks import TASKS
from killick.verifiers import VERIFIERS
from killick.verifiers.types import Reason

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
PROSE = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
PUBLIC = (
    "maths",
    "methods",
    "evaluate",
    "patterns",
    "errors.py",
    "registry.py",
    "config.py",
    "tasks",
    "verifiers",
    "report/types.py",
)
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def text(page):
    return (DOCS / page).read_text(encoding="utf-8")


def sources():
    """(module name, file) of every module whose public names are promised to be documented."""
    package = ROOT / "src" / "killick"
    for part in PUBLIC:
        for path in [package / part] if part.endswith(".py") else sorted((package / part).rglob("*.py")):
            dotted = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            yield dotted.removesuffix(".__init__"), path


# ---- docstrings and mentions ----------------------------------------------------------------------------------------


def undocumented(source):
    """Public functions, classes, methods and properties without a docstring, as dotted names."""
    missing = []

    def visit(node, prefix):
        for child in node.body:
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and child.name[0] != "_":
                if ast.get_docstring(child) is None:
                    missing.append(prefix + child.name)
                if isinstance(child, ast.ClassDef):
                    visit(child, f"{prefix}{child.name}.")

    tree = ast.parse(source)
    visit(tree, "")
    return missing if ast.get_docstring(tree) else ["(module)", *missing]


def test_every_public_name_has_a_docstring():
    found = {module: missing for module, path in sources() if (missing := undocumented(path.read_text("utf-8")))}
    assert found == {}


def test_the_search_for_docstrings_can_fail():
    assert undocumented("class A:\n    def f(self): ...\n    def _g(self): ...\n") == ["(module)", "A", "A.f"]


def test_the_reference_lists_every_public_module():
    listed = set(re.findall(r"^::: (\S+)", text("reference.md"), re.MULTILINE))
    tables = {
        "killick.methods",
        "killick.evaluate",
        "killick.patterns",
        "killick.tasks",
        "killick.verifiers",
    }  # nothing but a table or prose
    helpers = {"killick.verifiers.answers"}  # a docstring, no names
    assert {module for module, _ in sources()} - tables - helpers <= listed


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("methods.md", GUIDES.names() + REPAIRS.names()),
        ("recipes.md", GUIDES.names() + TASKS.names() + VERIFIERS.names()),
        ("evaluation.md", PANELS.names() + [field.name for field in dataclasses.fields(Record)]),
        ("evaluation.md", list(typing.get_args(Reason))),
    ],
)
def test_components_are_mentioned(page, names):
    assert [name for name in names if f"`{name}`" not in text(page)] == []


@pytest.mark.parametrize("name", GUIDES.names())
def test_every_guide_has_a_section_with_its_settings(name):
    section = re.search(rf"^### {name}\n(.*?)(?=^##)", text("methods.md"), re.MULTILINE | re.DOTALL)
    assert section is not None
    shared = {"q_min", "q_max"}
    settings = {field.name for field in dataclasses.fields(GUIDES.get(name))} - shared
    assert [key for key in settings if f"`{key}`" not in section[1]] == []
    assert all(f"`{key}`" in text("methods.md") for key in shared)


def test_every_kl_form_is_explained():
    from killick.methods.sage import KL_FORMS

    for page in ("methods.md", "recipes.md"):
        assert [form for form in KL_FORMS if f"`{form}`" not in text(page)] == []


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("run", config.RunSection),
        ("model", config.ModelSection),
        ("task", config.TaskSection),
        ("method.anchor", config.AnchorSection),
        ("evaluate", config.EvaluateSection),
    ],
)
def test_recipe_keys_are_in_the_table_of_their_section(heading, section):
    part = re.search(rf"^### \[{re.escape(heading)}\]\n(.*?)(?=^##)", text("recipes.md"), re.MULTILINE | re.DOTALL)
    assert part is not None
    keys = set(re.findall(r"^\| `(\w+)` \|", part[1], re.MULTILINE))
    expected = {field.name for field in dataclasses.fields(section)} - {"settings"}  # "any other key"
    assert expected <= keys
    if heading in ("run", "model", "evaluate"):
        assert keys == expected


def test_task_settings_and_study_keys_are_mentioned():
    for name in TASKS.names():
        row = re.search(rf"^\| `{name}` \|.*$", text("recipes.md"), re.MULTILINE)
        assert row is not None
        assert [f.name for f in dataclasses.fields(TASKS.get(name)) if f"`{f.name}`" not in row[0]] == []
    for key in definition._KEYS | definition._STUDY_KEYS | definition._ARM_KEYS:
        assert re.search(rf"`\[?\[?{key}\]?\]?`", text("recipes.md")), key


def test_every_metric_is_in_the_glossary():
    names = {f"verify/{reason}_frac" for reason in typing.get_args(Reason)[1:]}
    for folder in ("methods", "engines"):
        for path in (ROOT / "src/killick" / folder).rglob("*.py"):
            names |= set(re.findall(r'"((?:sage|sort|group|time|verify)/[a-z_]+)"', path.read_text("utf-8")))
    assert len(names) > 10
    assert [name for name in sorted(names) if f"`{name}`" not in text("methods.md")] == []


# ---- commands -------------------------------------------------------------------------------------------------------


def commands():
    """Command line, e.g. "tasks list" -> its options."""
    from killick.cli import app

    def walk(command, name):
        if hasattr(command, "commands"):
            for key, child in command.commands.items():
                yield from walk(child, f"{name} {key}".strip())
        else:
            yield name, {option for param in command.params for option in (*param.opts, *param.secondary_opts)}

    return dict(walk(typer.main.get_command(app), ""))


def test_every_command_is_in_the_table():
    assert [name for name in commands() if f"| `killick {name}` |" not in text("index.md")] == []


def command_lines():
    for path in PROSE:
        if path.exists():
            for language, _, code in FENCE.findall(path.read_text("utf-8")):
                if language in ("sh", "bash", "console"):
                    yield from re.findall(r"^(?:\$ )?killick (.+)$", code, re.MULTILINE)


def test_shown_command_lines_exist():
    known, shown = commands(), list(command_lines())
    assert shown
    for line in shown:
        words = line.split(" #")[0].split()
        name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in known), None)
        assert name is not None, f"no such command: killick {line}"
        options = {word.split("=")[0] for word in words if word.startswith("--")} - {"--help"}
        assert options <= known[name], f"no such option: killick {line}"
        shipped = {"train": config.shipped_recipes(), "study": study.shipped_studies()}.get(name)
        if shipped is not None and not words[1].endswith(".toml"):
            assert words[1] in shipped, f"nothing of that name ships: killick {line}"


# ---- links and paths ------------------------------------------------------------------------------------------------


def slug(heading):
    """The anchor MkDocs and GitHub give a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower())


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_links_resolve(path):
    if not path.exists():
        pytest.skip("not there")
    prose = FENCE.sub("", path.read_text("utf-8"))
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"https?://|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        is_page = place.suffix == ".md" and place.exists()
        headings = re.findall(r"^#+ (.+)$", place.read_text("utf-8"), re.MULTILINE) if is_page else []
        inside_site = path.parent != DOCS or DOCS in place.parents  # MkDocs cannot follow a link out of docs/
        if not place.exists() or not inside_site or (anchor and anchor not in map(slug, headings)):
            broken.append(target)
    assert broken == []


def test_every_page_is_in_the_navigation():
    pages = re.findall(r"^  - ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert {page.name for page in PAGES} <= set(pages)


@pytest.mark.parametrize("path", [*PROSE, ROOT / "mkdocs.yml"], ids=lambda path: path.name)
def test_no_path_of_somebodys_machine(path):
    if path.exists():
        assert re.findall(r"(?<![\w.~-])/(?:work|tmp|root|home|Users)\b", path.read_text("utf-8")) == []


# ---- code -----------------------------------------------------------------------------------------------------------


def block(title, page="extending.md"):
    """The only code block with this title."""
    (code,) = [code for _, shown, code in FENCE.findall(text(page)) if shown == title]
    return code


def load(path, code):
    """Write a module and import it under its own file name."""
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PROSE, ids=lambda path: path.name)
def test_shown_python_and_toml_parse(page):
    if page.exists():
        for language, _, code in FENCE.findall(page.read_text("utf-8")):
            if language == "python" and not code.startswith(" "):
                ast.parse(code)
            if language == "toml":
                tomllib.loads(code)


def test_shown_recipe_and_study_are_accepted(tmp_path):
    recipe, plan = tmp_path / "mine.toml", tmp_path / "mine_study.toml"
    recipe.write_text(block("mine.toml, a recipe", "recipes.md"))
    plan.write_text(block("mine_study.toml, a study", "recipes.md"))
    assert config.load_recipe(str(recipe)).anchor.name == "branch"
    assert [arm.name for arm in study.load_study(str(plan)).arms] == ["grpo", "branch-beta0.05", "branch-beta0.3"]


@pytest.mark.parametrize(
    ("table", "attribute", "component"),
    [
        ("methods/guides", "GUIDES", "killick.methods.guides.position:PositionGuide"),
        ("methods/repairs", "REPAIRS", "killick.methods.repairs.power:PowerRepair"),
        ("verifiers", "VERIFIERS", "killick.verifiers.yes_no:YesNoVerifier"),
        ("tasks", "TASKS", "killick.tasks.squares:Squares"),
        ("report/panels", "PANELS", "killick.report.panels.lengths:LengthsPanel"),
    ],
)
def test_the_one_line_enters_the_table(tmp_path, table, attribute, component):
    """The shown line, put into the table as it is, names the file and the class shown."""
    file = f"src/killick/{table}/__init__.py"
    source = (ROOT / file).read_text("utf-8")
    assert source.count("built_in={\n") == 1
    changed = source.replace("built_in={\n", "built_in={\n" + block(file))
    names = getattr(load(tmp_path / "table.py", changed), attribute)._targets()
    module, _, name = component.partition(":")
    assert [component] in names.values()
    assert f"class {name}" in block(f"src/{module.replace('.', '/')}.py")


def test_the_guide_of_the_walk_through_keeps_the_protocol(tmp_path):
    """The guide as another package would bring it, under the conformance tests, and its own test."""
    package, info = tmp_path / "my_guides", tmp_path / "my_guides-0.1.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text("")
    (package / "position.py").write_text(block("src/killick/methods/guides/position.py"))
    project = tomllib.loads(block("pyproject.toml"))["project"]
    (points,) = project["entry-points"].items()
    lines = "".join(f"{name} = {value}\n" for name, value in points[1].items())
    (info / "entry_points.txt").write_text(f"[{points[0]}]\n{lines}")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    own = block("tests/unit/methods/test_position.py").replace("killick.methods.guides.position", "my_guides.position")
    (tmp_path / "test_position.py").write_text(own)
    out = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "position",
         "tests/conformance/test_guides.py", str(tmp_path / "test_position.py")],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert out.returncode == 0, out.stdout + out.stderr
    passed = int(re.search(r"(\d+) passed", out.stdout)[1])
    assert passed > 20, "the conformance tests did not see the guide"


def test_the_verifier_of_the_walk_through(tmp_path):
    module = load(tmp_path / "yes_no.py", block("src/killick/verifiers/yes_no.py"))
    judge = module.YesNoVerifier()
    cases = [("no, rather: Yes.", "right"), ("yes? no", "wrong"), ("yesterday", "no_answer"), ("", "no_answer")]
    assert [judge(completion, "yes").reason for completion, _ in cases] == [reason for _, reason in cases]
    with pytest.raises(module.DataError):
        judge.check_gold("perhaps")


def test_the_task_of_the_walk_through(tmp_path):
    task = load(tmp_path / "squares.py", block("src/killick/tasks/squares.py")).Squares(largest=20)
    splits = {split: task.rows(split) for split in task.splits}
    assert len(splits["test"]) == 4
    assert not {row.uid for row in splits["train"]} & {row.uid for row in splits["test"]}
    for row in splits["train"] + splits["test"]:
        task.verifier.check_gold(row.answer)
        assert task.verifier(task.gold_completion(row), row.answer).correct
    assert task.rows("train", 2) == splits["train"][:2]


def test_the_panel_of_the_walk_through(tmp_path, monkeypatch):
    from killick.evaluate.folder import EvaluationFolder
    from killick.evaluate.settings import EvaluationSpec, ModelIdentity, SamplingSettings
    from killick.report import load_study
    from killick.report.page import panels_of

    sampling = SamplingSettings(num_samples=2, max_tokens=9, seed=0)
    spec = EvaluationSpec("countdown", {}, "mixed", 1, "digest", sampling, ModelIdentity("model", "0" * 16))
    folder = EvaluationFolder(tmp_path / "mixed")
    folder.path.mkdir()
    folder.write_spec(spec, 0.0)
    records = [Record(spec.hash(), "p", n, 0, "x", False, "wrong", 4 + n, False, None).line() for n in range(2)]
    folder.records_file.write_bytes(b"".join(records))
    folder.summary_file.write_text("{}")

    monkeypatch.setattr(PANELS, "_built_in", {"lengths": "lengths:LengthsPanel"})
    monkeypatch.setitem(
        sys.modules, "lengths", load(tmp_path / "lengths.py", block("src/killick/report/panels/lengths.py"))
    )
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: [])
    ((name, panel),) = panels_of(load_study(folder.path))
    assert name == "lengths"
    assert panel.items[0].rows == [["model", "4.5"]]  # (4 + 5) / 2 tokens


def test_judging_in_python_prints_what_the_page_says(tmp_path, capsys):
    code = block("judging.py", "verifiers.md")
    promised = re.findall(r"^ *print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert len(promised) == code.count("print(") == 7
    load(tmp_path / "judging.py", code)
    assert capsys.readouterr().out.splitlines() == promised
