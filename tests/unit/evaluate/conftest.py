"""A tiny random Llama, a tokenizer whose post-processor adds a BOS, and a task whose answers it sometimes hits."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from killick.evaluate.records import Record
from killick.evaluate.settings import ModelIdentity, Performance, SamplingSettings, describe
from killick.tasks.types import Row
from killick.verifiers.types import RIGHT, wrong

SPECIAL = ["<pad>", "<s>", "</s>"]
LETTERS = list("abcdefgh>")


def make_tokenizer():
    vocab = {token: index for index, token in enumerate(SPECIAL + LETTERS)}
    core = Tokenizer(models.WordLevel(vocab, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    core.decoder = decoders.Fuse()
    core.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        chat_template="{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}>{% endif %}",
    )


def make_model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(SPECIAL + LETTERS),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=64,
        attention_dropout=0.5,  # must stay off while sampling
        initializer_range=0.4,  # far from uniform, so that a wrong temperature shows
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


class FirstLetterVerifier:
    def check_gold(self, answer):
        pass

    def __call__(self, completion, answer):
        if not completion:
            return wrong("no_answer")
        return RIGHT if answer in completion else wrong()


@dataclass(frozen=True)
class ToyTask:
    letters: str = "abc"
    splits: tuple[str, ...] = ("test",)

    @property
    def verifier(self):
        return FirstLetterVerifier()

    def rows(self, split, limit=None):
        made = [
            Row(uid=f"p{n}", prompt=[{"role": "user", "content": "abcdefgh"[: n + 1]}], answer=self.letters[n % 3])
            for n in range(5)
        ]
        return made[:limit]

    def gold_completion(self, row):
        return row.answer

    def mode(self, completion):
        return completion[0]


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Threads only wait for each other on a model this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def model():
    return make_model()


@pytest.fixture(scope="session")
def tokenizer():
    return make_tokenizer()


@pytest.fixture
def task():
    return ToyTask()


@pytest.fixture
def make_spec():
    """Spec of the toy task; keyword arguments are sampling settings, `batch_size`, `fingerprint` or `limit`."""

    def make(task=None, batch_size=4, fingerprint="f0", limit=None, **sampling):
        settings = SamplingSettings(**{"num_samples": 6, "max_tokens": 8, "seed": 3, **sampling})
        spec = describe("toy", task or ToyTask(), "test", limit, settings, ModelIdentity("tiny", fingerprint))
        fields = {f: getattr(spec, f) for f in spec.__dataclass_fields__}
        return type(spec)(**{**fields, "performance": Performance(batch_size=batch_size)})

    return make


@pytest.fixture
def make_record():
    def make(uid="p0", sample=0, **changes):
        values = {"run": "r0", "seed": 3, "text": "ab", "correct": True, "reason": "right", "tokens": 3}
        return Record(**{**values, "truncated": False, "mode": "a", "uid": uid, "sample": sample, **changes})

    return make


@pytest.fixture
def write_evaluation(make_spec):
    """Writes a finished evaluation with a given share of right samples, without sampling."""
    from killick.evaluate.folder import EvaluationFolder
    from killick.evaluate.writer import RecordWriter

    def write(path, right_frac, seed=0, changes=None, **settings):
        spec = replace(make_spec(**settings), **(changes or {}))
        folder = EvaluationFolder(path)
        folder.claim(spec, resume=True)
        right = np.random.default_rng(seed).random((spec.num_problems, spec.sampling.num_samples)) < right_frac
        with RecordWriter(folder.records_file, spec.hash()) as writer:
            for (q, n), correct in np.ndenumerate(right):
                reason = "right" if correct else "wrong"
                mode = "a" if correct else None
                record = Record(spec.hash(), f"p{q}", n, 3, "ab", bool(correct), reason, 3, False, mode)
                writer.append([record])
        return SimpleNamespace(path=path, spec=spec, right=right)

    return write
