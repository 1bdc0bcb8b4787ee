"""Words around an answer that say nothing more: what introduces it, and the reason behind it."""

import re

_SAYS = re.compile(  # "The answer is" before it
    r"(?:\\text ?\{(?![^{}]*(?:\b(?:not?|cannot|never|least|most|than|wrong|false|incorrect|nobody|none|half"
    r"|twice|double|square|cube|root|reciprocal|inverse|negative|opposite|minus|plus|bound|digits|more|less|divided|times"
    r"|multiplied|upper|lower)\b|n't|[0-9]))"
    r"[^{}]*(?:\b(?:is|are|equals|approximately|about|roughly)|[:=]) ?\}"
    r"|(?:(?:so|thus|hence|the|final|correct) )*(?:answer|result|value|solution)s? ?(?:is|are|equals|:|=))"
    r" ?(?=[-+.0-9A-Z$\\(\[{])",
    re.IGNORECASE,
)
_MIN_TALK = 8  # characters
_YES_OR_NO = re.compile(r"(yes|no)[,.;:] (.+)", re.IGNORECASE)
_TURNS = {  # what turns such an answer round
    "yes": re.compile(
        r"\b(?:no|not|never|cannot|but|except|unless|only|if|when|provided|assuming|sometimes|some|maybe|false|wrong|incorrect"
        r"|impossible|depends|for (?:odd|even|[a-z] ?[=<>]))\b|n't\b",
        re.IGNORECASE,
    ),
    "no": re.compile(
        r"\b(?:yes|but|except|unless|only|if|when|provided|sometimes|true|possible(?<!not possible)|correct)\b"
        r"|\b(?:does|is|do|are|can|will)\W*$",
        re.IGNORECASE,
    ),
}
_SENTENCE = re.compile(r"\\text ?\{ ?([^{}]*)\}")
_REASON = re.compile(r"[ ,;(]*(?:\\text ?\{[ ,;(]*)?(?<![A-Za-z])(?:since|because)(?![A-Za-z])", re.IGNORECASE)


def without_talk(text: str) -> str:
    """An answer without what introduces it and without the reason behind it."""
    if len(text) < _MIN_TALK:
        return text
    reason = _REASON.search(text) if "since" in text or "because" in text else None
    if reason and reason.start():
        text = text[: reason.start()].strip()
        text += "}" * (text.count("{") > text.count("}"))
    sentence = _SENTENCE.fullmatch(text)
    plain = _YES_OR_NO.fullmatch(sentence[1] if sentence else text)
    if plain and not _TURNS[plain[1].lower()].search(plain[2]):
        return rf"\text{{{plain[1]}}}"
    says = _SAYS.match(sentence[1] if sentence else text)
    return says.string[says.end() :] if says and says.end() < len(says.string) else text
