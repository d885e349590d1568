# Trains the installed recipe, evaluates and exports it: sh -e first_training.sh
tandem --version
tandem doctor
work=$(mktemp -d)
cd "$work"
cp -r /usr/share/doc/tandem/examples/digits .
tandem train digits/train.toml policy=digits/policy.toml epochs=5 --run-dir run
tandem eval run
tandem export run --to trained.onnx
test -s trained.onnx
tandem inspect trained.onnx >/dev/null
test -s /usr/share/man/man1/tandem-train.1.gz || test -e /etc/dpkg/dpkg.cfg.d/docker
rm -rf "$work"
echo "trained, evaluated and exported as $(id -un)"
