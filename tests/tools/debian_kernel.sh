#!/usr/bin/env bash
# Runs a command on Debian 12's own kernel (Linux 6.1): a virtual machine that sees the files of this
# one, whose changes to them are forgotten. As root; needs qemu-system-x86, busybox-static and kmod. Run by
# hand: CI has no virtual machines.
#
#   tests/tools/debian_kernel.sh COMMAND [ARGUMENT...]
#   tests/tools/debian_kernel.sh env XPU_BUILD_DIR=$PWD/build/release PYTHONPATH=tests/lib \
#     python3 tests/system/record_gpu_test.py
set -euo pipefail
(($#)) || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
modules=(virtio_pci 9pnet_virtio 9p overlay)

# The kernel and its modules, as Debian packages them.
fetch_kernel() {
  local package
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ {print $2; exit}')
  (cd "$directory" && apt-get download -q "$package" >/dev/null 2>&1 && dpkg-deb -x ./*.deb kernel)
  release=${package#linux-image-}
}

# What the machine runs first: it makes the files of this machine its own and runs the command.
write_init() {
  cat >"$1" <<'INIT'
#!/bin/busybox sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
for module in $(cat /modules.txt); do modprobe $module; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=524288,cache=loose files /files
mount -t tmpfs over /over
mkdir /over/new /over/work
mount -t overlay -o lowerdir=/files,upperdir=/over/new,workdir=/over/work over /machine
for kind in proc sys dev; do mount --bind /$kind /machine/$kind; done
mount -t tmpfs shm /machine/dev/shm
mount -t tmpfs run /machine/run
ip link set lo up
chroot /machine /bin/bash -c "$(cat /command.txt)"
echo "debian_kernel: status $?"
poweroff -f
INIT
  chmod +x "$1"
}

make_initramfs() {
  local root=$directory/initramfs
  mkdir -p "$root"/{bin,proc,sys,dev,files,over,machine,lib/modules}
  cp "$(command -v busybox)" "$root/bin/busybox"
  local applet
  for applet in sh mount modprobe cat mkdir chroot poweroff ip echo; do
    ln -s busybox "$root/bin/$applet"
  done
  cp -r "$directory/kernel/lib/modules/$release" "$root/lib/modules/"
  find "$root/lib/modules" \( -path '*/drivers/*' -a ! -path '*/drivers/virtio/*' -o \
    -path '*/sound/*' \) -name '*.ko' -delete
  depmod -b "$root" "$release"
  printf '%s\n' "${modules[@]}" >"$root/modules.txt"
  printf 'cd %q && %s\n' "$PWD" "$(printf '%q ' "$@")" >"$root/command.txt"
  write_init "$root/init"
  (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$directory/initramfs.gz"
}

fetch_kernel
make_initramfs "$@"
# XPU_VM_KVM=1: with the processor's help; not every virtual machine lets another one run inside.
acceleration=(-cpu max)
[[ ${XPU_VM_KVM:-0} == 1 ]] && acceleration=(-enable-kvm -cpu host)
timeout --foreground "${XPU_VM_SECONDS:-1800}" qemu-system-x86_64 "${acceleration[@]}" -smp 2 -m 4G -nographic -no-reboot \
  -kernel "$directory/kernel/boot/vmlinuz-$release" -initrd "$directory/initramfs.gz" \
  -append "console=ttyS0 quiet panic=-1" \
  -virtfs local,path=/,mount_tag=files,security_model=none,readonly=on,multidevs=remap \
  </dev/null | tee "$directory/output"
grep -q '^debian_kernel: status 0' <(tr -d '\r' <"$directory/output")
