"""The table of asynchronous instructions: barriers in memory (mbarrier), and copies, stores and
reductions that tell one when they are done, or that a thread waits for in groups.

All of them are done when they are issued, so that waiting for a group is waiting for nothing.
"""

from memory import BYTE_TYPES, SCOPES, atomic_is_known, sort
from patterns import Row

HERE = "__FILE__, __LINE__"
SHARED = ("shared", "shared::cta", "shared::cluster")
COMPLETES = "mbarrier::complete_tx::bytes"
HINTS = ("L2::cache_hint", "L2::64B", "L2::128B", "L2::256B")
OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
VECTORS = ("v2", "v4")


def address(emitter, op):
    """An address that is in shared memory, whatever it is called."""
    return emitter.address(op, "shared")


def completes(emitter, barrier, size):
    """So many bytes are under way no longer."""
    return f"(void)ptx_mbarrier_update({address(emitter, barrier)}, 0, 0, -(s64){size}, {HERE});"


# ---- Barriers in memory ----


def barrier_begin(emitter, statement, found):
    """mbarrier.init, mbarrier.inval."""
    how, ops = sort(found["parts"][1:-1], space=("shared", "shared::cta")), statement.operands
    begins = found["parts"][0] == "init"
    if not how or found["T"] != "b64" or len(ops) != 1 + begins:
        return None
    at = emitter.address(ops[0], how["space"])
    if begins:
        return f'ptx_mbarrier_init({at}, {emitter.read(ops[1], "u32")}, {HERE});'
    return f"ptx_st_64({at}, 0);"


def barrier_bytes(emitter, statement, found):
    """mbarrier.expect_tx, mbarrier.complete_tx."""
    how = sort(found["parts"][1:-1], order=("relaxed",), scope=("cta", "cluster"), space=SHARED)
    if not how or found["T"] != "b64":
        return None
    at = emitter.address(statement.operands[0], how["space"])
    size = f'(s64){emitter.read(statement.operands[1], "u32")}'
    sign = "-" if found["parts"][0] == "complete_tx" else ""
    return f"(void)ptx_mbarrier_update({at}, 0, 0, {sign}{size}, {HERE});"


def barrier_arrive(emitter, statement, found):
    """mbarrier.arrive, mbarrier.arrive_drop: the state before; with a count, or bytes to expect."""
    how = sort(
        found["parts"][1:-1],
        kind=("expect_tx", "noComplete"),
        order=("release", "relaxed"),
        scope=("cta", "cluster"),
        space=SHARED,
    )
    ops = statement.operands
    if not how or found["T"] != "b64" or (how["kind"] and len(ops) != 3):
        return None
    number = emitter.read(ops[2], "u32") if len(ops) == 3 else "1"
    count, size = ("1", number) if how["kind"] == "expect_tx" else (number, "0")
    dropped = count if found["parts"][0] == "arrive_drop" else "0"
    at = emitter.address(ops[1], how["space"])
    state = f"ptx_mbarrier_update({at}, {count}, {dropped}, (s64){size}, {HERE})"
    return emitter.write(ops[0], "b64", state)


def barrier_wait(emitter, statement, found):
    """mbarrier.test_wait, mbarrier.try_wait: by a state, or by a parity."""
    kind, *parts = found["parts"][:-1]
    how = sort(
        parts,
        parity=("parity",),
        order=("acquire", "relaxed"),
        scope=("cta", "cluster"),
        space=("shared", "shared::cta"),
    )
    ops = statement.operands
    if not how or found["T"] != "b64" or len(ops) > (4 if kind == "try_wait" else 3):
        return None
    at = emitter.address(ops[1], how["space"])
    # the lowest bit of a state is its phase's parity
    parity = f'(u32){emitter.read(ops[2], "b32" if how["parity"] else "b64")}'
    name = "ptx_mbarrier_try" if kind == "try_wait" else "ptx_mbarrier_test"
    return emitter.write(ops[0], "pred", f"{name}({at}, {parity})")


def barrier_missing(emitter, statement, _):
    """mbarrier.pending_count: the arrivals that were missing in a state."""
    state = emitter.read(statement.operands[1], "b64")
    return emitter.write(statement.operands[0], "b32", f"ptx_mbarrier_of({state}).missing")


# ---- Copies ----


