"""Where the GPU time of a PyTorch profiler trace went: every nanosecond gets exactly one owner."""
