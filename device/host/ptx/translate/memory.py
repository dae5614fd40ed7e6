"""The table of instructions on memory: loads, stores, atomics, fences, copies, barriers in memory.

Their modifiers come in many orders and do not change what is computed, so each function sorts
them into groups and refuses what is in none.
"""

import weak
from patterns import Row, SETS, bits_of

SPACES = (
    "global",
    "local",
    "shared",
    "shared::cta",
    "shared::cluster",
    "const",
    "param",
    "param::entry",
    "param::func",
)
ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "volatile")
SCOPES = ("cta", "cluster", "gpu", "sys")
CACHES = (
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "nc",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::evict_last",
    "L2::evict_normal",
    "L2::evict_first",
    "L2::64B",
    "L2::128B",
    "L2::256B",
)
HINT = "L2::cache_hint"  # with one operand more: advice
VECTORS = ("v2", "v4", "v8")
OPERATIONS = ("add", "and", "or", "xor", "min", "max", "exch", "cas", "inc", "dec")
BYTE_TYPES = SETS["ANY"]
ATOMIC_TYPES = BYTE_TYPES + SETS["HALF"]
C_ORDER = {
    "relaxed": "RELAXED",
    "acquire": "ACQUIRE",
    "release": "RELEASE",
    "acq_rel": "ACQ_REL",
    "volatile": "RELAXED",
    "": "RELAXED",
}


def sort(parts, **groups):
    """Which word of each group is there; None where a part is in no group, or a group is there
    twice."""
    found = dict.fromkeys(groups, "")
    for part in parts:
        group = next(
            (name for name, words in groups.items() if part in words and not found[name]), None
        )
        if not group:
            return None
        found[group] = part
    return found


def without_hint(statement, parts):
    """The parts and operands but for advice about caches."""
    if HINT not in parts:
        return parts, list(statement.operands)
    return [part for part in parts if part != HINT], statement.operands[:-1]


def without_braces(op):
    """A vector of one element is that element, as Triton writes it."""
    return op.parts[0] if op.kind == "vector" and len(op.parts) == 1 else op


def plain(order):
    return order in ("", "weak")


def is_one_access(how, bits):
    """Whether a vector with an order is one access, as on GPUs: programs rely on it that have data
    beside flags, although PTX does not promise it."""
    return bool(how["vector"]) and not plain(how["order"]) and bits in (64, 128)


def load(emitter, statement, found):
    """ld, ldu: one value or a vector, plain or with an order."""
    parts, ops = without_hint(statement, found["parts"][:-1])
    how = sort(
        parts,
        mmio=("mmio",),
        order=ORDERS,
        scope=SCOPES,
        space=SPACES,
        cache=CACHES,
        cache2=CACHES,
        cache3=CACHES,
        vector=VECTORS,
    )
    type_ = found["T"]
    if (
        not how
        or type_ not in BYTE_TYPES
        or (how["mmio"] and (how["order"], how["scope"]) != ("relaxed", "sys"))
        or how["order"] in ("release", "acq_rel")
        or len(ops) != 2
    ):
        return None
    targets = ops[0].parts if how["vector"] else [without_braces(ops[0])]
    if how["vector"] and (ops[0].kind != "vector" or len(targets) != int(how["vector"][1])):
        return None
    at, order = emitter.address(ops[1], how["space"]), C_ORDER.get(how["order"])
    width = bits_of(type_)
    real = type_ if type_ in ("f32", "f64") else ""
    text = f"{{ char *const at = {at};"
    delayed = weak.applies(emitter, how["space"])
    if delayed:
        text += weak.load(how, len(targets), width)
    whole = width * len(targets)
    is_one = not delayed and is_one_access(how, whole)
    if is_one:
        text += f" const u{whole} all = ptx_ld_order_{whole}(at, __ATOMIC_{order});"
        text += "".join(
            f" const u{width} v{i} = (u{width})(all >> {i * width});" for i in range(len(targets))
        )
    for i, _ in enumerate(targets if not delayed and not is_one else []):
        where = f"at + {i * width // 8}"
        text += f" const u{width} v{i} = " + (
            f"ptx_ld_{width}({where});"
            if plain(how["order"])
            else f"ptx_ld_order_{width}({where}, __ATOMIC_{order});"
        )
    for i, target in enumerate(targets):
        text += " " + emitter.write(
            target, type_, f"ptx_{real}(v{i})" if real else f"({emitter.c_type(type_)})v{i}"
        )
    if not plain(how["order"]):
        text += " ptx_may_poll(at);"
    return text + " }"


