#!/bin/sh
# Makes a virtual environment with the exact set of packages that was tested; does nothing when its inputs are unchanged.
# usage: setup.sh VENV
set -eu
venv=${1:?usage: setup.sh VENV}
cd "$(dirname "$0")/.."

python=
for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "killick needs Python 3.11, 3.12 or 3.13; none was found. Install one, or say PYTHON=/path/to/python make …" >&2
    exit 2
fi

inputs=$({ "$python" -V; cat pyproject.toml constraints.txt tools/setup.sh; } | sha256sum)
if [ -f "$venv/.inputs" ] && [ "$(cat "$venv/.inputs")" = "$inputs" ]; then
    exit 0
fi
echo "Setting up $venv with $("$python" -V) (about 1 GB, a few minutes the first time) …"
"$python" -m venv "$venv" || {
    echo "venv failed; on Debian: apt-get install python3-venv" >&2
    exit 2
}
rm -f "$venv/.inputs"
# torch first and alone: an unpinned torch, asked for by another package, would be replaced by a build of several GB
"$venv/bin/python" -m pip install --quiet -c constraints.txt torch
"$venv/bin/python" -m pip install --quiet -c constraints.txt -e '.[dev,docs]'
echo "$inputs" > "$venv/.inputs"
