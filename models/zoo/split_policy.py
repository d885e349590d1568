"""Writes a policy that divides a network between the host and an emulated device, from the names of `tandem policy names`."""

import re


def modules_of(paths, most):
    """Groups of operators by module, in the graph's order, each of at most about `most` of them: [(selector, how many)]."""

    def divided(paths, depth):
        groups = {}
        for path in paths:
            groups.setdefault(tuple(path.split(".")[:depth]), []).append(path)
        for head, members in groups.items():
            deepest = max(path.count(".") + 1 for path in members)
            if len(members) > most and deepest > depth:
                yield from divided(members, depth + 1)
            elif deepest <= depth:
                yield ".".join(head), len(members)
            else:
                yield ".".join(head) + ".**", len(members)

    return list(divided(paths, 1))


def split_policy(operators):
    """Rules: the first half of the operators on an emulated device, the first half of those recomputed. None if a policy cannot write their names."""
    if any(re.search(r"[*?{}\[\]'\"\\]", path) for path in operators):
        return None
    half, taken, rules = len(operators) / 2, 0, []
    for selector, count in modules_of(operators, max(1, len(operators) // 8)):
        if taken >= half:
            break
        again = ', acts = "recompute"' if taken < half / 2 else ""
        rules.append(f'{{ at = "{selector}", on = "gpu0"{again} }}')
        taken += count
    return rules


def write_policy(rules, path):
    lines = ["policy = 1", 'devices = { gpu0 = { use = "emulated:0" } }', "rules = ["]
    path.write_text("\n".join([*lines, *(f"  {rule}," for rule in rules), "]"]) + "\n")


def homeless_parameters(error):
    """The states that the error names as read on two devices: a rule must say where each of them is."""
    return re.findall(r"split\.toml:\d+:\d+: (\S+): this parameter is read on two devices", error)
