"""That tidy.py notices each kind of thing that it looks for, in a small tree; and nothing in a tidy one."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy

GOOD = {
    "runtime/base/README.md": "`log.{h,c}`: lines\n",
    "runtime/base/log.h": "void log_line(void);\n",
    "runtime/base/log.c": '#include "runtime/base/log.h"\nvoid log_line(void)\n{\n}\n',
    "runtime/node/README.md": "`node.c`: PEs of a node. `data_*.c`: variables\n",
    "runtime/node/node.c": '#include "runtime/base/log.h"\nstatic int node_count(void)\n{\n    return 0;\n}\n',
    "runtime/node/data_share.c": "static int data_share(void)\n{\n    return 0;\n}\n",
    "include/README.md": "all\n",
    "include/gshmem.h": "/* Says which PE this is. */\nint gshmem_my_pe(void);\nint gshmem_n_pes(void);\n",
}


class Tidy(unittest.TestCase):
    def wrong(self, **changes):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path, text in {**GOOD, **changes.pop("files", {})}.items():
            os.makedirs(os.path.dirname(os.path.join(folder.name, path)), exist_ok=True)
            with open(os.path.join(folder.name, path), "w", encoding="utf-8") as file:
                file.write(text)
        return tidy.wrong(folder.name)

    def expect(self, files, *words):
        lines = self.wrong(files=files)
        self.assertEqual(len(lines), 1, lines)
        for word in words:
            self.assertIn(word, lines[0])

    def test_good(self):
        self.assertEqual(self.wrong(), [])

    def test_lengths(self):
        self.expect({"runtime/node/node.c": "/* " + "x" * 98 + " */\n"}, "node.c:1", "columns", "clang-format")
        long = {"runtime/node/node.c": "\n" * 501}
        self.expect(long, "node.c", "501 lines", "README.md")
        self.assertEqual(self.wrong(files={**long, "runtime/node/README.md":
                                           "`data_*.c`\n`node.c` is over 500 lines: it is one table\n"}), [])

    def test_leftovers(self):
        self.expect({"runtime/node/node.c.orig": ""}, "runtime/node/node.c.orig", "leftover")

    def test_rooms(self):
        self.expect({"runtime/node/more.c": ""}, "runtime/node/README.md", "does not name more.c")
        self.expect({"device/cuda/a.c": ""}, "device/cuda", "no README.md")

    def test_arrows(self):
        self.expect({"runtime/base/log.c": '#include "runtime/node/data_share.h"\n', "runtime/node/data_share.h": ""},
                    "runtime/base/log.c", "runtime/node/data_share.h", "below")
        self.expect({"transport/README.md": "a b", "transport/a.c": '#include "runtime/node/n.h"\n',
                     "runtime/node/n.h": ""}, "transport/a.c", "below")
        self.expect({"runtime/node/a.h": '#include "runtime/node/b.h"\n', "runtime/node/b.h":
                     '#include "runtime/node/a.h"\n'}, "circle", "runtime/node/a runtime/node/b")

    def test_names(self):
        self.expect({"runtime/node/node.c": "static void log_line(void)\n{\n}\n"}, "log_line", "prefix")

    def test_words(self):
        self.expect({"runtime/node/node.c": 'static int a_nap; /* cargo */ char *s = "hub";\n'}, "a_nap", "glossary")

    def test_public(self):
        self.expect({"include/gshmem.h": "int gshmem_my_pe(void);\n"}, "include/gshmem.h:1", "gshmem_my_pe")


if __name__ == "__main__":
    unittest.main()
