r"""The rules: for each pattern, the words that point to it. `rules` says how they are matched.

An expression may use `<letter>` (the name of an unknown), `<relation>` (an equation or inequality follows),
`<expression>` (the start of an expression in a variable) and `<some>` (two, several, following …).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Rule(NamedTuple):
    """Anchors, of which one must occur in the text, and expressions, of which one must match."""

    anchors: tuple[str, ...]
    expressions: tuple[str, ...]


PLACEHOLDERS = MappingProxyType(
    {
        "<letter>": r"[a-z](?:_\w)?",
        "<relation>": r"(?=.{0,300}(?:[=<>≤≥≡]|\\[lg]e|\\equiv|equation|inequality))",
        "<expression>": r"[\d+*/^ (.√-]{0,8}(?:[b-z]\b|a\b(?! [a-z]{2})|[a-z]\^|\\[a-z]{2}|(?:log|sin|cos|tan|sqrt)\b)",
        "<some>": r"(?:two|three|four|five|several|following|separate|different|distinct|possible)",
    }
)

RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "constraint_setup": (
            Rule(
                ("let ",),
                (
                    (
                        r"\blet <letter>(?:,? (?:and )?<letter>){0,4} (?:be (?:the|his|her|their|its|our|how)|denote"
                        r"|represent|stand for)\b<relation>"
                    ),
                ),
            ),
            Rule(
                ("denot",),
                (
                    (
                        r"\bdenot(?:e|es|ing) (?:by <letter>\b|(?:the|his|her|their) [^.]{1,50} by"
                        r" <letter>\b)<relation>"
                    ),
                ),
            ),
            Rule(
                ("say ", "suppose ", "assume "),
                (
                    (
                        r"\b(?:say|suppose|assume)\b[^.]{3,40}\b(?:has|have|had|travels?|moves?|costs?|buys?|sells?"
                        r"|weighs?|runs?) (?:at )?[b-z] [a-z]{2,}.{0,200}[=<>≤≥]"
                    ),
                ),
            ),
            Rule(("call ",), (r"\bcall (?:the|this|that|it|our)\b[^.=]{0,40} [b-hj-z]\b<relation>",)),
            Rule(
                (" for the ", " for his ", " for her "),
                (r"\b(?:using|with|write|writing|use) [a-z] for (?:the|his|her)\b<relation>",),
            ),
            Rule((" for ",), (r"\b[a-z] for [a-z]{2,}, (?:and )?[a-z] for [a-z]{2,}<relation>",)),
            Rule(
                ("define ", "assign "),
                (
                    r"\bdefine (?:the |our )?(?:variables?|unknowns?)\b",
                    r"\bassign [a-z] to\b<relation>",
                ),
            ),
            Rule(
                ("equations", "congruences", "inequalities"),
                (
                    (
                        r"\b(?:system of|following|two|three) (?:linear |simultaneous )?(?:equations"
                        r"|congruences|inequalities)\b(?! (?:has|have) no)"
                    ),
                ),
            ),
            Rule(
                ("constraint", "subject to"),
                (
                    r"\bconstraints? (?:is|are|says?|becomes?)\b",
                    r"\bsubject to (?:the|these|those|this|[a-z] )",
                ),
            ),
            Rule(
                ("equation", "inequality"),
                (
                    (
                        r"\b(?:set(?:ting)? up|writ(?:e|ing)(?: down)?|giv(?:es|ing)|yields?|form"
                        r"|model)\b[^.]{0,40}\b(?:an?|the|this) (?:equation|inequality)\b"
                    ),
                ),
            ),
            Rule(
                ("translat", "condition", "equation", "inequality"),
                (
                    r"\btranslat(?:es?|ing)\b[^.]{0,40}\b(?:in)?to\b",
                    r"\b(?:as|into) an (?:equation|inequality)\b",
                    r"\bthe (?:\w+ )?conditions?\b[^.]{0,30} (?:says?|reads?|gives?|becomes?)\b",
                ),
            ),
            Rule(
                ("satisfying", "such that"),
                (
                    (
                        r"\bwe (?:need|want|seek|look for)\b[^.]{0,40}\b(?:integers?|numbers?|values)\b[^.]{0,30}\b"
                        r"(?:satisfying|such that)\b"
                    ),
                ),
            ),
            Rule((" is ",), (r"\bthe [a-z]{3,} is [b-hj-z] and the [a-z]{3,} is \d*[a-z]\b",)),
            Rule(("with ",), (r"(?:^|[.;] )with [b-hj-z] [a-z]{3,}[^.]{0,60}\d[a-z]\b<relation>",)),
        ),
        "contradiction": (
            Rule(
                ("contradict",),
                (
                    (
                        r"(?<!\bno )(?<!\bnot )(?<!\bnot a )(?<!\bwithout )(?<!\bwithout a )(?<!\bwithout any"
                        r" )(?<!\bany )contradict(?:ions?|ing|s|ory)\b(?! between)"
                    ),
                ),
            ),
            Rule(("absurd",), (r"\babsurd",)),
            Rule(
                ("contrary", "opposite", "otherwise", "suppose not"),
                (
                    (
                        r"\b(?:assume|suppose|assuming|supposing),?(?: that)?,? (?:on |to )?(?:the (?:contrary"
                        r"|opposite)|otherwise)\b"
                    ),
                    r"\bsuppose not\b",
                ),
            ),
            Rule(
                ("assum", "suppos", "imagine", "pretend", "hypothe"),
                (
                    (
                        r"\b(?:assum|suppos|imagin|pretend|hypothe)\w{0,6}\b.{0,250}\b(?:is impossible|which is"
                        r" impossible|cannot be|can't be|cannot hold|untenable|inconsistent|violat\w{1,4}|contrary to"
                        r"|which is false|no such)\b"
                    ),
                ),
            ),
            Rule(
                ("if it did", "were ", "there were", "there was"),
                (
                    (
                        r"\bif (?:it|they|there|such|the [a-z]{3,}|[a-z])\b[^.]{0,60}\b(?:did|were|was"
                        r"|would)\b.{0,200}\b(?:impossible|which is false|cannot|violat\w{1,4}|but )"
                    ),
                ),
            ),
            Rule(
                ("assumption", "supposition"),
                (
                    (
                        r"\b(?:our|the|this) (?:assumption|supposition) (?:was|is|must be|must have been) (?:false"
                        r"|wrong|untenable)\b"
                    ),
                ),
            ),
            Rule(("which violates", "would violate"), (r"\bwould\b.{0,120}\bviolate",)),
        ),
        "case_analysis": (
            Rule(
                ("case 1", "case 2", "case i", "case one", "case (", "case a", "case b"),
                (
                    r"\bcase \(?(?:[12]|ii?|one|two)\)?(?![\w])",
                    r"\bcase [ab](?:[:.)]| ?[<>=])",
                ),
            ),
            Rule(
                ("cases",),
                (
                    r"\b<some> (?:\w+ )?cases\b(?! of)",
                    r"\bby cases\b",
                    r"\beach of the cases\b",
                    r"\bconsider (?:the )?cases\b",
                ),
            ),
            Rule(
                ("casework", "case-by-case", "case by case", "case distinction", "case analysis", "case split"),
                (
                    r"\bcasework",
                    r"\bcase[- ]by[- ]case",
                    r"\bcase (?:distinction|analysis|split)",
                ),
            ),
            Rule(
                ("possibilit", "scenario"),
                (
                    r"\b(?:two|three|four|five) (?:\w+ )?(?:possibilities|scenarios)\b",
                    r"\b(?:first|second) (?:possibility|scenario)\b",
                    r"\bscenario (?:1|2|a|b|one|two)\b",
                ),
            ),
            Rule(("former", "latter"), (r"\beither\b.{0,160}\b(?:former|latter)\b",)),
            Rule(
                ("either",),
                (r"\beither [^.;]{1,40}=[^.;]{0,30}\b(?:giving|gives|so|then|and)\b[^.;]{1,60}\bor [^.;]{1,30}=",),
            ),
            Rule(
                ("odd", "even"),
                (
                    (
                        r"\b(?:if|when|for|suppose)\b[^.;]{0,30}\beven\b.{0,160}\b(?:if|when|for"
                        r"|suppose)\b[^.;]{0,30}\bodd\b"
                    ),
                    (
                        r"\b(?:if|when|for|suppose)\b[^.;]{0,30}\bodd\b.{0,160}\b(?:if|when|for"
                        r"|suppose)\b[^.;]{0,30}\beven\b"
                    ),
                ),
            ),
            Rule(
                ("negative",),
                (r"\b(?:if|when|for)\b[^.;]{0,30}\bpositive\b.{0,160}\b(?:if|when|for)\b[^.;]{0,30}\bnegative\b",),
            ),
            Rule(
                ("if ", "when "),
                (
                    (
                        r"\b(?:if|when) (\w{1,3}) ?(?:>=?|≥|\\ge\w?) ?(\w{1,3})\b.{0,160}\b(?:if|when) \1 ?(?:<=?|≤"
                        r"|\\le\w?) ?\2\b"
                    ),
                ),
            ),
            Rule(("if ",), (r"(?:^|[.;] )(?:\(\w{1,3}\) )?if [^.]{3,100}[.;] (?:\(\w{1,3}\) )?(?:but )?if ",)),
            Rule(("otherwise",), (r"\b(?:if|when|whenever)\b[^.;]{2,80}[,;]?[^.]{0,80}[;,.] otherwise\b",)),
            Rule(
                ("depending on", "separately", "split ", "distinguish"),
                (
                    r"\bdepending on whether\b",
                    r"\b(?:consider|treat|look at|count|handle)\b[^.]{0,30}\bseparately\b",
                    r"\bsplit (?:according|by|into cases|the)\b",
                    r"\bwe distinguish\b",
                ),
            ),
            Rule(
                ("suppose first", "instead", "now suppose", "now assume"),
                (
                    r"\bsuppose first\b",
                    (
                        r"\b(?:assume|suppose)\b.{5,160}\b(?:(?:assume|suppose) instead|now (?:assume|suppose) (?:it"
                        r"|that|instead))\b"
                    ),
                ),
            ),
        ),
        "induction": (
            Rule(
                ("induct",), (r"\binduct(?:ion|ive|ively|ing)?\b(?! (?:cook|hob|stove|coil|motor|heat|furnace|charg))",)
            ),
            Rule(("base case",), (r"\bbase case\b.{0,300}(?:\bstep\b|\b[nkm] ?\+ ?1\b|\bassum|\bsuppos)",)),
            Rule(
                ("for some", "for n", "for k", "for m"),
                (
                    (
                        r"\b(?:true|holds?|valid|correct|assum\w{1,4} (?:it|the \w+)) (?:for )?(?:some |all |every |a"
                        r" )?([nkm])\b.{0,200}\b\1 ?\+ ?1\b"
                    ),
                ),
            ),
            Rule(("p(",), (r"\bp\(([nkm])\).{0,100}\bp\(\1 ?\+ ?1\)",)),
            Rule(("from n to", "from k to", "from m to"), (r"\bfrom ([nkm]) to \1 ?\+ ?1\b",)),
        ),
        "substitution": (
            Rule(
                ("substitut",),
                (
                    r"\bsubstitut(?:ing|ed|ion|ions)\b(?! (?:in|of) (?:the )?(?:match|game|player|teacher))",
                    r"(?<!\ba )(?<!\bthe )(?<!\bas )\bsubstitutes? (?!teacher|player|goal|for )",
                ),
            ),
            Rule(
                ("plug", "put "),
                (
                    (
                        r"\b(?:plug(?:ging)?|put(?:ting)?) (?:in )?[a-z] = [\d+*/^ (.-]{0,8}[a-z]\b[^.]{0,30} in"
                        r"(?:to)?\b"
                    ),
                    r"\b(?:plug(?:ging)?|put(?:ting)?) [a-z] = [\d+ -]{0,8}[a-z] (?:- [a-z] )?in(?:to)?\b",
                ),
            ),
            Rule(
                ("let ", "put ", "set ", "setting ", "putting ", "writing ", "letting ", "with "),
                (r"\b(?:let(?:ting)?|put(?:ting)?|set(?:ting)?|writing|with) [a-z] = <expression>",),
            ),
            Rule(
                ("replac",),
                (
                    r"\breplac(?:e|ing) [^.]{1,30} (?:by|with) [a-z]\b",
                    r"\bmak(?:e|ing) the replacement\b",
                ),
            ),
            Rule(
                ("variable",),
                (
                    r"\bchange of variables?\b",
                    r"\bchang(?:e|ing) variables\b",
                    r"\bnew variables?\b",
                ),
            ),
            Rule(("eliminat",), (r"\beliminat(?:e|ing) [a-z]\b",)),
            Rule(
                ("insert", "feed", "back into", "this into"),
                (
                    r"\binsert(?:ing)?\b[^.]{0,50}\binto\b",
                    r"\b(?:feed|putt|insert)(?:ing)?\b (?:this|it|that)\b[^.]{0,15}\binto the\b",
                ),
            ),
        ),
        "guess_and_check": (
            Rule(("try",), (r"\btry(?:ing)? (?:out )?[a-z] ?= ?-?\d",)),
            Rule(
                ("trial and error", "guess and check", "guess-and-check", "brute", "trial-and-error"),
                (
                    r"trial[- ]and[- ]error",
                    r"guess[- ]and[- ]check",
                    r"\bbrute[- ]force",
                ),
            ),
            Rule(
                ("try",),
                (
                    (
                        r"\btry(?:ing)? (?:out )?(?:some|a few|several|all|various|different) (?:\w+ )?(?:values?"
                        r"|numbers?|candidates?|options?|possibilities|pairs?)\b"
                    ),
                ),
            ),
            Rule(
                ("try", "test"),
                (
                    (
                        r"\b(?:try|trying|test|testing)\b:? [^.]{0,20}\d.{0,200}\b(?:works|fits|too (?:small|large"
                        r"|low|high|big|much|many|few)|fails?|not|doesn't|great|yes|as (?:needed|desired|required))\b"
                    ),
                ),
            ),
            Rule(
                ("too ",),
                (
                    (
                        r"\btoo (?:small|large|low|high|big|much|many|few)\b.{0,200}\b(?:too (?:small|large|low|high"
                        r"|big|much|many|few)|works|fits|exactly|matches|found|as (?:needed|desired|required)|so)\b"
                    ),
                ),
            ),
            Rule(
                ("plug in", "check each", "check every", "test each", "candidates", "choices"),
                (
                    r"\bplug(?:ging)? in (?:the|each|every|all) (?:\w+ )?(?:answers?|options?|choices?|values?)",
                    (
                        r"\b(?:check|test|try)(?:ing)? (?:each|every|all|the|small)(?: of)?(?: the)? (?:\w+ )?"
                        r"(?:option|choice|candidate|value|possibilit)"
                    ),
                ),
            ),
            Rule(
                ("one by one", "in turn"),
                (
                    r"\bone by one\b",
                    r"\b(?:check|test|try)[^.]{0,40}\bin turn\b",
                ),
            ),
            Rule(
                ("experiment",),
                (
                    r"\bexperiment(?:ing)? with\b",
                    r"\blet (?:me|us) experiment\b",
                ),
            ),
            Rule(
                ("guess",),
                (
                    r"\b(?:i|we|my|one|first|another|initial|next|educated) guess(?:es)?\b(?! \w+_)",
                    r"\bguessing\b",
                ),
            ),
            Rule(("estimate",), (r"\bstart(?:ing)? with (?:the |an? )?(?:estimate|guess)\b",)),
        ),
        "verification": (
            Rule(
                ("check",),
                (
                    r"\b(?:double|cross|re)[- ]?check",
                    r"\b(?:sanity|quick|final) check\b",
                    r"(?:^|[.;!)] )(?:\()?check(?:ing)?(?: this| it| that)?\s?[:,]",
                    r"\bcheck (?:our|my|the|this|that) (?:\w+ )?(?:work|answer|result|solution|calculation)",
                ),
            ),
            Rule(
                ("verif",),
                (
                    r"(?:^|[.;] )\(?verification\s?[:,]",
                    (
                        r"\b(?:let's|let us|let me|we|to|i|now|can|should) (?:\w+ )?verify\b(?! (?:the )?(?:initial"
                        r"|base|first|case|by induct))"
                    ),
                    r"\bverifying (?:our|my|the|this|that)\b",
                ),
            ),
            Rule(
                ("check", "confirm"),
                (
                    (
                        r"\b(?:let's|let us|let me|can|should|i) (?:now |also |quickly )?(?:check|confirm)\b(?! "
                        r"(?:each|every|all)\b)"
                    ),
                    r"\bto (?:check|confirm)\b(?! in\b)",
                    r"\bconfirm(?:s|ing) (?:the|our|this|that)\b",
                ),
            ),
            Rule(
                ("back in", "original equation", "extraneous"),
                (
                    r"\bplug(?:ging|ged)?\b[^.]{0,30}\bback in",
                    r"\bin(?:to)? the original (?:equation|problem|expression|condition)",
                    r"\bextraneous\b",
                ),
            ),
            Rule(("indeed",), (r"\bindeed\b,? [^.]{0,60}(?:=|\bis\b)",)),
            Rule(
                ("consistent with", "matches", "agrees with", "both hold", "satisfied", "as stated", "as required"),
                (
                    r"\bconsistent with the (?:problem|given|statement|condition|question)",
                    r"\b(?:matches|agrees with) the (?:given|order|total|problem|condition|statement|question)",
                    r"\bboth hold\b",
                    r"\bconditions are satisfied\b",
                    r", as (?:stated|required|given)\b[.)]",
                ),
            ),
            Rule(
                ("make sense", "reasonable", "reading the", "read the"),
                (
                    r"\bdoes (?:this|that|it) make sense\b",
                    r"\bis (?:this|that) reasonable\b",
                    r"\bre-?read(?:ing)? the (?:question|problem)\b",
                ),
            ),
            Rule(("test:", "testing, "), (r"\btest: ", r"(?:^|[.;}\] ]) ?testing, ")),
        ),
        "backtracking": (
            Rule(
                ("wait",),
                (
                    (
                        r"(?:^|[.;,!?(—-] ?|\boh |\bbut )wait(?:[,.!…—]| (?:no|that|this|but|i|actually|there|maybe"
                        r"|the)\b)"
                    ),
                ),
            ),
            Rule(
                ("oops", "scratch that", "whoops", "never mind", "hmm"),
                (
                    r"\boops\b",
                    r"\bscratch that\b",
                    r"\bwhoops\b",
                    r"\bnever ?mind\b",
                    r"\bhmm+[,:.]? (?:no|that|this|wait|but|not)\b",
                ),
            ),
            Rule(
                ("wrong", "not right", "incorrect", "be right", "not correct"),
                (
                    r"\b(?:that|this)(?:'s| is| was) (?:wrong|not right|incorrect|not correct)\b",
                    r"\b(?:that|this) (?:can't|cannot) be right\b",
                    r"\b(?:my|earlier|previous)\b[^.]{0,60}\b(?:was|were) (?:wrong|incorrect)\b",
                    r"\bsomething (?:went|is|must be) wrong\b",
                ),
            ),
            Rule(
                ("mistake", "error", "misread", "forgot", "miscount", "overlooked"),
                (
                    r"\bi (?:made|misread|forgot|miscounted|overlooked|misunderstood)\b",
                    r"\bmade (?:a|an) (?:\w+ )?(?:mistake|error)\b",
                    r"\bwas a mistake\b",
                ),
            ),
            Rule(
                ("let's", "let me", "let us"),
                (
                    (
                        r"\blet(?:'s| me| us) (?:re(?:consider|think|compute|do|calculate|start|visit|check and)"
                        r"|start (?:over|again|afresh)|go back|back up|try (?:a different|another|something else"
                        r"|again))\b"
                    ),
                ),
            ),
            Rule(
                ("start over", "start again", "starting over", "scratch", "redo"),
                (
                    r"\bstart(?:ing)? (?:over|again)\b",
                    r"\bstart(?:ing)? from scratch\b",
                    r"\bredo\b",
                ),
            ),
            Rule(
                ("dead end", "nowhere", "messy", "abandon", "work out"),
                (
                    r"\bdead end\b",
                    r"\bleads? nowhere\b",
                    r"\bgets? (?:too |very )?messy\b",
                    r"\babandon\b",
                    r"\b(?:doesn't|does not) work out\b",
                ),
            ),
            Rule(("actually",), (r"(?:^|[.;!] )(?:but )?actually,? (?:no|let|wait|that|i|this|it)\b",)),
            Rule(("correction",), (r"\bcorrection\s?:",)),
            Rule(("tried",), (r"\b(?:i|we) (?:first )?tried\b[^.]{0,80}\bbut\b",)),
        ),
        "working_backwards": (
            Rule(
                ("backward", "work back", "reverse", "working back"),
                (
                    r"\b(?:work|reason|go|think|mov|proceed)(?:s|ing|e)? (?:\w+ )?backwards?\b(?! and forth)",
                    r"\bwork(?:ing)? back\b",
                    r"\b(?:work|steps?|go|process)(?:ing)? in reverse\b",
                    r"\bbackwards? from\b",
                ),
            ),
            Rule(
                ("revers", "invert"),
                (
                    (
                        r"\b(?:revers|invert)(?:e|ing)? (?:the|each|every|these|all) (?:\w+ )?(?:operations?|steps?"
                        r"|process|moves?)\b"
                    ),
                ),
            ),
            Rule(("undo",), (r"\bundo(?:ing)?\b",)),
            Rule(
                ("from the end", "final", "the end", "last move", "last step"),
                (
                    (
                        r"\b(?:start|begin|reason|work)(?:ing)? (?:from|with|at) the (?:end\b(?! of)|final|last"
                        r"|result|goal|target)"
                    ),
                    r"\blast (?:move|step) first\b",
                ),
            ),
            Rule(
                ("back",),
                (
                    r"\btrac(?:e|ing)\b[^.]{0,20}\bback(?:wards?)?\b",
                    r"\bstep(?:ping)? back\b:? ",
                    r"\bbacktrack(?:ing)? from the (?:goal|end|target|final)",
                ),
            ),
            Rule(
                ("before",),
                (
                    r"\bbefore (?:that|giving|doubling|the last|it|then)\b.{0,150}\bbefore\b",
                    r"\bday before\b.{0,80}\bbefore that\b",
                ),
            ),
            Rule(("what we want", "want to show"), (r"\b(?:begin|start)(?:ning|ing)? with what we want\b",)),
        ),
        "small_cases": (
            Rule(
                ("small", "simpl"),
                (
                    r"\bsmall(?:er)? (?:cases|values of|examples?|instances?|versions?|problems?)\b",
                    r"\bsimpler (?:versions?|cases?|examples?|problems?)\b",
                    r"\bsmall [nkm]\b",
                ),
            ),
            Rule(
                ("pattern", "trend"),
                (
                    (
                        r"\b(?:notice|see|spot|find|observ\w{1,3}|recogni[sz]e|discover|look for) (?:a|the|this) "
                        r"(?:pattern|trend)\b"
                    ),
                    r"\bpattern (?:suggests|continues|emerges|is clear|holds)\b",
                ),
            ),
            Rule(
                ("first few", "first terms", "first values", "first cases", "first several", "beginning of the"),
                (
                    r"\bfirst (?:few |several )?(?:terms|values|cases|powers)\b.{0,60}\d",
                    r"\bfirst (?:few|several)\b",
                    r"\bbeginning of the sequence\b",
                ),
            ),
            Rule(
                ("for n", "for k", "for m"),
                (
                    r"\bfor ([nkm]) = 1, 2\b",
                    r"\bfor ([nkm]) = (?:\d)\b.{1,60}\bfor \2 = \d\b.{1,60}\bfor \2 = \d\b",
                ),
            ),
            Rule(
                ("period", "cycle", "repeat"),
                (
                    r"\bis periodic\b",
                    r"\brepeats? (?:with|every|in) (?:a )?(?:period|cycle)",
                    r"\bcycles? (?:through|has|with|of) ",
                    r"\bperiod (?:of )?\d",
                ),
            ),
            Rule(
                ("conjecture", "generalis", "generaliz"),
                (
                    r"\bconjectur",
                    r"\bgenerali[sz](?:e|es|ing)\b",
                ),
            ),
            Rule(("it appears", "it seems"), (r"\d.{0,80}\bit (?:appears|seems) that\b",)),
            Rule(("in general",), (r"\d.{0,80}\bin general\b",)),
        ),
    }
)
