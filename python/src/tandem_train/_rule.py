"""Rules of a policy."""

# Written by `make docs` from the table of keys; do not edit.

from __future__ import annotations

from typing import Literal

from tandem_train._table import Rule as Rule


def rule(
    at: str,
    *,
    op: str | None = None,
    min: str | None = None,
    after: str | None = None,
    before: str | None = None,
    on: str | None = None,
    run: str | None = None,
    param: str | None = None,
    state: str | None = None,
    acts: Literal["keep", "offload", "recompute"] | None = None,
    lookahead: int | None = None,
    ship: Literal["auto", "rows", "results"] | None = None,
    cache: str | None = None,
    shard: Literal["whole", "rows", "columns", "state", "state+gradient", "table", "heads"] | None = None,
    need: Literal["require", "prefer"] | None = None,
    optional: bool | None = None,
    why: str | None = None,
) -> Rule:
    """A rule for `place`, or for the key `policy` as a list. What is left out is not decided by it.

    at: which operators and parameters: an anchored glob over whole paths.
    op: only operators of this type (for parameters: those that only such operators read).
    min: only parameters of at least this many bytes ("64MiB"), and operators that read one.
    after: only what depends on these operators or values.
    before: only what these operators or values depend on.
    on: the device for run, param and state at once.
    run: where an operator computes; its backward follows. Default: the device of the run.
    param: home of a parameter's compute-type weight. Default: where its readers run.
    state: home of the master weight and moments, and where the update runs. Default: param.
    acts: what becomes of an operator's results between forward and backward. Default: "keep".
    lookahead: for weights and activations that live elsewhere: how many uses ahead they are fetched; for a table of the
        host that is sent as rows, if a rule sets 1 or more: the next step's rows are copied during this one (more acts
        as 1). Default: 1.
    ship: for lookups in a table of the host that another device reads: rows: each row once, with an index; results: one
        row for each id; auto: the one with fewer bytes. Default: "auto".
    cache: for a table of the host that another device reads: the size of that device's cache of the rows that the data
        names most often, with their optimizer states, "2GiB", or a part of the table, "10%".
    shard: what each of several ranks keeps of a parameter; rows: of a table that only lookups read, the rows r, r +
        ranks, ... with their optimizer states; table: whole tables, each on one rank; columns of a table, rows or
        columns of a matrix that only products read: equal blocks of neighbours along the file's axis 0 or 1, with their
        optimizer states; heads: of a matrix next to attention, blocks of whole heads; state: the optimizer's states of
        one part of it (ZeRO-1); state+gradient: of the gradient, too (ZeRO-2). Default: "whole".
    need: prefer: fall back where a device has no kernel, instead of an error. Default: "require".
    optional: the rule may match nothing. Default: False.
    why: a remark that explanations repeat.
    """
    return Rule(None, locals())