def copy(emitter, statement, found):
    """cp.async: 4, 8 or 16 bytes to shared memory; those that the source lacks are 0."""
    how = sort(
        found["parts"][1:],
        cache=("ca", "cg"),
        to=("shared", "shared::cta"),
        source=("global",),
        hint=HINTS,
        hint2=HINTS,
    )
    ops = list(statement.operands)
    if not how or not how["cache"] or not how["to"] or not how["source"]:
        return None
    if "L2::cache_hint" in (how["hint"], how["hint2"]):
        ops.pop()
    size = ops[2].offset
    if ops[2].kind != "number" or size not in ((4, 8, 16) if how["cache"] == "ca" else (16,)):
        return None
    if len(ops) not in (3, 4):
        return None
    given = ops[3] if len(ops) == 4 else ops[2]
    if emitter.is_predicate(given):  # whether the source is ignored
        amount = f'({emitter.read(given, "pred")}) ? 0 : {size}'
    else:
        amount = emitter.read(given, "u32")
    to, source = address(emitter, ops[0]), emitter.address(ops[1], "global")
    return f"ptx_copy_async({to}, {source}, {size}, {amount});"


def copy_arrive(emitter, statement, found):
    """cp.async.mbarrier.arrive: when the thread's copies are done. Without .noinc the arrival is
    due in addition, so that nothing changes."""
    how = sort(found["parts"][3:-1], noinc=("noinc",), space=("shared", "shared::cta"))
    if not how or found["T"] != "b64":
        return None
    at = emitter.address(statement.operands[0], how["space"])
    return f"(void)ptx_mbarrier_update({at}, {1 if how['noinc'] else 0}, 0, 0, {HERE});"


def copy_bulk(emitter, statement, found):
    """cp.async.bulk between global and shared memory: completes at a barrier, or in a group."""
    parts, ops = [p for p in found["parts"][2:] if p != "L2::cache_hint"], list(statement.operands)
    if "L2::cache_hint" in found["parts"]:
        ops.pop()
    to_shared = parts[:1] in (["shared::cluster"], ["shared::cta"])
    only = ""
    if parts[-1:] == ["multicast::cluster"]:  # to blocks by a mask: there is one, with the number 0
        parts, only = parts[:-1], f'if ({emitter.read(ops.pop(), "b16")} & 1) '
        to_shared = to_shared and parts[1:2] == ["global"]
    if to_shared and parts[1:] in (["global", COMPLETES], ["shared::cta", COMPLETES]):
        if len(ops) != 4:
            return None
        source = emitter.address(ops[1], "global" if parts[1] == "global" else "shared")
        size = emitter.read(ops[2], "u32")
        done = f"ptx_copy_bulk({address(emitter, ops[0])}, {source}, {size}, {HERE});"
        return f"{only}{{ {done} {completes(emitter, ops[3], size)} }}"
    masked = parts[3:] == ["cp_mask"]
    if only or parts[:3] != ["global", "shared::cta", "bulk_group"] or len(parts) > 3 + masked:
        return None
    if len(ops) != 3 + masked:
        return None
    to, source = emitter.address(ops[0], "global"), address(emitter, ops[1])
    arguments = f'{to}, {source}, {emitter.read(ops[2], "u32")}'
    if masked:
        return f'ptx_copy_bulk_masked({arguments}, {emitter.read(ops[3], "b16")}, {HERE});'
    return f"ptx_copy_bulk({arguments}, {HERE});"


def reduce_bulk(emitter, statement, found):
    """cp.reduce.async.bulk: an atomic operation on each element."""
    parts, ops = [p for p in found["parts"][3:] if p != "L2::cache_hint"], list(statement.operands)
    if "L2::cache_hint" in found["parts"]:
        ops.pop()
    to, how = parts[:3], sort(parts[3:-1], ftz=("noftz",), operation=OPERATIONS)
    type_ = reduction_type(found["T"], how)
    if not type_:
        return None
    at_barrier = to == ["shared::cluster", "shared::cta", COMPLETES]
    if not (at_barrier and len(ops) == 4) and not (
        to == ["global", "shared::cta", "bulk_group"] and len(ops) == 3
    ):
        return None
    target = address(emitter, ops[0]) if at_barrier else emitter.address(ops[0], "global")
    element, size = emitter.c_type(type_), emitter.read(ops[2], "u32")
    text = (
        f"{{ char *const at = {target}; const char *const from = {address(emitter, ops[1])}; "
        f"const u32 bytes = {size}; ptx_copy_check(at, from, bytes, {HERE}); "
        f"for (u32 i = 0; i < bytes; i += sizeof({element})) {{ {element} value; "
        f"memcpy(&value, from + i, sizeof value); "
        f"(void)ptx_atom_{how['operation']}_{type_}(at + i, value, __ATOMIC_RELAXED); }}"
    )
    return text + (f' {completes(emitter, ops[3], "bytes")}' if at_barrier else "") + " }"


