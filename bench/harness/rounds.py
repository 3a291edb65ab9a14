"""Contenders in turn, round by round, so that a machine's moods meet all of them alike."""

import dataclasses
import statistics
import sys

from harness import process


@dataclasses.dataclass
class Contender:
    name: str
    function: str           # "module:function"
    arguments: dict
    options: dict = dataclasses.field(default_factory=dict)  # step, limit
    comparable: bool = True  # its batches are the same as the others', tag by tag


def chosen(contenders, names):
    """The contenders selected by --peers."""
    found = [contender for contender in contenders if names is None or contender.name in names]
    if not found:
        sys.exit(f"--peers: none of {', '.join(names)} takes part here; there are "
                 f"{', '.join(contender.name for contender in contenders)}")
    return found


def verified(contenders, expected=None, show=print):
    """Runs each once with checksums. Gives the contenders that ran, and whether all agree with
    `expected` or, without it, with the first of them."""
    running, good = [], True
    for contender in contenders:
        try:
            result = process.run(contender.function, contender.arguments, verify=True,
                                 **{**contender.options, "step": 0})
        except process.Failed as failure:
            show(f"  {contender.name}: {failure}")
            good = False
            continue
        running.append(contender)
        if not contender.comparable:
            continue
        expected = expected or result.sums
        part = "limit" in contender.options  # the slow ones deliver only the first batches
        wrong = [tag for tag in (result.sums if part else expected)
                 if result.sums.get(tag) != expected.get(tag)]
        if wrong or not result.sums.keys() <= expected.keys():
            show(f"  {contender.name}: OTHER BYTES in {len(wrong)} of {len(expected)}: {wrong[:4]}")
            good = False
    return running, good


def measure(contenders, rounds, before=lambda: None, after=lambda result: None, show=sys.stderr):
    """{name: [Result, …]}: each contender once a round, beginning with another each time. `before`
    and `after` are called around each run."""
    results = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        turn = contenders[number % len(contenders):] + contenders[:number % len(contenders)]
        for contender in turn:
            before()
            process.get_memory_from_host()
            try:
                result = process.run(contender.function, contender.arguments, **contender.options)
                after(result)
                results[contender.name].append(result)
            except process.Failed as failure:
                print(f"  {contender.name}: {failure}", file=show)
    return {name: runs for name, runs in results.items() if runs}


def median(runs, figure):
    """The median over rounds of a figure of a Result."""
    return statistics.median(figure(run) for run in runs)
