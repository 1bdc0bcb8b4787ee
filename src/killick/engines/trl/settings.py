"""`KillickConfig`: TRL's `GRPOConfig` plus our slots. Contradictions with what a slot needs are refused."""

import warnings
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from trl import GRPOConfig

from killick.errors import ConfigError
from killick.methods.guides import GUIDES
from killick.methods.kl_forms import KL_FORMS
from killick.methods.sage import check_combination
from killick.methods.slots import RepairRule
from killick.methods.sort import NO_REPAIR, RepairSettings, build_repair
from killick.registry import nearest

# The identities behind these forms hold for one ratio a token; a ratio a sequence gives every token the row's average.
_TOKEN_RATIO_FORMS = ("k3_ratio", "k1_reward_to_go")


@dataclass
class KillickConfig(GRPOConfig):
    """`GRPOConfig` with the slots anchor and repair; every field of the parent keeps its meaning.

    Args:
        kl_form: which gradient the anchor gives: `k3_loss` (published SAGE), `k3_ratio` (TRL 1.16's default),
            `k2_loss`, `k1_reward_to_go` (the exact gradient of the stated objective), `forward_exact` or `none`. There
            is no default: it must be said.
        guide: name of a registered guide (`branch`, `token`, `random`, `constant`, …), or None for the plain anchor.
        guide_settings: settings of that guide; unknown ones are refused.
        repair: name of a registered repair rule (`geometric` is SORT, `dft`, `nll`), or `none`.
        repair_settings: `coefficient` (λ), `batch_size`, `capacity`, `plan_source`, `max_plan_tokens`,
            `max_reference_tokens`, `plan_temperature` (see `killick.methods.sort.RepairSettings`), and settings of the
            rule.
        correctness_reward: name of the reward function whose value 0 means "verified wrong" (for
            `group/all_wrong_frac` and repairs). Default: the first reward function.
        use_bias_correction_kl: filled in from `kl_form`; a value that contradicts it is refused.

    Raises:
        ConfigError: missing or unknown `kl_form`, a guide where none can act, `beta` = 0 with an anchor, an unknown
            setting, or a TRL option that cannot carry this `kl_form`.
    """

    _VALID_DICT_FIELDS: ClassVar[list[str]] = [*GRPOConfig._VALID_DICT_FIELDS, "guide_settings", "repair_settings"]

    kl_form: str | None = field(default=None, metadata={"help": f"One of {', '.join(KL_FORMS)}. Required."})
    guide: str | None = field(default=None, metadata={"help": "Name of a registered guide, or nothing."})
    guide_settings: dict[str, Any] | str | None = field(default=None, metadata={"help": "Settings of the guide."})
    repair: str = field(default=NO_REPAIR, metadata={"help": "Name of a registered repair rule, or none."})
    repair_settings: dict[str, Any] | str | None = field(default=None, metadata={"help": "Settings of the repair."})
    correctness_reward: str | None = field(default=None, metadata={"help": "Reward function that says right/wrong."})
    use_bias_correction_kl: bool | None = field(default=None, metadata={"help": "Follows from kl_form."})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kl_form is None:
            raise ConfigError(
                f"kl_form is not set. It decides which gradient the anchor gives and has no default. "
                f"Allowed: {', '.join(KL_FORMS)}. Say kl_form='none' with beta=0 for GRPO without KL."
            )
        if self.guide is None and self.guide_settings:
            raise ConfigError(f"guide_settings={self.guide_settings} was given without a guide. Set guide='…' too.")
        check_combination(self.kl_form, self.guide, self.beta)
        self._fill_bias_correction()
        self._refuse_unsupported()
        self.build_guide()  # a wrong name or setting fails here, before anything is loaded
        self.build_repair()

    def _fill_bias_correction(self) -> None:
        needed = bool(KL_FORMS[str(self.kl_form)].bias_correction)
        if self.use_bias_correction_kl not in (None, needed):
            raise ConfigError(
                f"kl_form={self.kl_form!r} needs use_bias_correction_kl={needed}, but it is "
                f"{self.use_bias_correction_kl}. Leave it unset, or choose "
                f"kl_form='{'k3_ratio' if self.use_bias_correction_kl else 'k3_loss'}'."
            )
        self.use_bias_correction_kl = needed

    def _refuse_unsupported(self) -> None:
        if self.kl_form in _TOKEN_RATIO_FORMS and self.importance_sampling_level != "token":
            raise ConfigError(
                f"kl_form={self.kl_form!r} needs importance_sampling_level='token', found "
                f"{self.importance_sampling_level!r}. Use k3_loss or k2_loss with ratios a sequence."
            )
        if self.kl_form == "k1_reward_to_go":
            # Each of these treats a row's advantage as one number, or masks it where the penalty must still act.
            clashes = {
                "loss_type='vespo'": self.loss_type == "vespo",
                "off_policy_mask_threshold": self.off_policy_mask_threshold is not None,
                "top_entropy_quantile < 1": self.top_entropy_quantile < 1.0,
            }
            for name in (name for name, found in clashes.items() if found):
                raise ConfigError(
                    f"kl_form='k1_reward_to_go' writes a penalty for every token into the advantages, which {name} "
                    "reads or masks per row. Drop that setting, or use another kl_form."
                )
        truncated = self.top_p < 1.0 or self.top_k > 0 or self.min_p
        if truncated and KL_FORMS[str(self.kl_form)].needs_reference:
            warnings.warn(
                "top_p, top_k or min_p truncate the sampler while log-probabilities are not truncated: the gradient "
                f"of kl_form={self.kl_form!r} is then only approximate. Train with temperature alone.",
                UserWarning,
                stacklevel=2,
            )

    def build_guide(self) -> Any:
        """The guide these settings name, or None."""
        settings = _table("guide_settings", self.guide_settings)
        return None if self.guide is None else GUIDES.build(self.guide, **settings)

    def build_repair(self) -> tuple[RepairRule, RepairSettings] | None:
        """The repair rule these settings name and what all rules share, or None."""
        return build_repair(self.repair, _table("repair_settings", self.repair_settings))


def _table(name: str, value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise ConfigError(f"{name} must be a dict or a JSON object, found {value!r}.")
    return value or {}


def check_trl_keys(settings: dict[str, Any]) -> None:
    """Refuse a key of `[trl]` that `GRPOConfig` does not have, naming the nearest.

    Raises:
        ConfigError: unknown key.
    """
    known = {f.name for f in fields(GRPOConfig) if f.init}
    for key in settings:
        if key not in known:
            raise ConfigError(f"[trl] has no setting {key!r} (it is passed to trl.GRPOConfig). {nearest(key, known)}")
