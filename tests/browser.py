"""A page in headless Chromium, at any width: what it says on the console, and where its images are.

The page is shown in a frame of the wanted width, because a window of Chromium has a least width.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --disable-dev-shm-usage "
    "--enable-logging=stderr --virtual-time-budget=20000 --dump-dom"
).split()
# Runs inside the page, when everything is loaded.
REPORT = """<script>
addEventListener("load", () => {
  const images = [...document.images].map(image => {
    const box = image.getBoundingClientRect();
    return {natural: image.naturalWidth, left: box.left, right: box.right, height: box.height,
            shown: image.checkVisibility()};
  });
  const page = document.documentElement;
  parent.postMessage({images, width: innerWidth, needed: page.scrollWidth}, "*");
});
</script>"""
FRAME = """<!doctype html>
<link rel="icon" href="data:,"><iframe id="page" style="border: 0"></iframe>
<pre></pre><script>
const frame = document.getElementById("page");
addEventListener("message", event => {
  document.querySelector("pre").textContent = JSON.stringify(event.data);
});
frame.width = WIDTH; frame.height = 900; frame.src = "page.html";
</script>"""


class Seen(NamedTuple):
    """images: naturalWidth, box and visibility of each; width: of the view; needed: to show all."""

    images: list[dict[str, Any]]
    width: int
    needed: int
    console: list[str]


def look_at(page: Path, width: int, folder: Path) -> Seen:
    """Open the page in a view of that many pixels; the folder is for copies."""
    assert CHROMIUM is not None
    text = page.read_text(encoding="utf-8")
    (folder / "page.html").write_text(text.replace("</body>", f"{REPORT}</body>"), "utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)), "utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size=1600,1200"]
    done = subprocess.run(
        [*command, frame.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r"<pre>(.+?)</pre>", done.stdout, flags=re.DOTALL)
    assert found, f"the page has not been loaded: {done.stderr[-2000:]}"
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Seen(**json.loads(html.unescape(found[1])), console=console)
