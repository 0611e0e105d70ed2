#!/usr/bin/env bash
# From a bare Debian 12 to a chat with a language model that this machine has made: installs what is missing, builds,
# trains a small model on what the system says of its packages (700 steps: two to three minutes on two free cores,
# longer where others use them), and talks with it. Needs no network but for the packages.
# usage: scripts/demo_chat.sh [--yes]      --yes: do not ask before installing; RLX_CACHE=DIR: where models are kept
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

for word in "$@"; do
  case $word in
    --yes | -y) assume_yes=yes ;;
    -h | --help) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) fail "unknown argument $word; usage: scripts/demo_chat.sh [--yes]" ;;
  esac
done

cd "$root"
command -v dpkg-query >/dev/null || fail "this system has no dpkg-query, whose list of packages the model learns"
heading "packages"
need_packages "${build_packages[@]}"
say "all there"

heading "build"
cmake --preset native >/dev/null
cmake --build --preset native --target rlx_cli example_18_train_language_model
rlx=$root/build/native/rlx

heading "text: what the system says of its packages"
folder=$cache/packages
mkdir -p "$folder"
lines=$folder/packages.tsv
# Programs rather than libraries and data, at most 400, in an order that depends on nothing but what is installed.
LC_ALL=C dpkg-query -W -f '${db:Status-Status}\t${Package}\t${binary:Summary}\n' |
  awk -F '\t' '$1 == "installed" && $2 !~ /^lib|-(dev|doc|dbg|data|common)$/ && $3 != "" {print $2 "\t" $3}' |
  LC_ALL=C sort -u >"$lines.all"
awk -v most=400 -v all="$(wc -l <"$lines.all")" \
  'all <= most || int(NR * most / all) > int((NR - 1) * most / all)' "$lines.all" >"$lines"
rm "$lines.all"
say "$(wc -l <"$lines") packages; the first ones:"
head -n 3 "$lines" | sed 's/^/  /'

heading "training: a Llama-shaped model from nothing"
build/native/examples/example_18_train_language_model "$lines" "$folder"
say "in $folder:"
(cd "$folder" && ls -1 -s --block-size=K ./*.json ./*.safetensors) | sed 's/^/  /'

# ask MODEL QUESTION...: the questions and what the model answers, as one conversation.
ask() {
  local model=$1 said i=0
  shift
  said=$(printf '%s\n' "$@" | "$rlx" chat "$model" --temperature 0 --tokens 64)
  mapfile -t answers <<<"$said"
  for question in "$@"; do
    say "> $question"
    say "${answers[i]:-}"
    i=$((i + 1))
  done
}
mapfile -t known < <(awk -F '\t' 'NR % 25 != 0 {print $1}' "$lines") # the 25th words are those that it never saw
pick() { printf '%s' "${known[$((${#known[@]} * $1 / 100))]}"; }
questions=("What is $(pick 10)?" "Tell me about $(pick 45)." "what is $(pick 60)" "What does $(pick 85) do?")

heading "a conversation"
ask "$folder" "${questions[@]}"
right=0
for answer in "${answers[@]}"; do
  if grep -xF -- "$answer" <(cut -f 2 "$lines") >/dev/null; then right=$((right + 1)); fi
done
[ "$right" -gt 0 ] || fail "none of these is what the system says of a package; please report it with the lines above"

heading "the same as GGUF files, in 8 and in 4 bits"
for type in Q8_0 Q4_0; do
  "$rlx" convert "$folder" "$folder/packages-$type.gguf" --type $type --quiet
  say "$type, $(stat -c %s "$folder/packages-$type.gguf") bytes:"
  ask "$folder/packages-$type.gguf" "${questions[0]}"
done

say ""
say "Talk with it:"
say "  build/native/rlx chat $folder --temperature 0"
say "A model of your own, any GGUF file or Hugging Face folder (docs/language_models.md lists the families):"
say "  build/native/rlx chat MODEL.gguf"
if [ -t 0 ] && [ -t 1 ]; then
  say ""
  exec "$rlx" chat "$folder" --temperature 0
fi
