"""The constants of the rules, in one place, so that pages can quote what the code uses."""

ULP_LIMIT = 16
"""Rule 1: float32 and float64 elements this close to eager, in units in the last place, are the
same."""

HALF_ULP_LIMIT = 2
"""Rule 1 for float16 and bfloat16, whose last place is coarse."""

FLOAT8_ULP_LIMIT = 1
"""Rule 1 for the float8 types: the neighbour."""

REFERENCE_FACTOR = 2
"""Rule 2: how many times eager's own distance from float64 the compiled value may be away."""

REFERENCE_ULP = 4
"""Rule 2: what is allowed on top, in units in the last place."""

HALF_REFERENCE_ULP = 1
"""Rule 2: what is allowed on top for types of 16 bits and fewer."""

NOISE_FACTOR = 6
"""Rule 3: how many times eager's own rounding noise the compiled value may be away."""

HALF_NOISE_FACTOR = 4
"""Rule 3 for types of 16 bits and fewer, in which noise comes in whole units."""

WIDE_UNITS = 12
"""How much further than one rounding the operands and results of sums and products of matrices
move, in float32 and float64, when noise is measured."""

NOISE_RUNS = 8
"""Rule 3: eager runs with jittered operands that measure the noise."""

MORE_NOISE_RUNS = 32
"""Rule 3: further runs where elements are still rejected."""

MAX_SUSPECTS = 1 << 20
"""Elements of one tensor to which rules 2 and 3 are applied; where more fail rule 1, it is to every
second, every third, and so on."""

MAX_SHADOWED_BYTES = 1 << 28
"""Calls that reach more than this are not run in float64."""

FIRST_CALLS = 3
"""Calls of each kind that are always checked; after them, every call number 2**k."""

EARLY_CALLS = 64
"""Up to this number, calls number 2**k of each kind are checked whatever it costs."""

CHECKING_SHARE = 0.5
"""Share of the time since a callable's first call that checks may have taken where a later call
number 2**k is checked: no loop is slowed by more than 2 times for long."""

FIRST_COMPILES = 64
"""Calls for which the compiler is asked that are always checked; after them, every one number
2**k."""

MARKING_SHARE = 0.2
"""Share of the time since a callable's first call that looking for changed state may take."""

AUDIT_SECONDS = 60.0
"""Time that shadowing may take per callable before only the first call of a kind is checked."""

SPREAD_LIMIT = 0.10
"""Inter-quartile range over median beyond which a time counts as disturbed."""

DRIFT_LIMIT = 0.05
"""Difference of the medians of its two halves, over the median, beyond which it does."""

FEW_SAMPLES = 8
"""Fewer samples say nothing of a spread."""

BUSY_SHARE = 0.10
"""Share of the processors' time that others may take while a snippet is observed."""

ATTEMPTS = 2
"""How often a snippet is observed, at most, while its times are disturbed. Of the runs of the whole
site that were disturbed twice, a third one made none quiet."""

TIMEOUT_SECONDS = 120.0
"""Default limit on one child."""

LOCATE_SECONDS = 240.0
"""Time for all runs that look for the stage of the compiler in which differences arise."""

BISECT_SECONDS = 300.0
"""Time for all runs that look for the parts of these stages."""

REPRODUCER_SECONDS = 120.0
"""Time for a reproducer to show its difference, once it is written."""

OUTPUT_BYTES = 1 << 20
"""Limit on what one child may print."""

MEMORY_BYTES = 16 << 30
"""Limit on the private memory of one process of a child."""

FILE_BYTES = 2 << 30
"""Limit on each file that a child writes."""
