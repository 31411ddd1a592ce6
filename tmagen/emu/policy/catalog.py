# SPDX-License-Identifier: Apache-2.0
"""The policies, by name."""

from __future__ import annotations

from tmagen.emu.policy.choices import (
    after_another,
    another,
    anywhere,
    at_random,
    at_the_end,
    every_other,
    highest,
    none_given,
)
from tmagen.emu.policy.late_read import LateRead
from tmagen.emu.policy.poison import Poison
from tmagen.emu.policy.policy import Policy, Seeds
from tmagen.emu.policy.schedules import Backwards, ConsumerFirst, ProducerFirst, Shuffled
from tmagen.emu.policy.split import Split
from tmagen.emu.policy.starve import Starving
from tmagen.emu.policy.waits import Refusals
from tmagen.emu.state.engine import Deferred, Engine, NewestFirst, Prompt, Random
from tmagen.emu.timing.engine import Timed

_ALL = (
    Policy(
        name="eager",
        what="Asynchronous work completes when it is issued; warps in turn.",
        finds="wrong descriptors, layouts, addresses, counts",
        completion=Engine,
    ),
    Policy(
        name="lazy",
        what="It completes when nobody can run any more, first in, first out. clusterlaunchcontrol gives nothing.",
        finds="missing waits",
        completion=Deferred,
        tensor_memory=after_another,
        clusters=none_given,
    ),
    Policy(
        name="newest-first",
        what="Likewise, but tensor work before copies, and of those the newest first; warps in turn, backwards. The "
        "highest lane is elected; clusterlaunchcontrol refuses every other time.",
        finds="waits for another operation than the one that is needed",
        completion=NewestFirst,
        schedule=Backwards,
        leader=highest,
        tensor_memory=at_the_end,
        clusters=every_other,
    ),
    Policy(
        name="random",
        what="It completes at random moments, in random order; warps in turn, in random order.",
        finds="what depends on one order",
        completion=Random,
        schedule=Shuffled,
        leader=another,
        tensor_memory=anywhere,
        clusters=at_random,
        seeds=Seeds.DRAWN,
    ),
    Policy(
        name="producer-first",
        what="Warps that issue loads run as far as they can, then those that issue MMAs, then the others; work "
        "completes when it is issued.",
        finds="a producer that runs ahead of its consumers",
        completion=Prompt,
        schedule=ProducerFirst,
        tensor_memory=after_another,
    ),
    Policy(
        name="consumer-first",
        what="The other way round.",
        finds="a consumer that runs ahead of its producer",
        completion=Prompt,
        schedule=ConsumerFirst,
        tensor_memory=after_another,
    ),
    Policy(
        name="late-read",
        what="A load writes its bytes at its issue, and its mbarrier learns of them when nobody can run. MMAs and "
        "stores read their operands after that, stores last; what a store has read is written when somebody waits for "
        "that, or at the end. Consumers first.",
        finds="operands overwritten too early; missing or weak waits for stores",
        completion=LateRead,
        schedule=ConsumerFirst,
        tensor_memory=at_the_end,
    ),
    Policy(
        name="split",
        what="As random, and each copy lands in several pieces, in random order and at random moments; a store reads "
        "each piece of its source when that lands.",
        finds="data used, or overwritten, while a part of them is under way",
        completion=Split,
        schedule=Shuffled,
        tensor_memory=anywhere,
        seeds=Seeds.DRAWN,
    ),
    Policy(
        name="adversarial",
        what="As random, and a look at a complete phase is answered with false up to three times; another lane than "
        "the lowest is elected; tensor memory begins anywhere but at column 0; clusterlaunchcontrol refuses at random "
        "and gives clusters out of order.",
        finds="results of try_wait that are not looked at; lane 0, column 0 or an order taken for granted",
        completion=Random,
        schedule=Shuffled,
        waits=Refusals,
        leader=another,
        tensor_memory=anywhere,
        clusters=at_random,
        seeds=Seeds.DRAWN,
    ),
    Policy(
        name="poison",
        what="As lazy, producers first, and memory that nobody may read holds a pattern, another for each seed: all of "
        "it at the start, tensor memory when it is allocated and freed, and what a load, a store or an MMA that does "
        "not add to D will write, from its issue on.",
        finds="a stage, an accumulator or an output used after it was given away; uninitialised memory",
        completion=Poison,
        schedule=ProducerFirst,
        spoils=True,
        tensor_memory=after_another,
        seeds=Seeds.DRAWN,
    ),
    Policy(
        name="timed",
        what="It completes after as many cycles as a model of the hardware gives it, and warps run in the order of "
        "their clocks: an order much like that of a GPU.",
        finds="no more than the others: it shows where time goes",
        completion=Timed,
    ),
    Policy(
        name="starve",
        what="One warp, or one CTA of a cluster, is held back for as long as anything else can go on: the one that the "
        "seed numbers, warps first. Work completes when it is issued.",
        finds="barriers that do not wait for somebody; phases that lap a waiter",
        completion=Engine,
        schedule=Starving,
        seeds=Seeds.VICTIM,
    ),
)

POLICIES: dict[str, Policy] = {policy.name: policy for policy in _ALL}

USUAL = ("eager", "lazy", "newest-first", "random")
"""What a kernel is run under where nothing else is asked for."""

THOROUGH = tuple(name for name in POLICIES if name != "timed")
"""All that PTX allows; `timed` is one order more, of a model of the hardware."""


def policy_of(name: str) -> Policy:
    """Raises ValueError for a name that is no policy's."""
    found = POLICIES.get(name)
    if found is None:
        raise ValueError(f"completion {name!r} is not one of {', '.join(POLICIES)}")
    return found
