r"""Knights and Knaves: the role of every person, in any order and wording.

The final statement is the last box, else the last answer tag, else what follows the last "Conclusion" or "answer", else
the block of plain statements at the end. A box or a conclusion without a role for everybody ("Zoey: \boxed{knight}") is
passed over. In the final statement, each person must have one role:
"Zoey is a knight", "Zoey: knight", "Zoey and Mia are knaves", "Knights: Zoey, Mia", "not a knight", "the rest are
knaves". Suppositions and reported speech ("if …", "… claims that …") are passed over. A person left out or with both
roles makes the answer wrong, a statement that can be read in two ways makes it `unparsable`.
"""

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from killick.errors import DataError
from killick.verifiers.final import BOX, CONCLUSION, TAG, places
from killick.verifiers.single import SingleAnswer
from killick.verifiers.types import Verdict, wrong

Role = Literal["knight", "knave"]
Roles = Mapping[str, Role]
Given = Mapping[str, set[Role]]

_PERSON = re.compile(r"\s*(\S.*?)\s+is\s+an?\s+(knight|knave)\s*", re.DOTALL)
_CLAUSE = re.compile(
    r"[.;!?\n]|\b(?:but|while|whereas|since|because|so|therefore|thus|hence)\b",
    re.IGNORECASE,
)
# A clause with one of these words supposes, reports, weighs or excepts: it states nothing.
_IDLE = re.compile(
    r"\b(?:if|iff|assum\w*|suppos\w*|hypothe\w*|would|could|might|may|can|cannot|whether|either|or|unless|consider|imagine"
    r"|case|when|says?|said|saying|claim\w*|state[sd]?|statements?|told|assert\w*|declar\w*|remark\w*|mention\w*|according"
    r"|express\w*|noted?|put|words|comment\w*|contradict\w*|false|true|implies|mean\w*|lying"
    r"|impossible|untrue|opposite|hardly|barely|den(?:y|ies)|rejects?|possibly|probability|former|fake|far\sfrom|used\sto|wrong"
    r"|incorrect|ain['’]?t|non-\w+"
    r"|except|excluding|besides|apart|aside|unlike|none|nobody|no|(?:all|every\w+)(?:\s\w+){0,2}\sbut)\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|boxed|quad|begin|end|item|hline|\\)|[*_`$\\{}&|~]")
_KNIGHT = r"(?:knights?|truth[\s-]?tellers?)"
_KNAVE = r"(?:knaves?|liars?)"
_WORD = r"not|isn['’]?t|aren['’]?t|never|neither|nor|rest|others?|else|remaining|all|both|everyone|everybody|each"
_NEGATIONS = frozenset(("not", "isnt", "arent", "never", "neither", "nor"))
_ALL = frozenset(("all", "both", "everyone", "everybody", "each"))
_REST = frozenset(("rest", "other", "others", "else", "remaining"))
_ASIDE = re.compile(r"\(([^()\n]*)\)")
_ROLE_ONLY = re.compile(rf"\s*(?:an?\s+)?(?:{_KNIGHT}|{_KNAVE})\s*", re.IGNORECASE)
_COPULA = re.compile(r"\b(?:is|are|was|were)\b|[:=]")


@functools.lru_cache(maxsize=4096)
def roles_of(answer: str) -> Roles:
    """Read a gold such as "Zoey is a knight, Mia is a knave".

    Raises:
        DataError: another form, or a name twice.
    """
    parts = [_PERSON.fullmatch(part) for part in answer.split(",")]
    roles: dict[str, Role] = {match[1]: match[2] for match in parts if match}  # type: ignore[misc]
    if len(roles) != len(parts) or not roles:
        raise DataError(
            f"The gold {answer[:80]!r} does not give each person a role. Expected: 'Zoey is a knight, Mia is a knave'."
        )
    return roles


@dataclass(frozen=True)
class KnightsVerifier(SingleAnswer[Given]):
    """Compares the roles a completion ends up with with the gold; all must be given, and no two contradict."""

    key_needs_gold: ClassVar[bool] = True  # it names the people

    def wanted(self, answer: str) -> Given:
        """The roles of a gold.

        Raises:
            DataError: it does not give every person one role.
        """
        return {name: {role} for name, role in roles_of(answer).items()}

    def found(self, text: str, answer: str) -> Given | Verdict:
        """The roles that the first complete or contradictory statement gives, else an incomplete one."""
        names = tuple(roles_of(answer))
        reader, partial = _reader(names), None
        for section in reader.sections(text):
            given = reader.read(section)
            if given is None:
                return wrong("unparsable")
            if len(given) == len(names) or any(len(roles) > 1 for roles in given.values()):
                return given
            partial = partial or given
        return partial or wrong("wrong" if reader.read(text) else "no_answer")

    def spelled(self, value: Given) -> str:
        """Names in alphabetical order with their roles."""
        return ", ".join(f"{name}: {' and '.join(sorted(value[name]))}" for name in sorted(value))

    def other(self, answer: str) -> str:
        """A gold that a completion with this one must not match: the first person's role turned round."""
        (name, role), *rest = roles_of(answer).items()
        turned = [(name, _turned(role)), *rest]
        return ", ".join(f"{name} is a {role}" for name, role in turned)


