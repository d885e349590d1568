"""Copies the documents for the site, and writes the site's configuration.

    python3 tools/site/pages.py FOLDER

The order of the site is that of docs/README.md. The documents are written for viewers of GitHub's Markdown; what
Python-Markdown reads differently is changed in the copies: nested lists, `|` in the code of a table's cell, links to folders.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
NO_LINK = re.compile(r"\](?=\([^)\s]+ [^)\"]*\))")  # a space ends the address: text for GitHub
CODE = re.compile(r"(`+)(.+?)\1")
LIST_ITEM = re.compile(r"( *)([-*+]|\d+\.) ")


def documents():
    """Paths of all documents, relative to the root; those of tests are for developers at their files."""
    try:
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                                cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):  # an archive of the tree
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md") if "build" not in path.relative_to(ROOT).parts[0]]
    return sorted(name for name in listed if name and not name.startswith("tests/") and (ROOT / name).is_file())


def title_of(name):
    if not name.endswith(".md"):
        return os.path.basename(name)
    head = next((line for line in (ROOT / name).read_text().splitlines() if line.startswith("# ")), "# " + name)
    return head[2:].replace("`", "")


def linked(page, text):
    """The files and folders that a page links to, in order, relative to the root."""
    for match in LINK.finditer(CODE.sub("", text)):
        target = match[2].split("#")[0]
        if target and not re.match(r"[a-z]+:", target):
            yield os.path.normpath(os.path.join(os.path.dirname(page), target))


# Markdown


def outside_of_blocks(text):
    """(line, whether it is prose): lines of fenced and of indented blocks are not."""
    fenced, in_list = False, False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if not fenced and not fence and line and not line.startswith(" "):
            in_list = bool(LIST_ITEM.match(line))
        yield line, not (fenced or fence) and (in_list or not line.startswith("    "))


def deeper(line):
    """A line inside of a list: the 2 or 3 spaces of a level become Python-Markdown's 4."""
    text = line.lstrip(" ")
    levels = {2: 1, 3: 1, 4: 2, 5: 2}.get(len(line) - len(text))
    return " " * (4 * levels) + text if levels else line


def cell_code(match):
    """Code in a table: a `\\|` is a `|` for GitHub, and Python-Markdown shows the backslash."""
    if "\\|" not in match[0]:
        return match[0]
    text = match[2].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\\|", "&#124;")
    return f"<code>{text}</code>"


def with_links(page, line, folders):
    def target(match):
        path = os.path.normpath(os.path.join(os.path.dirname(page), match[2].split("#")[0]))
        return match[1] + match[2].rstrip("/") + "/README.md" + match[3] if path in folders else match[0]

    parts = CODE.split(line)  # text, ticks, code, text, …
    return "".join(NO_LINK.sub(r"\]", LINK.sub(target, part)) if i % 3 == 0 else "" if i % 3 == 1 else parts[i - 1] + part + parts[i - 1]
                   for i, part in enumerate(parts))


def needs_blank_line(line, before):
    """Whether Python-Markdown takes an item of a list for a continuation of the lines before it."""
    if not before or not before[-1].strip() or not LIST_ITEM.match(line):
        return False
    if line.startswith("    "):  # the first item of a nested list
        return not any(LIST_ITEM.match(other) for other in last_paragraph(before) if other.startswith("    "))
    return last_paragraph(before)[0].startswith("    ")  # a second paragraph of the item before


def last_paragraph(lines):
    start = len(lines)
    while start > 0 and lines[start - 1].strip():
        start -= 1
    return lines[start:]


def for_the_site(page, text, folders):
    lines = []
    for line, is_prose in outside_of_blocks(text):
        if is_prose:
            line = with_links(page, deeper(line), folders)
            if needs_blank_line(line, lines):
                lines.append("")
            if line.startswith("|"):
                line = CODE.sub(cell_code, line)
        lines.append(line)
    return "\n".join(lines)


