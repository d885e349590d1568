#!/usr/bin/env bash
# Installs the wheel on a bare root as an ordinary user, trains, removes it, and shows that nothing is left.
#
#   packaging/check_wheel.sh FOLDER [ROOT]
#
# FOLDER has the wheels; pip takes the one for the root's Python. ROOT is a root made by debootstrap, of which a copy is
# used, or the name of a distribution (default: that of this machine). Needs root; prints the seconds of each step.
set -euo pipefail
folder=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/bare_root.sh"

make_root "${@:2:1}"
step "apt-get update" apt update
step "install Python with pip" apt install -y --no-install-recommends python3-venv
version=$(inside python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
mkdir "$bare/tmp/wheels"
cp "$folder"/*.whl "$bare/tmp/wheels/"
step "download numpy for Python $version" python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
  --python-version "$version" --dest "$bare/tmp/wheels" numpy
cp -r "$here/../models/digits" "$bare/tmp/digits"
cp "$here"/first_training.py "$bare/tmp/"
step "make an environment" as_nobody python3 -m venv /tmp/home/venv
files() { (cd "$bare/tmp/home/venv" && find . -not -type d -not -name '*.pyc' | sort); }
files >"$work/before"

pip=(as_nobody /tmp/home/venv/bin/pip --quiet --disable-pip-version-check --no-cache-dir)
start=$SECONDS
step "pip install" "${pip[@]}" install --no-index --find-links /tmp/wheels tandem-train
step "train, evaluate, export" as_nobody sh -ec 'PATH=/tmp/home/venv/bin:$PATH; cp -r /tmp/digits ~; cd ~; python /tmp/first_training.py'
tail -n 1 "$work/log"
echo "$((SECONDS - start)) s from pip install to the trained model, with Python $version"
step "pip uninstall" "${pip[@]}" uninstall -y tandem-train numpy
files >"$work/after"
if ! diff "$work/before" "$work/after"; then
  echo "check_wheel: the lines above are left or missing after the wheel was removed" >&2
  exit 1
fi
echo "nothing is left of the wheel"
