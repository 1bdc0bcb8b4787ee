"""Rules for the patterns of looking for an answer, testing it and correcting it."""

from collections.abc import Mapping
from types import MappingProxyType

from killick.patterns.vocabulary import Rule, rule

SEARCHES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "guess_and_check": (
            rule(
                "try|test",
                r"\btry(?:ing)? (?:out )?[a-z] ?= ?-?\d",
                r"\b(?:try|test)(?:ing)? (?:out )?(?:some|a few|several|all|various|different|the|each|every|small) "
                r"(?:\w+ )?(?:values?|numbers?|candidates?|options?|possibilit\w+|pairs?|choices?|combinations?)\b",
                r"\b(?:try(?:ing)?:?|(?<!divisibility )(?<!the )(?<!a )test(?:ing)?) (?!that|whether"
                r"|if)[^.]{0,20}\d.{0,200}\b(?:works|fits|<too>|fails?|not|doesn't|great|yes|as (?:needed|desired"
                r"|required))\b",
                r"<start>(?:testing|trying) values\b",
            ),
            rule("error|guess|brute", r"trial[- ]and[- ]error", r"guess[- ]and[- ]check", r"\bbrute[- ]force"),
            rule(
                "too ",
                r"\b<too>.{0,200}\b(?:<too>|works|fits|exactly|matches|found|as (?:needed|desired|required))",
            ),
            # attempts that are rejected: "7 * 3 = 21. no", "gives 110, too small"
            rule("no|close|too ", r"\d\)? ?(?:[.,;:!→-]|\.\.\.)? ?(?:no|nope|close|<too>)(?=[.,;!\n]|$)", times=2),
            rule("attempt", r"\battempt (?:#?\d|one|two)\b"),
            rule(
                "check|plug in|candidate",
                r"\bplug(?:ging)? in (?:the|each|every|all) (?:\w+ )?(?:answers?|options?|choices?|values?)",
                r"\bcheck(?:ing)? (?:each|every|all|the|small)(?: of)?(?: the)? (?:\w+ )?(?:option|choice|candidate"
                r"|value|possibilit)",
                r"\bcandidates: [^.]{0,30}\d",
            ),
            rule("one by one|in turn", r"\bone by one\b", r"\b(?:check|test|try)[^.]{0,40}\bin turn\b"),
            rule("experiment", r"\bexperiment(?:ing)? with\b", r"\blet (?:me|us) experiment\b"),
            rule(
                "guess|estimate",
                r"\b(?:i|we|my|one|first|another|initial|next|educated|can|let's|to) guess(?:es)?\b(?! \w+_)",
                r"\bguessing\b",
                r"\bstart(?:ing)? with (?:the |an? )?(?:estimate|guess)\b",
            ),
            rule("no contradiction", r"\b<suppose>.{3,160}\bno contradiction\b"),
        ),
        "verification": (
            rule(
                "check|verif|confirm|test",
                # an answer that is checked, not luggage, nor each of many candidates
                r"\b(?:double|cross|re)[- ]?check(?:ing)?\b",
                r"\b(?:sanity|quick|final|spot) check\b",
                r"<start>(?:check(?:ing)?|verif(?:y|ying|ication)|test)(?: this| it| that| our \w+| the (?:answer"
                r"|solution)s?)?\s?[:,]",
                r"<start>(?:verify(?:ing)?|verification)\b(?! (?:each|every|all|the base|account))",
                r"<start>checking (?:this|that|it|our|my|the (?:answer|solution|result|original)|[a-z] =)",
                r"\b<let me> (?:\w+ )?<check>\b(?! (?:in\b|out\b|for|each|every|all\b|whether|if\b|which|(?:the )?"
                r"(?:initial|base|first|case|unit|by induct)|(?:\w+'s|his|her|their) (?:statement|claim)))",
                r"\bto (?:verify|double[- ]check|confirm|be sure|make sure)\b(?! (?:in|out|for)\b)",
                r"<start>to check\b",
                r"\bcheck (?:our|my|the|this|that) (?:\w+ )?(?:work|answer|result|solution|calculation)",
                r"\b(?:verifying|confirming) (?:our|my|the|this|that)\b",
                r"\b(?:this|which|that|and) confirms\b",
                r"\b(?:checks|check) out\b(?= ?[.,;!)✓\n]|$)",
            ),
            rule(
                "back in|original|extraneous|spurious|false solution",
                r"\bplug(?:ging|ged)?\b[^.]{0,30}\bback in",
                r"\bin(?:to)? the original (?:equation|problem|expression|condition)",
                r"\b(?:extraneous|spurious|false) (?:solution|root)s?\b|\b(?:is|are|being) (?:not )?extraneous\b",
            ),
            rule("indeed", r"<start>indeed,? [^ ]{0,9}[\d(\\][^.]{0,60}="),
            rule(
                "consistent|match|agree|satisf|correct|valid|right|both hold|fit|as stated|as required|as desired"
                "|as expected"
                "|as given|as it must",
                r"\bconsistent with the (?:problem|given|statement|condition|question)",
                r"\b(?:matches|agrees with|satisfies|fits) (?:all |both )?(?:of )?the (?:given|original|problem"
                r"|statement|question|clue)",
                r"\b(?:note|see) that [^.]{0,60}\bsatisf(?:y|ies) (?:all|both|the equation)",
                r"\b(?:both|all) (?:\w+ )?(?:hold|fit|are (?:satisfied|met|consistent))\b",
                r"\bconditions are (?:satisfied|met)\b",
                r"\b(?:our|the|this|my) (?:solution|answer|result) is (?:indeed )?(?:correct|valid|consistent|right)\b",
                r"\b(?:does|do) (?:it|this|that|they) fit\b",
                r"\b(?:everything|all|it) is consistent\b",
                r", as (?:stated|required|given|desired|expected|it (?:must|should))\b",
            ),
            rule(
                "make sense|reasonable|reading the|read the",
                r"\bdoes (?:this|that|it) make sense\b",
                r"\bis (?:this|that) reasonable\b",
                r"\bre-?read(?:ing)? the (?:question|problem)\b",
            ),
            rule("testing, ", r"(?:^|[.;}\] ]) ?testing, "),
        ),
        "backtracking": (
            # neither a pause before a check, nor a doubt that is only asked
            rule(
                "wait",
                r"(?:^|[.;,!?(>—-] ?|\boh |\bbut |\bno )wait(?:[,.!…—]+| (?:no|that|this|but|i|actually|there|the)\b)"
                r"(?! ?(?:but )?(?:maybe|perhaps|(?:let me|let's|i should|we should)? ?(?:just |quickly )?<check>))"
                r"(?![^.!\n]{0,40}\?)",
            ),
            rule(
                "oops|scratch that|never mind|nevermind|whoops|hmm|no,",
                r"\boops\b|\bwhoops\b|\bscratch that\b|\bnever ?mind\b",
                r"\bhmm+[,:.]? (?:no|wait|but|not|(?:that|this)(?:'s| is| does| can)(?:n't|not| not| wrong))\b",
                r"(?:\.\.\.|…|—|\?) ?no, ",
            ),
            rule(
                "wrong|not right|incorrect|be right|not correct",
                r"\b(?:that|this)(?:'s| is| was|,) (?:wrong|not (?:quite )?right|incorrect|not correct)\b",
                r"\b(?:that|this) (?:can't|cannot) be right\b",
                r"\b(?:my|earlier|previous)\b[^.]{0,60}\b(?:was|were) (?:wrong|incorrect)\b",
                r"\bsomething (?:went|is|must be) wrong\b",
            ),
            rule(
                "mistake|error|i m|i have m|forgot|overlooked",
                r"\bi (?:have |had )?(?:made|misread|missed|forgot|miscounted|overlooked|misunderstood|mixed up)\b",
                r"\bmade (?:a|an) (?:\w+ )?(?:mistake|error)\b",
                r"\bwas a mistake\b",
            ),
            rule(
                "let's|let me|let us",
                r"\blet(?:'s| me| us) (?:re(?:consider|think|compute|do|calculate|start|visit|check and)|start (?:over"
                r"|again|afresh)|go back|back up|(?:try|think|do|look)\b[^.\n]{0,50}\b(?:differently|different|another"
                r"|something else|again))\b",
            ),
            rule(
                "start over|start again|starting over|scratch|redo",
                r"\bstart(?:ing)? (?:over|again|from scratch)\b",
                r"\bredo\b",
            ),
            rule(
                "dead end|nowhere|messy|abandon|work out|help|hopeless",
                r"\bdead end\b|\bleads? nowhere\b|\bgets? (?:too |very )?messy\b|\babandon\b|\b(?:is|was"
                r"|seems) hopeless\b",
                r"\b(?:doesn't|does not|didn't) (?:seem to )?(?:work out|help)\b",
            ),
            rule(
                "actually",
                r"(?:<start>|(?:\.\.\.|…)\s?)actually,? (?:no|let|wait|that's not|that is not|i)\b",
                r"(?:\.\.\.|…|hmm,?)\s?actually\b",
            ),
            rule("correction", r"\bcorrection\s?:"),
            rule("recheck|re-check", r"\bre-?check\b.{0,120}\bnot -?\d"),
            rule(
                "tried|glance|first|initially|sight",
                r"\b(?:i|we) (?:first )?tried\b[^.]{0,80}\bbut\b",
                r"\b(?:at first (?:glance|sight)|(?:i|we) (?:first|initially) (?:thought|considered|wanted)"
                r"|first thought)\b.{0,120}\bbut\b",
            ),
        ),
        "working_backwards": (
            rule(
                "backward|work back|working back|in reverse|from the end|backtrack",
                # not a person of the story who "works backwards"
                r"\b(?:work|reason|go|think|mov|proceed)(?:ing|e)? (?:\w+ )?backwards?\b(?! and forth)",
                r"\bwork(?:ing)? back\b|\bbackwards? from\b|\bbacktrack(?:ing)? from the (?:goal|end|target|final)",
                r"\b(?:work|steps?|go|process)(?:ing)? in reverse\b",
                r"\b(?:run|go|read|work|reason|start|begin|count)(?:ning|ing|ting)?\b[^.]{0,40}\bfrom the end\b(?! of)",
            ),
            rule(
                "revers|invert|undo",
                r"\b(?:revers|invert)(?:e|ing)? (?:the|each|every|these|all) (?:\w+ )?(?:operations?|steps?|process"
                r"|moves?)\b",
                r"\bsteps (?:can be|are) revers",
                r"\bundo(?:ing)? (?!the substitution)",
            ),
            rule(
                "final|the end|last|result|goal|target|what we want",
                r"\b(?:start|begin|reason|work)(?:ning|ing)? (?:from|with|at) the (?:end\b(?! of)|final|last|result"
                r"|goal|target)",
                r"\blast (?:move|step) first\b",
                r"\b(?:begin|start)(?:ning|ing)? with what we want\b",
            ),
            rule(
                "back",
                r"\btrac(?:e|ing)\b[^.]{0,20}\bback(?:wards?)?\b",
                r"\bstep(?:ping)? back\b:? ",
                r"\bgoing (?:further|one step|another step) back\b",
            ),
            rule(
                "before",
                r"\bbefore (?:that|giving|doubling|the last|it|then)\b.{0,150}\bbefore\b",
                r"\bday before\b.{0,80}\bbefore that\b",
            ),
        ),
        "small_cases": (
            rule(
                "small|simpl|fewer",
                r"\bsmall(?:er)? (?:cases|values of|examples?|instances?|versions?|problems?)\b",
                r"\bsimpler (?:versions?|cases?|examples?|problems?)\b",
                r"\bsmall [nkm]\b",
                r"\b(?:start|begin)(?:ning|ing)? with (?:small|smaller|fewer|simpler)\b",
            ),
            rule(
                "pattern|trend",
                r"\b(?:notice|see|spot|find|observ\w{1,3}|recogni[sz]e|discover|look for) (?:a|the|this) (?:\w+ )?"
                r"(?:pattern|trend)\b",
                r"\bpattern (?:suggests|continues|emerges|is clear|holds|repeats|seems|appears)\b",
            ),
            rule(
                "first |beginning of the",
                r"\bfirst (?:few |several )?(?:terms|values|cases|powers)\b.{0,60}\d",
                r"\bfirst (?:few|several)\b",
                r"\bbeginning of the sequence\b",
            ),
            rule(
                "for n|for k|for m",
                r"\bfor ([nkm]) = 1, 2\b",
                r"\bfor ([nkm]) = \d\b.{1,60}\bfor \1 = \d\b.{1,60}\bfor \1 = \d\b",
            ),
            # "f(1) = 1, f(2) = 5, f(3) = 14, which agree …", "7^1 ends in 7, 7^2 …, 7^3 …"
            rule(
                "(1|_1|_{1",
                r"\b([a-z])(?:\(|_\{?)1[)}]? ?=.{1,60}\b\1(?:\(|_\{?)2[)}]? ?=.{1,60}\b\1(?:\("
                r"|_\{?)3[)}]? ?=.{0,250}\b(?:pattern|looks? like|suggests?|see that|notice|agrees?|in general"
                r"|repeats?|guess)\b",
            ),
            rule("^1|^{1", r"(?<!\d)(\d{1,2})\^\{?1\b[^+]{1,60}(?<!\d)\1\^\{?2\b[^+]{1,60}(?<!\d)\1\^\{?3\b"),
            rule(
                "period|cycle|repeat",
                r"\bis periodic\b",
                r"\brepeats? (?:with|every|in) (?:a )?(?:period|cycle|\d)",
                r"\bcycles? (?:through|has|with|of) ",
                r"\b(?:period|cycle)(?: length)?,? (?:of |is |= ?)?\d+\b(?! ?(?:year|day|second|s\b|hour|minute|\\pi))",
            ),
            rule("conjectur|generali", r"\bconjectur|\d[^.]{0,60}\. (?:this|we|to)?\s?generali[sz](?:e|es|ing)\b"),
            rule(
                "it appears|it seems|looks like|suggests",
                r"\d.{0,80}\b(?:it (?:appears|seems|looks like)|this suggests)\b",
            ),
            rule("in general", r"\d[.;,]? in general,? [^.]{0,40}="),
        ),
    }
)
