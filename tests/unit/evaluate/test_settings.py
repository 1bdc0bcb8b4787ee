import dataclasses
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from killick.config import EvaluateSection
from killick.errors import ConfigError, DataError, RecordError
from killick.evaluate.identity import model_identity
from killick.evaluate.settings import EvaluationSpec, Performance, SamplingSettings, evaluation_settings
from killick.provenance import differences


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_samples": 0}, "num_samples"),
        ({"num_samples": True}, "num_samples"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"seed": -1}, "seed"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"temperature": 0.0}, "identical samples"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"stop": "x"}, "stop"),
        ({"stop": ("",)}, "stop"),
        ({"stop": 3}, "stop"),
        ({"stop": ("a\ud800",)}, "UTF-8"),
        ({"temperature": 10**400}, "temperature"),
    ],
)
def test_bad_sampling_settings_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        SamplingSettings(**{"num_samples": 4, "max_tokens": 8, "seed": 0, **changes})


def test_greedy_with_one_sample_is_allowed():
    assert SamplingSettings(num_samples=1, max_tokens=8, seed=0, temperature=0).temperature == 0.0


@pytest.mark.parametrize("changes", [{"batch_size": 0}, {"dtype": "int8"}])
def test_bad_performance_settings_are_refused(changes):
    with pytest.raises(ConfigError):
        Performance(**changes)


def test_hash_covers_what_defines_the_numbers_and_nothing_else(make_spec):
    base = make_spec()
    assert base.hash() == make_spec(batch_size=9).hash()
    assert base.hash() == dataclasses.replace(base, model=dataclasses.replace(base.model, name="moved")).hash()
    assert base.hash() == make_spec(temperature=1).hash()  # 1 and 1.0 are one setting
    others = [
        make_spec(temperature=0.7),
        make_spec(top_p=0.9),
        make_spec(num_samples=7),
        make_spec(max_tokens=9),
        make_spec(seed=4),
        make_spec(stop=("h",)),
        make_spec(limit=3),
        make_spec(fingerprint="f1"),
        make_spec(task=type("T", (), {"rows": lambda self, split, limit: []})()),
    ]
    assert len({base.hash(), *(other.hash() for other in others)}) == 1 + len(others)


def test_problems_digest_sees_a_changed_gold(make_spec, task):
    changed = make_spec(task=dataclasses.replace(task, letters="abd"))
    found = differences(make_spec().defining(), changed.defining())
    assert [key for key, _, _ in found] == ["problems", "task_settings.letters"]


def test_spec_survives_json(make_spec):
    spec = make_spec(stop=("a", "b"))
    again = EvaluationSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again.hash() == spec.hash()
    assert again.sampling == spec.sampling
    with pytest.raises(RecordError):
        EvaluationSpec.from_dict({"task": "toy"})


def test_the_backend_names_an_evaluation_and_old_ones_keep_their_hash(make_spec):
    spec = make_spec()
    served = dataclasses.replace(spec, backend={"name": "openai", "dialect": "vllm"})
    other = dataclasses.replace(spec, backend={"name": "openai", "dialect": "plain"})
    assert len({spec.hash(), served.hash(), other.hash()}) == 3
    assert EvaluationSpec.from_dict(json.loads(json.dumps(served.to_dict()))).hash() == served.hash()
    old = {key: value for key, value in spec.to_dict().items() if key != "backend"}
    assert EvaluationSpec.from_dict(old).hash() == spec.hash()
    assert not [key for key in spec.defining() if key.startswith("backend")]
    for bad in ({}, "openai", {"name": 3}):
        with pytest.raises(RecordError):
            EvaluationSpec.from_dict({**spec.to_dict(), "backend": bad})


def test_fingerprint_follows_content_not_place(tmp_path, model, tokenizer):
    for name in ("one", "two"):
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    one, two = model_identity(str(tmp_path / "one")), model_identity(str(tmp_path / "two"))
    assert one.fingerprint == two.fingerprint
    assert one.name != two.name
    weights = tmp_path / "two" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert model_identity(str(tmp_path / "two")).fingerprint != one.fingerprint
    (tmp_path / "one" / "chat_template.jinja").write_text("{{ 'other' }}")
    assert model_identity(str(tmp_path / "one")).fingerprint != one.fingerprint


