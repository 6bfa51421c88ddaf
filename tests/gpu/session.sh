#!/usr/bin/env bash
# Records what a GPU alone can show, checks it on the spot and packs it into one tar.
#
#   tests/gpu/session.sh OUT                  on a CUDA machine, under 8 minutes
#   tests/gpu/session.sh OUT --device cpu     the same with a tiny model, to try this script
#   tests/gpu/session.sh OUT --device cpu planted variants     only these groups
#
# Needs python3 with torch and timm, and this checkout; nothing is installed and nothing is downloaded.
# PYTHON names another interpreter. Ends with 0 when every check of every recording passed, else with 1;
# Afterwards, anywhere: `python -m tests.gpu.judge OUT` holds what was brought back against analyze.
# OUT/session.tar.gz holds what could be recorded either way.
set -uo pipefail

if [ $# -lt 1 ]; then
  echo "usage: $0 OUT [--device cuda|cpu] [GROUP...]" >&2
  exit 2
fi
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
shift
device=cuda
if [ "${1:-}" = --device ]; then
  device=$2
  shift 2
fi
groups=("$@")
[ ${#groups[@]} -gt 0 ] || groups=(precisions planted variants pairs compiled sweep)

cd "$(dirname "$0")/../.." || exit 2
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1
python=${PYTHON:-python3}
whole_s=430 # the rest of 8 minutes is for packing
failed=0

# A group that hangs must not take the time of the others: each has its own limit, within that of the whole.
limit_of() {
  case $1 in
    compiled) echo 90 ;;
    pairs) echo 150 ;;
    *) echo 110 ;;
  esac
}

for group in "${groups[@]}"; do
  left=$((whole_s - SECONDS))
  limit=$(limit_of "$group")
  [ "$limit" -le "$left" ] || limit=$left
  if [ "$limit" -lt 5 ]; then
    echo "== $group: no time left" | tee -a "$out/log.txt"
    failed=1
    continue
  fi
  echo "== $group, at most $limit s" | tee -a "$out/log.txt"
  timeout -k 10 "$limit" "$python" -m tests.gpu.session record "$group" --out "$out/recordings" --device "$device" \
    2>&1 | tee -a "$out/log.txt"
  status=${PIPESTATUS[0]}
  if [ "$status" -ne 0 ]; then
    echo "== $group ended with $status" | tee -a "$out/log.txt"
    failed=1
  fi
done

"$python" -m tests.gpu.session pack --out "$out" || failed=1
echo "== done after $SECONDS s, $([ $failed = 0 ] && echo "every check passed" || echo "something failed")"
exit $failed
