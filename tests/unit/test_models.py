"""Model loading on tiny folders: what resolves to what, and that no damaged folder loads silently."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl.trainer.utils import create_model_from_path, get_config_model_id

from killick.errors import ConfigError, DataError, RecordError
from killick.evaluate.settings import Performance
from killick.models import DTYPES, load_for_training, load_model, load_tokenizer, no_such_model, pick_device, resolve

WORDS = ["<pad>", "<eos>", "<unk>", "one", "two", "three"]
TEMPLATE = "{% for m in messages %}{{ m['content'] }} {% endfor %}"


def make_tokenizer(pad: str | None = "<pad>", template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>", unk_token="<unk>", pad_token=pad)
    tokenizer.chat_template = template
    return tokenizer


def make_model(tied: bool = True, vocab_size: int = len(WORDS)) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32,
        tie_word_embeddings=tied,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
    )
    return LlamaForCausalLM(config)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "base"
    make_model().save_pretrained(path)
    make_tokenizer().save_pretrained(path)
    return path


IDS = torch.tensor([[3, 4, 5]])


def test_a_folder_loads_as_it_was_saved(folder: Path) -> None:
    model, tokenizer = load_model(str(folder), device="cpu")
    assert torch.equal(model(IDS).logits, make_model().eval()(IDS).logits)
    assert not model.training
    assert tokenizer.padding_side == "left"
    assert model.dtype == torch.float32


def test_relative_folders_become_absolute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert resolve("base").name == str(folder.resolve())
    model, _ = load_model("base", device="cpu")
    assert model.config._name_or_path == str(folder.resolve())  # TRL loads the reference policy from here


def test_dtype_is_honoured_and_rotary_frequencies_are_not_rounded(folder: Path) -> None:
    model, _ = load_model(str(folder), dtype="bfloat16", device="cpu")
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert {b.dtype for name, b in model.named_buffers() if "inv_freq" in name} == {torch.float32}


def test_a_run_folder_gives_its_final_model(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "resolved.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="neither model/ nor"):
        resolve(str(run))
    for step in (2, 10, 9):
        shutil.copytree(folder, run / f"checkpoint-{step}")
    assert resolve(str(run)).name.endswith("checkpoint-10")  # by number, not by letter
    shutil.copytree(folder, run / "model")
    assert resolve(str(run)).name.endswith("model")


def make_adapter(folder: Path, target: Path) -> torch.Tensor:
    """Save a LoRA adapter that changes the output; returns the logits it should give."""
    peft = pytest.importorskip("peft")
    torch.manual_seed(1)
    config = peft.LoraConfig(
        r=2, lora_alpha=64, target_modules=["v_proj"], init_lora_weights=False, task_type="CAUSAL_LM"
    )
    model = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config).eval()
    model.save_pretrained(target)
    with torch.inference_mode():
        return model(IDS).logits


def test_an_adapter_is_merged_into_its_base(folder: Path, tmp_path: Path) -> None:
    expected = make_adapter(folder, tmp_path / "lora")
    source = resolve(str(tmp_path / "lora"))
    assert (source.kind, source.base.name) == ("adapter", str(folder.resolve()))
    model, tokenizer = load_model(str(tmp_path / "lora"), device="cpu")
    assert tokenizer.chat_template == TEMPLATE  # the base's: the adapter folder has none
    assert not torch.allclose(make_model().eval()(IDS).logits, expected, atol=1e-3)
    torch.testing.assert_close(model(IDS).logits, expected, atol=1e-5, rtol=1e-4)
    assert model.config._name_or_path == str((tmp_path / "lora").resolve())


@pytest.fixture
def lora_run(folder: Path, tmp_path: Path) -> tuple[Path, torch.Tensor]:
    """A run folder that ended in a LoRA adapter, and the logits it should give."""
    run = tmp_path / "lora_run"
    run.mkdir()
    (run / "resolved.json").write_text("{}", encoding="utf-8")
    return run, make_adapter(folder, run / "model")


def test_training_from_an_adapter_starts_at_a_folder_that_loads_again(
    lora_run: tuple[Path, torch.Tensor], tmp_path: Path
) -> None:
    source, expected = lora_run
    run_dir = tmp_path / "runs" / "next"
    model, tokenizer = load_for_training(str(source), "float32", run_dir)
    merged = run_dir / "merged_base"
    assert model.config._name_or_path == str(merged)
    assert [entry.name for entry in run_dir.iterdir()] == ["merged_base"]
    assert tokenizer.chat_template == TEMPLATE
    torch.testing.assert_close(model(IDS.to(model.device)).logits.cpu(), expected, atol=1e-5, rtol=1e-4)
    # What TRL does for its reference policy.
    reference = create_model_from_path(get_config_model_id(model.config), dtype=model.dtype).eval()
    for (name, ours), (_, theirs) in zip(model.named_parameters(), reference.named_parameters(), strict=True):
        assert torch.equal(ours.cpu(), theirs.cpu()), name
    assert torch.equal(model(IDS.to(model.device)).logits.cpu(), reference(IDS.to(reference.device)).logits.cpu())
    # A run trained from there is itself a start.
    assert load_for_training(str(merged), "float32", tmp_path / "other")[0].config._name_or_path == str(merged)
    assert not (tmp_path / "other").exists()


def test_a_resumed_run_keeps_its_merged_start(lora_run: tuple[Path, torch.Tensor], tmp_path: Path) -> None:
    source, expected = lora_run
    load_for_training(str(source), "float32", tmp_path / "run")
    weights = tmp_path / "run" / "merged_base" / "model.safetensors"
    written = weights.stat().st_mtime_ns
    (source / "model" / "adapter_model.safetensors").write_bytes(b"trained further")
    model, _ = load_for_training(str(source), "float32", tmp_path / "run")
    assert weights.stat().st_mtime_ns == written
    torch.testing.assert_close(model(IDS.to(model.device)).logits.cpu(), expected, atol=1e-5, rtol=1e-4)


def test_the_merged_start_keeps_its_dtype(lora_run: tuple[Path, torch.Tensor], tmp_path: Path) -> None:
    model, _ = load_for_training(str(lora_run[0]), "bfloat16", tmp_path / "run")
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert {b.dtype for name, b in model.named_buffers() if "inv_freq" in name} == {torch.float32}
    assert load_model(str(tmp_path / "run" / "merged_base"), dtype="auto")[0].dtype == torch.bfloat16


def test_a_failed_merge_leaves_nothing_that_looks_whole(
    lora_run: tuple[Path, torch.Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(PreTrainedTokenizerFast, "save_pretrained", torn)
        with pytest.raises(RecordError, match="No space left"):
            load_for_training(str(lora_run[0]), "float32", tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []
    load_for_training(str(lora_run[0]), "float32", tmp_path / "run")


def test_of_two_processes_that_merge_the_first_one_wins(
    lora_run: tuple[Path, torch.Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = tmp_path / "run" / "merged_base"

    def overtaken(draft: Path, target: Path) -> None:
        shutil.copytree(draft, target)  # the other process, an instant earlier
        (target / "first").touch()
        os.rename(draft, target)

    monkeypatch.setattr(Path, "rename", overtaken)
    model, _ = load_for_training(str(lora_run[0]), "float32", tmp_path / "run")
    assert model.config._name_or_path == str(merged)
    assert (merged / "first").exists()
    assert [entry.name for entry in merged.parent.iterdir()] == ["merged_base"]


def test_training_from_a_folder_loads_it_in_place(folder: Path, tmp_path: Path) -> None:
    model, _ = load_for_training(str(folder), "float32", tmp_path / "run")
    assert model.config._name_or_path == str(folder.resolve())
    assert not (tmp_path / "run").exists()


def test_an_adapter_without_a_usable_base_is_refused(folder: Path, tmp_path: Path) -> None:
    make_adapter(folder, tmp_path / "lora")
    file = tmp_path / "lora" / "adapter_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    for base, message in ((None, "names no base"), ("./gone/base/x", "no model folder")):
        file.write_text(json.dumps({**config, "base_model_name_or_path": base}), encoding="utf-8")
        with pytest.raises(DataError, match=message):
            resolve(str(tmp_path / "lora"))
    file.write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="does not name its base"):
        resolve(str(tmp_path / "lora"))


def test_pickled_weights_are_refused_with_the_way_to_convert(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(DataError, match="no weights"):
        load_model(str(folder), device="cpu")
    torch.save(make_model().state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(DataError, match="use_safetensors=False"):
        load_model(str(folder), device="cpu")


def test_a_truncated_checkpoint_is_refused(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DataError, match="cannot be read"):
        load_model(str(folder), device="cpu")


def test_a_checkpoint_that_lacks_weights_is_refused(folder: Path) -> None:
    """transformers itself only warns, and fills the gap with random numbers."""
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    weights = load_file(file)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(DataError, match=r"lacks 1 weights.*up_proj"):
        load_model(str(folder), device="cpu")


def test_a_damaged_config_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read"):
        load_model(str(folder), device="cpu")


def test_a_missing_chat_template_is_refused(folder: Path) -> None:
    shutil.rmtree(folder)
    make_model().save_pretrained(folder)
    make_tokenizer(template=None).save_pretrained(folder)
    with pytest.raises(DataError, match="chat template"):
        load_model(str(folder), device="cpu")


def test_a_missing_pad_token_is_chosen_with_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_tokenizer(pad=None).save_pretrained(folder)
    assert load_tokenizer(str(folder)).pad_token == "<pad>"
    assert "no pad token" in caplog.text


def test_a_tokenizer_larger_than_the_model_is_refused(folder: Path) -> None:
    make_model(vocab_size=4).save_pretrained(folder)
    with pytest.raises(DataError, match="do not match"):
        load_model(str(folder), device="cpu")


@pytest.mark.parametrize("name", ["./none", "a/b/c", "../x", "", "/none/there"])
def test_a_missing_folder_is_not_taken_for_a_hub_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "":
        name = "with space"
    with pytest.raises(DataError, match="no model folder"):
        resolve(name)


def test_a_name_that_is_nowhere_says_what_is_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder called like an owner of the hub hides no model of that owner."""
    (tmp_path / "models" / "small").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert resolve("models/smal").kind == "hub"
    error = str(no_such_model("models/smal", OSError("not found")))
    assert "There is no folder models/smal" in error
    assert "models holds small." in error


