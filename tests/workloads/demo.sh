#!/usr/bin/env bash
# demo.sh BUILD_FOLDER SCRATCH_FOLDER: records the transformer workload and shows the report: on the
# GPU where there is one and nvcc to compile for it, otherwise on the simulated device.
set -euo pipefail
build=$1
scratch=$2
record=$build/record/xpu-record
report=$build/report/xpu-report
arguments=(--requests 20 --layers 4)

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  device="the simulated device: there is no NVIDIA GPU here"
elif [[ -z $nvcc ]]; then
  device="the simulated device: there is a GPU but no nvcc to compile for it"
else
  device="the GPU: $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)"
fi

if [[ $device == "the GPU"* ]]; then
  "$(dirname "$0")/build_gpu.sh" "$scratch/gpu" >/dev/null
  program=$scratch/gpu/transformer
  simulated=()
else
  program=$build/tests/workloads/transformer
  simulated=(--cupti-lib "$build/tests/fake_cuda/lib/libcupti.so.13")
fi

echo
echo "== recording $(basename "$program") ${arguments[*]} on $device"
"$record" -o "$scratch/demo.xpu" "${simulated[@]}" -- "$program" "${arguments[@]}" >/dev/null
echo
echo "== xpu-report"
"$report" "$scratch/demo.xpu"
echo
echo "== xpu-report --folded --mode gpu --unit us   (the five longest)"
"$report" --folded --mode gpu "$scratch/demo.xpu" |
  awk '{ print $NF "\t" $0 }' | sort -n -r | cut -f 2- | sed -n 1,5p
echo
echo "demo ran on $device"