def store(emitter, statement, found):
    """st."""
    parts, ops = without_hint(statement, found["parts"][:-1])
    how = sort(
        parts,
        mmio=("mmio",),
        order=ORDERS,
        scope=SCOPES,
        space=SPACES,
        cache=CACHES,
        cache2=CACHES,
        cache3=CACHES,
        vector=VECTORS,
    )
    type_ = found["T"]
    if (
        not how
        or type_ not in BYTE_TYPES
        or (how["mmio"] and (how["order"], how["scope"]) != ("relaxed", "sys"))
        or how["order"] in ("acquire", "acq_rel")
        or len(ops) != 2
    ):
        return None
    values = ops[1].parts if how["vector"] else [without_braces(ops[1])]
    if how["vector"] and (ops[1].kind != "vector" or len(values) != int(how["vector"][1])):
        return None
    width, order = bits_of(type_), C_ORDER.get(how["order"])
    text = f'{{ char *const at = {emitter.address(ops[0], how["space"])};'
    for i, value in enumerate(values):
        text += f' const u{width} v{i} = {emitter.read(value, f"b{width}")};'
    if weak.applies(emitter, how["space"]):
        return text + weak.store(how, len(values), width) + " }"
    whole = width * len(values)
    if is_one_access(how, whole):
        all_ = " | ".join(f"(u{whole})v{i} << {i * width}" for i in range(len(values)))
        return text + f" ptx_st_order_{whole}(at, {all_}, __ATOMIC_{order}); }}"
    for i, _ in enumerate(values):
        where = f"at + {i * width // 8}"
        text += (
            f" ptx_st_{width}({where}, v{i});"
            if plain(how["order"])
            else f" ptx_st_order_{width}({where}, v{i}, __ATOMIC_{order});"
        )
    return text + " }"


