#!/usr/bin/env bash
# Everything CI checks, on a bare Debian 12: installs what is missing, builds and runs every test.
# usage: scripts/test.sh [--yes] [--full cpu|adversarial|vulkan|opengl|webgpu|tpu|python]
#   --yes       do not ask before installing
#   --full cpu  the whole matrix, hours: unit, golden, property and adversarial tests on the release code and the dev
#               build too, the thread sanitizer, the baseline of a native build, ARM under emulation, an hour of
#               fuzzing, token ids, chat templates and grammars beside Python packages, and the benches beside their
#               peers; writes build/report-cpu-DATE.md, from which tables of docs/performance.md are made
#   --full adversarial  everything on the adversarial test device under the thread sanitizer too; writes
#               build/report-adversarial-DATE.md
#   --full vulkan, opengl, webgpu, tpu  everything of that device and nothing else; writes build/report-DEVICE-DATE.md
#               (RLX_TEST_HARDWARE=1: on what the machine has, not on Mesa's rasterizers)
#   --full python  the tests of JAX and of the array API standard on the Python package, and nothing else; writes
#               build/report-python-DATE.md (JAX_TESTS, ARRAY_API_TESTS: checkouts of theirs; else they are fetched)
# Output of the steps and what they took: build/steps. The end prints both, with the number of tests.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# --- the one table of steps: name, code that runs, budget, title ---
# The budget is CPU seconds of the step and its children on the machine of `reference_seconds`. Those of one commit
# differ by up to 1.6 between machines, and by what else runs on their cores; so budgets grow with what `calibrate`
# measures here. They are what a whole run took (docs/log/tests.md), rounded up, with more room where a part rotates. A
# step that takes 1.5 times its budget fails the run, and so does the total. "-": full runs only.
steps_table='
packages           | -           |   60 | packages to build with
downloads          | -           |  250 | beside the build: other packages, model, device libraries, Python environment
release-build      | g++ release | 1200 | build of the release code, with what tests it
release-tests      | g++ release |  800 | kernels, stress, conformance, cli, allocation, examples, install, devices
emulated           | g++ release |  120 | an emulated older processor: kernels and the first program
random-programs    | g++ release |   60 | random programs on the cpu and on the adversarial test device
wheel              | g++ release |  200 | Python: a wheel with these libraries, tried without a compiler
programs           | g++ release |   40 | rlx run beside NumPy, timelines of RLX_TRACE
python             | g++ release |  550 | Python: tests beside NumPy and JAX
python-adversarial | g++ release |   60 | Python: random programs and arrays on the adversarial test device
python-devices     | g++ release |  150 | Python: random programs and arrays on vulkan and tpu
bench-helpers      | -           |   20 | tests of the benches
pages              | g++ release |   30 | pages of rlx inspect in a headless Chromium
asan-build         | clang asan  | 1500 | beside these tests: build under the sanitizers, and fuzz targets
asan-python-build  | clang asan  |  200 | beside these tests: the Python extension under the sanitizers
syntax             | clang       |  150 | beside these tests: clang 15, syntax only
asan-tests         | clang asan  | 1100 | unit, golden, property, conformance and adversarial tests under the sanitizers
asan-python        | clang asan  |  300 | Python: the extension under the sanitizers
fuzz               | clang asan  |  150 | fuzz targets
total              |             | 5500 | all
unit-release       | g++ release |    - | unit, golden, property and adversarial tests on the code that users get
dev                | clang dev   |    - | the same tests on the dev build
tsan-adversarial   | clang tsan  |    - | the adversarial test device under the thread sanitizer, all of its tests
many-programs      | g++ release |    - | random programs: 50,000 on the cpu or 2,000 on the adversarial test device
tsan               | clang tsan  |    - | unit, conformance and adversarial tests under the thread sanitizer
native             | g++ native  |    - | the baseline of a build for this machine: kernels and conformance
aarch64            | g++ aarch64 |    - | kernels and conformance under emulation
token-ids          | g++ release |    - | token ids beside the Python package tokenizers
chat-templates     | g++ release |    - | chat templates beside the Python package jinja2
grammars           | g++ release |    - | grammars of JSON schemas beside the Python package jsonschema
benches            | g++ release |    - | benches beside their peers, and the other figures
python-suites      | g++ release |    - | the tests of JAX and of the array API standard on the Python package
device             | g++ release |    - | all samples and programs of one device
device-programs    | g++ release |    - | random programs of one device
device-python      | g++ release |    - | Python oracles of one device
device-figures     | g++ release |    - | figures of one device
'
# CPU seconds of the compile in `calibrate` on the machine of the budgets: AMD EPYC with AVX2, 2 virtual cores.
reference_seconds=1.8

