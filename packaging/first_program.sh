# Builds a program with the installed library in two ways, and trains with two processes: sh -e first_program.sh
work=$(mktemp -d)
model=/usr/share/doc/tandem/examples/digits/model.onnx
cmake -S /tmp/consumer -B "$work/cmake"
cmake --build "$work/cmake"
"$work/cmake/consumer" "$model" "$work/by_cmake.onnx"
test "$(pkg-config --modversion tandem)" = "$(tandem --version)"
g++ -std=c++20 /tmp/consumer/main.cpp -o "$work/consumer" $(pkg-config --cflags --libs tandem)
"$work/consumer" "$model" "$work/by_pkg_config.onnx"
cmp "$work/by_cmake.onnx" "$work/by_pkg_config.onnx"
cp -r /usr/share/doc/tandem/examples/digits "$work/"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 tandem launch -n 2 -- train "$work/digits/train.toml" epochs=1 --run-dir "$work/run"
rm -rf "$work"
echo "programs by CMake and pkg-config, two processes"
