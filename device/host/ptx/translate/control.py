"""The table of instructions that concern threads and control: branches, calls, barriers, warps,
time."""

from emit import Unknown, c_name
from memory import C_ORDER, sort
from patterns import Row
from weak import END, FLUSH

HERE = "__FILE__, __LINE__"
BARRIER = {
    "popc": "GSHMEM_HOST_BARRIER_COUNT",
    "and": "GSHMEM_HOST_BARRIER_AND",
    "or": "GSHMEM_HOST_BARRIER_OR",
}
REDUCE = {
    ("add", "u32"): "ADD",
    ("add", "s32"): "ADD",
    ("min", "u32"): "MIN",
    ("max", "u32"): "MAX",
    ("min", "s32"): "MIN_SIGNED",
    ("max", "s32"): "MAX_SIGNED",
    ("and", "b32"): "AND",
    ("or", "b32"): "OR",
    ("xor", "b32"): "XOR",
}
# What kernels call without defining it: the library's functions, by their PTX name.
LIBRARY = {
    "vprintf": "gshmem_host_ptx_printf",
    "malloc": "gshmem_host_ptx_malloc",
    "free": "gshmem_host_ptx_free",
    "gshmem_host_range_begins": "gshmem_host_ptx_range_begins",
    "gshmem_host_range_ends": "gshmem_host_ptx_range_ends",
    "__assertfail": "gshmem_host_ptx_assert",
}


def warp(kind, mask, value, source="0"):
    return f"gshmem_host_warp(GSHMEM_HOST_WARP_{kind}, {mask}, {value}, {source}, {HERE})"


def branch(emitter, statement, _):
    target = emitter.find(":" + statement.operands[0].text)
    if not target:
        raise Unknown(f"no label {statement.operands[0].text}")
    return f"goto {target.text};"


def branch_table(emitter, statement, _):
    """brx.idx: a label by its number."""
    table = emitter.find(":" + statement.operands[1].text)
    index = emitter.read(statement.operands[0], "u32")
    beyond = f'gshmem_host_trap("brx.idx beyond its table", {HERE});'
    if emitter.flow:
        by_label = {}
        for i, label in enumerate(table.labels):
            by_label.setdefault(label, []).append(f"{index} == {i}")
        ways = "".join(
            f'if ({emitter.part(statement, " || ".join(numbers))}) '
            f'goto {emitter.find(":" + label).text}; '
            for label, numbers in by_label.items()
        )
        return ways + beyond
    cases = "".join(
        f' case {i}: goto {emitter.find(":" + label).text};' for i, label in enumerate(table.labels)
    )
    return f"switch ({index}) {{{cases} default: {beyond} }}"


def call(emitter, statement, _):
    """call: direct or by an address; parameters and results are arrays of bytes."""
    ops = list(statement.operands)
    results = ops.pop(0).parts if ops[0].kind == "list" else []
    callee = ops.pop(0)
    arguments = ops.pop(0).parts if ops and ops[0].kind == "list" else []
    wrong = emitter.wrong_arguments(callee.text, len(results), len(arguments))
    if wrong:
        raise Unknown(wrong)
    texts = []
    for argument in results + arguments:
        if argument.kind != "word" or emitter.symbol(argument.text).kind != "param":
            raise Unknown("an argument that is no .param variable")
        texts.append(emitter.symbol(argument.text).text)
    if callee.text in LIBRARY and not emitter.is_defined(callee.text):
        before = FLUSH if emitter.weak else ""
        return f'{before}{LIBRARY[callee.text]}({", ".join(texts)});'
    found = emitter.symbol(callee.text)
    types = ["u8 *"] * len(texts)
    if emitter.weak:
        texts, types = ["weak"] + texts, ["struct ptx_weak *"] + types
    if emitter.flow:
        texts, types = ["lanes"] + texts, ["struct ptx_lanes *"] + types
    if found.kind == "reg":
        types = ", ".join(types) or "void"
        return f'((void (*)({types}))(uintptr_t){found.text})({", ".join(texts)});'
    if found.kind != "function" or not emitter.is_defined(callee.text):
        raise Unknown(f"{callee.text} is not defined in this module")
    return f'{found.text}({", ".join(texts)});'


def leave(emitter, statement, _):
    if emitter.function.entry or statement.opcode.startswith("ret"):
        return emitter.returns()
    return (END if emitter.weak else "") + "gshmem_host_ptx_exit();"


