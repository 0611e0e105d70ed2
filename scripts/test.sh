#!/usr/bin/env bash
# Everything CI checks, on a bare Debian 12: installs what is missing, builds and runs every test.
# usage: scripts/test.sh [--yes] [--full cpu|adversarial|vulkan|opengl|webgpu|tpu]
#   --yes       do not ask before installing
#   --full cpu  the whole matrix, hours: also the thread sanitizer, ARM under emulation, ten minutes of fuzzing, token
#               ids and new ops beside Python packages and the benches beside their peers; writes
#               build/report-cpu-DATE.md, from which the README's tables are made
#   --full adversarial  everything on the adversarial test device under the thread sanitizer too; writes build/report-adversarial-DATE.md
#   --full vulkan, opengl, webgpu, tpu  everything of that device and nothing else; writes build/report-DEVICE-DATE.md
#               (RLX_TEST_HARDWARE=1: on what the machine has, not on Mesa's rasterisers)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

full=""
while [ $# -gt 0 ]; do
  case $1 in
    --yes | -y) assume_yes=yes ;;
    --full)
      full=${2:-}
      shift
      [[ $full =~ ^(cpu|adversarial|vulkan|opengl|webgpu|tpu)$ ]] ||
        fail "--full takes a device of this version: cpu, adversarial, vulkan, opengl, webgpu or tpu (got '$full')"
      ;;
    -h | --help) sed -n '2,12s/^# //p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) fail "unknown argument $1; usage: scripts/test.sh [--yes] [--full DEVICE]" ;;
  esac
  shift
done

