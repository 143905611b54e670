"""The built documentation, as a reader without a network gets it.

Sphinx itself refuses links, pictures and pages that lead nowhere (`-W`). A headless
Chromium opens the files where there is one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests._commands import ROOT

bs4 = pytest.importorskip("bs4")
pytest.importorskip("sphinx")

DOCS = ROOT / "docs"
PAGES = sorted(str(p.relative_to(DOCS).with_suffix("")) for p in DOCS.rglob("*.md"))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
WIDTH = 1280  # of the window, in pixels


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    if "BUILT_DOCS" in os.environ:  # by `make test`, a moment ago
        return ROOT / os.environ["BUILT_DOCS"]
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-E", "-W", "-q", DOCS, folder]
    found = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=found, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def source(page: str) -> str:
    """What was written for a page, be it in another file."""
    path = DOCS / f"{page}.md"
    text = path.read_text(encoding="utf-8")
    include = re.search(r"\{include\} (\S+)", text)
    return (path.parent / include[1]).read_text(encoding="utf-8") if include else text


@pytest.mark.parametrize("page", PAGES)
def test_every_source_has_its_page(built, page):
    """Not one of Sphinx' own, of the same name; and equations are translated.

    Nothing is loaded from the network. Outside code, Sphinx makes one dash of two:
    `--seed` could not be copied.
    """
    built_page = (built / f"{page}.html").read_text(encoding="utf-8")
    html = bs4.BeautifulSoup(built_page, "html.parser")
    title = html.find("h1")
    own = title.text.removesuffix(title.find("a", class_="headerlink").text)
    assert own == re.search(r"^# (.*)", source(page), re.M)[1].replace("`", "")
    text = re.sub(r"```.*?```|`[^`]*`", "", source(page), flags=re.DOTALL)
    equations = re.findall(r"\$\$.+?\$\$|\$[^$]+\$", text, re.DOTALL)
    assert len(html.find_all("math")) == len(equations)
    shown = html.find("article").text
    assert not re.search(r"\\[(\[]|\\\w+\{", shown)
    assert not re.search(r"(?:^|[\s(])–[a-z]\S*", shown)
    for tag in html.find_all(["script", "link", "img", "iframe"]):
        assert "//" not in (tag.get("src") or tag.get("href") or ""), tag


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_in_a_browser(built, tmp_path):
    """Equations are drawn, no picture is missing, nothing is wider than the page."""
    frames = "".join(
        f'<iframe src="{(built / page).as_uri()}.html" name="{page}" '
        f'width="{WIDTH}" height="800"></iframe>'
        for page in PAGES
    )
    script = Path(__file__).with_name("look_at_pages.js").read_text(encoding="utf-8")
    probe = tmp_path / "probe.html"
    probe.write_text(f"{frames}<pre></pre><script>{script}</script>", encoding="utf-8")
    options = (
        *("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"),
        "--host-resolver-rules=MAP * ~NOTFOUND",  # no network
        "--allow-file-access-from-files",  # the script looks into the frames
        *("--virtual-time-budget=30000", "--dump-dom"),
    )
    done = subprocess.run(
        [CHROMIUM, *options, probe.as_uri()], capture_output=True, timeout=300
    )
    seen = bs4.BeautifulSoup(done.stdout, "html.parser").find("pre")
    assert seen and seen.text, done.stderr.decode()
    report = json.loads(seen.text)
    assert report.keys() == set(PAGES)
    assert not {page: found for page, found in report.items() if found}
