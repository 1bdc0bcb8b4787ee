"""Problem sources. To add one: a file here and a line in the table."""

from killick.registry import Registry

TASKS = Registry(
    "task",
    entry_points="killick.tasks",
    built_in={
        "countdown": "killick.tasks.countdown:Countdown",
        "gsm8k": "killick.tasks.gsm8k:GSM8K",
        "arithmetic": "killick.tasks.arithmetic:Arithmetic",
        "jsonl": "killick.tasks.jsonl:JsonLines",
    },
)