def barrier(emitter, statement, found):
    """bar and barrier for the block: all threads, or some of them at a barrier with a number."""
    parts, ops = [p for p in found["parts"] if p not in ("cta", "aligned")], statement.operands
    wait = "gshmem_host_ptx_barrier_counted" if emitter.arrives else "gshmem_host_ptx_barrier"
    if parts == ["sync"]:
        if is_plain(emitter, ops[0], len(ops) > 1):
            return f"gshmem_host_barrier_block(GSHMEM_HOST_BARRIER, 0, {HERE});"
        number, threads = emitter.read(ops[0], "u32"), count(emitter, ops, 1)
        return f"{wait}({number}, {threads}, 0, 0, {HERE});"
    if parts == ["arrive"]:
        number, threads = emitter.read(ops[0], "u32"), count(emitter, ops, 1)
        return f"gshmem_host_ptx_arrive({number}, {threads}, {HERE});"
    if parts not in (["red", "popc", "u32"], ["red", "and", "pred"], ["red", "or", "pred"]):
        return None
    predicate = emitter.read(ops[-1], "pred")
    if is_plain(emitter, ops[1], len(ops) > 3):
        text = f"gshmem_host_barrier_block({BARRIER[parts[1]]}, {predicate}, {HERE})"
    else:
        text = (
            f'{wait}({emitter.read(ops[1], "u32")}, '
            f"{count(emitter, ops[:-1], 2)}, "
            f"{BARRIER[parts[1]]}, {predicate}, {HERE})"
        )
    return emitter.write(ops[0], parts[2], f"(u32){text}")


def is_plain(emitter, number, counted):
    """Barrier 0 for all threads, where none arrives without waiting: __syncthreads()."""
    return number.kind == "number" and not number.offset and not counted and not emitter.arrives


def may_arrive_at_0(statement):
    """bar.arrive, unless at another barrier for certain."""
    parts = statement.opcode.split(".")
    if parts[0] not in ("bar", "barrier") or "arrive" not in parts or "cluster" in parts:
        return False
    number = statement.operands[0] if statement.operands else None
    return not number or number.kind != "number" or not number.offset


def count(emitter, ops, at):
    return emitter.read(ops[at], "u32") if len(ops) > at else "0"


def cluster_barrier(_, __, found):
    """barrier.cluster: a block is a cluster of its own."""
    parts = [part for part in found["parts"] if part != "aligned"]
    if parts[1:2] == ["arrive"] and set(parts[2:]) <= {"release", "relaxed"}:
        return "gshmem_host_ptx_cluster_arrive();"
    if parts[1:2] == ["wait"] and set(parts[2:]) <= {"acquire"}:
        return "gshmem_host_ptx_cluster_wait();"
    return None


def warp_barrier(emitter, statement, _):
    mask = emitter.read(statement.operands[0], "u32")
    return f'(void){warp("SYNC", mask, "0")};'


def shuffle(emitter, statement, found):
    ops = statement.operands
    first, second = ops[0].parts if ops[0].kind == "pair" else (ops[0], None)
    b, c = emitter.read(ops[2], "u32"), emitter.read(ops[3], "u32")
    value, mask = emitter.read(ops[1], "b32"), emitter.read(ops[4], "u32")
    text = (
        f'{{ u8 inside; const u32 source = ptx_shuffle_{found["shuffle"]}({b}, {c}, &inside); '
        + emitter.write(first, "b32", f'(u32){warp("SHUFFLE", mask, value, "source")}')
    )
    if second:
        text += " " + emitter.write(second, "pred", "inside")
    return text + " }"


def vote(emitter, statement, found):
    ops, parts = statement.operands, found["parts"]
    if len(parts) != 3 or parts[0] != "sync":
        return None
    mask, yes = emitter.read(ops[2], "u32"), f'({emitter.read(ops[1], "pred")})'
    if parts[1:] == ["ballot", "b32"]:
        return emitter.write(ops[0], "u32", f'(u32){warp("BALLOT", mask, yes)}')
    if parts[2] != "pred" or parts[1] not in ("all", "any", "uni"):
        return None
    some, none = warp("BALLOT", mask, yes), warp("BALLOT", mask, f"!{yes}")
    if parts[1] == "any":
        return emitter.write(ops[0], "pred", f"{some} != 0")
    if parts[1] == "all":
        return emitter.write(ops[0], "pred", f"{none} == 0")
    same = emitter.write(ops[0], "pred", "all | !some")
    return f"{{ const u8 some = {some} != 0, all = {none} == 0; {same} }}"


def match(emitter, statement, found):
    ops, parts = statement.operands, found["parts"]
    if len(parts) != 3 or parts[1] != "sync" or parts[2] not in ("b32", "b64"):
        return None
    mask, value = emitter.read(ops[2], "u32"), emitter.read(ops[1], parts[2])
    if parts[0] == "any":
        return emitter.write(ops[0], "u32", f'(u32){warp("MATCH", mask, value)}')
    first, second = ops[0].parts if ops[0].kind == "pair" else (ops[0], None)
    text = f'{{ const u32 same = (u32){warp("MATCH_ALL", mask, value)}; ' + emitter.write(
        first, "u32", "same"
    )
    return text + (" " + emitter.write(second, "pred", "same != 0") if second else "") + " }"


