"""Checks that no page of the site takes anything from elsewhere when it is opened.

    python3 tools/site/check_site.py FOLDER
"""
import html.parser
import pathlib
import re
import sys

ELSEWHERE = re.compile(r"(?:https?:)?//", re.I)
# What a browser takes by itself when it opens a page; `a` waits for a click.
TAKEN = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data", "video": "src", "audio": "src"}
NOT_TAKEN = {"canonical", "prev", "next", "alternate"}
IN_STYLES = re.compile(r"""(?:@import\s*|url\(\s*)["']?((?:https?:)?//[^"')\s]+)""", re.I)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        address = values.get(TAKEN.get(tag, ""), "") or ""
        if ELSEWHERE.match(address) and values.get("rel") not in NOT_TAKEN:
            self.found.append(f"<{tag}> takes {address}")


def findings(path):
    text = path.read_text(errors="replace")
    page = Page()
    if path.suffix == ".html":
        page.feed(text)
    return page.found + [f"a style takes {address}" for address in IN_STYLES.findall(text)]


def main():
    site = pathlib.Path(sys.argv[1])
    pages = sorted(path for path in site.rglob("*") if path.suffix in (".html", ".css"))
    problems = [f"{path}: {finding}" for path in pages for finding in findings(path)]
    if not (site / "search" / "search_index.json").is_file():
        problems.append(f"{site}: there is no index for the search")
    for problem in problems:
        print(problem)
    print(f"check_site: {len(pages)} files, {len(problems)} findings")
    return 1 if problems or len(pages) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
