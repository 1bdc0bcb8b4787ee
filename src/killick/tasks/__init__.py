"""Problem sources. To add one: a file here and a line in the table."""

from killick.registry import Registry

TASKS = Registry(
    "task",
    entry_points="killick.tasks",
    built_in={
        "aime24": "killick.tasks.aime24:AIME24",
        "aime25": "killick.tasks.aime25:AIME25",
        "amc23": "killick.tasks.amc23:AMC23",
        "amc83": "killick.tasks.amc23:AMC83",
        "arc_challenge": "killick.tasks.arc_challenge:ARCChallenge",
        "arithmetic": "killick.tasks.arithmetic:Arithmetic",
        "countdown": "killick.tasks.countdown:Countdown",
        "dapo17k": "killick.tasks.dapo17k:DAPO17k",
        "gpqa_diamond": "killick.tasks.gpqa_diamond:GPQADiamond",
        "gsm8k": "killick.tasks.gsm8k:GSM8K",
        "jsonl": "killick.tasks.jsonl:JsonLines",
        "knights_and_knaves": "killick.tasks.knights_and_knaves:KnightsAndKnaves",
        "math500": "killick.tasks.math500:MATH500",
        "math_train": "killick.tasks.math_train:MATHTrain",
        "minerva": "killick.tasks.minerva:Minerva",
        "mmlu_pro": "killick.tasks.mmlu_pro:MMLUPro",
        "olympiadbench": "killick.tasks.olympiadbench:OlympiadBench",
        "openr1_math": "killick.tasks.openr1_math:OpenR1Math",
        "reasoning_gym": "killick.tasks.reasoning_gym:ReasoningGym",
    },
)
