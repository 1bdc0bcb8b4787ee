#!/bin/sh
# Builds the wheel, installs it into a clean environment and runs the quickstart's machinery from there, far from the
# source tree. usage: check_wheel.sh VENV  (VENV has the build tool; the clean environment borrows its big packages)
set -eu
venv=$(cd "${1:?usage: check_wheel.sh VENV}" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$venv/bin/python" -m build --wheel --outdir "$work/dist" "$root" > "$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
python3=$("$venv/bin/python" -c 'import sys; print(sys.base_prefix + "/bin/python3")')
"$python3" -m venv "$work/clean"
"$work/clean/bin/python" -m pip install --quiet -c "$root/constraints.txt" torch
"$work/clean/bin/python" -m pip install --quiet -c "$root/constraints.txt" "$work"/dist/killick-*.whl
cd "$work"
"$work/clean/bin/killick" doctor
"$work/clean/bin/killick" recipes
cat > tiny.toml <<'T'
[study]
recipe = "nano"
[set]
"trl.max_steps" = 2
"trl.per_device_train_batch_size" = 32
"evaluate.num_problems" = 3
"evaluate.num_samples" = 4
[[arm]]
name = "sage"
T
"$work/clean/bin/killick" study tiny.toml --out out
test -s out/report.html && test -s out/summary.json
echo "The wheel works: $(ls "$work"/dist)"
