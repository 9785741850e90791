#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. A test of the tests: builds the module with one fault after the other, and looks
# whether its tests find it, or the kernel says what it should. "faults.sh OUT KDIR [FAULT...]": only
# these. KDIR: a kernel with KASAN, lockdep, DEBUG_ATOMIC_SLEEP and kmemleak. Faults that leave the
# kernel in order share a guest; a minute or two each. The last line reads "N passed, N failed".
set -eu
. "$(dirname "$0")/boot.sh"
usage="usage: faults.sh OUT KDIR [FAULT...]"
choose_kernel "${1:?"$usage"}" "${2:?"$usage"}"
shift 2
asked=" $* "
passed=0
failed=0
together=()
alone=()
declare -A tests says

tell() {
	case $1 in
	ok) passed=$((passed + 1)) ;;
	FAILED) failed=$((failed + 1)) ;;
	esac
	printf '%-7s %s\n' "$1" "$2"
}

# fault NAME GUEST FILE TESTS SAYS: builds it. GUEST: together with others or alone. On stdin what perl
# shall do to FILE.
fault() {
	local name=$1 guest=$2 file=$3 tree=$out/faulty/$1 substitution
	substitution=$(cat)
	[ "$asked" = "  " ] || [[ $asked == *" $name "* ]] || return 0
	tests[$name]=$4
	says[$name]=$5
	rm -rf "$tree"
	mkdir -p "$tree"
	cp -r "$here/.." "$tree/kernel"
	perl -0pi -e "$substitution" "$tree/kernel/$file"
	if cmp -s "$here/../$file" "$tree/kernel/$file"; then
		tell FAILED "$name: there is nothing in $file to replace"
	elif ! "$tree/kernel/build.sh" "$tree" "$kdir" >"$tree/build.log" 2>&1; then
		tell FAILED "$name: it could not be built, see $tree/build.log"
	elif [ "$guest" = alone ]; then
		alone+=("$name")
	else
		together+=("$name")
	fi
}

