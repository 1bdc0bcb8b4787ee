"""The patterns and what each of them means; a text may show several, or none."""

from types import MappingProxyType

PATTERNS = MappingProxyType(
    {
        "constraint_setup": "names unknowns and writes the conditions as equations, inequalities or congruences",
        "contradiction": "assumes something and rejects it because it leads to an impossibility",
        "case_analysis": "splits the problem into cases and treats them one after the other",
        "induction": "proves a first case and a step from one case to the next",
        "substitution": "puts a new variable for an expression, or an expression for a variable",
        "guess_and_check": "tries candidate values until one fits",
        "verification": "tests a result that was found, e.g. by putting it back into the problem",
        "backtracking": "drops or corrects what was just written and goes on differently",
        "working_backwards": "starts from the end or the goal and undoes the steps",
        "small_cases": "computes small or first cases and reads a rule off them",
    }
)
