/* SPDX-License-Identifier: BSD-3-Clause */
/* Tuning files: whom to trust, where to look, and the one that this process goes by. */
#include "model/model.h"

#include "base/log.h"
#include "base/options.h"
#include "model/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* A file with every term and thousands of cells has a few hundred KiB. */
#define MOST_BYTES ((size_t)1 << 20)

__attribute__((format(printf, 3, 4))) static int refuse(struct oci_model_error *error, int code,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return code;
}

/*
 * A file decides how fast, never what, a job computes; still, whoever can write it could slow down
 * everyone else's jobs. The owner of a path that the user named is the user's affair: colleagues
 * share such files.
 */
static int check_trust(const char *path, int fd, unsigned int flags, size_t *bytes,
		       struct oci_model_error *error)
{
	struct stat status;

	if (fstat(fd, &status))
		return refuse(error, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return refuse(error, -EINVAL,
			      "%s:1:1: expected a regular file, found a directory, device or pipe",
			      path);
	if (status.st_mode & S_IWOTH)
		return refuse(
			error, -EACCES,
			"%s:1:1: expected a file that not everyone may write, found mode %04o; "
			"chmod o-w makes it usable",
			path, status.st_mode & 07777);
	if (!(flags & OCI_MODEL_ANY_OWNER) && status.st_uid && status.st_uid != geteuid())
		return refuse(
			error, -EACCES,
			"%s:1:1: expected a file of user %u or of root, found one of user %u; "
			"ONECOPY_TUNING=%s takes it all the same",
			path, geteuid(), status.st_uid, path);
	if (status.st_size < 0 || (size_t)status.st_size > MOST_BYTES)
		return refuse(error, -EFBIG, "%s:1:1: expected at most %zu bytes, found %lld", path,
			      MOST_BYTES, (long long)status.st_size);
	*bytes = (size_t)status.st_size;
	return 0;
}

/* The descriptor, or -errno. */
static int open_file(const char *path, struct oci_model_error *error)
{
	int fd;

	error->text[0] = '\0';
	if (strlen(path) >= sizeof(((struct oci_model *)NULL)->path))
		return refuse(
			error, -ENAMETOOLONG,
			"expected a path of at most %zu bytes, found %zu: %.80s...; a symbolic "
			"link makes it shorter",
			sizeof(((struct oci_model *)NULL)->path) - 1, strlen(path), path);
	/* O_NONBLOCK: a pipe without a writer must not hold up a job before it is refused. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? refuse(error, -errno, "%s: %s", path, strerror(errno)) : fd;
}

/* Closes fd. */
static int read_file(int fd, const char *path, unsigned int flags, oci_model_cell_check *check,
		     struct oci_model *model, struct oci_model_error *error)
{
	size_t bytes = 0, length = 0;
	char *text = NULL;
	int result;

	result = check_trust(path, fd, flags, &bytes, error);
	if (result)
		goto close_fd;
	text = malloc(bytes + 1);
	if (!text) {
		result = refuse(error, -ENOMEM, "%s: out of memory", path);
		goto close_fd;
	}
	while (length < bytes) {
		ssize_t got = read(fd, text + length, bytes - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			result = refuse(error, -errno, "%s: %s", path, strerror(errno));
			goto free_text;
		}
		if (!got)
			break; /* shortened while being read: what is missing shows */
		length += (size_t)got;
	}
	result = oci_model_parse(path, text, length, flags, check, model, error);
	if (result == -ENOMEM)
		refuse(error, result, "%s: out of memory", path);
	if (!result)
		snprintf(model->path, sizeof(model->path), "%s", path);
free_text:
	free(text);
close_fd:
	close(fd);
	return result;
}

int oci_model_read(const char *path, unsigned int flags, oci_model_cell_check *check,
		   struct oci_model *model, struct oci_model_error *error)
{
	int fd = open_file(path, error);

	return fd < 0 ? fd : read_file(fd, path, flags, check, model, error);
}

/* Absolute, as the specification of XDG_CONFIG_HOME has it: others count as not set. */
static const char *directory_of(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && *value == '/' ? value : NULL;
}

bool oci_model_place(enum oci_model_place place, char *path, size_t bytes)
{
	const char *variable, *home;
	struct utsname machine;
	int length = -1;

	if (uname(&machine))
		return false;
	switch (place) {
	case OCI_MODEL_PLACE_VARIABLE:
		variable = oci_options()->tuning;
		if (variable && strcmp(variable, "none"))
			length = snprintf(path, bytes, "%s", variable);
		break;
	case OCI_MODEL_PLACE_USER:
		if ((home = directory_of("XDG_CONFIG_HOME")) != NULL)
			length =
				snprintf(path, bytes, "%s/onecopy/%s.json", home, machine.nodename);
		else if ((home = directory_of("HOME")) != NULL)
			length = snprintf(path, bytes, "%s/.config/onecopy/%s.json", home,
					  machine.nodename);
		break;
	case OCI_MODEL_PLACE_HOST:
		length = snprintf(path, bytes, "/etc/onecopy/%s.json", machine.nodename);
		break;
	default:
		length = snprintf(path, bytes, "/etc/onecopy/tuning.json");
	}
	return length > 0 && (size_t)length < bytes;
}

static const struct oci_model *current = &oci_embedded_default.model;
static struct oci_model of_file;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static oci_model_cell_check *once_check;

/* Relaxed: all who write it write the same. */
static oci_model_cell_check *checking(void)
{
	return __atomic_load_n(&once_check, __ATOMIC_RELAXED);
}

static void refused(const char *from, const struct oci_model_error *error)
{
	oci_log(oci_option_warning_level(), "%s%s; going on with built-in, uncalibrated costs",
		from, error->text);
}

static void go_by_file(const char *path)
{
	current = &of_file;
	oci_info("the cost model of %s is in force", path);
}

/* true: this place has a file, usable or not, so the search ends. */
static bool try_place(enum oci_model_place place)
{
	struct oci_model_error error;
	char path[sizeof(of_file.path)];
	int fd, result;

	if (!oci_model_place(place, path, sizeof(path)))
		return false;
	fd = open_file(path, &error);
	if (fd < 0) {
		/* Whether there is a file we cannot know where we may not search, such as the home
		 * directory of whom this process was before it changed its user. Others look here
		 * at every start, so it is no news. */
		if (fd == -EACCES)
			oci_info("%s; the next place is looked into", error.text);
		if (fd == -EACCES || fd == -ENOENT || fd == -ENOTDIR)
			return false;
		refused("", &error);
		return true;
	}
	result = read_file(fd, path, 0, checking(), &of_file, &error);
	if (result)
		refused("", &error);
	else
		go_by_file(path);
	return true;
}

/* The file that the user named counts alone, whatever becomes of it. */
static void try_variable(const char *path)
{
	struct oci_model_error error;

	if (oci_model_read(path, OCI_MODEL_ANY_OWNER, checking(), &of_file, &error))
		refused("ONECOPY_TUNING: ", &error);
	else
		go_by_file(path);
}

static void find_current(void)
{
	const char *variable = oci_options()->tuning;

	if (variable) {
		if (strcmp(variable, "none") != 0)
			try_variable(variable);
		return;
	}
	for (int place = OCI_MODEL_PLACE_VARIABLE + 1; place < OCI_MODEL_PLACES; place++)
		if (try_place((enum oci_model_place)place))
			return;
}

const struct oci_model *oci_model_current(oci_model_cell_check *check)
{
	/* All callers pass the same function; whoever comes first writes the same value. */
	__atomic_store_n(&once_check, check, __ATOMIC_RELAXED);
	pthread_once(&once, find_current);
	return current;
}