def reduction_type(type_, how):
    """The type by which the function of an atomic operation is called; None: there is none."""
    if not how or not how["operation"]:
        return None
    if how["operation"] in ("add", "inc", "dec") and type_ == "s64":
        return None
    return type_ if atomic_is_known(how["operation"], type_, True) else None


# ---- Stores and reductions of one value ----


def store_async(emitter, statement, found):
    """st.async: to shared memory, with a barrier; or with release to global memory."""
    parts, ops, type_ = found["parts"][1:-1], statement.operands, found["T"]
    how = sort(
        parts,
        order=("weak", "release"),
        mmio=("mmio",),
        scope=SCOPES,
        space=("shared::cluster", "global"),
        completes=(COMPLETES,),
        vector=VECTORS,
    )
    if not how or type_ not in BYTE_TYPES or type_ == "b128":
        return None
    bits, values = emitter.bits(type_), [ops[1]]
    if how["order"] == "release" and len(ops) == 2 and not how["completes"] and not how["vector"]:
        at = emitter.address(ops[0], "global")
        value = emitter.read(ops[1], bits)
        return f"ptx_st_order_{bits[1:]}({at}, {value}, __ATOMIC_RELEASE);"
    if how["vector"]:
        values = ops[1].parts
        if ops[1].kind != "vector" or len(values) != int(how["vector"][1]):
            return None
    if not how["completes"] or len(ops) != 3 or how["scope"] or how["order"] == "release":
        return None
    width, at = int(bits[1:]) // 8, address(emitter, ops[0])
    text = "".join(
        f"ptx_st_{bits[1:]}({at} + {i * width}, {emitter.read(value, bits)}); "
        for i, value in enumerate(values)
    )
    return text + completes(emitter, ops[2], width * len(values))


def reduce_async(emitter, statement, found):
    """red.async: in shared memory, with a barrier; or with release in global memory."""
    how = sort(
        found["parts"][1:-1],
        order=("relaxed", "release"),
        mmio=("mmio",),
        scope=SCOPES,
        space=("shared::cluster", "global"),
        completes=(COMPLETES,),
        operation=OPERATIONS,
    )
    ops, type_ = statement.operands, reduction_type(found["T"], how)
    if not type_ or type_ not in ("u32", "s32", "u64", "s64", "b32", "b64"):
        return None
    value = emitter.read(ops[1], type_)
    name = f"ptx_atom_{how['operation']}_{type_}"
    if how["completes"] and how["space"] != "global" and len(ops) == 3:
        if how["order"] == "release":
            return None
        done = f"(void){name}({address(emitter, ops[0])}, {value}, __ATOMIC_RELAXED);"
        return f"{done} {completes(emitter, ops[2], int(emitter.bits(type_)[1:]) // 8)}"
    if how["order"] != "release" or how["completes"] or len(ops) != 2:
        return None
    return f'(void){name}({emitter.address(ops[0], "global")}, {value}, __ATOMIC_RELEASE);'


def nothing(_, __, ___):
    """Of copies that are done already."""
    return ""


ROWS = [
    Row("mbarrier.init.*", "at a", barrier_begin),
    Row("mbarrier.inval.*", "at", barrier_begin),
    Row("mbarrier.expect_tx.*", "at a", barrier_bytes),
    Row("mbarrier.complete_tx.*", "at a", barrier_bytes),
    Row("mbarrier.arrive.*", "d at a?", barrier_arrive),
    Row("mbarrier.arrive_drop.*", "d at a?", barrier_arrive),
    Row("mbarrier.test_wait.*", "p at a", barrier_wait),
    Row("mbarrier.try_wait.*", "p at a hint?", barrier_wait),
    Row("mbarrier.pending_count.b64", "d a", barrier_missing),
    Row("cp.async.commit_group", "", nothing),
    Row("cp.async.wait_group", "a", nothing),
    Row("cp.async.wait_all", "", nothing),
    Row("cp.async.mbarrier.arrive.*", "at", copy_arrive),
    Row("cp.async.bulk.commit_group", "", nothing),
    Row("cp.async.bulk.wait_group", "a", nothing),
    Row("cp.async.bulk.wait_group.read", "a", nothing),
    Row("cp.async.bulk.prefetch.L2.global", "at a", nothing),
    Row("cp.async.bulk.prefetch.L2.global.L2::cache_hint", "at a hint", nothing),
    Row("cp.async.bulk.*", "at from a b? c? hint?", copy_bulk),
    Row("cp.reduce.async.bulk.*", "at from a b? c?", reduce_bulk),
    Row("cp.async.*", "at from a b? c?", copy),
    Row("st.async.*", "at a barrier?", store_async),
    Row("red.async.*", "at a barrier?", reduce_async),
]
