"""Methods as fillings of slots: what may shape the anchor, repair a failed group, edit groups, weigh rewards.

`slots.py` states what each slot sees, `sage.py` turns a guide and a `kl_form` into a shaped anchor, `guides/` holds one
guide per file. `sort.py` turns a repair rule (`repairs/`) into a loss term, `failures.py` keeps who waits for one, and
`plan.py` words the request for a plan. Nothing here knows a trainer: it imports `killick.maths` and torch.
"""
