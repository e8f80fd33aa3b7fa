#!/bin/bash
# build.sh OUTDIR: builds what overhead.py measures and OUTDIR does not have yet, with nvcc and g++:
# the GPU workloads and the library that measures CUPTI alone. CUDA_HOME as in build_gpu.sh.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
out=$1
here=$(cd "$(dirname "$0")" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
mkdir -p "$out"

# The last is what the programs need beside them, and is put there last.
missing=()
for program in empty_launches transformer graph copies llm_decode; do
  [ -x "$out/$program" ] && [ -e "$out/libcudart.so.13" ] || missing+=("$program")
done
if [ ${#missing[@]} -gt 0 ]; then
  XPU_JOBS=${XPU_JOBS:-$(nproc)} "$here/../../workloads/build_gpu.sh" "$out" "${missing[@]}"
fi
if [ ! -e "$out/libcupti_floor.so" ]; then
  g++ -std=c++20 -O2 -Wall -fPIC -shared -fvisibility=hidden -I"$here/../../.." \
    -isystem "$cuda/include" \
    -isystem "$cuda/extras/CUPTI/include" "$here/cupti_floor.cpp" -o "$out/libcupti_floor.so" \
    -static-libstdc++ -static-libgcc \
    -Wl,--version-script="$here/../../tools/cupti_raw/exports.map" -ldl -lpthread
fi
