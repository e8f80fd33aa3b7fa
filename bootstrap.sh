#!/usr/bin/env bash
# Builds, tests and shows xpu on Debian 12 or Ubuntu 24.04. Installs what is missing with apt.
#
#   ./bootstrap.sh build     both programs in build/release, ready to run
#   ./bootstrap.sh demo      record a bundled program into build/demo and show the report
#   ./bootstrap.sh test      everything that CI runs: 35 minutes, 1 GB of packages more
#   ./bootstrap.sh package   build/release/packages: a .deb and a .tar.gz
#   ./bootstrap.sh coverage  how many lines the unit and golden tests run
#
# Run it as root or as a user with sudo. Without either it does what needs no root, and says what it
# leaves out.
set -euo pipefail
cd "$(dirname "$0")"

packages=(
  bpftool capnproto clang cmake g++ libboost-dev libbpf-dev libbz2-dev libcapnp-dev libcli11-dev
  libdw-dev libelf-dev libfmt-dev libiberty-dev liblzma-dev libprotobuf-dev libsqlite3-dev
  libthrift-dev libxxhash-dev libzstd-dev ninja-build pkg-config protobuf-compiler python3
  zlib1g-dev
)

# GoogleTest and what the lints read; for the sanitizers; and for the tests in a browser, of completion,
# of sudo, of stacks of other linkers' and C libraries' programs, and under another kernel. npm is not
# among them: it is 350 packages, and the two readers of our files that it fetches are tested where it
# is installed.
test_packages=(
  binutils busybox-static chromium chromium-driver clang-format cpio groff libclang-rt-dev
  libgtest-dev lld llvm man-db mold musl-tools procps qemu-system-x86 sudo zsh
)

# What one clone has compiled, the next one need not.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
die() {
  printf '%s\n' "$@" >&2
  exit 1
}

# ask_for_root WHY: whether commands can be run as root now; sudo may ask for a password.
ask_for_root() {
  [[ $(id -u) -ne 0 ]] || return 0
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null && return 0
  say "$1"
  sudo -v
}

# want_root WHY: asks once, at the beginning, and sets has_root.
has_root=
want_root() {
  [[ -z $has_root ]] || return 0
  has_root=true
  ask_for_root "$1" || has_root=false
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo "$@"; fi
}

# Prints those of the packages that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

# install_packages PACKAGE...
install_packages() {
  command -v apt-get >/dev/null ||
    die "no apt-get here" "hint: install the counterparts of: $*"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  want_root "installing packages needs root"
  $has_root ||
    die "packages are missing, and installing them needs root" \
      "hint: ask an administrator to run:" \
      "  apt-get install -y --no-install-recommends ${missing[*]}"
  say "installing ${missing[*]}"
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

programs=(xpu-record xpu-report xpu_inject)
extras=(xpu_record_completions xpu_report_completions xpu_capture_manual)

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
  cmake --preset "$preset" "${launcher[@]}" >/dev/null
  cmake --build --preset "$preset" "${targets[@]}"
}

# build [TARGETS]
build() {
  install_packages "${packages[@]}"
  configure_and_build release "${programs[@]}" "$@"
  say "built: $PWD/build/release/record/xpu-record and $PWD/build/release/report/xpu-report"
}

demo() {
  want_root "installing packages and sampling CPUs need root"
  build transformer fake_cudart fake_cupti
  mkdir -p build/demo
  local options=()
  $has_root || options=(--no-sudo)
  tests/workloads/demo.sh "${options[@]}" "$PWD/build/release" "$PWD/build/demo"
}

package() {
  build "${extras[@]}"
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

# run_ctest [ARGUMENTS]: two for each core, since many wait.
run_ctest() {
  ctest --preset release -j $((2 * $(nproc))) "$@"
}

# As root for a user with sudo: without the variables that say for whom, and nothing that is written
# stays root's.
run_system_tests_by_sudo() {
  ask_for_root "system tests need root"
  sudo env -u SUDO_USER -u SUDO_UID -u SUDO_GID -u SUDO_COMMAND PYTHONDONTWRITEBYTECODE=1 \
    XPU_TEST_STRICT="$XPU_TEST_STRICT" bash -c "$(declare -f run_ctest)"'
      status=0
      run_ctest -L system || status=$?
      chown -R "$1" build/release
      exit $status' bash "$(id -u):$(id -g)"
}

run_tests() {
  want_root "installing packages and most system tests need root"
  $has_root || say "without root: system tests that need it are skipped"
  install_packages "${packages[@]}" "${test_packages[@]}"
  fetch_kernel
  export XPU_TEST_STRICT=browser,zsh
  ! $has_root || [[ ! -d build/kernels/distribution ]] || XPU_TEST_STRICT+=,kernel

  # Where there is a CUDA Toolkit, this build checks our description of CUPTI against its header.
  configure_and_build release
  say "tests: release"
  if [[ $(id -u) -eq 0 ]] || ! $has_root; then
    run_ctest
  else
    run_ctest -LE system
    say "tests: system, by sudo"
    run_system_tests_by_sudo
  fi

  # A fresh machine has no toolkit: the library and the simulated device are built all the same. Where
  # the build above found none, it has shown that.
  if grep -Eq '^XPU_CUPTI_INCLUDE(_DIR)?:PATH=/' build/release/CMakeCache.txt; then
    say "building and testing the injected library without a CUDA Toolkit"
    cmake --preset release -B build/no-toolkit -DXPU_CUDA_TOOLKIT=none "${launcher[@]}" >/dev/null
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
  install_packages "${packages[@]}" libgtest-dev
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
  *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