def test_hub_names_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = resolve("HuggingFaceTB/SmolLM2-135M-Instruct")
    assert (source.kind, source.name) == ("hub", "HuggingFaceTB/SmolLM2-135M-Instruct")


def test_folders_that_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found nothing"):
        resolve(str(tmp_path))
    (tmp_path / "x.gguf").write_bytes(b"")
    with pytest.raises(DataError, match="make_smollm2"):
        resolve(str(tmp_path))
    with pytest.raises(DataError, match="is a file"):
        resolve(str(tmp_path / "x.gguf"))


def test_the_converted_smollm2_folder() -> None:
    """What tools/make_smollm2.py made: plain tied weights, a chat template, no trace of the quantised source."""
    folder = Path(__file__).resolve().parents[2] / "models" / "smollm2-135m-instruct"
    if not folder.is_dir():
        pytest.skip("run tools/make_smollm2.py to make models/smollm2-135m-instruct")
    model, tokenizer = load_model(str(folder), device="cpu")
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert not hasattr(model.config, "quantization_config")
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], add_generation_prompt=True, tokenize=False
    )
    assert prompt.endswith("<|im_start|>assistant\n")
    assert tokenizer(prompt, add_special_tokens=False)["input_ids"].count(tokenizer.eos_token_id) == 2


def test_unknown_dtype_and_device(folder: Path) -> None:
    with pytest.raises(ConfigError, match="bfloat16"):
        load_model(str(folder), dtype="bf16", device="cpu")
    with pytest.raises(ConfigError, match="cuda"):
        pick_device("gpu")
    assert pick_device() in ("cuda", "mps", "cpu")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="this machine has none"):
            pick_device("cuda:0")


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "auto"])
def test_every_dtype_an_evaluation_may_record_can_be_loaded(folder: Path, dtype: str) -> None:
    assert Performance(dtype=dtype).dtype == dtype
    assert load_model(str(folder), dtype=dtype, device="cpu")[0].dtype == getattr(torch, dtype)