def reduce_warp(emitter, statement, found):
    ops, parts = statement.operands, found["parts"]
    kind = REDUCE.get((parts[1], parts[2])) if len(parts) == 3 and parts[0] == "sync" else None
    if not kind:
        return None
    value, mask = emitter.read(ops[1], "u32"), emitter.read(ops[2], "u32")
    return emitter.write(ops[0], "u32", f"(u32){warp(kind, mask, value)}")


def elect(emitter, statement, _):
    """elect.sync: the lowest lane of the mask."""
    ops = statement.operands
    mask = emitter.read(ops[1], "u32")
    first, second = ops[0].parts if ops[0].kind == "pair" else (None, ops[0])
    text = (
        f'{{ const u32 mask = {mask}, leader = ptx_lowest(mask); (void){warp("SYNC", "mask", "0")};'
    )
    if first:
        text += " " + emitter.write(first, "u32", "leader")
    return text + " " + emitter.write(second, "pred", "leader == gshmem_host_lane()") + " }"


def active_mask(emitter, statement, _):
    text = f"gshmem_host_active_mask({HERE})"
    if emitter.flow:
        text = f'(u32){warp("BALLOT", "lanes->mask", "1")}'
    return emitter.write(statement.operands[0], "u32", text)


def trap(_, statement, __):
    return f'gshmem_host_trap("{statement.opcode}", {HERE});'


def nothing(_, __, ___):
    return ""


def multimem(emitter, statement, found):
    """multimem: loads, stores and reductions at an address that stands for several memories."""
    how = sort(
        found["parts"][:-1],
        kind=("ld_reduce", "st", "red"),
        order=("weak", "relaxed", "release", "acquire"),
        scope=("cta", "cluster", "gpu", "sys"),
        space=("global",),
        vector=("v2", "v4", "v8"),
        operation=("add", "min", "max", "and", "or", "xor"),
        wide=("acc::f32", "acc::f16"),
    )
    if not how or not how["kind"]:
        return None
    ops, type_ = list(statement.operands), found["T"]
    values = ops.pop(0) if how["kind"] == "ld_reduce" else ops[1]
    parts = values.parts if values.kind == "vector" else [values]
    at, bits = emitter.address(ops[0], "global"), emitter.bits(type_)
    operation = {"st": "PTX_STORE"}.get(how["kind"], f'PTX_{how["operation"].upper()}')
    name = type_.upper() + ("_WIDE" if how["wide"] == "acc::f32" else "")
    text = "{"
    for i, part in enumerate(parts):
        where = f"{at} + {i} * sizeof(u{bits[1:]})"
        if how["kind"] == "ld_reduce":
            text += (
                f" const u{bits[1:]} v{i} = (u{bits[1:]})"
                f"gshmem_host_ptx_multimem_load({where}, {operation}, "
                f"PTX_{name}, {HERE});"
            )
        else:
            text += (
                f" gshmem_host_ptx_multimem_store({where}, {emitter.read(part, bits)}, "
                f"{operation}, "
                f"PTX_{name}, "
                f'__ATOMIC_{C_ORDER["" if how["order"] == "weak" else how["order"]]}, {HERE});'
            )
    if how["kind"] == "ld_reduce":
        text += "".join(" " + emitter.write(part, bits, f"v{i}") for i, part in enumerate(parts))
    return text + " }"


ROWS = [
    Row("bra", "label", branch),
    Row("bra.uni", "label", branch),
    Row("brx.idx", "a labels", branch_table),
    Row("brx.idx.uni", "a labels", branch_table),
    Row("call", "function *", call),
    Row("call.uni", "function *", call),
    Row("ret", "", leave),
    Row("ret.uni", "", leave),
    Row("exit", "", leave),
    Row("bar.warp.sync", "mask", warp_barrier),
    Row("bar.red.*", "d a b c?", barrier),
    Row("bar.cta.red.*", "d a b c?", barrier),
    Row("bar.*", "a b?", barrier),
    Row("barrier.cluster.*", "", cluster_barrier),
    Row("barrier.red.*", "d a b c?", barrier),
    Row("barrier.cta.red.*", "d a b c?", barrier),
    Row("barrier.*", "a b?", barrier),
    Row("shfl.sync.@SHUFFLE.b32", "d a b c mask", shuffle),
    Row("vote.*", "d a mask", vote),
    Row("match.*", "d a mask", match),
    Row("redux.*", "d a mask", reduce_warp),
    Row("elect.sync", "d mask", elect),
    Row("activemask.b32", "d", active_mask),
    Row(
        "nanosleep.u32",
        "a",
        lambda e, s, _: f'gshmem_host_sleep({e.read(s.operands[0], "u32")});',
    ),
    Row("trap", "", trap),
    Row("brkpt", "", trap),
    Row("pmevent", "a", nothing),  # counts for a profiler
    Row("pmevent.mask", "a", nothing),
    Row("griddepcontrol.wait", "", nothing),  # grids of a stream run one after another
    Row("griddepcontrol.launch_dependents", "", nothing),
    Row("setmaxnreg.*", "a", nothing),  # a number of registers
    Row("multimem.*", "a b", multimem),
]
