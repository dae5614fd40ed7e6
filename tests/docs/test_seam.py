"""That seam.py notices calls past the seam, in a small tree, and takes nothing else for one."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import seam

RIGHT = """/* poll(2) and send(2) are in comments */
int a = system_poll(&p, 1, 0) + s->send(s, m) + ops.bind(d) + my_connect(1);
log_error("recv() has failed"); // listen(1)
ssize_t (*send)(void *to, int poll);
"""


class Seam(unittest.TestCase):
    def tree(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder.name, path)), exist_ok=True)
            with open(os.path.join(folder.name, path), "w", encoding="utf-8") as file:
                file.write(text)
        return seam.wrong(folder.name)

    def test_right(self):
        self.assertEqual(self.tree({"transport/tcp/a.c": RIGHT, "runtime/tools/b.c": "poll(0);",
                                    "device/cuda/c.c": "poll(0);", "bootstrap/run/d.c": "poll(0);"}), [])

    def test_wrong(self):
        for path in ("runtime/a.c", "runtime/node/a.h", "transport/tcp/a.c", "bootstrap/uid/a.c",
                     "bootstrap/run/client.c", "bootstrap/stream.c"):
            lines = self.tree({path: "int x;\n\nif (poll (&p, 1, 0) < 0)\n    y = recv(1);\n"})
            self.assertEqual([line.split(" ")[:2] for line in lines],
                             [[path + ":3:", "poll"], [path + ":4:", "recv"]])
        self.assertIn("system_futex", self.tree({"runtime/a.c": "syscall(SYS_futex, w, 0);"})[0])


if __name__ == "__main__":
    unittest.main()