# --- what a run takes a part of: which part the number of the commit decides (RLX_TEST_ROUND), all in the full run ---
rotation='
what                                                       | part of a run | period in commits | full round
emulated Nehalem or Haswell, a part of the short kernels   | one of four   | 4                 | --full cpu
long kernel tests there; slow tests under the sanitizers   | none          | fixed             | --full cpu
instruction sets of the kernels under the sanitizers       | best or AVX2  | 2                 | --full cpu
what ran on the release code too, under the sanitizers     | one half      | 4                 | --full cpu, adversarial
seeds of random programs in adversarial and property tests | an eighth     | 8                 | --full cpu, adversarial
cases of long lists behind the first, test::Share(n)       | 1 in n        | n + 1             | --full cpu, adversarial
the same under the sanitizers                              | 1 in 2 n      | 2 n + 1           | --full cpu, adversarial
first seed of random_programs and of the fuzz targets      | a stretch     | none: always new  | --full cpu, adversarial
samples on vulkan, opengl and webgpu                       | one of three  | 3                 | --full cpu, DEVICE
variants of large kernels on these devices                 | that, or none | 6                 | --full cpu, DEVICE
packed variants of kernels, of one device each             | one of three  | fixed             | --full cpu, DEVICE
optimizer of the rasterizers behind vulkan and opengl      | none          | fixed             | --full cpu, DEVICE
variants of samples on these devices and on tpu            | 1 in 64       | fixed             | --full cpu, DEVICE
cases of Python tests with the mark rotates(n)             | one in n      | n                 | --full cpu
Python under the sanitizers, what runs in halves           | one half      | 2                 | --full cpu
files of bench, cli and examples that clang reads          | a third       | 3                 | --full cpu
'

full=""
while [ $# -gt 0 ]; do
  case $1 in
    --yes | -y) assume_yes=yes ;;
    --full)
      full=${2:-}
      shift
      [[ $full =~ ^(cpu|adversarial|vulkan|opengl|webgpu|tpu|python)$ ]] ||
        fail "--full takes a device of this version: cpu, adversarial, vulkan, opengl, webgpu or tpu, or python" \
          "(got '$full')"
      ;;
    -h | --help) sed -n '2,16s/^# //p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) fail "unknown argument $1; usage: scripts/test.sh [--yes] [--full DEVICE]" ;;
  esac
  shift
done

cd "$root"
started=$SECONDS
steps=$root/build/steps
rm -rf "$steps"
mkdir -p "$steps"
printf '%s\n' "$steps_table" >"$steps/table"

