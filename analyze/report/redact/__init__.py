"""Reports that can be given away: what is taken out of an input before anything is measured. See docs/redaction.md."""

from analyze.report.redact.paths import redacted, shorten_paths
from analyze.report.redact.policy import Redaction

__all__ = ["Redaction", "redacted", "shorten_paths"]
