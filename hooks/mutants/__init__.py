"""Faults planted in compiled code, to see how often the audit misses one.

The programs stand outside of the package of the audit: what is inside it is the audit's own, and
its walk over what a call can reach leaves that out.
"""

from mutants import backward, exceptions, forward, later, state
from mutants.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *forward.FAULTS, *backward.FAULTS, *state.FAULTS, *exceptions.FAULTS, *later.FAULTS,
)  # fmt: skip
