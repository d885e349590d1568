#!/usr/bin/env bash
# Builds the Debian packages inside an image and puts them into /packages:   build.sh ON|OFF (TANDEM_CUDA)
set -euo pipefail
tools/setup.sh
cmake -S . -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DTANDEM_CUDA="$1" \
  -DTANDEM_TESTS=OFF -DTANDEM_BENCH=OFF -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
  -DCMAKE_CXX_FLAGS="-ffile-prefix-map=$PWD=. -ffile-prefix-map=/build=build"
cmake --build /build --target tandem_installed
cd /build
apt-get -qy install --no-install-recommends dpkg-dev
cpack -G DEB -B /packages
rm -rf /packages/_CPack_Packages /packages/libtandem-dev_*
