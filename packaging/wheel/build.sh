#!/usr/bin/env bash
# Makes the Python wheels for glibc 2.28 and later (manylinux_2_28).
#
#   packaging/wheel/build.sh SOURCE BUILD FOLDER WORK [CMAKE-DEFINITION…]
#
# SOURCE is the tree, BUILD a folder in which CMake has built it or will (with these definitions, A=B), FOLDER gets the
# wheels, WORK is for everything else. One wheel is for Python 3.12 and later, one for 3.11. Each needs a Python of that
# version in PATH, with its headers; of those from 3.12 on the first that is found. auditwheel and patchelf are in PATH,
# too (tools/release.sh sees to that).
set -euo pipefail
source=$1 build=$2 to=$3 work=$4
definitions=("${@:5}")
here=$source/packaging/wheel
mkdir -p "$work"

# first_python NAMES…: the first of these programs that can compile modules.
first_python() {
  local name
  for name in "$@"; do
    if "$name" -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("include"), "Python.h").stat()' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
}
pythons=()
for names in "python3.12 python3.13 python3.14 python3.15" python3.11; do
  python=$(first_python $names)
  if [[ -n $python ]]; then
    pythons+=("$python")
  else
    echo "wheel: none of $names with its headers is in PATH: no wheel for it" >&2
  fi
done
((${#pythons[@]})) || exit 1

# The libraries are kept, as those of tools/setup.sh are.
recipe=$(cat "$here"/{libraries.sh,newer_functions.c,openmp.c,openmp.map,requirements.txt} | sha256sum)
portable=${TANDEM_DEPS:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/deps}/wheel-gcc$(g++ -dumpfullversion)-${recipe:0:8}

if [[ ! -d $portable ]]; then
  "${pythons[0]}" -m venv "$work/zig"
  "$work/zig/bin/python" -m pip install --quiet --disable-pip-version-check -c "$here/requirements.txt" ziglang
  PATH=$work/zig/bin:$PATH "$here/libraries.sh" "$work/portable" >"$work/libraries.log" 2>&1 ||
    { tail -n 30 "$work/libraries.log" >&2; exit 1; }
  mv -T "$work/portable" "$portable"
fi
definitions+=(TANDEM_PORTABLE="$portable")
export CC=${CC:-cc} CXX=${CXX:-c++} # not what the Python was compiled with
for python in "${pythons[@]}"; do
  venv=$work/$(basename "$python")
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c "$here/requirements.txt" \
    nanobind scikit-build-core
  # Both Pythons share the build folder: the engine is compiled once.
  "$venv/bin/python" -m pip wheel "$source/python" --no-deps --no-build-isolation --quiet \
    --disable-pip-version-check --wheel-dir "$work/linux" --config-settings build-dir="$build" \
    "${definitions[@]/#/--config-settings=cmake.define.}"
done
for wheel in "$work"/linux/*.whl; do
  # oneDNN's library gets the functions of openmp.c, under a name that no other package has.
  AUDITWHEEL_LD_LIBRARY_PATH=$portable/openmp auditwheel repair \
    --plat manylinux_2_28_x86_64 --only-plat --zip-compression-level 9 --wheel-dir "$to" "$wheel"
done
