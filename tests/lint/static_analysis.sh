#!/usr/bin/env bash
# clang-tidy (its checks: .clang-tidy) and cppcheck over the sources of the tools, or over the given
# ones. Run by hand: all of it takes most of an hour of one core.
#
#   tests/lint/static_analysis.sh [FILE...]
#   tests/lint/static_analysis.sh $(git diff --name-only main -- '*.cpp')
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
# A command for each file, and what the build generates.
build=$PWD/build/tools
cmake --preset debug -B "$build" -DCMAKE_UNITY_BUILD=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null &&
  cmake --build "$build" --target xpu_capture_schema xpu_bpf_skeletons xpu_perfetto_schema \
    xpu_pprof_schema >/dev/null || exit 2

directories=(cupti_inject format record report symbolize)
files=("$@")
((${#files[@]})) || mapfile -t files < <(find "${directories[@]}" -name '*.cpp' && find bpf -name '*.c')
mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep '\.cpp$')
mapfile -t kernel_sources < <(printf '%s\n' "${files[@]}" | grep '\.bpf\.c$')

check() {  # the options of a language, then files
  cppcheck --quiet --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
    --suppressions-list=tests/lint/cppcheck_suppressions.txt -I. "$@"
}

status=0
if ((${#sources[@]})); then
  check --language=c++ --std=c++20 '-DLIBBPF_OPTS(type, name, ...)=type name' "${sources[@]}" ||
    status=1
  printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" \
    clang-tidy --quiet --warnings-as-errors='*' -p "$build" 2>/dev/null || status=1
fi
if ((${#kernel_sources[@]})); then
  check --language=c --std=c11 '-DSEC(name)=' "${kernel_sources[@]}" || status=1
fi
exit $status
