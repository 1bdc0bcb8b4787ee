r"""Words and signs beside a number that change what it says: "at most 9", "not 9", "9 or more", "9 to 10", "x > 9".

A number taken out of a sentence is only the answer when nothing beside it says otherwise. What is not listed here is
taken for a unit, a reason or politeness. Every pattern looks at a bounded window.
"""

import re

WINDOW = 60  # characters looked at on either side

_LETTER = r"[b-zB-HJ-Z](?![A-Za-z'’])"  # a symbol; "a" and "I" are words
_SYMBOL = r"[bcdefijknopqrtuvwxyzBDEGHMOPQRSTUXYZ](?![A-Za-z'’&])"  # a symbol that is no unit
_FRACTIONS = "halves|thirds|fourths|fifths|sixths|sevenths|eighths|ninths|tenths|twelfths"
_BEFORE = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|(?:all|any|every|no)(?:thing)?\sbut)\b|n['’]t\b)"
    r"(?:\s(?:be|equals?|to|the|is|exactly|just|simply|an?)){0,3}[\s:$(]*$"
    r"|(?<![A-Za-z])(?:at\s(?:most|least)|than(?:\sor\sequal\sto)?|up\sto|over|under|above|below|beyond|between|nearly|almost"
    r"|close\sto|exceeds?|except(?:\sfor)?|excluding|unless|minus|negative|plus|twice|double|triple|half|times|sqrt|ln|log"
    r"|(?:half|third|quarter|root|square|cube|inverse|reciprocal|factorial|power|logarithm|opposite|none)\sof|(?:divided|multiplied)\sby"
    r"|mod(?:ulo)?|base|e\.g\.|(?:for\s)?example,?|such\sas|like|steps?|equation|page|problem|question|section|figure"
    r"|wrong|incorrect|[Nn]o\.)[\s($]*$"
    r"|(?:(?<![=-])>|[<≤≥≠≮≯¬#]|\\[<>])\s?\$?$"
    r"|\\(?!approx|implies|therefore|simeq|display|boxed|text|math|q?quad|item|(?:[Ll]ong)?[Rr]ightarrow|to[\s$]|left[\s$])"
    r"[A-Za-z]+[\s$]*(?:\\\{\s*)?$"
    r"|(?:^|[A-Za-z,:$({]\s?)(?:[0-9]{1,9}|1\s?/)\s?[a-z]\s?=[\s$]*$|(?:^|[\s$(])-[a-z]\s?=[\s$]*$"  # 2x =, -x =
    r"|[A-Za-z]\s?(?:\^\s?\{?[0-9]{1,3}\}?|[²³])\s?=[\s$]*$|(?<=[A-Za-z])\($"  # x^2 =, f(
    r"|[0-9][)$%]{0,2}\s?(?:[,;~&|–]|\b(?:or|and|to)\b)[\s$]*(?:(?:or|and)[\s$]*)?(?:[a-z]\s?=[\s$]*)?$"  # 8 or x = 9
    r"|[0-9][ \t][ \t$]*$|\b(?:wrong|incorrect|false)\b[^.;]{0,25}$"
    r"|\b(?:half|twice|double|square|reciprocal|negative|inverse)\s(?:of\s)?(?:the\s)?(?:answer|result|value|it|that|[a-z])\b"
    r"[^.;]{0,15}(?:is|equals|=)[\s$]*$",
    re.IGNORECASE,
)
_AFTER = re.compile(  # letters of units are told from others by their case
    rf"\+|['′″‰≠<>]|\s?(?:[<>≤≥≠?&|½⅓⅔¼¾⅕⅛]|[-=]>|\\(?!text|math|q?quad|approx|circ|deg|boxed|[a-z]?box)[A-Za-z])"
    rf"|_\s?\{{?[0-9A-Za-z]|\s?(?:[+*/^×·÷]|\s-\s)\s?(?:{_LETTER}|\.\.)|[kKMBeif](?![A-Za-z])|\s?{_SYMBOL}"
    r"|(?:[ \t~{}]|\\[ ,;:]|\\q?quad|\$)+[0-9]|\?"
    rf"|(?i:(?:st|nd|rd|th)\b|\s?(?:and\s(?:an?|one|two|three)\b|{_FRACTIONS}|hundred|thousand|[mbtr]illion|lakh|crore|squared"
    r"|cubed|factorial|negative|choose|mod(?:ulo)?\b|base\b|remainder|is\stoo|per\s(?:mille|thousand)|(?:pi|sqrt|ln|log)\b)"
    r"|[\s$(]*(?:is\s|are\s|was\s)?(?:not\b|cannot|never\b|\w*n['’]t\b)"
    r"|[\s$]*(?:\(|(?:is|are|was)\s)\s?(?:wrong|incorrect|false|impossible|invalid|excluded)"
    r"|(?:\s\w+){0,2}\s?\$?\s(?:or|and|to|out\sof|over|by|vs\.?|versus|point|r|as\swell\sas|but\salso|no\swait|maybe|perhaps|plus"
    r"|minus|times|multiplied\sby|divided\sby)[\s$]*-?[\s$]*[0-9]|\s(?:with\s)?(?:an?\s)?remainder"
    rf"|(?:\s[A-Za-z]+){{1,2}}(?:,|,?\sand)\s[0-9]|\s?\$?\s?(?:in|of|times)\s\$?(?:[0-9]|{_LETTER}))",
)
_CLAUSE = re.compile(
    r"(?:\.(?=\s|$)|;|\n|,\s(?!or\b|maybe|perhaps|not\b|if\b|unless|when\b|else\b|otherwise)"
    r"|\b(?:because|since|which|so|given|that\sis|i\.e\.))(?s:.*)",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\bor\s(?:more|less|fewer|so\b|above|over|below|higher|greater|not\b|infinity|maybe|perhaps|[0-9])"
    rf"|\b(?:less|more|fewer|greater)\sthan\s\$?(?:[0-9]|{_LETTER}|twice|half|twelve|ten)|\bbut\snot\b"
    r"|\b(?:if|when|for|provided|assuming|where)\b[^.]{0,30}?(?:[<>=≠≤≥]|\b(?:even|odd|positive|negative|possible)\b)"
    r"|\bunless\b|\botherwise\b|\belse\s(?:[0-9]|zero|one)|below\szero|\bis\stoo\b|\(\s?(?:wrong|base|incorrect)\b"
    r"|\b(?:to|times|base|choose|point|plus|minus|with\sremainder)\s"
    r"(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|hundred)\b|\bin\sbase\b",
    re.IGNORECASE,
)


