"""The character tokenizer of the nano world and its chat template.

Three kinds of user turns, told apart by the first character of their content, so that plain chat messages suffice:

| content | asks for |
|---|---|
| `3,5,7,2>22:` | a solution |
| `?3,5,7,2>22:7-3=4;5*4=20;...` | the plan of that solution |
| `!3,5,7,2>22:-4*20+` | a solution that follows the plan |

The template replaces the marker by a token of its own, and every answer starts after `<answer>` and ends in `<eos>`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PLAN_MARK, GUIDED_MARK = "?", "!"
CHARACTERS = "0123456789+-*/=;,>:" + PLAN_MARK + GUIDED_MARK
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>", "<solve>", "<plan>", "<guided>", "<answer>")

CHAT_TEMPLATE = """\
{%- for message in messages -%}
{%- if message['role'] == 'assistant' -%}
{{- '<answer>' -}}
{%- generation -%}
{{- message['content'] + eos_token -}}
{%- endgeneration -%}
{%- elif message['role'] == 'user' -%}
{%- if message['content'].startswith('?') -%}
{{- '<plan>' + message['content'][1:] -}}
{%- elif message['content'].startswith('!') -%}
{{- '<guided>' + message['content'][1:] -}}
{%- else -%}
{{- '<solve>' + message['content'] -}}
{%- endif -%}
{%- else -%}
{{- raise_exception('the nano chat template knows the roles user and assistant, not ' + message['role']) -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<answer>' -}}
{%- endif -%}
"""


def build_tokenizer() -> "PreTrainedTokenizerFast":
    """One token per character of the world, with the chat template; anything else becomes `<unk>`."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: index for index, token in enumerate((*SPECIAL, *CHARACTERS))}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    core.decoder = decoders.Fuse()  # joins without spaces, so decoding gives the text back
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        additional_special_tokens=list(SPECIAL[4:]),
        padding_side="left",
        model_max_length=128,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
