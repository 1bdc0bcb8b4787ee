import importlib.util
import sys
from pathlib import Path

import pytest

# Test folders are no packages (importmode "importlib"), so the generator beside this file is loaded by its path.
_NAME = "killick_test_synthetic"
if _NAME not in sys.modules:
    _spec = importlib.util.spec_from_file_location(_NAME, Path(__file__).with_name("synthetic.py"))
    sys.modules[_NAME] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[_NAME])


@pytest.fixture(scope="session")
def synthetic():
    return sys.modules[_NAME]


@pytest.fixture(scope="session")
def study_dir(synthetic, tmp_path_factory):
    """A study of four arms and two seeds; read only."""
    return synthetic.write_study(tmp_path_factory.mktemp("study") / "study")


@pytest.fixture(scope="session")
def page(study_dir, tmp_path_factory):
    """Its report, as text."""
    from killick.report import write_report

    return write_report(study_dir, tmp_path_factory.mktemp("page") / "report.html").read_text(encoding="utf-8")
