"""KillickConfig refuses what cannot work, and says what to do."""

import pytest

from killick import KillickConfig
from killick.errors import ConfigError

BASE = {"bf16": False, "report_to": "none", "beta": 0.1, "kl_form": "k3_loss"}


def config(tmp_path, **changes):
    return KillickConfig(output_dir=str(tmp_path), **{**BASE, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kl_form": None}, "kl_form is not set"),
        ({"kl_form": "k3"}, "Unknown kl_form 'k3'"),
        ({"beta": 0.0}, "beta = 0"),
        ({"kl_form": "none"}, "no anchor, but beta = 0.1"),
        ({"kl_form": "none", "beta": 0.0, "guide": "branch"}, "nothing to guide"),
        ({"kl_form": "forward_exact", "guide": "token"}, "nothing to guide"),
        ({"guide": "brnch"}, "Did you mean 'branch'"),
        ({"guide": "branch", "guide_settings": {"gama": 1.0}}, "Did you mean 'gamma'"),
        ({"guide": "branch", "guide_settings": "gamma=1"}, "must be a dict or a JSON object"),
        ({"guide_settings": {"gamma": 1.0}}, "without a guide"),
        ({"use_bias_correction_kl": True}, "needs use_bias_correction_kl=False"),
        ({"kl_form": "k3_ratio", "use_bias_correction_kl": False}, "needs use_bias_correction_kl=True"),
        ({"kl_form": "k2_loss", "use_bias_correction_kl": True}, "needs use_bias_correction_kl=False"),
        ({"kl_form": "k3_ratio", "importance_sampling_level": "sequence"}, "importance_sampling_level='token'"),
        ({"kl_form": "k1_reward_to_go", "importance_sampling_level": "sequence"}, "importance_sampling_level='token'"),
        ({"kl_form": "k1_reward_to_go", "loss_type": "vespo"}, "loss_type='vespo'"),
        ({"kl_form": "k1_reward_to_go", "top_entropy_quantile": 0.5}, "top_entropy_quantile"),
        ({"kl_form": "k1_reward_to_go", "off_policy_mask_threshold": 0.1}, "off_policy_mask_threshold"),
    ],
)
def test_refused(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        config(tmp_path, **changes)


def test_json_settings_as_on_a_command_line(tmp_path):
    assert config(tmp_path, guide="branch", guide_settings='{"gamma": 2.0}').build_guide().gamma == 2.0


def test_truncated_sampling_is_warned_about(tmp_path):
    with pytest.warns(UserWarning, match="truncate the sampler"):
        config(tmp_path, top_p=0.9)


def test_idle_guide_is_warned_about(tmp_path):
    with pytest.warns(UserWarning, match="no effect in expectation"):
        config(tmp_path, kl_form="k3_ratio", guide="branch")
