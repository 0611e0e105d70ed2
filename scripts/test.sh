#!/usr/bin/env bash
# Everything CI checks, on a bare Debian 12: installs what is missing, builds and runs every test.
# usage: scripts/test.sh [--yes] [--full cpu]
#   --yes       do not ask before installing
#   --full cpu  also: thread sanitizer, older processors under emulation, ten minutes of fuzzing
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

full=""
while [ $# -gt 0 ]; do
  case $1 in
    --yes | -y) assume_yes=yes ;;
    --full)
      full=${2:-}
      shift
      [ "$full" = cpu ] || fail "--full takes a device of this version: cpu (got '$full')"
      ;;
    -h | --help) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) fail "unknown argument $1; usage: scripts/test.sh [--yes] [--full cpu]" ;;
  esac
  shift
done

cd "$root"
started=$SECONDS
step() { heading "$* (minute $(((SECONDS - started) / 60)))"; }
# Builds quietly; on failure shows what the compiler said.
build() {
  local log=$root/build/$1.log
  cmake --preset "$1" >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "cmake --preset $1 failed"; }
  cmake --build --preset "$@" >"$log" 2>&1 || { grep -A8 -E 'error|FAILED' "$log" | head -n 60 >&2; fail "the $1 build failed; all of it: $log"; }
}

step "packages and model"
need_packages "${build_packages[@]}" "${test_packages[@]}" "${fetch_packages[@]}"
need_model
export RLX_MODEL_DIR=$model_dir
export RLX_REQUIRE_ALL_TESTS=1  # a test that would skip itself for something missing fails instead
say "all there"
mkdir -p build

step "dev: build and all tests"
build dev
ctest --preset dev
# Every folder of tests must have become a test; CMake leaves a label out only when it found no file.
listed=$(ctest --preset dev -N)
for label in unit golden property conformance cli; do
  if compgen -G "tests/$label/*" >/dev/null && ! grep -qE "Test +#[0-9]+: $label$" <<<"$listed"; then
    fail "tests/$label has files but no test '$label' was built"
  fi
done

step "rlx run against NumPy"
with_numpy=$(numpy_python) || fail "no Python with NumPy: apt-get install python3-numpy"
"$with_numpy" tests/parity/run_numpy.py --rlx build/dev/rlx --device cpu --device reference
"$with_numpy" tests/parity/minilm_numpy.py --rlx build/dev/rlx --model "$model_dir"

step "asan: unit, golden and property tests under address + undefined sanitizers, fuzz targets"
mapfile -t asan_targets < <(cd tests && for label in unit golden property; do
  if [ -n "$(find "$label" -name '*.cpp' -print -quit 2>/dev/null)" ]; then echo "${label}_tests"; fi
done)
mapfile -t fuzzers < <(cd tests/fuzz && for file in *_fuzz.cpp; do
  if [ -f "$file" ]; then echo "fuzz_${file%_fuzz.cpp}"; fi
done)
build asan --target "${asan_targets[@]}" "${fuzzers[@]}"
ctest --preset asan

if [ ${#fuzzers[@]} -gt 0 ]; then
  total=60
  [ -n "$full" ] && total=600
  step "fuzz: ${#fuzzers[@]} targets, $total s together"
  each=$((total / ${#fuzzers[@]}))
  for fuzzer in "${fuzzers[@]}"; do
    printf '%-24s ' "$fuzzer"
    build/asan/tests/"$fuzzer" --seconds "$each" --seed "$RANDOM" --corpus "tests/fuzz/corpus/${fuzzer#fuzz_}"
  done
fi

step "clang 15: every file, syntax only"
cmake --preset clang >build/clang.log 2>&1 || { tail -n 30 build/clang.log >&2; fail "cmake --preset clang failed"; }
python3 scripts/check_syntax.py build/clang/compile_commands.json

if [ -n "$full" ]; then
  step "tsan: unit and conformance tests under the thread sanitizer"
  build tsan --target unit_tests conformance_tests
  ctest --preset tsan
fi

heading "all passed in $(((SECONDS - started) / 60)) min $(((SECONDS - started) % 60)) s"
