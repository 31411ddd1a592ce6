# SPDX-License-Identifier: Apache-2.0
"""Timed completion: a model of how many cycles things take, in which asynchronous work ends when its time has come.

It is a model and no measurement of a kernel. What it knows stands in one table, `latency.py`, each row with where it
comes from. A CTA runs as if it were alone on its SM and on the GPU: no other CTA takes bandwidth from it, what it reads
lies in L2, lanes of a warp that have parted do not wait for each other's issue slots, and a PTX instruction stands for
one of the machine. Values are those of every other order of completion.
"""
