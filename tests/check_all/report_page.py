"""Opens a report of two short runs in a headless Chromium, on a wide and on a narrow screen, light and dark.

    python3 tests/check_all/report_page.py [--keep FOLDER]     FOLDER gets the page and its screenshots

Without chromium, chromium-browser or google-chrome it is skipped with a message.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from common import BINARY, ROOT

NAMES = ["chromium", "chromium-browser", "google-chrome", "chrome"]
# Runs in a copy of the page whose policy for scripts is taken away.
PROBE = """<script>addEventListener("load", () => {
  const wide = [...document.querySelectorAll("body *")].filter(e => !e.closest(".table") && !e.closest("pre") && !e.closest("svg") &&
      e.getBoundingClientRect().right > innerWidth + 1).map(e => e.className || e.tagName);
  const plots = [...document.querySelectorAll(".plot")], first = plots[0].getBoundingClientRect();
  plots[0].dispatchEvent(new PointerEvent("pointermove", { clientX: first.left + first.width / 2, bubbles: true }));
  const readout = document.querySelector(".readout:not([hidden])");
  document.body.dataset.probe = JSON.stringify({ inner: innerWidth, page: document.documentElement.scrollWidth, wide: wide.slice(0, 5),
      plots: plots.length, readout: readout ? readout.textContent : "" }).replaceAll('"', "'");
});</script>"""


def browse(browser, page, size, *more):
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", f"--window-size={size}", "--hide-scrollbars",
                   "--enable-logging=stderr", "--virtual-time-budget=4000", *more, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=pathlib.Path)
    keep = parser.parse_args().keep
    browser = next((path for path in map(shutil.which, NAMES) if path), None)
    if browser is None:
        print(f"skipped: there is none of {', '.join(NAMES)}")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        runs = [folder / "short-1", folder / "short-2"]
        for run, rate in zip(runs, ("2e-3", "1e-2")):
            shutil.rmtree(run, ignore_errors=True)
            command = [BINARY, "train", ROOT / "models/digits/train.toml", "epochs=3", f"optimizer.lr={rate}", "log.every=5 steps",
                       'eval.metrics=["accuracy", "confusion"]', 'log.norms=["**"]', "--log-operators", "--run-dir", run]
            subprocess.run(list(map(str, command)), check=True, stderr=subprocess.DEVNULL)
        page, probed = folder / "report.html", folder / "probed.html"
        subprocess.run([str(BINARY), "report", *map(str, runs), "--to", str(page)], check=True)
        mistakes = []
        # As it is: its own script runs (it shows the boxes that switch runs off), and nothing is refused.
        whole = browse(browser, page, "1280,900", "--dump-dom")
        if re.search(r"Content Security Policy|Uncaught|SyntaxError", whole.stderr):
            mistakes.append(whole.stderr)
        if re.search(r'<input type="checkbox"[^>]*hidden', whole.stdout):
            mistakes.append("the page's script has not run")
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
        probed.write_text(text.replace("</body>", PROBE + "</body>"))
        for size in ("1280,900", "360,780"):
            for dark in ("", "--blink-settings=preferredColorScheme=0"):
                more = [dark] if dark else []
                dom = browse(browser, probed, size, "--dump-dom", *more).stdout
                found = re.search(r'data-probe="([^"]*)"', dom)
                print(size, "dark" if dark else "light", found.group(1) if found else "no answer")
                if not found:
                    mistakes.append(f"{size}: the probe has not run")
                    continue
                inner, width = (int(re.search(rf"'{name}':(\d+)", found.group(1)).group(1)) for name in ("inner", "page"))
                if width > inner + 1:
                    mistakes.append(f"{size}: the page is {width} pixels wide: {found.group(1)}")
                if "'readout':''" in found.group(1):
                    mistakes.append(f"{size}: no numbers under the pointer")
                if keep:
                    name = f"report-{size.split(',')[0]}{'-dark' if dark else ''}.png"
                    browse(browser, page, size.split(",")[0] + ",6000", f"--screenshot={folder / name}", *more)
        for mistake in mistakes:
            print("FAILED:", mistake)
        return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
