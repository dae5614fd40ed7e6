"""Weak memory: the C text of accesses that are delayed and reordered as PTX allows it. What the
functions do that it calls is in weak_stores.c and weak_loads.c."""

SCOPES = {
    "cta": "PTX_CTA",
    "cluster": "PTX_CTA",  # a block is a cluster of its own
    "gpu": "PTX_GPU",
    "gl": "PTX_GPU",
    "sys": "PTX_SYS",
}
# Memory of the thread's own, and constants, are as they are.
OWN = ("local", "const", "param", "param::entry", "param::func")

# What looks at memory itself, as it is then.
WHOLE = ("cp", "multimem", "ldmatrix", "stmatrix", "movmatrix", "mma")

SETTLE = "gshmem_host_ptx_weak_settle(weak);"
FLUSH = "gshmem_host_ptx_weak_flush(weak);"
END = "gshmem_host_ptx_weak_end(weak);"


def acquire(scope):
    return f"gshmem_host_ptx_weak_acquire(weak, {SCOPES[scope]});"


def release(scope):
    return f"gshmem_host_ptx_weak_release(weak, {SCOPES[scope]});"


def has_order(order, wanted):
    return order in (wanted, "acq_rel")


def applies(emitter, space):
    return emitter.weak and space not in OWN


def access(how, cached=()):
    """What is said of an access: a sum of enum ptx_access."""
    words = []
    if how["order"] not in ("", "weak"):
        words.append("PTX_STRONG")
    if how["order"] == "acquire":
        words.append("PTX_ACQUIRES")
    if how["mmio"]:
        words.append("PTX_MMIO")
    if not how["space"]:
        words.append("PTX_GENERIC")
    if "nc" in cached:
        words.append("PTX_READ_ONLY")
    return " | ".join(words) or "0"


def load(how, count, width):
    """The values v0, v1, ... of a load at `at`, which may be of a vector."""
    flags = access(how, (how["cache"], how["cache2"], how["cache3"]))
    text = "".join(
        f" const u{width} v{i} = ptx_weak_ld_{width}(weak, at + {i * width // 8}, {flags});"
        for i in range(count)
    )
    return text + (f' {acquire(how["scope"])}' if how["order"] == "acquire" else "")


def store(how, count, width):
    """Stores of v0, v1, ...: each for itself, also those of a vector."""
    text = f' {release(how["scope"])}' if how["order"] == "release" else ""
    return text + "".join(
        f" ptx_weak_st_{width}(weak, at + {i * width // 8}, v{i}, {access(how)});"
        for i in range(count)
    )


def atomic(emitter, how, text, at, size):
    """An atomic operation, which is done in memory at once."""
    if not applies(emitter, how["space"]):
        return text
    scope, order = how["scope"] or "gpu", how["order"]
    before = release(scope) if has_order(order, "release") else ""
    after = acquire(scope) if has_order(order, "acquire") else ""
    return (
        f"{{ char *const place = {at}; {before} gshmem_host_ptx_weak_update(weak, place, {size}); "
        f"{text} gshmem_host_ptx_weak_updated(weak, place, {size}); {after} }}"
    )


def fence(opcode, parts):
    """fence and membar. Those between proxies need nothing: operations of other proxies are done
    at once, and are fences."""
    if parts[0] == "proxy":
        return ""
    if opcode.startswith("membar"):
        return f"gshmem_host_ptx_weak_fence_sc(weak, {SCOPES[parts[0]]});"
    if parts[0] == "mbarrier_init":
        return release("cta")
    scope = next(part for part in parts if part in SCOPES)
    if "sc" in parts:
        return f"gshmem_host_ptx_weak_fence_sc(weak, {SCOPES[scope]});"
    kind = next((part for part in parts if part not in SCOPES), "acq_rel")
    return (release(scope) if has_order(kind, "release") else "") + (
        acquire(scope) if has_order(kind, "acquire") else ""
    )


def around(opcode):
    """What comes before and after other instructions."""
    first = opcode.split(".")[0]
    if opcode.startswith(("st.async", "red.async")) or first in WHOLE:
        return FLUSH, "gshmem_host_ptx_weak_wrote(weak);"
    if first in ("bar", "barrier", "mbarrier"):
        return SETTLE, acquire("cta")
    if first in ("shfl", "vote", "match", "redux", "elect", "activemask"):
        return SETTLE, ""  # the others may wait for what this thread has stored
    if first == "nanosleep":
        return "gshmem_host_ptx_weak_sleep(weak);", ""
    return "", ""
