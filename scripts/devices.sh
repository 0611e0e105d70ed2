#!/usr/bin/env bash
# Fetches the libraries that devices vulkan, opengl, webgpu and gpu (wgpu-native) and tpu (XLA's CPU client as a PJRT
# plug-in, a stand-in) open at run time, and prints the lines that make rlx find them.
# usage: eval "$(scripts/devices.sh [--yes])"; rlx devices
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

for word in "$@"; do
  case $word in
    --yes | -y) assume_yes=yes ;;
    -h | --help) sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) fail "unknown argument $word; usage: scripts/devices.sh [--yes]" ;;
  esac
done

{
  need_packages "${fetch_packages[@]}"
  need_wheel "$devices/wgpu" "${wgpu_wheel[@]}"
  need_wheel "$devices/pjrt" "${pjrt_wheel[@]}"
} >&2
say "export RLX_WGPU_LIB='$devices/wgpu/libwgpu_native-release.so'"
say "export RLX_TPU_PLUGIN='$devices/pjrt/pjrt_c_api_cpu_plugin.so'"
# Mesa looks for a compositor there and complains on standard error of each process where it is not set (ssh,
# containers).
if [ -z "${XDG_RUNTIME_DIR:-}" ]; then
  mkdir -p -m 700 "$root/build/xdg"
  say "export XDG_RUNTIME_DIR='$root/build/xdg'"
fi