def list_of_pages(folder, names):
    pages = "\n".join(f"- [{title_of(name)}]({os.path.basename(name)})" for name in names)
    return f"# {os.path.basename(folder)}\n\n{pages}\n"


# The order


def ordered(page, names):
    """Documents among `names` that a page links to, in its order, then the others."""
    found = [name for name in dict.fromkeys(linked(page, (ROOT / page).read_text())) if name in names]
    return found + [name for name in names if name not in found]


def navigation(names, made):
    """The menu: what docs/README.md lists, its folders as sections. `made`: lists of the pages of folders."""
    sections = {"The pages behind the guide": "docs/guide/", "Coming from": "docs/coming_from/", "GPUs": "docs/gpu/",
                "Decisions": "docs/decisions/", "Measurements": ("docs/bench/", "bench/"), "Models and recipes": "models/"}
    all_folders = tuple(sum(((folder,) if isinstance(folder, str) else folder for folder in sections.values()), ()))
    of_sections = [name for name in names if name.startswith(all_folders)]
    first = [name for name in ordered("docs/README.md", names) if name not in of_sections and name != "docs/README.md"]
    menu = [{"Tandem": "README.md"}, {"All pages": "docs/README.md"}]
    menu += [{title_of(name): name} for name in first if name != "README.md"]
    for section, folder in sections.items():
        inside = [name for name in names if name.startswith(folder)]
        index = next((name for name in inside if name.endswith("/README.md") and name.count("/") == 1 + (name.startswith("docs/"))), None)
        pages = [{title_of(name): name} for name in ordered(index or "docs/README.md", inside)]
        if inside:
            menu.append({section: [name for name in made if name.startswith(folder)] + pages})
    return menu + [{os.path.dirname(name): name} for name in made if not name.startswith(all_folders)]


def configuration(names, made):
    return {
        "site_name": "Tandem",
        "docs_dir": ".",
        "exclude_docs": "mkdocs.yml",
        "use_directory_urls": False,  # pages can be opened as files
        "theme": {
            "name": "material",
            "font": False,  # that of the system: nothing comes from elsewhere
            "features": ["navigation.indexes", "navigation.top", "search.highlight", "search.suggest", "content.code.copy", "toc.follow"],
            "palette": [{"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "teal"},
                        {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "teal"}],
        },
        "extra": {"generator": False},
        "plugins": ["search"],
        "markdown_extensions": [
            "tables", "sane_lists", "pymdownx.superfences", "pymdownx.highlight",
            # GitHub's names of headings
            {"toc": {"permalink": True, "slugify": "SLUGIFY"}},
        ],
        "validation": {"omitted_files": "warn", "absolute_links": "warn", "unrecognized_links": "warn", "anchors": "warn"},
        "nav": navigation(names, made),
    }


def main():
    to = pathlib.Path(sys.argv[1])
    shutil.rmtree(to, ignore_errors=True)
    names = documents()
    texts = {name: (ROOT / name).read_text() for name in names}
    targets = {target for name in names for target in linked(name, texts[name])}
    folders = {target for target in targets if (ROOT / target).is_dir()}
    made = []
    for folder in sorted(folders):
        index = f"{folder}/README.md"
        if index not in names:
            made.append(index)
            inside = [name for name in names if os.path.dirname(name) == folder]
            if not inside:  # scripts
                inside = [f"{folder}/{path.name}" for path in sorted((ROOT / folder).iterdir()) if path.is_file()]
                targets.update(inside)
            texts[index] = list_of_pages(folder, inside)
    for name, text in texts.items():
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(for_the_site(name, text, folders))
    for target in targets - set(names):
        if (ROOT / target).is_file():  # a script, a header
            (to / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / target, to / target)
    # JSON is YAML, but for the function that makes names of headings.
    text = json.dumps(configuration(names, made), indent=2).replace('"SLUGIFY"', "!!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}")
    (to / "mkdocs.yml").write_text(text + "\n")
    print(f"{to}: {len(texts)} pages")


if __name__ == "__main__":
    main()
