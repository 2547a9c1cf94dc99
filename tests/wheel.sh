#!/bin/sh
# Install the built wheel into an empty environment and use it in an empty folder.
set -eu
python=$1
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q -c "$here/constraints.txt" "$here"/dist/dperm-*.whl
cd "$work"
"$work/venv/bin/dperm" list mechanism
"$work/venv/bin/dperm" run -m mechanism=noisy_gd,noisy_sgd epsilon=0.1,1 trials=3 out=first
test -s "$work/first/table.csv" && test -s "$work/first/figure.png"
test -s "$work/first/report.html"
echo "the wheel works"