# --- steps ---
# recorded NAME COMMAND...: runs the command in a subshell that ends at its first error; NAME.log has what it said and
# NAME.took its status, wall seconds and CPU seconds.
recorded() (
  recorded_step=$1
  began=$EPOCHREALTIME
  # The trap runs with the arguments of the function that called exit, so it names the step by a variable.
  trap 'took "$recorded_step" "$began"' EXIT
  printf '%s\n' "$began" >"$steps/$1.began"
  "${@:2}" >"$steps/$1.log" 2>&1
)
took() {
  local status=$?
  times >"$steps/$1.times"
  printf '%s %s %s\n' "$status" "$2" "$EPOCHREALTIME" >"$steps/$1.took"
}
# launch NAME COMMAND...: the command in the background, in a process group of its own, so that all of it can be ended.
declare -A running=()
launch() {
  set -m
  ("${@:2}") </dev/null &
  running[$1]=$!
  set +m
}
# join NAME: waits for it and fails as it did.
join() {
  local status=0
  wait "${running[$1]}" || status=$?
  unset "running[$1]"
  return $status
}
title() { sed -nE "s/^$1 *\|[^|]*\|[^|]*\| *//p" <<<"$steps_table"; }
# step NAME COMMAND...: shows what the command says while it runs. What has failed in the background ends the run.
step() {
  local name
  for name in "${!running[@]}"; do kill -0 "${running[$name]}" 2>/dev/null || end_beside "$name"; done
  heading "$(title "$1") (minute $(((SECONDS - started) / 60)))"
  : >"$steps/$1.log"
  launch "$1" recorded "$@"
  tail -n +1 -s 0.3 -f --pid="${running[$1]}" "$steps/$1.log" || true
  join "$1" || fail "the step '$1' failed; what it said: $steps/$1.log"
}
# What waits for the network, or fills cores that others leave idle, runs beside steps: `beside NAME FUNCTION STEPS...`
# starts a function that calls `recorded`, `end_beside NAME` waits for it and shows what its steps said.
declare -A steps_of=()
beside() {
  steps_of[$1]=${*:3}
  launch "$1" "$2"
}
end_beside() {
  local name status=0
  [ -n "${running[$1]:-}" ] || return 0
  join "$1" || status=$?
  for name in ${steps_of[$1]}; do
    [ ! -f "$steps/$name.log" ] || { heading "$(title "$name")" && cat "$steps/$name.log"; }
  done
  [ "$status" -eq 0 ] || fail "$1 failed; what it said stands above"
}
# On every way out: nothing runs on, and a full run that failed leaves its report too.
on_exit() {
  local status=$? pid
  for pid in "${running[@]}"; do kill -- -"$pid" 2>/dev/null || true; done
  [ -z "$full" ] || write_report "$status"
}
trap on_exit EXIT
write_report() {
  local report=$root/build/report-$full-$(date +%F).md
  {
    printf '# Full test run of %s, %s\n\n' "$full" "$(date '+%F %H:%M %Z')"
    [ "$1" -eq 0 ] || printf '**It failed.**\n\n'
    printf 'Commit %s; %s, %s processors; %s.\n\n' "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" \
      "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(g++ --version | head -n 1)"
    python3 scripts/test_report.py "$steps" --no-budgets || true
    [ ! -f build/suites.md ] || { printf '\n## Suites of other projects\n\n' && cat build/suites.md; }
    [ ! -f build/benches.md ] || { printf '\n## Benches\n\n' && cat build/benches.md; }
  } >"$report"
  say "report: $report"
}
# CPU seconds that g++ takes for a fixed text, of two at once: what this machine, and what else runs on it, makes of
# budgets. No compiler cache is asked.
calibrate() {
  local copy
  cat >"$steps/reference.cpp" <<'END'
#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
std::string counted(const std::vector<std::string>& words) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& word : words) ++counts[word];
  std::vector<std::pair<std::string, std::size_t>> all(counts.begin(), counts.end());
  std::sort(all.begin(), all.end());
  std::ostringstream text;
  for (const auto& [word, n] : all) text << word << ' ' << n;
  return text.str();
}
END
  (
    for copy in 1 2; do
      CCACHE_DISABLE=1 g++ -std=c++20 -O2 -c "$steps/reference.cpp" -o "$steps/reference$copy.o" &
    done
    wait
    times
  ) | awk 'NR == 2 { gsub(/[ms]/, " "); print ($1 * 60 + $2 + $3 * 60 + $4) / 2 }' >>"$steps/reference"
}