cd "$root"
started=$SECONDS
# The steps so far as rows of the report.
rows=() current="" current_started=0
end_step() {
  [ -z "$current" ] || rows+=("| $current | $1 | $((SECONDS - current_started)) s |")
  current=""
}
step() {
  end_step passed
  current=$* current_started=$SECONDS
  heading "$* (minute $(((SECONDS - started) / 60)))"
}
# What leaves a core idle, or waits for the network, runs beside a step: `beside NAME COMMAND...` starts it,
# `end_beside NAME` waits for it, shows what it said and fails as it did.
declare -A beside_pid=()
beside() {
  ("${@:2}") >"$root/build/$1.log" 2>&1 &
  beside_pid[$1]=$!
}
end_beside() {
  local status=0
  wait "${beside_pid[$1]}" || status=$?
  unset "beside_pid[$1]"
  cat "$root/build/$1.log"
  [ "$status" -eq 0 ] || fail "$1 failed; what it said stands above"
}
# On every way out: nothing runs on, and a full run that failed leaves its report too.
on_exit() {
  local status=$?
  [ ${#beside_pid[@]} -eq 0 ] || kill "${beside_pid[@]}" 2>/dev/null || true
  [ -z "$full" ] || write_report "$status"
}
trap on_exit EXIT
write_report() {
  local status=$1 report=$root/build/report-$full-$(date +%F).md
  [ "$status" -eq 0 ] && end_step passed || end_step "**failed**"
  {
    printf '# Full test run of %s, %s\n\n' "$full" "$(date '+%F %H:%M %Z')"
    printf 'Commit %s; %s, %s processors; %s.\n\n' "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" \
      "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(g++ --version | head -n 1)"
    printf '| step | result | time |\n|---|---|---|\n'
    printf '%s\n' "${rows[@]}"
    [ ! -f build/benches.md ] || { printf '\n## Benches\n\n' && cat build/benches.md; }
  } >"$report"
  say "report: $report"
}
if [ -n "$full" ]; then
  export RLX_ALL_CASES=1  # sanitizers too take every case
  unset RLX_TEST_SHARE
  mkdir -p build
  rm -f build/benches.md
fi
# Builds quietly; on failure shows what the compiler said.
build() {
  local log=$root/build/$1.log
  cmake --preset "$1" >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "cmake --preset $1 failed"; }
  cmake --build --preset "$@" >"$log" 2>&1 || {
    grep -A8 -E 'error|FAILED' "$log" | head -n 60 >&2
    fail "the $1 build failed; all of it: $log"
  }
}

# An environment with what the tests of the Python package need, and the wheel with the dev libraries in it.
python_env=$root/build/venv-python
python_environment() {
  [ -x "$python_env/bin/pytest" ] || python3 -m venv "$python_env"
  "$python_env/bin/pip" install --quiet --disable-pip-version-check "${python_test_wheels[@]}" ml_dtypes nanobind
}
python_wheel() {
  scripts/wheel.sh --yes --prebuilt build/dev --out build/wheels-dev
  "$python_env/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps \
    build/wheels-dev/rlx-*.whl
}
python_tests() { "$python_env/bin/python" -m pytest -q -p no:cacheprovider -n logical --dist worksteal "$@"; }

# Random programs by their seeds; a failure names its own.
random_programs() {
  local out
  out=$(build/dev/tests/random_programs "$@" 2>&1) || fail "random_programs $*: $out"
  tail -n 1 <<<"$out"
}

step "packages, model and devices"
need_packages "${build_packages[@]}" "${test_packages[@]}" "${device_packages[@]}" "${fetch_packages[@]}" \
  "${python_packages[@]}"
need_model
use_test_devices
export RLX_MODEL_DIR=$model_dir
export RLX_REQUIRE_ALL_TESTS=1  # a test that would skip itself for something missing fails instead
say "all there"
mkdir -p build
beside python-environment python_environment  # mostly downloads

# Of the devices' variants of samples (dtypes, sizes, gradients, batches) one in so many; full runs take all.
variants=64
if [[ $full =~ ^(vulkan|opengl|webgpu|tpu)$ ]]; then
  step "$full: all samples and programs"
  build dev --target device_tests rlx_cli bench_device random_programs
  build/dev/rlx devices
  ctest --preset dev -L "^$full\$"
  step "$full: random programs"
  case $full in tpu) programs=5000 ;; vulkan) programs=1000 ;; *) programs=500 ;; esac
  seed=$((16#$(git rev-parse --short=6 HEAD 2>/dev/null || echo 1)))
  random_programs --device "$full" --first "$seed" --count $((programs / 2))
  random_programs --device "$full" --first "$seed" --count $((programs / 2)) --calls 50
  step "$full: Python's oracles"
  end_beside python-environment
  python_wheel
  if [ "$full" = webgpu ]; then use_strict_adapter; fi
  python_tests --full "$full" tests/python/test_{programs,devices,ops,ops_derivatives}.py
  step "$full: figures"
  build/dev/bench/device "$full" | tee build/benches.md
  exit
fi
[ -n "$full" ] || export RLX_TEST_SHARE=0/$variants

step "dev: build and all tests"
build dev --target all rlx_adversarial_plugin
ctest --preset dev ${full:+-C full}
# Every folder of tests must have become a test; CMake leaves a label out only when it found no file.
listed=$(ctest --preset dev -N)
for label in unit golden property conformance adversarial cli; do
  if compgen -G "tests/$label/*" >/dev/null && ! grep -qE "Test +#[0-9]+: $label$" <<<"$listed"; then
    fail "tests/$label has files but no test '$label' was built"
  fi
done

# One processor per instruction set below the best: SSE4.2 and AVX2. The dev tests have run the kernels of every
# instruction set that this machine has; the emulator shows that the older processor is recognised and meets no
# instruction that it lacks. So the long cases of the kernels, and whole programs, run in full runs only.
long_cases="math: e*,attention: *,*number of threads*,packed gemm: sizes*,strided gemm: any*,a row of*,reductions over*"
long_cases+=",products by group*,products of f64*,sort kernels: every*,products of bytes*,conv kernels: w*,fft kernels*"
long_cases+=",line kernels: running*,paged attention: pools*,panels: products of 16*,panels: from every*,scatter k*"
long_cases+=",products of complex*,conv kernels: i*,sample on the cpu: large*"
emulated() {
  local emulator=("$1" "${@:3}") tests=$2
  local run out cut=("--test-case-exclude=$long_cases")
  [ -z "$full" ] || cut=()
  for run in "unit_tests --source-file=*unit/cpu*" smoke_tests ${full:+conformance_tests}; do
    out=$(set -f && "${emulator[@]}" $tests/$run "${cut[@]}" 2>&1) ||
      fail "${emulator[*]} $run: $out"
    grep 'test cases: *[1-9]' <<<"$out" || fail "$run: no test ran"
  done
}
if [ "$(uname -m)" = x86_64 ]; then
  step "emulated Nehalem and Haswell: kernels and the first program"
  emulated qemu-x86_64-static build/dev/tests -cpu Nehalem &
  older=$!
  emulated qemu-x86_64-static build/dev/tests -cpu Haswell
  wait "$older"
fi

step "Python: a wheel with the dev libraries; beside it rlx run against NumPy, timelines of RLX_TRACE"
with_numpy=$(numpy_python) || fail "no Python with NumPy: apt-get install python3-numpy"
run_programs() {
  "$with_numpy" tests/parity/run_numpy.py --rlx build/dev/rlx --device cpu --device reference
  "$with_numpy" tests/parity/minilm_numpy.py --rlx build/dev/rlx --model "$model_dir"
  python3 tests/reports/trace_test.py --rlx build/dev/rlx --model "$model_dir"
}
end_beside python-environment
beside run-programs run_programs
python_wheel
end_beside run-programs

step "Python: tests beside NumPy and JAX"
python_tests ${full:+--full cpu} tests/python
step "Python: random programs and arrays on the adversarial test device"
python_tests --plugin "$root/build/dev/python/plugins/adversarial.so" --device directx ${full:+--full directx} \
  tests/python/test_{programs,devices}.py -k "sample or regression or everything or devices"

step "Python: random programs and arrays on vulkan and tpu"
for device in tpu vulkan; do  # whole programs of many ops: each takes seconds to compile there
  python_tests --device $device tests/python/test_{programs,devices}.py \
    -k "(sample and (900000 or 900020)) or devices"
done

step "pages of rlx inspect in a headless Chromium"  # nothing beside it: it looks at how long they take
python3 tests/reports/report_test.py --rlx build/dev/rlx --model "$model_dir" --screenshots build/pages

# The libraries of devices are not built with sanitizers and keep memory of their own to the end: here stand-ins run our
# side of them.
unset RLX_WGPU_LIB RLX_TPU_PLUGIN RLX_REQUIRE_DEVICES

step "asan: unit, golden, property, conformance and adversarial tests under address + undefined sanitizers, fuzz targets"
mapfile -t asan_targets < <(cd tests && for label in unit golden property conformance adversarial; do
  if [ -n "$(find "$label" -name '*.cpp' -print -quit 2>/dev/null)" ]; then echo "${label}_tests"; fi
done)
mapfile -t fuzzers < <(cd tests/fuzz && for file in *_fuzz.cpp; do
  if [ -f "$file" ]; then echo "fuzz_${file%_fuzz.cpp}"; fi
done)
build asan --target "${asan_targets[@]}" "${fuzzers[@]}"
slow=(-LE slow)
[ -z "$full" ] || slow=()
ctest --preset asan "${slow[@]}"

step "Python: the extension under address + undefined sanitizers$([ -n "$full" ] || echo ', a sample')"
VIRTUAL_ENV=$python_env build python-asan
asan_library=$(clang++-15 -print-file-name="libclang_rt.asan-$(uname -m).so")
[ -f "$asan_library" ] || fail "clang 15 has no shared library of its address sanitizer"
# What touches memory by hand: arrays, calls, threads, callbacks. PYTHONMALLOC: Python's own blocks are watched too.
cut=(tests/python/test_{arrays,custom,devices,encoders,found,jit,misuse,requests,runs,text}.py
  tests/python/test_language_model*.py)
[ -z "$full" ] || cut=(tests/python --ignore tests/python/test_leaks.py)
LD_PRELOAD=$asan_library ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc \
  PYTHONPATH=build/python-asan/python python_tests "${cut[@]}"

if [ ${#fuzzers[@]} -gt 0 ]; then
  # The differential fuzzer of whole programs finds most and gets as much as all others together, which run beside it;
  # an hour in full runs. Seeds follow the commit, so that a failure comes again; full runs draw new ones.
  total=60 programs=60 seed=$((16#$(git rev-parse --short=6 HEAD 2>/dev/null || echo 1)))
  [ -n "$full" ] && total=600 programs=3600 seed=$RANDOM
  step "fuzz: ${#fuzzers[@]} targets, random programs $programs s, the others together $total s, seed $seed"
  fuzz() {
    local out status=0
    out=$(build/asan/tests/"$1" --seconds "$2" --seed "$seed" --corpus "tests/fuzz/corpus/${1#fuzz_}" 2>&1) || status=$?
    printf '%-24s %s\n' "$1" "$out"
    return $status
  }
  fuzz fuzz_program "$programs" &
  longest=$!
  for fuzzer in "${fuzzers[@]}"; do
    [ "$fuzzer" = fuzz_program ] || fuzz "$fuzzer" $((total / ${#fuzzers[@]})) || { kill "$longest"; exit 1; }
  done
  wait "$longest"
fi

# The sanitizer builds are clang's and have compiled the libraries and the tests, some files at a time; a missing
# #include, which that hides as precompiled headers do, shows in full runs.
step "clang 15, syntax only: $([ -n "$full" ] && echo every file || echo bench, cli, examples)"
cmake --preset clang >build/clang.log 2>&1 || { tail -n 30 build/clang.log >&2; fail "cmake --preset clang failed"; }
if [ -n "$full" ]; then
  python3 scripts/check_syntax.py build/clang/compile_commands.json
else
  python3 scripts/check_syntax.py build/clang/compile_commands.json bench cli examples
fi

if [ "$full" = adversarial ]; then
  step "tsan: the adversarial test device under the thread sanitizer, all of its tests"
  build tsan --target adversarial_tests
  ctest --preset tsan -L adversarial
fi

if [ "$full" = cpu ] || [ "$full" = adversarial ]; then
  step "random programs: 50,000 on the cpu, 10,000 of them with derivatives and batches, or 2,000 on the adversarial test device"
  seed=$((16#$(git rev-parse --short=6 HEAD 2>/dev/null || echo 1)))
  if [ "$full" = cpu ]; then
    random_programs --first "$seed" --count 20000 &
    half=$!
    random_programs --first "$seed" --count 20000 --calls 50
    wait "$half" || fail "random programs failed; what they said stands above"
    random_programs --first "$((seed + 20000))" --count 10000 --calls 50 --derive
  else
    adversarial=(--plugin build/dev/python/plugins/adversarial.so --device directx)
    random_programs "${adversarial[@]}" --first "$seed" --count 1000
    random_programs "${adversarial[@]}" --first "$seed" --count 1000 --calls 50 --derive
  fi
fi

if [ "$full" = cpu ]; then
  step "tsan: unit, conformance and adversarial tests under the thread sanitizer"
  build tsan --target unit_tests conformance_tests adversarial_tests
  ctest --preset tsan

  step "aarch64: kernels and conformance under emulation"
  build aarch64 --target unit_tests conformance_tests smoke_tests
  emulated qemu-aarch64-static build/aarch64/tests -L /usr/aarch64-linux-gnu

  step "token ids beside the Python package tokenizers"
  build dev --target token_ids
  python3 tests/parity/wordpiece_parity.py --tool build/dev/tests/token_ids --model "$model_dir"
  need_packages npm
  python3 tests/parity/tokenizers_compare.py --tool build/dev/tests/token_ids

  step "chat templates beside the Python package jinja2"
  need_packages npm
  build dev --target chat_render
  tests/parity/chat_templates.py --tool build/dev/tests/chat_render

  step "grammars of JSON schemas beside the Python package jsonschema"
  build dev --target schema_texts
  python3 tests/parity/schema_jsonschema.py --tool build/dev/tests/schema_texts

  step "benches beside their peers, and the other figures"
  build release
  bench/minilm --figures --json build/minilm.json
  bench/embed --json build/embed.json
  bench/gemm --json build/gemm.json
  bench/train --json build/train.json
  bench/report.py --minilm build/minilm.json --embed build/embed.json --gemm build/gemm.json >build/benches.md
fi

heading "all passed in $(((SECONDS - started) / 60)) min $(((SECONDS - started) % 60)) s"
