#!/bin/bash
# build_gpu.sh OUTDIR [NAME...]: builds the GPU workloads, or those that are named, for a real GPU
# with nvcc, each with shared cudart (NAME) and with static cudart (NAME-static), and the raw CUPTI
# recorder. OUTDIR can be copied to another machine as a whole: libcudart lies beside the programs,
# libstdc++ is linked in.
# CUDA_HOME (default /usr/local/cuda), XPU_JOBS (default 2), XPU_GPU_ARCH (default sm_90).
set -eu

[ $# -ge 1 ] || { echo "usage: $0 OUTDIR [NAME...]" >&2; exit 2; }
out=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
raw=$here/../tools/cupti_raw
cuda=${CUDA_HOME:-/usr/local/cuda}
jobs=${XPU_JOBS:-2}
arch=${XPU_GPU_ARCH:-sm_90}
mkdir -p "$out"
out=$(cd "$out" && pwd)
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
export here out cuda arch objects

host_flags=-fno-omit-frame-pointer,-fno-optimize-sibling-calls,-fno-ipa-icf,-Wall
export host_flags

build_one() {
  local name=$1
  local object=$objects/$name.o
  # Not stripped and with line tables: tests look names and lines up.
  if [ "$name" = driver_api ]; then
    # The stub stands in for the driver's library, which only a GPU machine has.
    g++ -x c++ -std=c++20 -O2 -g ${host_flags//,/ } -DXPU_REAL_GPU -isystem "$cuda/include" \
      -c "$here/$name.cu" -o "$object"
    g++ -static-libstdc++ -static-libgcc "$object" -L"$cuda/lib64/stubs" -lcuda -lpthread \
      -o "$out/$name"
    return
  fi
  local compile=("$cuda/bin/nvcc" -x cu -std=c++20 -arch="$arch" -O2 -g -lineinfo -Xcompiler
    "$host_flags")
  "${compile[@]}" -c "$here/$name.cu" -o "$object"
  local objects_of_one=("$object")
  if [ -f "$here/${name}_per_thread.cu" ]; then
    "${compile[@]}" --default-stream per-thread -c "$here/${name}_per_thread.cu" \
      -o "$objects/${name}_per_thread.o"
    objects_of_one+=("$objects/${name}_per_thread.o")
  fi
  # Through the stub, as above; dropped where the program calls no driver function.
  local link=(-arch="$arch" -Xcompiler -static-libstdc++ -Xcompiler -static-libgcc
    "${objects_of_one[@]}" -L"$cuda/lib64/stubs" -Xlinker --as-needed -lcuda -lpthread)
  # shellcheck disable=SC2016  # $ORIGIN is for the loader
  "$cuda/bin/nvcc" -cudart shared "${link[@]}" -Xlinker -rpath,'$ORIGIN' -o "$out/$name"
  "$cuda/bin/nvcc" -cudart static "${link[@]}" -o "$out/$name-static"
}
export -f build_one

names=("$@")
if [ $# -eq 0 ]; then
  for source in "$here"/*.cu; do
    name=$(basename "$source" .cu)
    [ "${name%_per_thread}" != "$name" ] || names+=("$name")  # those are a part of another program
  done
fi
printf '%s\n' "${names[@]}" | xargs -P "$jobs" -I{} bash -euc 'build_one {}'

g++ -std=c++20 -O2 -fPIC -shared -fvisibility=hidden -isystem "$cuda/include" \
  -I"$raw" "$raw"/injected/*.cpp -o "$out/libxpu_cupti_raw.so" -static-libstdc++ -static-libgcc \
  -Wl,--version-script="$raw/exports.map" -ldl -lpthread
# Not into the file itself, which a program may have mapped.
cp -L --remove-destination "$cuda/lib64/libcudart.so.13" "$out/"
