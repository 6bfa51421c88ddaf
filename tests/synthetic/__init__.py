"""Deterministic synthetic traces with known truth: a host thread, a launch queue and a device, simulated.

`python -m tests.synthetic` rewrites the synthetic files of sample_traces/. Their times are invented and measure no
hardware; what they prove is that the program finds again what the simulator put in.
"""
