#!/bin/sh
# Builds the runtime and its C tests with sanitizers and runs them: memory errors and leaks, undefined behaviour, data
# races. Usage: test/runtime/sanitize.sh [build folder]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$build"' EXIT
mkdir -p "$build"

for kind in address,undefined thread; do
  folder=$build/$(echo $kind | tr , -)
  cmake -S "$root/mlc/runtime" -B "$folder" -DMLC_RT_TESTS=ON -DMLC_RT_SANITIZE=$kind -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS=-O0 -DCMAKE_CXX_FLAGS=-O0 > "$folder.log" 2>&1 &&
    cmake --build "$folder" --parallel 2 --target test_run test_results test_threads test_pool >> "$folder.log" 2>&1 || { cat "$folder.log" >&2; exit 1; }
  echo "== $kind"
  "$folder/test/test_run"
  "$folder/test/test_results"
  # A child of a threaded process must not create threads under ThreadSanitizer: a limit of the tool.
  if [ $kind = thread ]; then
    "$folder/test/test_threads" --no-fork
    "$folder/test/test_pool" --no-fork
  else
    "$folder/test/test_pool"
    "$folder/test/test_threads"
  fi
done
