#!/usr/bin/env python3
"""Writes the changelog of the Debian packages: one entry for this version, dated SOURCE_DATE_EPOCH.

    packaging/debian/changelog.py --version 0.1.0-1 --maintainer 'NAME <ADDRESS>' --to FILE
"""
import argparse
import email.utils
import os
import pathlib


def changelog(version, maintainer):
    date = email.utils.formatdate(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    upstream = version.rpartition("-")[0]
    return (f"tandem ({version}) unstable; urgency=medium\n\n  * Packages of Tandem {upstream}.\n\n"
            f" -- {maintainer}  {date.replace('-0000', '+0000')}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--maintainer", required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.to.parent.mkdir(parents=True, exist_ok=True)
    arguments.to.write_text(changelog(arguments.version, arguments.maintainer), encoding="utf-8")


if __name__ == "__main__":
    main()
