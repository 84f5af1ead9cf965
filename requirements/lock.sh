#!/bin/sh
# Write the hash-locked requirement files beside the *.in files; `--check` only compares.
# Locks are universal: one file for Python 3.11 to 3.14 on Linux and macOS.
set -eu
cd "$(dirname "$0")"
uv=${UV:-uv}
target=.
if [ "${1:-}" = --check ]; then
    target=$(mktemp -d)
    trap 'rm -rf "$target"' EXIT
    # What is locked stays the preferred version. Compiled over there, because the files name their constraints' path.
    cp -- *.in *.txt "$target"
fi
locked=$PWD
cd "$target"
lock() {
    name=$1
    shift
    compile_args="$name.in $*"
    # shellcheck disable=SC2086 # the words of compile_args are meant to split
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
        --output-file "$name.txt" $compile_args
}
lock test
for name in service operator build; do
    lock "$name" --constraints test.txt
done
lock s3
lock data --no-deps
lock load --no-deps
if [ "$target" != . ]; then
    status=0
    for file in *.txt; do
        cmp -s "$file" "$locked/$file" || { echo "requirements/$file is stale: run 'make lock'" >&2; status=1; }
    done
    exit $status
fi
