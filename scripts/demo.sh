#!/usr/bin/env bash
# From a bare Debian 12 to real sentence embeddings: installs what is missing, fetches the model, builds, embeds,
# searches.
# usage: scripts/demo.sh [--yes]      --yes: do not ask before installing; RLX_CACHE=DIR: where models are kept
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

for word in "$@"; do
  case $word in
    --yes | -y) assume_yes=yes ;;
    -h | --help) sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) fail "unknown argument $word; usage: scripts/demo.sh [--yes]" ;;
  esac
done

cd "$root"
heading "packages"
mapfile -t for_model < <(model_packages)
need_packages "${build_packages[@]}" "${for_model[@]}"
say "all there"

heading "model"
need_model
say "$model_dir"

heading "build"
cmake --preset native >/dev/null
cmake --build --preset native --target rlx_cli
rlx=$root/build/native/rlx

heading "embed: how alike are three sentences?"
sentences=("The weather is lovely today." "It's so sunny outside!" "He drove to the stadium.")
printf '  %s\n' "${sentences[@]}"
pairs=$(printf '%s\n' "${sentences[@]}" | "$rlx" embed --model "$model_dir" --pairs)
say "$pairs"
for cosine in 0.6660 0.1046 0.1411; do
  grep -q -- "$cosine" <<<"$pairs" || fail "expected the cosine $cosine (the known answers are 0.6660, 0.1046, 0.1411)"
done
say "as known: 0.6660, 0.1046, 0.1411"

heading "search: which passage of these licences answers the question?"
texts=(LICENSE)
for name in GPL-3 MPL-2.0 Artistic; do
  [ -f "/usr/share/common-licenses/$name" ] && texts+=("/usr/share/common-licenses/$name")
done
query="Am I allowed to sell copies for money?"
say "  $query"
"$rlx" search --model "$model_dir" --paragraphs "$query" "${texts[@]}"

say ""
say "Try it on your own text:"
say "  build/native/rlx search --model $model_dir \"what you look for\" FOLDER..."
