"""Rules for the patterns of setting up and proving."""

from collections.abc import Mapping
from types import MappingProxyType

from killick.patterns.vocabulary import Rule, rule

ARGUMENTS: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "constraint_setup": (
            rule(
                "let |say |suppose|assum|imagin",
                r"\blet [a-z](?:_\{?\w\}?)?(?:,? (?:and )?[a-z](?:_\{?\w\}?)?){0,4} (?:be|denotes?|represents?"
                r"|stands? for|= (?:the|his|her|number|price|cost|age)\b)(?! <figure>)<relation>",
                r"\b(?:let|say|<suppose>)(?: that)? (?!us\b|me\b|<figure>)[^.=\n]{2,70}?\b(?:be|is|are|has|have|had"
                r"|travels?|moves?|costs?|buys?|sells?|weighs?|runs?|worth|radius|digits) "
                r"(?:at )?\d{0,3}<letter><relation>",
                r"<start>let: ",
            ),
            rule(
                "denot|call |name ",
                r"\bdenot(?:e|es|ing) (?:by <letter>|(?:the|his|her|their|its|these|this)\b(?! <figure>)[^.=]{1,50} "
                r"(?:by|as|with) \d*<letter>)<relation>",
                r"\b(?:call|name) (?:the|this|that|it|our|these)\b[^.=]{0,40} <letter><relation>",
            ),
            rule(
                " for ",
                r"\b(?:using|with|write|writing|use) [a-z] for (?:the|his|her)\b<relation>",
                r"\b[a-z] for [a-z]{2,}, (?:and )?[a-z] for [a-z]{2,}<relation>",
            ),
            rule(
                "variable|unknown|assign ",
                r"\b(?:defin|introduc|choos|nam|assign|declar|set)(?:e|es|ing)?\b (?:up )?(?:the |our |an? |some |two "
                r"|three )?(?:variables?|unknowns?)\b(?! [a-z] =)<relation>",
                r"\bassign [a-z] to\b<relation>",
            ),
            rule(
                "equation|congruence|inequalit",
                r"(?<!the )(?<!these )(?<!all )\b(?:system of|following|two|three) (?:\w+ )?(?:equations|congruences"
                r"|inequalities)\b(?! (?:has|have) no)",
                r"\b(?:set(?:ting)? up|model(?:l?ed|l?ing)?|(?:writ|form|formulat)(?:e|ing)?(?: down)? (?:an?|two"
                r"|three|the))\b[^.]{0,40}\b(?:equations?|inequalit(?:y|ies)|congruences?)\b(?! (?:as|in|of)\b)",
                r"\b(?:as|into) (?:an (?:equation|inequality)|equations|inequalities)\b",
                r"\b(?:gives|yields) (?:us )?(?:an|the|this) (?:equation|inequality)\b(?! of)",
                r"<start>(?:the )?(?:equations?|inequalities|congruences)\s?:",
            ),
            rule(
                "translat|condition|constraint|subject to",
                r"\btranslat(?:es?|ing)\b[^.]{0,40}\b(?:in)?to (?:an? |the )?(?:math|algebra|symbol|equation|inequalit"
                r"|constraint|language|\d|[a-z] )",
                r"\bthe (?:\w+ )?conditions?\b[^.]{0,30} (?:says?|reads?|gives?|becomes?)\b",
                r"\bconstraints? (?:is|are|says?|becomes?)\b",
                r"\bsubject to (?:the|these|those|this|[a-z] )",
            ),
            rule(
                "satisfying|such that",
                r"\bwe (?:need|want|seek|look for)\b[^.]{0,40}\b(?:integers?|numbers?|values)\b[^.]{0,30}\b"
                r"(?:satisfying|such that)\b",
            ),
            rule(
                " is | be | are ",
                # "the width is w cm and the length is w + 3"
                r"\b(?:is|are|be) ([b-hj-z])\b(?: [a-z]{1,12})?,? (?:and|then|so|while)\b[^.=]{0,60}\b(?:is|are|be|has"
                r"|have) \d{0,3}\1\b",
                r"\bthe [a-z]{3,} is [b-hj-z] and the [a-z]{3,} is \d*[a-z]\b",
                r"\b(?:are|be) \d*([b-hj-z])\b(?:,| and) [^.]{0,20}(?<![a-z])(?:\d+\1|\1 ?[+-] ?\d)<relation>",
            ),
            rule(
                " by ",
                r"\bby \d*([b-hj-z])\b(?:,| and) [^.]{0,20}(?<![a-z])(?:\d+\1|\1 ?[+-] ?\d)<relation>",
            ),
            rule("with ", r"(?:^|[.;] )with [b-hj-z] [a-z]{3,}[^.]{0,60}\d[a-z]\b<relation>"),
            rule("≡|\\equiv", r"\b(?:with|satisf\w+|want|need|know)\b[^.=]{0,60}\b[b-hj-z] ?(?:≡|\\equiv)"),
        ),
        "contradiction": (
            rule(
                "contradict",
                r"(?<!\bno )(?<!\bnot )(?<!\bnot a )(?<!\bwithout )(?<!\bwithout a )(?<!\bwithout any )(?<!\bany )"
                r"(?<!\bif that leads to )(?<!\bnot lead to a )(?<!\bfor )contradict(?:ions?|ing|s|ory)?\b(?! between)",
            ),
            rule(
                "absurd|contrary|opposite|otherwise|suppose not",
                r"\babsurd",
                r"\b<suppose>,?(?: that)?,? (?:on |to )?(?:the (?:contrary|opposite)|otherwise)\b",
                r"\bsuppose not\b",
            ),
            rule(
                "suppos|assum|imagin|pretend",
                r"\b<suppose>.{0,300}\b<impossible>",
                r"\b(?:our|the|this) (?:assumption|supposition)\b[^.]{0,40} (?:false|wrong|untenable|fails"
                r"|cannot stand)\b",
                r"\b<suppose>[^.]{0,80} had\b.{0,200}\b(?:never|no (?:integer )?solutions?|not an integer)\b",
            ),
            rule(
                "if ",
                r"\bif\b[^.]{3,160}(?:is|are|was|would be|'s) (?:also )?(?:impossible|not possible|absurd)\b",
                r"\bif (?!not\b)[^.]{3,100}(?:were|did|had|would)\b.{0,200}\b(?:<impossible>|cannot|never|but)",
                r"\bif\b.{3,200}\b(?:can't|cannot) (?:happen|occur|hold|be true)\b",
                r"\bif\b.{3,250}\b(?:so|hence|thus|therefore) no such\b",
            ),
            rule("violate", r"\bwould\b.{0,120}\bviolate", r"\bviolates (?:the|our|this|that)\b"),
        ),
        "case_analysis": (
            rule(
                "case",
                r"\bcase \(?[12]\b|\bcase \(?(?:ii?|one|two)\)?[:.,]",
                r"\bcase [ab](?:[:.)]| ?[<>=])",
                r"\b<some> (?:\w+ )?cases\b(?! of)",
                r"\b(?:by|tak(?:e|ing)|the other|the only other|each of the|consider(?: the)?) cases?\b(?! of)",
                r"\b(?:first|second|former|latter|in either) case\b|\bin both cases\b",
                r"\bcasework|\bcase[- ]by[- ]case|\bcase (?:distinction|analysis|split)|\bsub-?cases\b",
            ),
            rule("case", r"\bin the \S{1,12} case\b", r"\bcase (?:where|when|in which)\b", times=2),
            rule(
                "possibilit|scenario|interval|situation",
                r"\b(?:two|three|four|five) (?:\w+ )?(?:scenarios|intervals|situations)\b",
                r"\b(?:two|three|four|five) (?:\w+ )?possibilities\b.{0,200}\b(?:if|first|second|either|when"
                r"|suppose)\b",
                r"\b(?:first|second) (?:possibility|scenario|situation)\b",
                r"\b(?:scenario|possibility) (?:1|2|a|b|one|two)\b",
                r"\bboth possibilities\b|\bexhaust\w* all (?:the )?(?:possibilities|cases)\b",
            ),
            rule("types of|kinds of", r"\b(?:two|three|four) (?:types|kinds) of \w+ to (?:count|consider)\b"),
            rule(
                "either",
                r"\beither\b.{0,160}\b(?:former|latter)\b",
                r"\beither [^.;]{1,40}=[^.;]{0,30}\b(?:giving|gives|so|then|and)\b[^.;]{1,60}\bor [^.;]{1,30}=",
            ),
            rule(
                "odd|negative",
                r"<start>(?:if|when|for|suppose)\b[^.;]{0,30}\beven\b.{0,160}\b(?:if|when|for"
                r"|suppose)\b[^.;]{0,30}\bodd\b",
                r"<start>(?:if|when|for|suppose)\b[^.;]{0,30}\bodd\b.{0,160}\b(?:if|when|for"
                r"|suppose)\b[^.;]{0,30}\beven\b",
                r"\b(?:if|when|for)\b[^.;]{0,30}\bpositive\b.{0,160}\b(?:if|when|for)\b[^.;]{0,30}\bnegative\b",
                r"^(?:even|odd) [a-z]\b",
            ),
            # the same beginning twice: "if … . if …", "suppose Ann … . suppose Ben …", "for x < 2: … for x > 2: …"
            rule(
                "if ",
                r"(?:^|[.;] )(?:\(\w{1,3}\) )?(?:but |and )?if (\S{1,20}) [^.\n]{3,100}[.;\n] ?(?:\(\w{1,3}\) )?"
                r"(?:but |and |on the other hand,? )?if (?:\1|[a-z]) ",
                r"(?:^|[.;] )if ([a-z]) .{3,300}[.;\n] ?(?:but |and )?if \1 ",
            ),
            rule("when ", r"(?:^|[.;] )(?:and )?when [^.\n]{3,100}[.;\n] ?(?:and )?when "),
            rule(
                "if |when |for ",
                r"\b(?:if|when|for) ([a-z]) ?(?:>=?|≥|\\ge\w?) ?(-?\w{1,3})\b.{0,200}\b(?:if|when|for) \1 ?(?:<=?|≤"
                r"|\\le\w?) ?\2\b",
                r"\b(?:if|when|for) ([a-z]) ?(?:<=?|≤|\\le\w?) ?(-?\w{1,3})\b.{0,200}\b(?:if|when|for) \1 ?(?:>=?|≥"
                r"|\\ge\w?) ?-?\w",
            ),
            rule("otherwise", r"\b(?:if|when|whenever)\b.{2,200}[;,.\n] ?otherwise\b"),
            rule(
                "depending|depends|separately|split|distinguish|in turn",
                r"\bdepend(?:s|ing) on (?:whether|which|the parity|the sign)\b",
                r"\b(?:consider|treat|look at|count|handle)\b[^.]{0,30}\bseparately\b",
                r"(?:<start>|\b(?:we|let's|i|us|me) (?:can )?)split (?:according|by|on|into cases|the)\b",
                r"\bwe distinguish\b",
                r"\b(?:examine|consider|take|go through|treat)\b[^.]{0,40}\b(?:in turn|one by one|one at a time)\b",
            ),
            rule(
                "suppose|assume",
                r"\bsuppose first\b",
                r"\b(?:assume|suppose)\b.{5,160}\b(?:(?:assume|suppose) instead|now (?:assume|suppose) (?:it|that"
                r"|instead))\b",
            ),
        ),
        "induction": (
            # not a proof that is only spoken of
            rule(
                "induct",
                r"\binduct(?:ion|ive|ively|ing)?\b(?! (?:cook|hob|stove|coil|motor|heat|furnace|charg))"
                r"(?![^.\n]{0,70}\b(?:but|cannot|can't|not|would|unnecessary|needless)\b)",
            ),
            rule("base", r"(?:\bbase case|<start>base)\b.{0,300}?(?:\bstep\b|\b[nkm] ?\+ ?1\b|\bassum|\bsuppos)"),
            rule(
                "+ 1|+1",
                r"\bp\(([nkm])\).{0,100}\bp\(\1 ?\+ ?1\)",
                r"\bfrom ([nkm]) to \1 ?\+ ?1\b",
                r"\b(?:true|holds?|valid|correct|assum\w{1,4} (?:it|the \w+)) (?:for )?(?:some |all |every "
                r"|a )?([nkm])\b.{0,200}\b\1 ?\+ ?1\b",
                r"\b(?:holds?|true|valid|formula|claim|statement|result) (?:also )?for \(?[nkm] ?\+ ?1\b",
                r"\b(?:assume|suppose|if)\b[^.]{0,60}\b([nkm])\b for (?:some|any|every|all|a) \1?.{0,150}\b\1 ?\+ ?1\b",
                r"\b(?:assume|suppose)\b[^.]{0,60}\bfor (?:some|any|every|all|a) ([nkm])\b.{0,150}\b\1 ?\+ ?1\b",
            ),
        ),
        "substitution": (
            rule(
                "substitut",
                r"\bsubstitut(?:ing|ed|ion|ions)\b(?! (?:in|of) (?:the )?(?:match|game|player|teacher))",
                r"(?<!\ba )(?<!\bthe )(?<!\bas )\bsubstitutes? (?!teacher|player|goal|for )",
            ),
            rule(
                "plug|put |putting|insert|feed",
                r"\b(?:plug(?:ging)?|put(?:ting)?) (?:in )?[a-z] = [\d+*/^ (.-]{0,8}[a-z]\b[^.]{0,30} in(?:to)?\b",
                r"\b(?:plug(?:ging)?|put(?:ting)?|insert(?:ing)?|feed(?:ing)?) (?:this|it|that|these|them)\b(?: back)?"
                r"(?: expression| value)? in(?:to)?\b(?! the (?:original|problem))",
                r"\binsert(?:ing)?\b[^.]{0,50}\binto\b",
            ),
            rule(
                " = ",
                r"\b(?:let(?:ting)?|put(?:ting)?|set(?:ting)?|writing|with|introduc(?:e|ing)|defin(?:e|ing)|tak(?:e"
                r"|ing)) [a-z] = <expression>",
                r"\b(?:letting|putting|setting|taking|put|set) [a-z] = [^,.=]{1,12},? (?:in(?:to)?|we (?:get|have"
                r"|obtain|find)|gives|yields)\b",
            ),
            rule(
                "replac",
                r"\breplac(?:e|ing) [^.]{1,30} (?:by|with) [a-z]\b",
                r"\breplac(?:e|ing) [a-z] (?:in|by|with)\b",
                r"\bmak(?:e|ing) the replacement\b",
            ),
            rule(
                "variable",
                r"\bchang(?:e of|ing|e) variables?\b",
                r"\bnew variables?\b",
                r"\bvariable [a-z] = <expression>",
            ),
        ),
    }
)
