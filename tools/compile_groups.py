#!/usr/bin/env python3
"""Chooses which C++ files are compiled together: prints "TARGET<tab>GROUP<tab>FILE" for each file of a group.

    tools/compile_groups.py --most 128 [--edited EDITED.txt] FOLDER

Each file of FOLDER has the name of a library or program and lists its C++ files. A group has at most --most KiB of source.
Two files are never in one group where a name of one file's anonymous namespace means something else in the other.

EDITED.txt lists files that someone is editing. They are compiled separately, so an edit compiles one file. A + in front of a line marks
a new file, which leaves the other groups unchanged.
"""
import argparse
import functools
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
ALIAS = re.compile(r"(?:using|namespace) (\w+) = ([^;]*)")
USING = re.compile(r"using ((?:::)?(?:\w+::)+(\w+));")
TYPE = re.compile(r"(?:template .*> )?(?:struct|class|enum class|enum) (\w+)(?: final)?(?: :|\s*\{|;)")
NAME = re.compile(r"(?!using |namespace |static_assert|return |template )(?:\[\[\w+\]\] )?"
                  r"\w[\w:<>,&*\s\[\]]*?[\s&*>](\w+)(?:\(|\{| = |;|\[)")
MANY_OF_A_NAME = {"PrintTo"}  # GoogleTest asks for that name: one for each type
OPEN_GROUPS = 3  # a file that does not go with the newest group may go with one before


def own_names(lines):
    """The names in a file's anonymous namespaces: None, or what another name stands for."""
    own, is_inside = {}, False
    for line in lines:
        if line.startswith("namespace {"):
            is_inside = True
        elif line.startswith("}  // namespace"):
            is_inside = False
        elif is_inside and (match := ALIAS.match(line)):
            own[match.group(1)] = match.group(2)
        elif is_inside and (match := USING.match(line)):
            own[match.group(2)] = match.group(1)
        elif is_inside and (match := TYPE.match(line) or NAME.match(line)):
            if match.group(1) not in MANY_OF_A_NAME:
                own[match.group(1)] = None
    return own


@functools.cache
def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def our_headers(path):
    for line in lines_of(path):
        if line.startswith("#") and (match := INCLUDE.match(line)):
            for folder in (ROOT, os.path.join(ROOT, "include"), os.path.dirname(path)):
                header = os.path.join(folder, match.group(1))
                if os.path.isfile(header):
                    yield os.path.normpath(header)
                    break


@functools.cache
def header_names(path):
    """The functions and types that a header declares in the namespaces that it opens."""
    matches = (TYPE.match(line) or NAME.match(line) for line in lines_of(path) if line[:1].isalpha() or line.startswith("[["))
    return {match.group(1) for match in matches if match}


def seen_names(path):
    """What the headers of a file declare, with all that they include."""
    names, headers, waiting = set(), set(), list(our_headers(path))
    while waiting:
        header = waiting.pop()
        if header not in headers:
            headers.add(header)
            names |= header_names(header)
            waiting += our_headers(header)
    return names


class File:
    def __init__(self, path):
        self.path = path
        self.bytes = os.path.getsize(path)
        self.own = own_names(lines_of(path))
        self.hiding = {name for name, meaning in self.own.items() if meaning is None}
        self.seen = seen_names(path)

    def goes_with(self, other):
        for name in self.own.keys() & other.own.keys():
            if self.own[name] is None or self.own[name] != other.own[name]:
                return False
        return not (self.hiding & other.seen or other.hiding & self.seen)


def groups_of(files, most):
    """Fills groups in the order of the files. A group that is half full ends with its folder, so that a new file moves few."""
    done, fillable = [], []
    folder = None
    for file in files:
        if os.path.dirname(file.path) != folder:
            folder = os.path.dirname(file.path)
            fillable = [group for group in fillable if sum(each.bytes for each in group) < most / 2]
        for group in reversed(fillable):
            if sum(each.bytes for each in group) + file.bytes <= most and all(map(file.goes_with, group)):
                group.append(file)
                break
        else:
            done.append([file])
            fillable = [*fillable[1 - OPEN_GROUPS:], done[-1]]
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, required=True, metavar="KIB")
    parser.add_argument("--edited", metavar="FILE")
    parser.add_argument("folder")
    arguments = parser.parse_args()
    listed = lines_of(arguments.edited) if arguments.edited else []
    new = {os.path.join(ROOT, name[1:]) for name in listed if name.startswith("+")}
    edited = {os.path.join(ROOT, name) for name in listed}
    for target in sorted(os.listdir(arguments.folder)):
        files = [File(path) for path in lines_of(os.path.join(arguments.folder, target)) if path not in new
                 # The pragma would apply to the files after it.
                 and not any(line.startswith("#pragma GCC") for line in lines_of(path))]
        for group in groups_of(files, arguments.most << 10):
            name = os.path.splitext(os.path.relpath(group[0].path, ROOT))[0]
            for file in group:
                if file.path not in edited:
                    print(target, re.sub(r"\W", "_", name), file.path, sep="\t")


if __name__ == "__main__":
    main()
