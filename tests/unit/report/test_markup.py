import json
import math

import numpy as np
import pytest

from killick.report.markup import Markup, element, escape, finite, join, number, plot_text, script_json, signed

HOSTILE = "</script><script>alert(1)</script><img src=x onerror='a' title=\"b\"> & \u2028"


def test_text_is_escaped_and_fragments_pass():
    assert escape("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
    assert escape(Markup("<b>")) == "<b>"
    assert escape(escape("<")) == "&lt;"  # escaped once, however often it is passed on


def test_element_escapes_children_and_attributes():
    made = element("p", "<x>", Markup("<b>ok</b>"), class_='a" onclick="b', id=None)
    assert made == '<p class="a&quot; onclick=&quot;b">&lt;x&gt;<b>ok</b></p>'
    assert isinstance(made, Markup)
    assert join("<", made).startswith("&lt;<p")


def test_joining_text_loses_the_fragment_type():
    # str + Markup is plain text again, so a fragment glued to raw text by mistake is escaped, not trusted
    assert not isinstance("<i>" + Markup("<b>"), Markup)
    assert not isinstance(f"{Markup('<b>')}", Markup)


def test_script_json_round_trips_and_cannot_close_the_element():
    text = script_json({"a": [HOSTILE]})
    assert json.loads(text) == {"a": [HOSTILE]}
    assert not set(text) & set("<>&\u2028")


def test_finite_replaces_nan_and_reads_numpy():
    value = finite({1: np.array([1.0, math.nan]), "b": (math.inf, np.float64(0.1 + 0.2)), "c": True})
    assert value == {"1": [1.0, None], "b": [None, 0.3], "c": True}


def test_plot_text_is_short_one_line_and_escaped():
    assert plot_text("a\n<b>  c") == "a &lt;b&gt; c"
    assert plot_text("x" * 100, 10) == "x" * 9 + "…"
    # cut before escaping: no entity is ever cut in half
    assert plot_text("<" * 100, 3) == "&lt;&lt;…"


@pytest.mark.parametrize(("value", "shown"), [(0.12345, "0.123"), (None, "–"), (math.nan, "–")])
def test_number(value, shown):
    assert number(value) == shown


def test_signed():
    assert signed(0.5) == "+0.500"
    assert signed(-0.5) == "−0.500"
    assert signed(None) == "–"
