"""The nano world: countdown in steps, and a tiny pretrained base model shipped with the package.

Nothing heavy is imported here; `killick.nano.build` trains the base anew.
"""

from importlib import resources
from pathlib import Path

from killick.errors import DataError

__all__ = ["base_path"]


def base_path() -> Path:
    """Folder of the shipped base: an ordinary Hugging Face checkpoint with tokenizer and chat template.

    Raises:
        DataError: the package was installed without it, or inside an archive.
    """
    folder = resources.files("killick.nano") / "base"
    path = Path(str(folder))
    if not (path / "model.safetensors").is_file():
        raise DataError(
            f"The shipped nano base is missing: no model.safetensors in {path}. "
            "Install killick unpacked from its wheel, or build a base with `killick nano build` and name its folder."
        )
    return path
