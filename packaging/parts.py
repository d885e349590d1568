#!/usr/bin/env python3
"""Writes what parts.toml says about the software inside the packages.

    packaging/parts.py sbom      --to FILE [--with cuda] [--with python]   list of parts as SPDX 2.3 JSON
    packaging/parts.py copyright --to FILE [--with …]                      Debian's copyright file, with texts of licences
    packaging/parts.py notices   --to FOLDER [--with python]               the licences that come with ONNX and oneDNN; for
                                                                           wheels also those of Debian's libraries inside
    packaging/parts.py check     FILES…                                    exit 1 if a file needs a library of no part

--onnx and --onednn name the folders that tools/setup.sh filled; default: what `tools/setup.sh --prefixes` prints.
Versions are those of this machine. The time of the list is SOURCE_DATE_EPOCH.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
INSIDE = ("static", "headers", "copied")


def version_of_tandem():
    return re.search(r"project\(Tandem VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def version_of(part):
    if "version" in part:
        return part["version"]
    if "setup" in part:
        return re.search(rf"(?m)^{part['setup']}=(\S+)", (ROOT / "tools/setup.sh").read_text())[1]
    try:
        asked = ["dpkg-query", "-W", "-f", "${Version}", part["debian"]]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "NOASSERTION"


def parts_of(kinds):
    with open(ROOT / "packaging/parts.toml", "rb") as file:
        parts = tomllib.load(file)["part"]
    return [part for part in parts if part.get("only_with") in (None, *kinds)]


def time_of_source():
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", name)


def spdx_package(name, version, licence, copyright_lines, purl=None):
    package = {
        "SPDXID": spdx_id(name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "\n".join("Copyright " + line for line in copyright_lines),
    }
    if purl:
        locator = purl if version == "NOASSERTION" else f"{purl}@{version.replace('+', '%2B').replace(':', '%3A')}"
        package["externalRefs"] = [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]
    return package


RELATIONS = {"static": "STATIC_LINK", "headers": "CONTAINS", "copied": "CONTAINS", "loaded": "DYNAMIC_LINK"}


def sbom(parts):
    version = version_of_tandem()
    packages = [spdx_package("Tandem", version, "Apache-2.0", ["The Tandem authors"])]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-Tandem"}]
    for part in parts:
        packages.append(spdx_package(part["name"], version_of(part), part["licence"], part["copyright"], part.get("purl")))
        relations.append({"spdxElementId": "SPDXRef-Tandem", "relationshipType": RELATIONS[part["how"]],
                          "relatedSpdxElement": spdx_id(part["name"])})
    own = sorted({word for part in parts for word in re.findall(r"LicenseRef-\S+", part["licence"])})
    digest = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()[:32]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"tandem-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/tandem-{version}-{digest}",
        "creationInfo": {"created": time_of_source(), "creators": [f"Tool: tandem-parts-{version}"]},
        "packages": packages,
        "relationships": relations,
    }
    if own:
        document["hasExtractedLicensingInfos"] = [
            {"licenseId": name, "name": name, "extractedText": "The text comes with the part itself."} for name in own]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def folded(lines):
    """Continuation lines of a field."""
    return "".join(f" {line}\n" if line.strip() else " .\n" for line in lines)


DEBIAN_NAMES = {"MIT": "Expat", "BSD-3-Clause": "BSD-3-clause"}


def copyright_file(parts):
    text = ("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Tandem\n"
            "Comment: Parts of other projects are named with the file or folder that they became part of.\n\n"
            "Files: *\nCopyright: The Tandem authors\nLicense: Apache-2.0\n")
    licences = {"Apache-2.0"}
    for part in parts:
        if part["how"] not in INSIDE:
            continue
        name = DEBIAN_NAMES.get(part["licence"], part["licence"])
        licences.add(part["licence"])
        place = re.sub(r"[^a-z0-9+]+", "-", part["name"].lower())
        text += f"\nFiles: parts/{place}/*\nCopyright: " + "\n           ".join(part["copyright"])
        text += f"\nLicense: {name}\nComment: {part['name']}, {part['how']}\n"
    for licence in sorted(licences):
        file = ROOT / "packaging/licences" / (licence + ".txt")
        lines = file.read_text().splitlines() if file.exists() else ["The text comes with the part itself."]
        text += f"\nLicense: {DEBIAN_NAMES.get(licence, licence)}\n" + folded(lines)
    return text


def prefixes(arguments):
    """Folders of ONNX, oneDNN and cpp-httplib; "system" where a package of the system brings it."""
    printed = subprocess.run([ROOT / "tools/setup.sh", "--prefixes"], capture_output=True, text=True, check=True).stdout
    folders = dict(line.split("=", 1) for line in printed.splitlines())
    return folders | {name: path for name in ("onnx", "onednn") if (path := getattr(arguments, name))}


def write_notices(parts, folders, to, of_wheel):
    to.mkdir(parents=True, exist_ok=True)
    for part in parts:
        if of_wheel and "debian" in part and (part["how"] in INSIDE or part.get("in_wheel")):
            text = pathlib.Path("/usr/share/doc", part["debian"], "copyright").read_bytes()
            (to / f"{part['debian']}.copyright").write_bytes(text)
        for notice in part.get("notice", []):
            owner, path = notice.split(":", 1)
            is_left_out = owner == "httplib" and not pathlib.Path(folders[owner]).is_dir()  # this build has no page
            if folders[owner] != "system" and not is_left_out:
                source = pathlib.Path(folders[owner]) / path
                (to / f"{owner}.{source.name}").write_bytes(source.read_bytes())


def needed(file):
    printed = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", printed)


def unknown_libraries(parts, files):
    known = ["libtandem"] + [start for part in parts for start in part.get("libraries", [])]
    return [f"{file}: {name} belongs to no part of packaging/parts.toml"
            for file in files for name in needed(file) if not name.startswith(tuple(known))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sbom", "copyright", "notices", "check"])
    parser.add_argument("files", nargs="*", help="for check")
    parser.add_argument("--to", type=pathlib.Path)
    parser.add_argument("--with", dest="kinds", action="append", default=[], choices=["cuda", "python"])
    parser.add_argument("--onnx")
    parser.add_argument("--onednn")
    arguments = parser.parse_args()
    parts = parts_of(arguments.kinds)
    if arguments.what == "check":
        problems = unknown_libraries(parts, arguments.files)
        print("\n".join(problems) if problems else f"{len(arguments.files)} files, every library belongs to a part")
        return 1 if problems else 0
    if arguments.what == "notices":
        write_notices(parts, prefixes(arguments), arguments.to, "python" in arguments.kinds)
        return 0
    text = sbom(parts) if arguments.what == "sbom" else copyright_file(parts)
    if arguments.to is None:
        sys.stdout.write(text)
        return 0
    arguments.to.parent.mkdir(parents=True, exist_ok=True)
    arguments.to.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
