"""What samples: a model in this process, vLLM, or a server. To add one: a file here and a line in the table."""

from killick.registry import Registry

BACKENDS = Registry(
    "backend",
    entry_points="killick.backends",
    built_in={
        "openai": "killick.evaluate.backends.openai:OpenAIBackend",
        "transformers": "killick.evaluate.backends.transformers:TransformersBackend",
        "vllm": "killick.evaluate.backends.vllm:VLLMBackend",
    },
)
