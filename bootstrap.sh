#!/usr/bin/env bash
# Builds, tests and shows xpu on a Debian or Ubuntu machine. Installs what is missing with apt.
#
#   ./bootstrap.sh build     both programs in build/release, ready to run
#   ./bootstrap.sh demo      record a bundled program into build/demo and show the report
#   ./bootstrap.sh test      everything that CI runs
#   ./bootstrap.sh package   build/release/packages: a .deb and a .tar.gz
#   ./bootstrap.sh coverage  how many lines the unit and golden tests run
set -euo pipefail
cd "$(dirname "$0")"

packages=(
  binutils bpftool ca-certificates capnproto clang clang-format cmake g++ groff libboost-dev
  libbpf-dev libbz2-dev libcapnp-dev libcli11-dev libdw-dev libelf-dev libfmt-dev libgtest-dev
  libiberty-dev liblzma-dev libprotobuf-dev libsqlite3-dev libthrift-dev libxxhash-dev
  libzstd-dev llvm man-db ninja-build pkg-config procps protobuf-compiler python3 zlib1g-dev
)

# For the sanitizers, and the tests in a browser, of completion, of stacks of other linkers' and C
# libraries' programs, and under another kernel. npm may have come another way.
test_packages=(busybox-static chromium chromium-driver cpio libclang-rt-dev lld mold musl-tools
  qemu-system-x86 zsh)
command -v npm >/dev/null || test_packages+=(npm)

# What one clone has compiled, the next one need not.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
die() {
  printf '%s\n' "$@" >&2
  exit 1
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "this needs root: $*" "hint: run ./bootstrap.sh as root, or install sudo"
  fi
}

# install_packages PACKAGE...
install_packages() {
  command -v apt-get >/dev/null ||
    die "no apt-get here" "hint: install the counterparts of: $*"
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# What users get. The tests are three times as much.
programs=(xpu-record xpu-report xpu_inject xpu_record_completions xpu_report_completions
  xpu_capture_manual)

# CI compiles the sources of a directory as one, in a third of the time; what users get is compiled
# file by file.
unity=OFF

launcher=()
! command -v ccache >/dev/null ||
  launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

# configure_and_build PRESET [TARGETS]
configure_and_build() {
  local preset=$1
  shift
  local targets=()
  (($#)) && targets=(--target "$@")
  say "building: preset $preset"
  cmake --preset "$preset" -DXPU_UNITY=$unity "${launcher[@]}" >/dev/null
  cmake --build --preset "$preset" "${targets[@]}"
}

build() {
  install_packages "${packages[@]}"
  configure_and_build release "${programs[@]}" "$@"
}

demo() {
  build transformer tests/fake_cuda/all
  mkdir -p build/demo
  tests/workloads/demo.sh build/release build/demo
}

package() {
  build
  (cd build/release && cpack)
}

# The distribution's own kernel, for a virtual machine: it is unpacked, not installed.
fetch_kernel() {
  local package into=$PWD/build/kernels/distribution
  package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
    awk '/Depends: linux-image/ { print $2; exit }')
  [[ -n $package && ! -d $into/boot ]] || return 0
  say "fetching $package"
  mkdir -p "$into"
  (cd "$into" && apt-get download -q "$package" && dpkg -x ./*.deb . && rm ./*.deb) ||
    rm -r "$into"
}

run_tests() {
  unity=ON
  install_packages "${packages[@]}" "${test_packages[@]}"
  fetch_kernel
  export XPU_TEST_STRICT=browser,zsh
  [[ ! -d build/kernels/distribution ]] || XPU_TEST_STRICT+=,kernel

  # Where there is a CUDA Toolkit, this build checks our description of CUPTI against its header.
  configure_and_build release
  say "tests: release"
  ctest --preset release

  # A fresh machine has no toolkit: the library and the simulated device are built all the same. Where
  # the build above found none, it has shown that.
  if grep -Eq '^XPU_CUPTI_INCLUDE(_DIR)?:PATH=/' build/release/CMakeCache.txt; then
    say "building and testing the injected library without a CUDA Toolkit"
    cmake --preset release -B build/no-toolkit -DXPU_UNITY=ON -DXPU_CUDA_TOOLKIT=none \
      "${launcher[@]}" >/dev/null
    local tests=(cupti_inject/cupti_inject_test cupti_inject/injection_test
      fake_cuda/fake_cuda_strictness_test)
    cmake --build build/no-toolkit --target xpu_inject "${tests[@]##*/}"
    for test in "${tests[@]}"; do
      "build/no-toolkit/tests/unit/$test" --gtest_brief=1
    done
  fi

  configure_and_build asan xpu_unit_and_golden
  say "tests: AddressSanitizer and UndefinedBehaviorSanitizer"
  ctest --preset asan -L 'unit|golden'
}

coverage() {
  install_packages "${packages[@]}"
  configure_and_build coverage
  find build/coverage -name '*.gcda' -delete
  # Whole programs: a process for each test would spend its time on adding up the counts.
  for test in build/coverage/tests/unit/*/*_test; do
    say "$test"
    "$test" --gtest_brief=1
  done
  ctest --preset coverage
  python3 tests/tools/coverage.py build/coverage --least 85
}

case "${1:-}" in
  build) build ;;
  demo) demo ;;
  test) run_tests ;;
  package) package ;;
  coverage) coverage ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