# build PRESET ARGUMENTS...: quietly; on failure shows what the compiler said. The caller's `settings` override those of
# the preset.
settings=()
build() {
  local log=$root/build/$1.log
  configure "$1" "${settings[@]}"
  cmake --build --preset "$@" >"$log" 2>&1 || {
    grep -A8 -E 'error|FAILED' "$log" | head -n 60 >&2
    fail "the $1 build failed; all of it: $log"
  }
  say "built: $(grep -c '^\[' "$log") steps"
}
configure() {
  local log=$root/build/$1.log
  cmake --preset "$@" >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "cmake --preset $1 failed"; }
  # A preset with another compiler than that of the folder: CMake forgets all other settings of the preset, once.
  if grep -q 'require your cache to be deleted' "$log"; then cmake --preset "$@" >>"$log" 2>&1; fi
}
# run_ctest STEP PRESET ARGUMENTS...: and keeps what the tests said, whose counts the end prints.
run_ctest() {
  local log=build/$2/Testing/Temporary/LastTest.log
  rm -f "$log"
  ctest --preset "${@:2}"
  cp "$log" "$steps/$1.ctest"
}
# expect_tests PRESET NAMES...: CMake leaves a program out where it finds no file, but these have some.
expect_tests() {
  local listed name
  listed=$(ctest --preset "$1" -N)
  for name in "${@:2}"; do
    grep -qE "Test +#[0-9]+: $name$" <<<"$listed" || fail "$1: there is no test '$name'"
  done
}

