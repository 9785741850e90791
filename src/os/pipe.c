/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int oci_os_pipe(int ends[2], size_t bytes)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	/* Refused beyond fs.pipe-max-size and beyond fs.pipe-user-pages-soft: then it has the size
	 * that the kernel gave it, down to a page, and takes more turns. */
	(void)fcntl(pair[1], F_SETPIPE_SZ, (int)bytes);
	ends[0] = pair[0];
	ends[1] = pair[1];
	return 0;
}

size_t oci_os_pipe_room(int fd)
{
	int room = fcntl(fd, F_GETPIPE_SZ);

	return room < 0 ? 0 : (size_t)room;
}

int oci_os_pipe_inode(int fd, uint64_t *inode)
{
	struct stat status;

	if (fstat(fd, &status))
		return -errno;
	if (!S_ISFIFO(status.st_mode))
		return -EBADF;
	*inode = (uint64_t)status.st_ino;
	return 0;
}

int oci_os_open_peer_pipe(pid_t pid, int fd)
{
	char path[64];
	int opened;

	if (pid <= 0 || fd < 0)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	/* For reading alone: with a write end here, the end of the writer would not be seen. */
	opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return opened < 0 ? -errno : opened;
}

ssize_t oci_os_pipe_attach(int fd, const struct iovec *pieces, unsigned int count)
{
	ssize_t done = TEMP_FAILURE_RETRY(vmsplice(fd, pieces, count, SPLICE_F_NONBLOCK));

	return done < 0 ? -errno : done;
}

ssize_t oci_os_pipe_write(int fd, const struct iovec *pieces, unsigned int count)
{
	ssize_t done = TEMP_FAILURE_RETRY(writev(fd, pieces, (int)count));

	return done < 0 ? -errno : done;
}

ssize_t oci_os_pipe_read(int fd, const struct iovec *pieces, unsigned int count)
{
	ssize_t done = TEMP_FAILURE_RETRY(readv(fd, pieces, (int)count));

	return done < 0 ? -errno : done;
}
