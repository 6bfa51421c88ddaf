"""One table of colours for every output: the Okabe-Ito palette, which colour-blind readers can distinguish."""

from __future__ import annotations

ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"

BUSY = SKY
IDLE = GREY
VERDICTS = {
    "compute-bound": GREEN,
    "communication-bound": BLUE,
    "copy-bound": BLUE,
    "input-bound": VERMILION,
    "sync-bound": VERMILION,
    "launch-bound": VERMILION,
    "host-bound": VERMILION,
    "allocator-bound": VERMILION,
    "compilation-bound": ORANGE,
    "first-use": ORANGE,
    "mixed": ORANGE,
    "not-judged": PURPLE,
    "no-gpu-activity": PURPLE,
    "straggler": VERMILION,
    "no-straggler": GREEN,
    "better": GREEN,
    "worse": VERMILION,
}
SEVERITIES = {"high": VERMILION, "medium": ORANGE, "low": SKY}