class _Reader:
    """Reads who is what in a text, for one set of names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        spelled = sorted({*names, *(name.upper() for name in names)}, key=len, reverse=True)
        self._token = re.compile(
            rf"(?<![\w'’])(?:(?P<name>{'|'.join(map(re.escape, spelled))})(?!\w|['’]s\b)"
            rf"|(?P<role>(?i:{_KNIGHT}|{_KNAVE}))(?!\w|['’]s\b)|(?P<word>(?i:{_WORD}))(?!\w))"
        )
        self._proper = {name.upper(): name for name in names}

    def sections(self, text: str) -> Iterator[str]:
        """Places where the final statement may stand, the more explicit first."""
        for place in places(text, BOX, TAG, CONCLUSION):
            yield place.text
            if place.place == TAG:
                return
        yield text[self._tail(text) :]

    def _tail(self, text: str) -> int:
        """Where the last run of lines with plain statements begins; what stands after it does not matter."""
        position, start, inside = len(text), len(text), False
        for line in reversed(text.splitlines(keepends=True)):
            position -= len(line)
            names_someone = self._token.search(line) is not None
            if names_someone and not _IDLE.search(line):
                inside, start = True, position
            elif line.strip() and (inside or names_someone):
                break
        return start

    def read(self, section: str) -> dict[str, set[Role]] | None:
        """Name -> roles given to it; None when a statement can be read in two ways."""
        found: dict[str, set[Role]] = {}
        heading: Role | None = None
        text = _ASIDE.sub(lambda match: f" {match[1]} " if _ROLE_ONLY.fullmatch(match[1]) else " ", section)
        for clause in _CLAUSE.split(_MARKUP.sub(" ", text)):
            if _IDLE.search(clause):
                continue
            tokens = list(self._token.finditer(clause))
            kinds = [token.lastgroup for token in tokens]
            if kinds == ["role"] and clause.rstrip().endswith(":"):
                heading = _role(tokens[0][0])
            elif heading is not None and kinds and set(kinds) == {"name"}:  # a list under "Knights:"
                _give(found, self._named(tokens), heading, negated=False)
            else:
                heading = None if "role" in kinds else heading
                if not self._clause(clause, tokens, found):
                    return None
        return found

    def _named(self, tokens: list[re.Match[str]]) -> list[str]:
        return [self._proper[token[0].upper()] for token in tokens if token["name"]]

    def _clause(self, clause: str, tokens: list[re.Match[str]], found: dict[str, set[Role]]) -> bool:
        """One clause, "Zoey and Mia are knaves"; False when it can be read in two ways."""
        plain = [token for token in tokens if not token["word"]]
        if len(plain) > 1 and plain[0]["role"] and self._named(plain):
            name_first = any(
                one["name"] and two["role"] and _COPULA.search(clause[one.end() : two.start()])
                for one, two in itertools.pairwise(plain)
            )
            lead = next(index for index, token in enumerate(plain) if token["name"])
            role_first = _COPULA.search(clause[plain[lead - 1].end() : plain[lead].start()])
            if len(plain) < len(tokens) or (name_first and role_first):
                return False
            if not name_first:
                return self._roles_first(plain, found)
        pending: list[str] = []
        last: list[str] = []
        negated = False
        for token in tokens:
            word = token[0].lower().replace("'", "").replace("’", "")
            if token["name"]:
                pending += self._named([token])
            elif token["role"]:
                last = pending or last
                _give(found, last, _role(word), negated)
                pending, negated = [], False
            elif word in _NEGATIONS:
                negated = True if word in ("neither", "nor") else not negated
            elif not pending:
                pending = self._group(word, found)
        return True

    def _group(self, word: str, found: Mapping[str, set[Role]]) -> list[str]:
        """The people meant by "all" or "the rest"."""
        if word in _REST:
            return [name for name in self._names if name not in found]
        return list(self._names) if word != "both" or len(self._names) == 2 else []

    def _roles_first(self, tokens: list[re.Match[str]], found: dict[str, set[Role]]) -> bool:
        """As in "Knights: Zoey, Mia" or "the knave is Mia"."""
        role = _role(tokens[0][0])
        for token in tokens:
            if token["role"]:
                role = _role(token[0])
            else:
                _give(found, self._named([token]), role, negated=False)
        return True


@functools.lru_cache(maxsize=4096)
def _reader(names: tuple[str, ...]) -> _Reader:
    return _Reader(names)


def _role(text: str) -> Role:
    return "knight" if re.fullmatch(_KNIGHT, text, re.IGNORECASE) else "knave"


def _turned(role: Role) -> Role:
    return "knave" if role == "knight" else "knight"


def _give(found: dict[str, set[Role]], names: list[str], role: Role, negated: bool) -> None:
    for name in names:
        found.setdefault(name, set()).add(_turned(role) if negated else role)