_DENIED = re.compile(
    r"(?:\b(?:not|never|cannot)|n['’]t)(?:\s(?:be|equals?|is|exactly|an?)){0,2}[\s:$(]*$"
    r"|(?:(?<![=-])>|[<≤≥≠]|\\(?:[lg]eq?|neq?)(?:slant)?)\s?\$?$|(?<![0-9A-Za-z^])[0-9]{1,9} ?[a-fh-kn-rt-z] ?= ?\$?$"
    r"|\b(?:(?:more|less|fewer|greater)\sthan|twice|half|steps?|equation|page|problem|question|section|figure|case)[\s($]*$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(r"[\s$]*(?:does|is|was|will|would|can|do|are)(?:\s?not\b|n['’]t\b)", re.IGNORECASE)


def denied(before: str, after: str) -> bool:
    """Whether the text beside a number says that it is not the one; all that is asked where no answer was announced."""
    return bool(_DENIED.search(before[-WINDOW:]) or _DENIED_AFTER.match(after[:WINDOW]))


def changed(before: str, after: str) -> bool:
    """Whether the text before or after a number makes it part of something else, or denies it."""
    if _BEFORE.search(before[-WINDOW:]) or _AFTER.match(after[:WINDOW]):
        return True
    return _CHANGED.search(_CLAUSE.sub("", after[: 2 * WINDOW], count=1)) is not None
