"""Problems as token ids, by the tokenizer's own chat template: the one way in which training and evaluation ask."""

from collections.abc import Sequence
from typing import Any

from killick.errors import DataError
from killick.tasks.types import Row


def render_prompts(tokenizer: Any, rows: Sequence[Row]) -> list[list[int]]:
    """Token ids of every prompt, by the tokenizer's own chat template.

    Template and tokenisation are one call: tokenising the rendered text again would add a second BOS.

    Raises:
        DataError: the tokenizer has no chat template, or its template refuses a prompt or renders it empty.
    """
    from jinja2 import TemplateError

    if not tokenizer.chat_template:
        raise DataError(
            "The tokenizer has no chat template, so a prompt of chat messages cannot be rendered. "
            "Save one with the model (tokenizer.chat_template = ...; tokenizer.save_pretrained(folder))."
        )
    prompts = []
    for row in rows:
        try:
            ids = tokenizer.apply_chat_template(
                row.prompt, add_generation_prompt=True, tokenize=True, return_dict=False
            )
        except (TemplateError, TypeError, ValueError) as error:  # templates raise on roles they do not know
            roles = ", ".join(str(message.get("role")) for message in row.prompt)
            raise DataError(
                f"The chat template cannot render problem {row.uid!r} (roles: {roles}): {error}. Many templates take "
                "no system message: set the task's system to an empty text, or save another template."
            ) from error
        if not len(ids):
            raise DataError(f"The chat template renders problem {row.uid!r} as nothing. Save another template.")
        prompts.append(ids)
    return prompts