# --- packages, model, devices ---
release=build/release-tests
python_env=$root/build/venv-python
toolchain=("${build_packages[@]}" mold) # mold is looked for when CMake configures
other_packages=("${test_packages[@]}" "${device_packages[@]}" "${fetch_packages[@]}" "${python_packages[@]}")
[ "$full" != cpu ] || other_packages+=(npm)
# One question for all that is missing: what is installed beside the build cannot ask.
ask_first() {
  local missing
  mapfile -t missing < <(missing_packages "${toolchain[@]}" "${other_packages[@]}")
  if [ ${#missing[@]} -eq 0 ] && have_test_wheels; then return; fi
  [ ${#missing[@]} -eq 0 ] || say "These Debian packages will be installed: ${missing[*]}"
  have_test_wheels || say "Python packages (model and device libraries, 215 MB) will be fetched to $cache and $devices"
  confirm
  assume_yes=yes
  # A password is asked for here, since steps in the background cannot.
  if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null; then sudo -v; fi
}
packages() {
  need_packages "${toolchain[@]}"
  say "all there"
}
# An environment with what the tests of the Python package need.
downloads() {
  need_packages "${other_packages[@]}"
  need_model
  need_device_wheels
  [ -x "$python_env/bin/pytest" ] || python3 -m venv "$python_env"
  "$python_env/bin/pip" install --quiet --disable-pip-version-check "${python_test_wheels[@]}" ml_dtypes nanobind
  say "all there"
}
get_the_rest() { recorded downloads downloads; }
# What the tests need to know of it.
use_all() {
  use_test_devices
  export RLX_MODEL_DIR=$model_dir
  export RLX_REQUIRE_ALL_TESTS=1 # a test that would skip itself for something missing fails instead
  if [ -z "$full" ]; then export GALLIVM_PERF=nopt; fi # Mesa's rasterizers spend most on optimizing kernels
}

# --- the release code: g++, -O2, all instruction sets ---
release_targets=(rlx_cli rlx_installed_libraries {kernels,stress,conformance,smoke,cli,allocation,device}_tests
  random_programs rlx_adversarial_plugin)
for example in examples/*.cpp; do release_targets+=("example_$(basename "$example" .cpp)"); done
release_build() { build release-tests --target "${release_targets[@]}"; }
release_tests() {
  configure release-tests # Chromium's rasterizer is here now
  local labels='kernels|stress|conformance|cli|allocation|smoke|device|example|consumer'
  local adapters=(vulkan opengl webgpu) adapter skipped=() exclude=()
  expect_tests release-tests kernels stress stress.slow conformance cli allocation smoke example.01_hello \
    install.{consumer,plugin} device.{vulkan,opengl,webgpu,tpu}{,.samples,.kernel_variants}
  if [ -z "$full" ]; then
    for adapter in "${adapters[@]}"; do
      [ "$adapter" = "${adapters[round % 3]}" ] || skipped+=("$adapter\\.samples" "$adapter\\.kernel_variants")
    done
    # Emulated Haswell takes as much longer than Nehalem as the variants take: so rounds take the same time.
    if [ $((round % 2)) -eq 1 ]; then skipped+=("${adapters[round % 3]}\\.kernel_variants"); fi
    exclude=(-E "^device\\.($(IFS='|' && echo "${skipped[*]}"))$")
  fi
  run_ctest release-tests release-tests -L "$labels" "${exclude[@]}" ${full:+-C full}
}

# Processors below the best: SSE4.2 and AVX2. The tests above have run the kernels of every instruction set that this
# machine has; the emulator shows that the older processor is recognised and meets no instruction that it lacks. So the
# long cases of the kernels, and whole programs, run in full runs only.
long_cases="math: e*,attention: *,*number of threads*,packed gemm: sizes*,strided gemm: any*,a row of*,reductions over*"
long_cases+=",products by group*,products of f64*,sort kernels: every*,products of bytes*,conv kernels: w*,fft kernels*"
long_cases+=",line kernels: running*,paged attention: pools*,panels: products of 16*,panels: from every*,scatter k*"
long_cases+=",products of complex*,conv kernels: i*,sample on the cpu: large*,sort on the cpu: keys of one*"
long_cases+=",sample on the cpu: masks*"
runs_under() { # TESTS COMMAND...: the tests of TESTS, each run by the command; of the kernels a part, all in full runs
  local tests=$1 run out cases cut
  for run in kernels_tests smoke_tests ${full:+conformance_tests}; do
    cut=()
    if [ -z "$full" ] && [ $run = kernels_tests ]; then
      cut=("--test-case-exclude=$long_cases")
      # The first three fifths take half of the time.
      cases=$("$tests/$run" --count "${cut[@]}" | grep -oE '[0-9]+$') || fail "$run --count gives no number"
      cases=$((cases * 3 / 5))
      if [ $((round / 2 % 2)) -eq 0 ]; then cut+=(--last=$cases); else cut+=(--first=$((cases + 1))); fi
    fi
    # The tests' own shares have periods of their own: a fourth of the round, so that each part meets all of them.
    out=$(RLX_TEST_ROUND=$((round / 4)) "${@:2}" "$tests/$run" "${cut[@]}" 2>&1) || fail "${*:2} $run: $out"
    say "${*:2} $run"
    grep 'test cases: *[1-9]' <<<"$out" || fail "$run: no test ran"
    grep 'assertions:' <<<"$out"
  done
}
emulated() {
  local pattern patterns processor processors=(Nehalem Haswell)
  IFS=, read -r -a patterns <<<"$long_cases"
  for pattern in "${patterns[@]}"; do # a test that was renamed would be run there unseen
    $release/tests/kernels_tests --count --test-case="$pattern" | grep -q ': [1-9]' ||
      fail "no kernel test is called '$pattern'"
  done
  [ -n "$full" ] || processors=("${processors[round % 2]}")
  for processor in "${processors[@]}"; do runs_under $release/tests qemu-x86_64-static -cpu "$processor"; done
}

# Random programs by their seeds; a failure names its own.
random_programs() { $release/tests/random_programs "$@" | tail -n 1; }
adversarial_plugin=$root/$release/python/plugins/adversarial.so
some_random_programs() {
  random_programs --first "$seed" --count 300
  random_programs --first "$seed" --count 200 --calls 50 --derive
  random_programs --plugin "$adversarial_plugin" --device directx --first "$seed" --count 60
}

# --- the Python package ---
python_wheel() {
  scripts/wheel.sh --yes --prebuilt $release --out build/wheels-tests
  "$python_env/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps \
    build/wheels-tests/rlx-*.whl
}
python_tests() { "$python_env/bin/python" -m pytest -q -p no:cacheprovider -n logical --dist worksteal "$@"; }
run_programs() {
  local with_numpy
  with_numpy=$(numpy_python) || fail "no Python with NumPy: apt-get install python3-numpy"
  "$with_numpy" tests/parity/run_numpy.py --rlx $release/rlx --device cpu --device reference
  "$with_numpy" tests/parity/minilm_numpy.py --rlx $release/rlx --model "$model_dir"
  python3 tests/reports/trace_test.py --rlx $release/rlx --model "$model_dir"
}
python_adversarial() {
  python_tests --plugin "$adversarial_plugin" --device directx ${full:+--full directx} \
    tests/python/test_{programs,devices}.py -k "sample or regression or everything or devices"
}
python_devices() { # whole programs of many ops: each takes seconds to compile there
  local device
  for device in tpu vulkan; do
    python_tests --device $device tests/python/test_{programs,devices}.py \
      -k "(sample and (900000 or 900020)) or devices"
  done
}
python_suites() {
  rm -f build/suites.md
  python_wheel
  "$python_env/bin/pip" install --quiet --disable-pip-version-check \
    absl-py opt_einsum scipy mpmath hypothesis ndindex pytest-json-report
  "$python_env/bin/python" scripts/array_api_suite.py --report build/suites.md
  "$python_env/bin/python" tests/python/jax_suite/run.py --report build/suites.md --most 600
}
bench_helpers() { "$python_env/bin/python" -m pytest -q -p no:cacheprovider tests/bench; }
pages() { python3 tests/reports/report_test.py --rlx $release/rlx --model "$model_dir" --screenshots build/pages; }

# --- the sanitizers: clang ---
mapfile -t fuzzers < <(cd tests/fuzz && for file in *_fuzz.cpp; do
  if [ -f "$file" ]; then echo "fuzz_${file%_fuzz.cpp}"; fi
done)
# The libraries of devices are not built with sanitizers and keep memory of their own to the end: here stand-ins run our
# side of them. Our declarations are still to be compared with their headers (RLX_REQUIRE_DEVICES).
without_devices() { unset RLX_WGPU_LIB RLX_TPU_PLUGIN; }
asan_build() {
  local sets=(native avx2) # the baseline always, and beside it the best of this machine or AVX2
  [ -n "$full" ] && sets=all || sets=${sets[round % 2]}
  [ "$(uname -m)" = x86_64 ] || sets=all
  local settings=(-DRLX_ISA="$sets") suites
  read -r -a suites < <(asan_suites)
  build asan -j "$(nproc)" --target "${suites[@]/%/_tests}" "${fuzzers[@]}"
  say "instruction sets: $sets"
}
# What the release code has run comes in halves; their period is twice that of the instruction sets.
asan_suites() {
  local twice=("kernels stress" conformance)
  echo unit golden property adversarial "${twice[round / 2 % 2]}" ${full:+"${twice[round / 2 % 2 ^ 1]}"}
}
asan_python_build() { VIRTUAL_ENV=$python_env build python-asan -j "$(nproc)"; }
# The sanitizer build is clang's and has compiled the libraries and the tests, some files at a time; a missing #include,
# which that hides as precompiled headers do, shows in full runs.
syntax() {
  configure clang
  if [ -n "$full" ]; then
    python3 scripts/check_syntax.py build/clang/compile_commands.json
  else
    python3 scripts/check_syntax.py build/clang/compile_commands.json bench cli examples --part "$((round % 3))/3"
  fi
}
# Runs where the steps before leave a core idle.
sanitizer_builds() {
  renice -n 19 -p "$BASHPID" >/dev/null || true
  without_devices
  recorded asan-build asan_build
  recorded asan-python-build asan_python_build
  recorded syntax syntax
}
asan_tests() {
  local slow=(-LE slow) suites
  [ -z "$full" ] || slow=()
  without_devices
  read -r -a suites < <(asan_suites)
  expect_tests asan "${suites[@]}"
  # Keeping whole stacks of all allocations takes a tenth of the time. A failure prints more of them without this.
  [ -n "$full" ] || local -x ASAN_OPTIONS="malloc_context_size=5${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
  run_ctest asan-tests asan -R "^($(IFS='|' && echo "${suites[*]}"))(\\.|$)" "${slow[@]}"
}
asan_python() {
  local library cut
  without_devices
  library=$(clang++-15 -print-file-name="libclang_rt.asan-$(uname -m).so")
  [ -f "$library" ] || fail "clang 15 has no shared library of its address sanitizer"
  # What touches memory by hand: arrays, calls, threads, callbacks. PYTHONMALLOC: Python's own blocks are watched too.
  cut=(tests/python/test_{arrays,custom,devices,jit,misuse}.py)
  if [ $((round % 2)) -eq 0 ]; then
    cut+=(tests/python/test_{encoders,found,requests,runs}.py)
  else
    cut+=(tests/python/test_text.py tests/python/test_language_model*.py)
  fi
  [ -z "$full" ] || cut=(tests/python --ignore tests/python/test_leaks.py)
  LD_PRELOAD=$library ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc \
    PYTHONPATH=build/python-asan/python python_tests "${cut[@]}"
}
# The differential fuzzer of whole programs finds most and gets as much as all others together, which run beside it;
# an hour in full runs. Seeds follow the commit, so that a failure comes again; full runs draw new ones.
fuzz_one() {
  local out status=0
  out=$(build/asan/tests/"$1" --seconds "$2" --seed "$seed" --corpus "tests/fuzz/corpus/${1#fuzz_}" 2>&1) || status=$?
  printf '%-24s %s\n' "$1" "$out"
  return $status
}
fuzz() {
  local total=60 programs=60 fuzzer longest
  [ -n "$full" ] && total=600 programs=3600 seed=$RANDOM
  say "${#fuzzers[@]} targets, random programs $programs s, the others together $total s, seed $seed"
  without_devices
  fuzz_one fuzz_program "$programs" &
  longest=$!
  for fuzzer in "${fuzzers[@]}"; do
    [ "$fuzzer" = fuzz_program ] || fuzz_one "$fuzzer" $((total / ${#fuzzers[@]})) || { kill "$longest"; exit 1; }
  done
  wait "$longest"
}

# --- what full runs add ---
device_build() {
  build release-tests --target device_tests rlx_cli bench_device random_programs rlx_adversarial_plugin
  $release/rlx devices
  run_ctest device release-tests -L "^$full\$"
}
device_programs() {
  local programs
  case $full in tpu) programs=5000 ;; vulkan) programs=1000 ;; *) programs=500 ;; esac
  random_programs --device "$full" --first "$seed" --count $((programs / 2))
  random_programs --device "$full" --first "$seed" --count $((programs / 2)) --calls 50
}
device_python() {
  python_wheel
  if [ "$full" = webgpu ]; then use_strict_adapter; fi
  python_tests --full "$full" tests/python/test_{programs,devices,ops,ops_derivatives}.py
}
device_figures() { $release/bench/device "$full" | tee build/benches.md; }
unit_tests_on() { # STEP PRESET: what the sanitizers alone have run
  build "$2" --target {unit,golden,property,adversarial}_tests
  expect_tests "$2" unit golden property adversarial
  run_ctest "$1" "$2" -L '^(unit|golden|property|adversarial)$' -LE 'kernels|stress'
}
tsan_adversarial() {
  build tsan --target adversarial_tests
  run_ctest tsan-adversarial tsan -L adversarial
}
many_programs() {
  local half adversarial=(--plugin "$adversarial_plugin" --device directx)
  if [ "$full" = cpu ]; then
    random_programs --first "$seed" --count 20000 &
    half=$!
    random_programs --first "$seed" --count 20000 --calls 50
    wait "$half" || fail "random programs failed; what they said stands above"
    random_programs --first "$((seed + 20000))" --count 10000 --calls 50 --derive
  else
    random_programs "${adversarial[@]}" --first "$seed" --count 1000
    random_programs "${adversarial[@]}" --first "$seed" --count 1000 --calls 50 --derive
  fi
}
tsan_tests() {
  build tsan --target {kernels,stress,unit,conformance,adversarial}_tests
  run_ctest tsan tsan
}
# g++ optimizes this baseline for size, as it serves other processors alone; no other build has it.
native() {
  local settings=(-DRLX_TESTS=ON)
  build native --target {kernels,conformance,smoke}_tests
  runs_under build/native/tests env RLX_CPU_ISA=sse4
}
aarch64() {
  build aarch64 --target kernels_tests conformance_tests smoke_tests
  runs_under build/aarch64/tests qemu-aarch64-static -L /usr/aarch64-linux-gnu
}
token_ids() {
  build release-tests --target token_ids
  python3 tests/parity/wordpiece_parity.py --tool $release/tests/token_ids --model "$model_dir"
  python3 tests/parity/tokenizers_compare.py --tool $release/tests/token_ids
}
chat_templates() {
  build release-tests --target chat_render
  tests/parity/chat_templates.py --tool $release/tests/chat_render
}
grammars() {
  build release-tests --target schema_texts
  python3 tests/parity/schema_jsonschema.py --tool $release/tests/schema_texts
}
benches() {
  build release
  bench/minilm --figures --json build/minilm.json
  bench/embed --json build/embed.json
  bench/gemm --json build/gemm.json
  bench/train --json build/train.json
  bench/report.py --minilm build/minilm.json --embed build/embed.json --gemm build/gemm.json >build/benches.md
}

# --- the run ---
seed=$((16#$(git rev-parse --short=6 HEAD 2>/dev/null || echo 1)))
# The commit's number: how many there are, or, where the history is not here, one that differs from commit to commit.
round=$seed
[ "$(git rev-parse --is-shallow-repository 2>/dev/null)" != false ] || round=$(git rev-list --count HEAD)
if [ -n "${RLX_TEST_ROUND:-}" ]; then
  [[ $RLX_TEST_ROUND =~ ^[0-9]{1,9}$ ]] || fail "RLX_TEST_ROUND is '$RLX_TEST_ROUND', but must be a number of commits"
  round=$((10#$RLX_TEST_ROUND))
fi
if [ -n "$full" ]; then
  export RLX_ALL_CASES=1 # sanitizers too take every case
  unset RLX_TEST_SHARE RLX_TEST_ROUND
  rm -f build/benches.md
else
  export RLX_TEST_SHARE=0/64 RLX_TEST_ROUND=$round
  say "round $round of:$rotation"
fi

ask_first
step packages packages
calibrate
beside downloads get_the_rest downloads
if [[ $full =~ ^(vulkan|opengl|webgpu|tpu)$ ]]; then
  end_beside downloads
  use_all
  step device device_build
  step device-programs device_programs
  step device-python device_python
  step device-figures device_figures
  exit
fi
step release-build release_build
end_beside downloads
use_all
if [ "$full" = python ]; then
  step python-suites python_suites
  exit
fi
calibrate
# Two compilers beside tests need memory: without it they run by themselves.
if [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 6 ]; then
  beside sanitizer-builds sanitizer_builds asan-build asan-python-build syntax
else
  step asan-build asan_build
  step asan-python-build asan_python_build
  step syntax syntax
fi
step release-tests release_tests
[ "$(uname -m)" != x86_64 ] || step emulated emulated
step random-programs some_random_programs
step wheel python_wheel
step programs run_programs
step python python_tests ${full:+--full cpu} tests/python
step python-adversarial python_adversarial
step python-devices python_devices
[ ! -d tests/bench ] || step bench-helpers bench_helpers
step pages pages
end_beside sanitizer-builds
calibrate
step asan-tests asan_tests
step asan-python asan_python
step fuzz fuzz

[ -z "$full" ] || step unit-release unit_tests_on unit-release release-tests
[ -z "$full" ] || step dev unit_tests_on dev dev
if [ "$full" = adversarial ]; then step tsan-adversarial tsan_adversarial; fi
[ -z "$full" ] || step many-programs many_programs
if [ "$full" = cpu ]; then
  step tsan tsan_tests
  [ "$(uname -m)" != x86_64 ] || step native native
  step aarch64 aarch64
  step token-ids token_ids
  step chat-templates chat_templates
  step grammars grammars
  step benches benches
fi
calibrate

heading "what ran, and what it took"
python3 scripts/test_report.py "$steps" --reference "$reference_seconds" ${full:+--no-budgets} ||
  fail "over budget: a step or the whole took half more than the table in scripts/test.sh says"
