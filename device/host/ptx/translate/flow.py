"""Where the lanes of a warp that part at a branch meet again, for kernels that run in lock step: at
the first place that all ways from the branch lead to."""

from reader import Label, Scope, Statement, Table

NEVER = 0  # the number of no place: the ways do not meet


def parts_of(statement):
    return statement.opcode.split(".")


class Flow:
    """The places of one function where lanes part and meet, by numbers from 1."""

    def __init__(self, function):
        self.items, self.targets = [], {}  # labels and instructions in order; where branches lead
        self.collect(function.body, [])
        self.is_kernel = function.entry
        end = len(self.items)
        self.end = end + 1  # the place where a function returns
        at = {id(item): i for i, item in enumerate(self.items)}
        follow = [self.successors(i, item, at, end) for i, item in enumerate(self.items)]
        meets = meeting_places(follow, end)
        self.partings = {  # by statement
            id(item): meets[i] + 1 if meets[i] is not None else NEVER
            for i, item in enumerate(self.items)
            if isinstance(item, Statement) and self.parts(item)
        }
        used = set(self.partings.values())
        self.meetings = {id(item): i + 1 for i, item in enumerate(self.items) if i + 1 in used}

    def collect(self, scope, outer):
        own = {i.name: i for i in scope.items if isinstance(i, (Label, Table))}
        scopes = [own] + outer
        for item in scope.items:
            if isinstance(item, Scope):
                self.collect(item, scopes)
            elif isinstance(item, Label):
                self.items.append(item)
            elif isinstance(item, Statement):
                self.items.append(item)
                if parts_of(item)[0] in ("bra", "brx") and item.operands:
                    self.targets[id(item)] = list(labels_of(item, scopes))

    def parts(self, statement):
        """Whether lanes may go on at different places behind it."""
        name = parts_of(statement)
        if "uni" in name:
            return False
        leaves = name[0] == "ret" and not self.is_kernel
        return name[0] == "brx" or (bool(statement.guard) and (name[0] == "bra" or leaves))

    def successors(self, i, item, at, end):
        """Where an item leads to."""
        if not isinstance(item, Statement):
            return [i + 1]
        name = parts_of(item)[0]
        found = [at[id(label)] for label in self.targets.get(id(item), []) if id(label) in at]
        if name in ("ret", "exit", "trap"):
            found = [end]
        return found + ([i + 1] if item.guard or name not in LEAVES else [])


LEAVES = ("bra", "brx", "ret", "exit", "trap")


def labels_of(statement, scopes):
    """The labels that a branch leads to."""

    def find(name):
        return next((scope[name] for scope in scopes if name in scope), None)

    found = find(statement.operands[-1].text)
    if isinstance(found, Table):
        return [find(name) for name in found.labels]
    return [found]


def order_from(end, before):
    """Places by the ways that lead to the end, the end last (a walk against the ways)."""
    order, seen, stack = [], {end}, [(end, iter(before[end]))]
    while stack:
        place, rest = stack[-1]
        following = next((i for i in rest if i not in seen), None)
        if following is None:
            order.append(place)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(before[following])))
    return order


def meeting_places(follow, end):
    """For each place the first one that all ways from it pass, by Cooper, Harvey and Kennedy's way
    to compute dominators; None where there is no way to the end."""
    before = [[] for _ in range(end + 1)]
    for place, targets in enumerate(follow):
        for target in targets:
            before[target].append(place)
    order = order_from(end, before)
    number = {place: i for i, place in enumerate(order)}
    found = [None] * (end + 1)
    found[end] = end

    def common(a, b):
        while a != b:
            while number[a] < number[b]:
                a = found[a]
            while number[b] < number[a]:
                b = found[b]
        return a

    changed = True
    while changed:
        changed = False
        for place in reversed(order[:-1]):
            known = [t for t in follow[place] if found[t] is not None]
            new = known[0]
            for other in known[1:]:
                new = common(new, other)
            if found[place] != new:
                found[place], changed = new, True
    return found
