# Functions that build and pack what is installed, for scripts to read in (`. make_debian.sh`).
# SOURCE_DATE_EPOCH is the time in the packages' files.
revision=1~$(. /etc/os-release && echo "$ID${VERSION_ID//./}")
definitions=(CMAKE_BUILD_TYPE=Release TANDEM_CUDA="${TANDEM_CUDA:-OFF}" TANDEM_TESTS=OFF TANDEM_BENCH=OFF
  CMAKE_BUILD_WITH_INSTALL_RPATH=ON TANDEM_DEBIAN_REVISION="$revision")

make_build() { # SOURCE BUILD
  cmake -S "$1" -B "$2" -G Ninja "${definitions[@]/#/-D}" -DCMAKE_INSTALL_PREFIX=/usr >"$2.log" 2>&1 &&
    cmake --build "$2" --target tandem_installed >>"$2.log" 2>&1 || { tail -n 30 "$2.log" >&2; return 1; }
}

make_debian() { # BUILD FOLDER
  (cd "$1" && cpack -G DEB -B "$1/packages" >"$1/cpack.log" 2>&1) || { tail -n 30 "$1/cpack.log" >&2; return 1; }
  cp "$1"/packages/*.deb "$2/"
}
