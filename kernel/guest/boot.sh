# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. What the guests have in common, to be sourced: Debian's kernel in QEMU (no KVM, no
# root), or one that was built in KDIR, one with KASAN, lockdep and kmemleak, say.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# choose_kernel OUT [KDIR]: sets out, kdir, version, kernel, and shared, the folder for what other
# guests have too: KMOD_SHARED with Debian's kernel, which is fetched if need be, else OUT.
choose_kernel() {
	mkdir -p "$1"
	out=$(cd "$1" && pwd)
	kdir=${2:-}
	shared=$out
	image=
	if [ -n "$kdir" ]; then
		version=$(sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' \
			"$kdir/include/generated/utsrelease.h")
		kernel=$kdir/arch/x86/boot/bzImage
		[ -e "$kernel" ] && return
		echo "kmod-check: there is no $kernel: build the kernel there first" >&2
		exit 1
	fi
	kdir=$(printf '%s\n' /usr/src/linux-headers-*-amd64 | sort -V | tail -n 1)
	version=${kdir#/usr/src/linux-headers-}
	shared=${KMOD_SHARED:-$out}
	image=$shared/image-$version
	kernel=$image/boot/vmlinux-$version
	[ -e "$kernel" ] && return
	[ -e "${kernel/vmlinux/vmlinuz}" ] || fetch_image
	# One that is packed in another way is left to the guest.
	if unpack_kernel "${kernel/vmlinux/vmlinuz}" >"$kernel.part"; then
		mv "$kernel.part" "$kernel"
	else
		rm -f "$kernel.part"
		kernel=${kernel/vmlinux/vmlinuz}
	fi
}

fetch_image() {
	local part packages=("linux-image-$version") folder=${image%/*}

	# Debian's 7.3 lies in three, and elsewhere.
	for part in binary modules; do
		! apt-cache show "linux-$part-$version" >"$out/download.log" 2>&1 ||
			packages+=("linux-$part-$version")
	done
	echo "kmod-check: fetching ${packages[*]} (70 to 150 MB)"
	if ! (cd "$folder" && apt-get -qq download "${packages[@]}") 2>"$out/download.log"; then
		tail -n 5 "$out/download.log" >&2
		echo "kmod-check: apt-get could not fetch ${packages[*]} (its last lines are" \
			"above): is the network reachable, and 'apt-get update' recent?" >&2
		exit 1
	fi
	rm -rf "$image" "$image.part"
	for part in "${packages[@]}"; do
		dpkg -x "$folder/$part"_*.deb "$image.part"
		rm -f "$folder/$part"_*.deb
	done
	mkdir -p "$image.part/boot"
	[ -e "$image.part/boot/vmlinuz-$version" ] ||
		mv "$image.part/usr/lib/modules/$version/vmlinuz" "$image.part/boot/vmlinuz-$version"
	mv "$image.part" "$image"
}

# unpack_kernel VMLINUZ: the kernel that it begins, which QEMU starts itself, by PVH: a guest takes 3 s
# to unpack it, this machine half of one. What is where: Documentation/arch/x86/boot.rst.
unpack_kernel() {
	local sectors offset length

	field() { od -An -t "u$2" -j "$1" -N "$2" "$3" | tr -d ' '; }
	sectors=$(field 0x1f1 1 "$1")
	offset=$(field 0x248 4 "$1")
	length=$(field 0x24c 4 "$1")
	tail -c "+$(((sectors + 1) * 512 + offset + 1))" "$1" | head -c "$length" | xz -dc --single-stream
}

# Sets module, the folder with onecopy.ko.
build_module() {
	module=$shared/module-$version
	W=1 make_in "$module" "$here/../build.sh" "$module" "$kdir"
}

# build_driver SOURCE...: of a module that the tests need, the first names it; $driver is its folder.
build_driver() {
	driver=$shared/driver-$version
	mkdir -p "$driver"
	make_driver() {
		cp -u "$@" "$driver/" &&
			echo "obj-m := $(basename "$1" .c).o" >"$driver/Kbuild" &&
			make -C "$kdir" M="$driver" W=1 modules
	}
	make_in "$driver" make_driver "$@"
}

# make_in FOLDER COMMAND...: guests that share it come one after the other; what is new is not made again.
make_in() {
	local folder=$1

	shift
	(flock 9 && { "$@" >"$folder.log" 2>&1 || { cat "$folder.log" >&2; false; }; }) 9>"$folder.lock" ||
		exit 1
}

# build_program NAME SOURCE...: for the guest, which has no libraries.
build_program() {
	${compiler:-${CC:-cc}} -O1 -g -Wall -Wextra -Werror -std=gnu17 -D_GNU_SOURCE -static "${@:2}" -o "$out/$1"
}

# Sets root: what the guest begins with. Its /init begins, too; what it is to do is to be added.
begin_root() {
	root=$(mktemp -d "$out/root.XXXXXX")
	trap 'rm -rf "$root"' EXIT
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,host,modules}
	cp "${busybox:-$(command -v busybox)}" "$root/bin/"
	cp "$module/onecopy.ko" "$root/"
	cat >"$root/init" <<'INIT'
#!/bin/busybox sh
export PATH=/bin
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t debugfs debug /sys/kernel/debug
busybox ip link set lo up
INIT
}

# add_modules NAME...: of the kernel's own, in the order in which they are needed; what a kernel does
# not have as a module it has built in, or does without.
add_modules() {
	local name file number=10
	for name in "$@"; do
		number=$((number + 1))
		file=$(find "$image" -name "$name.ko*" 2>/dev/null | head -n 1)
		case $file in
		*.ko) cp "$file" "$root/modules/$number-$name.ko" ;;
		*.ko.xz) xz -dc "$file" >"$root/modules/$number-$name.ko" ;;
		esac
	done
}

# What the guest begins with becomes $out/initramfs.gz.
pack_root() {
	chmod +x "$root/init"
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$out/initramfs.gz"
}

# A busy machine may leave a guest without a CPU, or stop it, for longer than kernels think possible.
# One that is stuck for two minutes all the same ends: once the kernel's own tests of its ciphers, which
# nothing here needs, went round for ever in QEMU (2026-11-30). Nor is the timer tried at the start, which a
# guest without a CPU took for broken.
patient="watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=300 softlockup_panic=1 cryptomgr.notests no_timer_check"

# Told that strings of bytes are quick, the kernel and the C library copy by instructions that QEMU
# runs byte by byte: with these the guests of `make check` took 106 s, without 93 (Xeon guest of 2
# CPUs, 2026-11-28).
cpu=max,-erms,-fsrm

# boot LOG SECONDS CPUS NODES MEGABYTES [QEMU-ARGUMENT...]: as many sockets as nodes; what the guest
# says goes to LOG, too. Not longer than SECONDS.
boot() {
	local log=$1 seconds=$2 cpus=$3 nodes=$4 megabytes=$5 numa=() i j
	shift 5
	for ((i = 0; i < nodes; i++)); do
		numa+=(-object "memory-backend-ram,id=m$i,size=$((megabytes / nodes))M"
			-numa "node,nodeid=$i,memdev=m$i,cpus=$((i * cpus / nodes))-$(((i + 1) * cpus / nodes - 1))")
	done
	for ((i = 0; i < nodes; i++)); do
		for ((j = i + 1; j < nodes; j++)); do numa+=(-numa "dist,src=$i,dst=$j,val=21"); done
	done
	pack_root
	echo "kmod-check: booting Linux $version, $cpus CPUs, $nodes nodes"
	timeout "$seconds" qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu "$cpu" \
		-m "${megabytes}M" -smp "$cpus,sockets=$nodes" "${numa[@]}" \
		-kernel "$kernel" -initrd "$out/initramfs.gz" \
		-append "console=ttyS0 quiet panic=-1 oops=panic kasan_multi_shot $patient" \
		-display none -serial stdio -monitor none -no-reboot -nic none "$@" </dev/null |
		sed -u 's|\r||' | tee "$log"
}

# What every guest says at its end, after its tests.
complaints() {
	cat <<'INIT'
busybox dmesg | busybox grep -B 3 -A 20 -E 'BUG|WARNING|Oops|protection fault|Call [Tt]race|hung|detected stall' &&
	echo "FAILED  the kernel complained" || echo "ok      no complaint of the kernel's"
busybox poweroff -f
INIT
}

# count LOG: prints "N passed, N failed"; false if any failed, or the guest ended early.
count() {
	local passed failed
	passed=$(grep -c '^ok ' "$1" || true)
	failed=$(grep -c '^FAILED ' "$1" || true)
	grep -qE '^(ok      no complaint of|FAILED  the kernel complained)' "$1" ||
		failed=$((failed + 1))
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}
