#!/usr/bin/env bash
# demo.sh BUILD_FOLDER FOLDER: records the transformer workload into FOLDER and shows the report: on
# the GPU where there is one and nvcc to compile for it, otherwise on the simulated device.
set -euo pipefail
build=$1
directory=$2
record=$build/record/xpu-record
report=$build/report/xpu-report
arguments=(--requests 400 --layers 4)

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  device="the simulated device: there is no NVIDIA GPU here"
elif [[ -z $nvcc ]]; then
  device="the simulated device: there is a GPU but no nvcc to compile for it"
else
  device="the GPU: $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)"
fi

if [[ $device == "the GPU"* ]]; then
  "$(dirname "$0")/build_gpu.sh" "$directory/gpu" >/dev/null
  program=$directory/gpu/transformer
  simulated=()
else
  program=$build/tests/workloads/transformer
  simulated=(--cupti-lib "$build/tests/fake_cuda/lib/libcupti.so.13")
fi

# CPU samples take privileges; the GPU side and its stacks do not.
command=("$record" "${simulated[@]}")
if [[ $("$record" --check || true) == *"is for CPU samples"* ]]; then
  if [[ $(id -u) -ne 0 ]] && command -v sudo >/dev/null; then
    command=(sudo "${command[@]}")
  else
    command+=(--gpu-only)
  fi
fi

echo
echo "== recording $(basename "$program") ${arguments[*]} on $device"
"${command[@]}" -o "$directory/demo.xpu" -- "$program" "${arguments[@]}" >/dev/null
echo
echo "== xpu-report"
"$report" "$directory/demo.xpu"
echo
echo "== xpu-report --folded --mode gpu --unit us   (the five longest)"
"$report" --folded --mode gpu "$directory/demo.xpu" |
  awk '{ print $NF "\t" $0 }' | sort -n -r | cut -f 2- | sed -n 1,5p
"$report" --flamegraph -o "$directory/demo.html" "$directory/demo.xpu"
echo
echo "a flame graph for a browser: $directory/demo.html; any other view:"
echo "  $report --help"
echo "  $report --top $directory/demo.xpu"
echo "demo ran on $device"
