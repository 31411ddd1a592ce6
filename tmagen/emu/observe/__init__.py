# SPDX-License-Identifier: Apache-2.0
"""Runs that are traced or timed: what generated code calls tells an observer, which keeps the time and, where a trace
is asked for, writes down what happens (`trace.py`) as Chrome and Perfetto read it (`chrome.py`).

Code that is compiled for a run without an observer has none of it.
"""
