#!/usr/bin/env python3
"""Pictures as a browser draws them: each result is a mark that can be seen, axes have their units, and no text is over
another text or cut off. A script in the page asks the browser for the boxes; `plot.py` computes them instead.

    pictures.py GSHMEM-PLOT GSHMEM-INFO"""

import csv
import glob
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import plot

PLOT, INFO = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
ASK = """<script>
const seen = b => b.width > 0.5 && b.height > 0.5;
const found = [...document.querySelectorAll("svg")].map(svg => {
  const whole = svg.getBoundingClientRect(), wrong = [];
  const outside = b => b.left < whole.left - 0.5 || b.right > whole.right + 0.5 || b.top < whole.top - 0.5 ||
                       b.bottom > whole.bottom + 0.5;
  const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
  texts.forEach(([a, box], i) => {
    if (!seen(box)) wrong.push(`${a} cannot be seen`);
    if (outside(box)) wrong.push(`${a} is cut off`);
    texts.slice(0, i).forEach(([b, other]) => {
      if (Math.min(box.right, other.right) - Math.max(box.left, other.left) > 0.5 &&
          Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 0.5) wrong.push(`${a} is over ${b}`);
    });
  });
  const marks = [...svg.querySelectorAll(".mark")];
  marks.forEach(m => { if (outside(m.getBoundingClientRect())) wrong.push(`a mark is outside: ${m.textContent}`); });
  return {texts: texts.map(t => t[0]), wrong,
          marks: marks.filter(m => m.getBoundingClientRect().width > 0 && m.getBoundingClientRect().height > 0).length};
});
const said = document.createElement("pre");
said.id = "said";
said.textContent = JSON.stringify(found);
document.body.append(said);
</script>"""


def browser():
    named = os.environ.get("GSHMEM_TEST_BROWSER")
    return named or next((path for path in map(shutil.which, BROWSERS)
                          if path and os.path.basename(os.path.realpath(path)) != "snap"), None)  # sees no /tmp


def look(program, folder, page):
    """What the browser says of each picture of the page."""
    path = os.path.join(folder, "asked.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page.replace("</body>", ASK + "</body>"))
    done = subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           "--user-data-dir=" + os.path.join(folder, "browser"), "--dump-dom", "file://" + path],
                          capture_output=True, text=True, timeout=100, env=dict(os.environ, HOME=folder))
    said = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.S)
    assert said, f"{program} ended with {done.returncode}, and the page says nothing: {done.stderr[-2000:]}"
    return json.loads(html.unescape(said[1]))


def check(found, what, pictures, marks, units):
    assert len(found) == pictures, f"{what}: {len(found)} pictures, not {pictures}"
    wrong = [line for picture in found for line in picture["wrong"]]
    assert not wrong, f"{what}: {len(wrong)} are wrong, such as: {wrong[:5]}"
    seen = [picture["marks"] for picture in found]
    assert sum(seen) == marks, f"{what}: {seen} marks can be seen, of {marks}"
    for picture, wanted in zip(found, units):
        missing = [unit for unit in wanted if unit not in picture["texts"]]
        assert not missing, f"{what}: no axis says {missing}, but {picture['texts']}"


def draw(folder, *inputs):
    done = plot.plot(*inputs, "-o", folder)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder, "index.html"), encoding="utf-8") as file:
        return file.read()


def check_made(program, folder):
    """Results that were made for this: two runs, all marks."""
    files = []
    for name, factor in (("before", 1), ("now", 0.7)):
        files.append(os.path.join(folder, f"{name}.csv"))
        with open(files[-1], "w", encoding="utf-8") as file:
            file.write(plot.results("GSHMEM <0.1.0> & more", factor, sorted(k << i for k in (4, 6) for i in range(24))))
    rows = sum(len(list(csv.DictReader(open(path, encoding="utf-8")))) for path in files)
    found = look(program, folder, draw(os.path.join(folder, "made"), *files))
    check(found, "two runs", 3, rows, [["bytes", "µs"], ["bytes", "GB/s"], ["ns"]])


def points(path):
    """Of recorded results: rounds, whose median is one mark."""
    with open(path, encoding="utf-8") as file:
        return len({(row["library"], row["pes"], row["benchmark"], row["unit"], row["size"]) for row in csv.DictReader(file)
                    if float(row["median"]) > 0})


def check_recorded(program, folder):
    for path in sorted(glob.glob(os.path.join(HERE, "results/*-shmem-pairs.csv")) +
                       glob.glob(os.path.join(HERE, "results/*-shmem-crowded.csv")))[-2:]:
        found = look(program, folder, draw(os.path.join(folder, "recorded"), path))
        assert len(found) > 1, f"{path}: {len(found)} pictures"
        check(found, path, len(found), points(path), [])


def check_job(program, folder):
    paths = [os.path.join(folder, name) for name in ("times.json", "stats.json")]
    for pes, squares, bars in ((4, 4, 4), (100, 100, 48)):
        for path, made in zip(paths, (plot.times(pes), plot.counts(pes))):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(made, file)
        found = look(program, folder, draw(os.path.join(folder, "job"), *paths))
        # of those who wait, PE 0 does so for nobody alone
        check(found, f"a job of {pes} PEs", 5, 3 * bars + 3 * squares - 1 + bars,
              [["ms"], ["PE", "the other PE"], ["PE", "the other PE"], ["PE"], ["ms of waiting"]])


def check_topology(program, folder):
    path = os.path.join(folder, "topology.svg")
    done = subprocess.run([INFO, "--topology", "--svg", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8") as file:
        found = look(program, folder, f"<!DOCTYPE html><html><body>{file.read()}</body></html>")
    check(found, "the topology", 1, found[0]["marks"], [])
    assert found[0]["marks"] > 0, "the topology has nothing in it"


def check_detector(program, folder):
    """A page with two mistakes, which are found."""
    found = look(program, folder, '<!DOCTYPE html><html><body><svg width="200" height="60"><text x="5" y="20">one text</text>'
                 '<text x="20" y="22">another</text><text x="190" y="50">cut</text><rect class="mark" x="5" y="40" width="0" '
                 'height="5"/></svg></body></html>')
    assert found[0]["marks"] == 0 and found[0]["wrong"] == ["another is over one text", "cut is cut off"], found


def main():
    program = browser()
    if not program:
        print(f"SKIP: no browser is installed: none of {', '.join(BROWSERS)}")
        return 77
    with tempfile.TemporaryDirectory(prefix="gshmem-test-pictures-", ignore_cleanup_errors=True) as folder:
        for part in (check_detector, check_made, check_recorded, check_job, check_topology):
            part(program, folder)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AssertionError as wrong:
        print(wrong)
        sys.exit(1)
