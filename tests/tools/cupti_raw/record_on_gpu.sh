#!/bin/bash
# record_on_gpu.sh BINDIR OUTDIR: on a GPU machine, records raw CUPTI captures of the workloads that
# tests/workloads/build_gpu.sh built into BINDIR. For each capture OUTDIR gets NAME.raw
# (NAME.PID.raw where there are several processes), NAME.json (what the workload knows) and
# NAME.err if the program wrote errors; machine.txt says what it ran on, index.txt lists the status
# and size of each. Goes on when a capture fails; each one has its own time limit, all together take
# less than 90 s.
set -u

[ $# -eq 2 ] || { echo "usage: $0 BINDIR OUTDIR" >&2; exit 2; }
bin=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" || exit 2
out=$(cd "$2" && pwd)
deadline=$((SECONDS + 75))
: > "$out/index.txt"

describe_machine() {
  timeout 10 nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap \
    --format=csv,noheader 2>&1 | head -8
  uname -srvm
  ldd --version 2>&1 | head -1
  grep PRETTY_NAME /etc/os-release
  echo "cupti libraries:"
  {
    ldconfig -p 2>/dev/null | grep -o '/[^ ]*libcupti\.so[^ ]*'
    timeout 10 find /usr/local /usr/lib /opt /root -xdev -name 'libcupti.so*' 2>/dev/null
  } | sort -u | head -30
}

# The newest libcupti of the toolkit, for machines whose loader does not find one by name.
find_cupti() {
  local path
  for path in /usr/local/cuda/lib64/libcupti.so.13 \
    /usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13 \
    /usr/local/cuda*/targets/x86_64-linux/lib/libcupti.so.13 \
    /usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.1[23]; do
    [ -e "$path" ] && { echo "$path"; return; }
  done
  timeout 10 find / -xdev -name 'libcupti.so.1[23]' 2>/dev/null | sort | tail -1
}

# record NAME LIMIT_S [VARIABLE=VALUE ...] -- PROGRAM [ARGUMENT ...]
record() {
  local name=$1 limit=$2 file=$1.raw
  shift 2
  local settings=()
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  local program=$1
  shift
  case " ${settings[*]-} " in *MULTI=1*) file=$name.%p.raw ;; esac
  if [ "$SECONDS" -ge "$deadline" ]; then
    echo "$name skipped: out of time" >> "$out/index.txt"
    return
  fi
  local begin=$SECONDS status=0
  env ${cupti:+XPU_CUPTI_LIB="$cupti"} CUDA_INJECTION64_PATH="$bin/libxpu_cupti_raw.so" \
    CUPTI_RAW_OUT="$out/$file" CUPTI_RAW_MAX_BYTES=1500000 ${settings[@]+"${settings[@]}"} \
    timeout -k 1 "$limit" "$bin/$program" "$@" > "$out/$name.json" 2> "$out/$name.err" || status=$?
  [ -s "$out/$name.err" ] || rm -f "$out/$name.err"
  echo "$name status $status, $((SECONDS - begin)) s: $program $*" \
    "${settings[*]-} $(cd "$out" && stat -c '%n=%s' "$name".*raw 2>/dev/null | tr '\n' ' ')" \
    >> "$out/index.txt"
}

describe_machine > "$out/machine.txt"
cupti=${XPU_CUPTI_LIB-$(find_cupti)}
echo "used: ${cupti:-by name}" >> "$out/machine.txt"

transformer=(--requests 2 --layers 2 --seq 64 --kernel-us 50)
record transformer_shared 8 -- transformer "${transformer[@]}"
record transformer_static 8 -- transformer-static "${transformer[@]}"
record transformer_threads 8 CUPTI_RAW_BUFFER_BYTES=16384 -- \
  transformer "${transformer[@]}" --threads 3
record transformer_api_records 8 CUPTI_RAW_KINDS=default,driver,runtime -- \
  transformer "${transformer[@]}"
# Chosen API records by id instead of the whole kind: cudaLaunchKernel, cuLaunchKernel.
record transformer_chosen_api 8 CUPTI_RAW_RUNTIME_CBIDS=211 CUPTI_RAW_DRIVER_CBIDS=307 -- \
  transformer "${transformer[@]}"
record transformer_default_tid 8 CUPTI_RAW_THREAD_ID=default \
  CUPTI_RAW_KINDS=default,driver,runtime -- transformer "${transformer[@]}" --threads 2
record transformer_event_time 8 -- \
  transformer --requests 4 --layers 2 --kernel-us 200 --event-time
record two_kernels_threads 8 -- two_kernels --mode=threads --launches 100
record two_kernels_fork 8 MULTI=1 -- two_kernels --mode=fork --launches 20
record two_kernels_exec 8 MULTI=1 -- two_kernels-static --mode=exec --launches 20
record empty_launches 8 CUPTI_RAW_BUFFER_BYTES=65536 -- \
  empty_launches --launches 600 --threads 2 --depth 3
record vector_add 8 CUPTI_RAW_ALL_SYNC=1 -- vector_add --iterations 3
record graph_nodes 8 -- graph --nodes 20 --replays 10
record graph_paths 8 -- graph_paths
record graph_trace 8 CUPTI_RAW_KINDS=default,graph_trace -- graph --nodes 20 --replays 10
record driver_api 8 CUPTI_RAW_KINDS=default,driver -- driver_api --launches 10
record in_flight 8 -- long_kernel --long-ms 2000 --launches 40
record in_flight_small_buffers 8 CUPTI_RAW_BUFFER_BYTES=8192 -- \
  long_kernel --long-ms 2000 --launches 40
# A forced flush in the middle: the running kernel comes back without an end.
record in_flight_forced 8 CUPTI_RAW_FORCE_AT_MS=1000 -- long_kernel --long-ms 2000 --launches 40
record exit_return 5 -- exit_styles --how=return --launches 50
record exit_underscore 5 -- exit_styles --how=_exit --launches 50 --linger-ms 250
record exit_sigkill 5 -- exit_styles --how=sigkill --launches 50 --linger-ms 250
record subscribe_v2 5 CUPTI_RAW_SUBSCRIBE=v2 -- vector_add
cat "$out/machine.txt" "$out/index.txt"
exit 0
