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
    def tree(self, page, files=None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path, text in {"docs/reading.md": page, "a/b.c": SOURCE, **(files or {})}.items():
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

    def test_paths(self):
        good = "`b.c` `a/b.c` `b.{c,h}` `*.h` `a/` `made.h` `../a/b.h` `a b` `tests/run --quick`\n"
        files = {"a/b.h": "", "a/README.md": good, "a/meson.build": "'made.h'", "tests/run": ""}
        self.assertEqual(self.tree("`a/b.c:defined`", files), [])
        for path in ("gone.c", "a/gone.c", "b.{c,cu}", "c/", "a/gone*.h", "../b.h", "tests/walk --quick"):
            lines = self.tree("`a/b.c:defined`", {**files, "a/README.md": f"`{path}`"})
            self.assertEqual(len(lines), 1, (path, lines))
            self.assertIn("a/README.md: there is no ", lines[0])

    def test_pairs(self):
        def pairs(comment, path="a/c.c"):
            return self.tree("`a/b.c:defined`", {path: f"/* {comment} */\n", "tests/t.c": "void shown(void)\n{\n}\n"})

        for comment in ("acquire: pairs with the release in defined, which\n * may return", "pairs with the release below",
                        "acquire: with the release in defined. It is not in gone", "pairs with the acquire of another PE"):
            self.assertEqual(pairs(comment), [])
        for comment in ("pairs with the release in gone", "acquire: with the release in gone()", "pairs with the release\n"
                        " * in gone", "pairs with the fence and update in\n * gone", "Pairs with it_is_gone"):
            self.assertIn("gone, which is no function", pairs(comment)[0])
        self.assertEqual(len(pairs("pairs with the release in shown")), 1)
        self.assertEqual(pairs("pairs with the release in shown", "tests/c.c"), [])

    def test_nothing(self):
        self.assertEqual(len(self.tree("no place")), 1)


if __name__ == "__main__":
    unittest.main()