def test_fingerprint_of_a_large_file_sees_its_end_and_middle(tmp_path):
    size = 60_000_000
    found = set()
    for place in (None, 0, size // 2, size - 1):
        data = bytearray(size)
        if place is not None:
            # Checkpoints differ nearly everywhere; 1 MB is far less than that and more than the gap of the blocks.
            data[max(0, place - 1_000_000) : place + 1] = b"\1" * (place + 1 - max(0, place - 1_000_000))
        (tmp_path / "model.safetensors").write_bytes(data)
        found.add(model_identity(str(tmp_path)).fingerprint)
    assert len(found) == 4


def test_missing_model_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="no model weights"):
        model_identity(str(tmp_path))
    with pytest.raises(DataError, match="neither a folder nor"):
        model_identity(str(tmp_path / "absent"))


@pytest.fixture
def hub(tmp_path, monkeypatch, model, tokenizer):
    """A stand-in for the hub that "fetches" a saved model, and the calls it got; set `fails` to make it raise."""
    calls = SimpleNamespace(kwargs=[], fails=None)

    def snapshot_download(name, **kwargs):
        calls.kwargs.append(kwargs)
        if calls.fails:
            raise calls.fails
        folder = tmp_path / "cache" / name
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return str(folder)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return calls


def test_a_hub_model_is_fetched_and_equals_the_same_model_in_a_folder(hub, tmp_path, model, tokenizer):
    model.save_pretrained(tmp_path / "local")
    tokenizer.save_pretrained(tmp_path / "local")
    fetched = model_identity("owner/model")
    assert fetched.name == "owner/model"
    assert fetched.fingerprint == model_identity(str(tmp_path / "local")).fingerprint
    assert len(hub.kwargs) == 1  # the folder asked nothing
    assert not hub.kwargs[0].get("local_files_only")  # an empty cache must not be the end


def test_what_is_fetched_is_what_is_loaded(hub):
    from huggingface_hub.utils import filter_repo_objects

    model_identity("owner/model")
    kept = {key: hub.kwargs[0][key] for key in ("allow_patterns", "ignore_patterns")}
    wanted = ["config.json", "tokenizer.json", "chat_template.jinja", "model-00001-of-00002.safetensors"]
    wanted += ["model.safetensors", "model.safetensors.index.json"]
    others = ["pytorch_model.bin", "onnx/model.onnx", "onnx/config.json", "half/model.safetensors", "README.md", "x.py"]
    assert sorted(filter_repo_objects(wanted + others, **kept)) == sorted(wanted)


@pytest.mark.parametrize("error", [ConnectionError("no route"), LocalEntryNotFoundError("not cached"), RuntimeError()])
def test_an_unreachable_hub_is_a_data_error_with_the_way_out(hub, error):
    hub.fails = error
    with pytest.raises(DataError, match=rf"no folder owner/model.*cannot be reached.*{type(error).__name__}"):
        model_identity("owner/model")


def test_without_network_and_cache_the_real_client_ends_in_the_same_error(tmp_path):
    """In a fresh process, because the client reads its environment on import."""
    code = "from killick.evaluate.identity import model_identity; model_identity('owner/model')"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert "DataError: There is no folder owner/model" in done.stderr


def test_the_section_of_a_recipe_names_the_sampler():
    section = EvaluateSection(num_samples=3, max_tokens=5, seed=7, temperature=0.5, top_p=0.9, stop=("x",))
    assert evaluation_settings(section) == SamplingSettings(3, 5, 7, 0.5, 0.9, ("x",))


def test_weights_that_are_a_folder_and_adapters_of_themselves_are_data_errors(tmp_path):
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(DataError, match=r"model\.safetensors is no file"):
        model_identity(str(tmp_path))
    (tmp_path / "model.safetensors").rmdir()
    (tmp_path / "adapter_model.safetensors").write_bytes(b"x")
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(tmp_path)}))
    with pytest.raises(DataError, match="names itself as its base"):
        model_identity(str(tmp_path))
    (tmp_path / "adapter_config.json").write_text("[")
    with pytest.raises(DataError, match="no JSON object"):
        model_identity(str(tmp_path))