# try NAME...: in one guest, one after the other.
try() {
	local name log=$out/faulty/$1.log part
	module=$out/faulty/$1
	begin_root
	cp "$out/device_test" "$driver/fake_engine.ko" "$root/"
	for name in "$@"; do
		cp "$out/faulty/$name/onecopy.ko" "$root/modules/$name.ko"
		echo "$name ${tests[$name]}"
	done >"$root/faults"
	cat >>"$root/init" <<'INIT'
busybox insmod /fake_engine.ko channels=40
while read -r name tests; do
	busybox dmesg -c >/dev/null
	echo "begin $name"
	busybox insmod /modules/$name.ko && /device_test 2 $tests
	busybox rmmod onecopy
	if [ ${name%-leak} != $name ]; then
		busybox sleep 6
		echo scan >/sys/kernel/debug/kmemleak
		busybox sleep 6
		echo scan >/sys/kernel/debug/kmemleak
		busybox cat /sys/kernel/debug/kmemleak
	fi
	busybox dmesg
	echo "end $name"
done </faults
busybox poweroff -f
INIT
	boot "$log" $((600 + 120 * $#)) 2 2 1024 >/dev/null || true
	for name in "$@"; do
		part=$(sed -n "/^begin $name\$/,/^end $name\$/p" "$log" |
			{ grep -m 1 -oE "${says[$name]}" || true; })
		if [ -n "$part" ]; then
			tell ok "$name: $part"
		else
			tell FAILED "$name: not found, see $log"
		fi
	done
	rm -rf "$root"
}

build_driver "$here/driver/fake_engine.c"
build_program device_test "$here"/*_test.c
mkdir -p "$out/faulty"

fault none together region.c both_directions "ok  *both_directions" <<'PERL'
s{\Z}{\n}s
PERL
fault memory-leak together region.c both_directions "unreferenced object" <<'PERL'
s{\tkvfree\(region->pages\);\n}{}s
PERL
fault pages-not-unpinned together region.c pages_move_again "FAILED +pages_move_again" <<'PERL'
s{\tunpin_user_pages_dirty_lock\([^;]*;\n}{}s
PERL
fault job-used-after-free together copy.c in_order "KASAN: use-after-free in run_jobs" <<'PERL'
s{(\ts64 copied = run_between\(job\);\n)}{$1\tif (!job->completed)\n\t\tkfree(job);\n}s
PERL
fault window-without-a-reference alone region.c mapped_in_both_directions \
	"KASAN: use-after-free in [a-z_]*" <<'PERL'
s{window = onecopy_window_get\(region->window\)}{window = region->window}s
PERL
fault region-without-a-reference alone region.c both_directions "KASAN: use-after-free in [a-z_]*" <<'PERL'
s{ \|\| !kref_get_unless_zero\(&region->kref\)}{}s
PERL
fault mutex-not-unlocked alone main.c in_order \
	"lock held when returning to user space|possible circular locking dependency" <<'PERL'
s{(error = -EINVAL;\n)\tmutex_unlock\(&file->lock\);\n}{$1}s
PERL
fault sleep-under-a-spinlock together region.c mapped_in_both_directions \
	"BUG: sleeping function called from invalid context" <<'PERL'
s{(hash_del_rcu\(&region->on_hash\);\n)\tspin_unlock\(&lock\);\n(.*?window_close\(region->window\);\n)}
 {$1$2\tspin_unlock(&lock);\n}s
PERL
# Why a fault does not look whether pages are still the owner's.
fault locks-in-another-order alone window.c mapping_storm \
	"possible circular locking dependency|possible recursive locking" <<'PERL'
s{!onecopy_region_is_stale\(window->region\)}{!onecopy_region_check(window->region)}s
PERL
# Why the notice of munmap() does not take entries away itself.
fault notice-within-a-notice alone region.c mapped_memory_that_goes \
	"possible recursive locking|possible circular locking" <<'PERL'
s{(\tif \(!region->cookie\)\n\t\treturn true;\n)}{$1\tif (region->window)\n\t\tonecopy_window_close(onecopy_window_get(region->window));\n}s
PERL
fault range-not-looked-at alone copy.c bounds "KASAN: [a-z-]* in [a-z_]*" <<'PERL'
s{if \(offset > region->bytes \|\| length > region->bytes - offset\)}{if (0)}s
PERL
fault page-not-looked-at alone window.c mappings_that_are_changed "KASAN: [a-z-]* in (show|on_fault)[a-z_]*" <<'PERL'
s{missed >= region->page_count}{0}s
PERL
fault size-not-looked-at alone main.c structures "FAILED +structures" <<'PERL'
s{copy_struct_from_user\(to, bytes, from, \*size\)}{(raw_copy_from_user(to, from, *size) ? -EFAULT : 0)}s
PERL
fault stack-told-to-the-caller together main.c structures "KASAN: stack-out-of-bounds in [a-z_]*|Buffer overflow detected" <<'PERL'
s{min_t\(size_t, bytes, size\)}{size}s
PERL
fault entries-not-taken-away alone window.c mapped_memory_that_goes "FAILED +mapped_memory_that_goes" <<'PERL'
s{\tunmap_mapping_range\([^;]*;\n}{}s
PERL
fault anybody-may-use-it together region.c "rights mapping_rights" "FAILED +rights" <<'PERL'
s{return uid_eq\([^;]*;}{return true;}s
PERL
fault no-limit together region.c pinned_memory_is_counted "FAILED +pinned_memory_is_counted" <<'PERL'
s{sum <= most \|\| }{true || }s
PERL
fault memory-that-went-not-noticed together region.c gone_with_its_memory "FAILED +gone_with_its_memory" <<'PERL'
s{(static int is_there.*?int error = 0;\n)}{$1\n\treturn 0;\n}s
PERL
fault single-use-of-many together region.c single_use_of_one "FAILED +single_use_of_one" <<'PERL'
s{test_and_set_bit\(USED, &region->state\)}{test_bit(USED, &region->state)}s
PERL
fault user-as-now together region.c whose_it_is "FAILED +whose_it_is" <<'PERL'
s{uid_eq\(region->uid, current_euid\(\)}{uid_eq(region->uid, current_uid()}s
PERL
fault status-told-too-early together copy.c in_order "FAILED +in_order" <<'PERL'
s{(\tbool idle;\n)}{$1\n\tif (job->status)\n\t\tonecopy_status_tell(file, job->status, 0);}s
PERL
fault engine-not-waited-for together engine.c engine_parts "FAILED +engine_parts" <<'PERL'
s{!wait_event_timeout\([^;]*;}{false;}s
PERL
fault engine-always-right together engine.c engine_fails "FAILED +engine_fails" <<'PERL'
s{engine->failed \|= flight->wrong;}{}s
PERL
fault engine-not-stopped together engine.c engine_fails "FAILED +engine_fails" <<'PERL'
s{while \(dmaengine_terminate_sync}{while (0 && dmaengine_terminate_sync}s
PERL
fault thread-stays-on-its-node together copy.c by_a_thread_of_the_node "FAILED +by_a_thread_of_the_node" <<'PERL'
s{file->turns\+\+ % 2}{0 * file->turns++}s
PERL
fault killed-in-the-queue-waits together copy.c killed_behind_others "FAILED +killed_behind_others" <<'PERL'
s{!wait_for_completion_killable\(&completed\)}{(wait_for_completion(&completed), true)}s
PERL
fault channels-kept together engine.c engines_are_given_back "FAILED +engines_are_given_back" <<'PERL'
s{held - broken_count > most}{false}s
PERL
fault graph-bounds-not-looked-at together graph_make.c graph_refused_nodes "FAILED +graph_refused_nodes" <<'PERL'
s{if \(!is_within\(to, node->offset, bytes, element\)\)}{if (0)}s
PERL
fault graph-still-told alone graph.c graph_cancelled "KASAN: use-after-free in [a-z_]*" <<'PERL'
s{(void onecopy_graph_stop.*?)remove_wait_queue\([^;]*;}{$1;}s
PERL
fault graph-cut-short-and-sent together graph.c graph_closed_while_it_computes "FAILED +graph_closed_while_it_computes" <<'PERL'
s{if \(READ_ONCE\(graph->stopping\)\)\n\t\t\treturn false;}{}s
PERL
fault graph-sockets-kept together graph_make.c graph_lets_sockets_go "FAILED +graph_lets_sockets_go" <<'PERL'
s{\t\t\tsockfd_put\([^;]*;}{\t\t\t;}s
PERL
fault refused-graph-leak together graph.c graph_refused_nodes "unreferenced object" <<'PERL'
s{(onecopy_graph_fill\(graph, call\);\n\tif \(error\) \{\n)\t\tdiscard\(graph\);\n}{$1}s
PERL
[ ${#together[@]} -eq 0 ] || try "${together[@]}"
for name in "${alone[@]}"; do try "$name"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