def atomic(emitter, statement, found):
    """atom and red: the old value to the result, if there is one; or each of a vector."""
    parts, ops = without_hint(statement, found["parts"])
    reduces = statement.opcode.startswith("red")
    type_ = next((part for part in parts if part in ATOMIC_TYPES), "")  # of vectors it stands first
    how = sort(
        parts,
        type_=(type_,),
        order=ORDERS,
        scope=SCOPES,
        space=SPACES,
        operation=OPERATIONS,
        ftz=("noftz",),
        vector=VECTORS,
    )
    if not how or not how["operation"] or how["order"] in ("weak", "volatile"):
        return None
    operation = how["operation"]
    target = None if reduces else ops.pop(0)
    values = ops[1:]
    if len(values) != (2 if operation == "cas" else 1):
        return None
    order = f'__ATOMIC_{C_ORDER[how["order"]]}'
    name, at = f"ptx_atom_{operation}_{type_}", emitter.address(ops[0], how["space"])
    if how["vector"]:
        text = atomic_vector(emitter, how, type_, (target, values[0]), (name, at, order))
        size = int(how["vector"][1]) * bits_of(type_) // 8
        return text and f"{weak.atomic(emitter, how, text, at, size)} gshmem_host_may_wait();"
    if not atomic_is_known(operation, type_, reduces):
        return None
    arguments = ", ".join(emitter.read(value, type_) for value in values)
    call = f"{name}({at}, {arguments}, {order})"
    text = f"(void){call};" if reduces else emitter.write(target, type_, call)
    text = weak.atomic(emitter, how, text, at, bits_of(type_) // 8)
    return f"{text} gshmem_host_may_wait();"


def atomic_vector(emitter, how, type_, operands, call):
    """Each element for itself: f32 is added, halves also have min and max."""
    target, values = operands
    name, at, order = call
    halves = type_ in ("f16", "bf16", "f16x2", "bf16x2")
    known = ("add", "min", "max") if halves else ("add",) if type_ == "f32" else ()
    count = int(how["vector"][1])
    if how["operation"] not in known or len(values.parts) != count:
        return None
    if target and target.text != "_" and len(target.parts) != count:
        return None
    text, width = f"{{ char *const at = {at};", bits_of(type_) // 8
    for i, value in enumerate(values.parts):
        text += f" const {emitter.c_type(type_)} v{i} = {emitter.read(value, type_)};"
    for i in range(count):
        one = f"{name}(at + {i * width}, v{i}, {order})"
        if target and target.parts:
            text += f" const {emitter.c_type(type_)} old{i} = {one};"
        else:
            text += f" (void){one};"
    for i, part in enumerate(target.parts if target else []):
        text += " " + emitter.write(part, type_, f"old{i}")
    return text + " }"


def atomic_is_known(operation, type_, reduces):
    integers = ("u32", "s32", "u64", "s64")
    known = {
        "add": integers + ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2"),
        "min": integers,
        "max": integers,
        "and": ("b32", "b64"),
        "or": ("b32", "b64"),
        "xor": ("b32", "b64"),
        "inc": ("u32",),
        "dec": ("u32",),
        "exch": ("b32", "b64", "b128"),
        "cas": ("b16", "b32", "b64", "b128"),
    }
    return type_ in known[operation] and not (reduces and operation in ("exch", "cas"))


def fence(emitter, statement, found):
    """fence and membar: x86 and the C++ model need no more than one kind, and proxies are one
    here."""
    parts = found["parts"]
    if statement.opcode.startswith("membar"):
        known = parts in (["cta"], ["gl"], ["sys"], ["proxy", "alias"])
    elif parts and parts[0] == "proxy":
        known = parts[1:] in (
            ["alias"],
            ["async"],
            ["async", "global"],
            ["async", "shared::cta"],
            ["async", "shared::cluster"],
            ["async::generic", "acquire", "sync_restrict::shared::cluster", "cluster"],
            ["async::generic", "release", "sync_restrict::shared::cta", "cluster"],
        )
    elif parts and parts[0] == "mbarrier_init":
        known = parts[1:] == ["release", "cluster"]
    elif "sync_restrict::shared::cluster" in parts or "sync_restrict::shared::cta" in parts:
        known = parts in (
            ["acquire", "sync_restrict::shared::cluster", "cluster"],
            ["release", "sync_restrict::shared::cta", "cluster"],
        )
    else:
        known = sort(
            parts, order=("sc", "acq_rel", "acquire", "release"), scope=SCOPES
        ) is not None and bool(parts)
    if known and emitter.weak:
        return weak.fence(statement.opcode, parts)
    return "gshmem_host_fence();" if known else None


def to_space(emitter, statement, found):
    """cvta: between generic addresses and those of a space."""
    parts, ops = list(found["parts"]), statement.operands
    back = parts[0] == "to" and bool(parts.pop(0))
    if len(parts) != 2 or parts[0] not in SPACES or parts[1] not in ("u64", "u32") or len(ops) != 2:
        return None
    value = emitter.read(ops[1], "u64", address=True)
    base = emitter.base_of(parts[0])
    if base:
        text = f"({value} - {base})" if back else f"({base} + (u64)(s64)(s32){value})"
        return emitter.write(ops[0], parts[1], text)
    if not parts[0].startswith("shared"):
        return emitter.write(ops[0], parts[1], value)
    text = (
        f"({value} - (u64)(uintptr_t)shared)"
        if back
        else f"((u64)(uintptr_t)shared + (u32){value})"
    )
    return emitter.write(ops[0], parts[1], text)


def is_in_space(emitter, statement, found):
    """isspacep."""
    space, ops = found["T"], statement.operands
    if space not in ("global", "local", "shared", "shared::cta", "shared::cluster"):
        return None
    kind = {"global": 0, "local": 1}.get(space, 2)
    return emitter.write(
        ops[0], "pred", f'gshmem_host_ptx_space({emitter.read(ops[1], "u64")}) == {kind}'
    )


def map_shared(emitter, statement, found):
    """mapa, getctarank: a block is a cluster of its own, whose only member has rank 0."""
    ops = statement.operands
    if statement.opcode.startswith("getctarank"):
        return emitter.write(ops[0], "u32", "0")
    return emitter.write(ops[0], found["T"], emitter.read(ops[1], found["T"], address=True))


def nothing(_, statement, found):
    """Advice about caches, which have no part in what is computed."""
    known = (
        "global",
        "local",
        "L1",
        "L2",
        "L1::evict_normal",
        "L2::evict_last",
        "L2::evict_normal",
        "L2::128B",
        "prefetch",
        "tensormap",
        "L2::evict_first",
        "const",
        "param",
    )
    return "" if set(found["parts"]) <= set(known) else None


ROWS = [
    Row("ld.*", "d at hint?", load),
    Row("ldu.*", "d at", load),
    Row("st.*", "at a hint?", store),
    Row("atom.*", "d at a b? hint?", atomic),
    Row("red.*", "at a hint?", atomic),
    Row("fence.*", "", fence),
    Row("membar.*", "", fence),
    Row("cvta.*", "d a", to_space),
    Row("isspacep.*", "p a", is_in_space),
    Row("mapa.*", "d a rank", map_shared),
    Row("getctarank.*", "d a", map_shared),
    Row("prefetch.*", "at", nothing),
    Row("prefetchu.*", "at", nothing),
    Row("applypriority.*", "at bytes", nothing),
    Row("discard.*", "at bytes", nothing),
    Row("createpolicy.*", "d *", lambda e, s, _: e.write(s.operands[0], "b64", "0")),
]
