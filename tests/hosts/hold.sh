#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# hold.sh NAME HOSTS: what a host has for itself, inside its namespaces; then holds them. hosts.sh
# starts it.
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /dev/shm
mkdir -m 700 /dev/shm/.host
printf '127.0.0.1 localhost\n%s' "$2" >/dev/shm/.host/hosts
mount --bind /dev/shm/.host/hosts /etc/hosts
hostname "$1"
echo $$
exec sleep infinity
