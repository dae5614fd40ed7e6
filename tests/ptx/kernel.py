"""A kernel under test: PTX, how many threads, and what each of them ought to find."""

from dataclasses import dataclass
from typing import Callable

NOT_IN_STEP = "not"  # lanes wait for each other at different places

FRAME = """
.visible .entry {name}(.param .u64 out)
{{
    .reg .b32 %t, %d, %a<16>;
    .reg .b64 %at, %out, %l<16>;
    .reg .b16 %h<8>;
    .reg .pred %p<8>;
    mov.u32 %t, %tid.x;
    ld.param.u64 %out, [out];
    mad.wide.u32 %at, %t, 4, %out;
    mov.u32 %d, 0;
{body}
    st.global.u32 [%at], %d;
    ret;
}}
"""


@dataclass
class Kernel:
    """The body leaves a result of 32 bits in %d; %t is the thread. want(thread): the result, or
    None where anything is right; no want: the launch has to fail. outside: variables and
    functions. in_step: what is wanted where lanes run in lock step, if it is something else."""

    name: str
    want: Callable
    body: str
    threads: int = 32
    outside: str = ""
    in_step: object = None

    def wanted(self, lock_step):
        return self.in_step if lock_step and self.in_step else self.want

    def text(self):
        return self.outside + FRAME.format(name=self.name, body=self.body.strip("\n"))
