"""That names.py notices what is wrong: names, files, links, records, in a small tree."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import names

SOURCE = """#define N(x) x
static int declared(int a);
extern "C" {
static inline int defined(int (*f)(int), int a)
{
    return within(a) ? '{' : f("}"[0]); /* commented() { } */
}
}
template <int n> int templated(int a) { return a; }
struct shape {
    int a;
};
"""


class Names(unittest.TestCase):
    def tree(self, page):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path, text in {"docs/reading.md": page, "a/b.c": SOURCE}.items():
            os.makedirs(os.path.dirname(os.path.join(folder.name, path)), exist_ok=True)
            with open(os.path.join(folder.name, path), "w", encoding="utf-8") as file:
                file.write(text)
        return names.wrong(folder.name)

    def expect(self, page, line):
        self.assertEqual(self.tree(page), ["docs/reading.md: " + line])

    def test_right(self):
        places = "`a/b.c:defined` `a/b.c:templated` `a/b.c:shape` `a/b.c`"
        self.assertEqual(self.tree(places + " [it](../a/b.c#L1) [else](https://x.org)"), [])

    def test_wrong(self):
        for name in ("define", "declared", "within", "commented", "N"):
            self.expect(f"`a/b.c:{name}`", f"a/b.c does not define {name}")
        self.expect("`a/b.c:defined` `a/c.c:defined`", "there is no a/c.c")
        self.expect("`a/b.c:defined` [it](b.c)", "the link b.c leads nowhere")

    def test_record(self):
        record = "docs/decisions/" + "0001"  # in two parts, or this file would name one
        self.expect(f"`a/b.c:defined` {record}", "there is no record 0001")

    def test_nothing(self):
        self.assertEqual(len(self.tree("no place")), 1)


if __name__ == "__main__":
    unittest.main()
