"""Words and limits that measures and rules share. It imports nothing, so a list of the rules waits for no library."""

# Why the host was not in time: columns of gaps, keys of ledgers.
CAUSES = ("compilation_ns", "capture_ns", "first_use_ns", "allocator_ns", "pause_ns", "sync_ns")

# What most of a cost comes from, where the records say: `Scenario.origin`.
EMPTY_CACHE, COMPILATION, RECOMPILATION = "empty_cache", "compilation", "recompilation"
MULTI_HEAD = "aten::_native_multi_head_attention"
MATH = "aten::_scaled_dot_product_attention_math"
NOTHING_FASTER = "none"  # of precisions: the GPU has no faster one

# Shares of the window by which the unchanged replay may differ from the record.
WITHHELD = 0.05  # beyond it no saving is stated
DOUBTED = 0.01  # beyond it the deviation is printed with the savings

SPEAKS = 0.40  # of the host row of a lone step, by which it is longer than the window: beyond it sentences speak of it
ZERO_TOO_MANY = 0.05  # of rows with time 0 and length 0: no judgement on idle time
FEWEST_STEPS = 3  # of fewer nothing can be said about most
