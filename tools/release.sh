#!/usr/bin/env bash
# Makes everything that a release consists of, installs it on bare roots, and prints how long each part takes.
#
#   tools/release.sh [--to FOLDER] [--twice] [--no-wheel] [--no-roots] [--build FOLDER]
#
# --to FOLDER     where the files go (default: build-release/dist)
# --twice         make everything twice from different folders, the second time without ccache, and compare the bytes
# --no-wheel      without the Python wheel, which compiles the engine once more
# --no-roots      do not install anything; without it, root and debootstrap are needed
# --build FOLDER  take the Debian packages from a finished build folder instead of a build of its own; not with --twice
#
# The files hold the time of the last commit, no path of this machine, and no names of users.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
to=$root/build-release/dist twice=0 wheel=1 roots=1 build=
while (($#)); do
  case $1 in
    --to) to=$(realpath -m "$2"); shift ;;
    --twice) twice=1 ;;
    --no-wheel) wheel=0 ;;
    --no-roots) roots=0 ;;
    --build) build=$(realpath "$2"); shift ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
  esac
  shift
done
((!twice)) || [[ -z $build ]] || { echo "release: --twice makes builds of its own: leave --build out" >&2; exit 2; }

export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
umask 022
version=$(sed -n 's/^project(Tandem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
distribution=$(. /etc/os-release && echo "$ID${VERSION_ID//./}")
revision=1~$distribution
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

# Configures and builds what is installed; paths in the files are those of the archive.
make_build() { # SOURCE BUILD
  local map="-ffile-prefix-map=$1=. -ffile-prefix-map=$2=build"
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DTANDEM_CUDA="${TANDEM_CUDA:-OFF}" \
    -DTANDEM_TESTS=OFF -DTANDEM_BENCH=OFF -DCMAKE_CXX_FLAGS="$map" -DCMAKE_CUDA_FLAGS="-Xcompiler=${map// /,}" \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DTANDEM_DEBIAN_REVISION="$revision" >"$2.log" 2>&1 &&
    cmake --build "$2" --target tandem_installed >>"$2.log" 2>&1 || { tail -n 30 "$2.log" >&2; return 1; }
}

make_debian() { # BUILD FOLDER
  (cd "$1" && cpack -G DEB -B "$1/packages" >"$1/cpack.log" 2>&1) || { tail -n 30 "$1/cpack.log" >&2; return 1; }
  cp "$1"/packages/*.deb "$2/"
}

make_wheel() { # SOURCE FOLDER WORK
  python3 -m venv "$3/venv"
  "$3/venv/bin/pip" install --quiet 'scikit-build-core>=1.1' 'nanobind>=3.1' 'cmake>=3.26' 'ninja'
  local map="-ffile-prefix-map=$1=. -ffile-prefix-map=$3=build"
  CXXFLAGS=$map PATH="$3/venv/bin:$PATH" "$3/venv/bin/pip" wheel "$1/python" --no-deps --no-build-isolation --quiet \
    --config-settings build-dir="$3/wheel" --config-settings cmake.define.CMAKE_BUILD_WITH_INSTALL_RPATH=ON --wheel-dir "$2"
}

# All files of a release; NUMBER is part of the folders, so that two builds have different paths.
make_all() { # NUMBER FOLDER
  local folder=$work/build-$1 source
  rm -rf "$folder" "$2"
  mkdir -p "$folder" "$2"
  timed "source archive" -- make_source "$2"
  tar -xzf "$2/$name.tar.gz" -C "$folder"
  source=$folder/$name
  if [[ -n $build ]]; then
    timed "Debian packages of $build" -- make_debian "$build" "$2"
  else
    timed "build $1" -- make_build "$source" "$folder/build"
    timed "Debian packages" -- make_debian "$folder/build" "$2"
    python3 packaging/parts.py check "$folder/build/tandem" "$folder"/build/lib/libtandem*.so
  fi
  local kinds=()
  ((!wheel)) || kinds+=(--with python)
  [[ ${TANDEM_CUDA:-OFF} != ON ]] || kinds+=(--with cuda)
  ((!wheel)) || timed "Python wheel" -- make_wheel "$source" "$2" "$folder"
  timed "list of parts" -- python3 packaging/parts.py sbom "${kinds[@]}" --to "$2/$name.spdx.json"
  (cd "$2" && sha256sum -- * >SHA256SUMS)
}

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
  timed "Debian packages on a bare root" -- packaging/check_root.sh "$to"
fi
echo
cat "$work/times.txt"
ls -l "$to"
