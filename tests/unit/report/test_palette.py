from killick.report.palette import BASE, HUES, arm_styles, band_alpha, method_colours, shade, transparent
from killick.report.study import Arm, Study


def _study(*arms):
    return Study("s", "s", "study", [], {}, [Arm(n, n, m, {}, [], is_base=m == "base") for n, m in arms])


def test_hue_belongs_to_the_method():
    styles = arm_styles(_study(("base", "base"), ("a", "grpo"), ("b", "sage")))
    assert styles["base"].colour == BASE
    assert styles["a"].colour == HUES[0]  # alone in its method: the hue itself
    assert styles["b"].colour == HUES[1]


def test_arms_of_a_sweep_differ_in_shade_and_dash_and_share_the_symbol():
    styles = arm_styles(_study(("a", "grpo"), ("b", "grpo"), ("c", "grpo")))
    assert len({style.colour for style in styles.values()}) == 3
    assert len({style.dash for style in styles.values()}) == 3
    assert len({style.symbol for style in styles.values()}) == 1
    assert styles["b"].colour == HUES[0]  # the middle of an odd sweep is the unmixed hue


def test_hues_are_distinct_and_repeat_after_the_last():
    assert len(set(HUES)) == len(HUES)
    colours = method_colours([str(i) for i in range(len(HUES) + 1)])
    assert colours["0"] == colours[str(len(HUES))]


def test_shade_mixes_with_black_and_white():
    # 0x80 = 128: darkest 128·0.78 = 99.84 -> 100 = 0x64; lightest 128 + 0.5·127 = 191.5 -> 192 = 0xc0 (round to even)
    assert shade("#808080", 0, 2) == "#646464"
    assert shade("#808080", 1, 2) == "#c0c0c0"


def test_bands_get_lighter_with_their_number():
    assert band_alpha(1) == 0.15
    assert band_alpha(12) == 0.05
    assert transparent("#ff8000", 0.5) == "rgba(255,128,0,0.5)"
