"""Drop-ins for the schedulers of verl, slime and Megatron: their names, types and errors.

Every function takes what the original takes, and `mode`. "exact" gives the original's answer,
"best" (the default) an answer of isochron's planner that keeps the same promises. `install()` of a
module puts its functions where the framework looks for them, `uninstall()` takes them back.
"""
