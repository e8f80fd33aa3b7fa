#!/usr/bin/env bash
# demo.sh [--no-sudo] BUILD_DIRECTORY DIRECTORY: records the transformer workload into DIRECTORY and
# shows the report: on the GPU where there is one and nvcc to compile for it, otherwise on the
# simulated device; with CPU samples where this user, or root by sudo, may take them.
set -euo pipefail
may_use_sudo=true
if [[ $1 == --no-sudo ]]; then
  may_use_sudo=false
  shift
fi
build=$1
directory=$2
record=$build/record/xpu-record
report=$build/report/xpu-report
capture=$directory/demo.xpu
page=$directory/demo.html
arguments=(--requests 400 --layers 4)

say() { printf '\n== %s\n' "$*"; }

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  device="the simulated device: there is no NVIDIA GPU here"
elif [[ -z $nvcc ]]; then
  device="the simulated device: there is a GPU but no nvcc to compile for it"
else
  device="the GPU: $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)"
fi

if [[ $device == "the GPU"* ]]; then
  "$(dirname "$0")/build_gpu.sh" "$directory/gpu" transformer >/dev/null
  program=$directory/gpu/transformer
  options=()
else
  program=$build/tests/workloads/transformer
  options=(--cupti-lib "$build/tests/fake_cuda/lib/libcupti.so.13")
fi

# check [sudo]: what xpu-record says of a recording with these options. One that would not work is no
# error here.
check() { "$@" "$record" "${options[@]}" --check --format json || true; }
# works RESULT MEMBER
works() { python3 -c 'import json, sys; sys.exit(not json.loads(sys.argv[1])[sys.argv[2]])' "$@"; }
# Prints what is missing, and each hint once.
missing() {
  python3 -c 'import json, sys
hints = []
for ability in json.loads(sys.argv[1])["abilities"]:
    if ability["state"] == "missing":
        print("  " + ability["name"] + ": " + ability["detail"])
        hints.append(ability.get("hint"))
for hint in filter(None, dict.fromkeys(hints)):
    print("  hint: " + hint)' "$1"
}

command=("$record" "${options[@]}")
result=$(check)
if ! works "$result" works && [[ $(id -u) -ne 0 ]] && $may_use_sudo && command -v sudo >/dev/null; then
  if ! sudo -n true 2>/dev/null; then
    say "sampling CPUs needs root, and sudo does not remember the password any more"
  fi
  if sudo -v; then
    result=$(check sudo)
    ! works "$result" works || command=(sudo "${command[@]}")
  fi
fi
if ! works "$result" works; then
  works "$result" gpu_only_works || {
    say "xpu-record cannot record here" >&2
    missing "$result" >&2
    exit 1
  }
  say "only the GPU's side is recorded, which any user can; for CPU samples this is missing"
  missing "$result"
  command+=(--gpu-only)
fi

say "recording $(basename "$program") ${arguments[*]} on $device"
"${command[@]}" -o "$capture" -- "$program" "${arguments[@]}" >/dev/null
say "xpu-report"
"$report" "$capture"
say "xpu-report --folded --mode gpu --unit us   (the five longest)"
"$report" --folded --mode gpu "$capture" |
  awk '{ print $NF "\t" $0 }' | sort -n -r | cut -f 2- | sed -n 1,5p
"$report" --flamegraph -o "$page" "$capture"

say "next"
printf 'a flame graph for a browser: %s\n' "$page"
printf 'so that the commands above can be pasted: PATH=%q:%q:$PATH\n' "$build/record" "$build/report"
printf 'other views:\n  %q --help\n  %q --top %q\n' "$report" "$report" "$capture"
echo "demo ran on $device"
