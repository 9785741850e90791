/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/options.h"

#include "base/hash.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct row;
/* Parses text into the field of struct oci_options; false: the value cannot be used. */
typedef bool parse_fn(const struct row *row, const char *text, void *field);

enum { AGREED = 1, TEXT = 2 }; /* must be alike on all ranks of a team; the field is a string */

struct row {
	const char *variable;
	const char *fallback;
	const char *help;
	const char *expected;
	parse_fn *parse;
	unsigned int flags;
	size_t offset, size;
	size_t least; /* of bytes */
};

static bool parse_switch(const struct row *row, const char *text, void *field)
{
	static const char *const on[] = { "on", "1", "yes", "true" };
	static const char *const off[] = { "off", "0", "no", "false" };

	(void)row;
	for (size_t i = 0; i < 4; i++) {
		if (!strcmp(text, on[i]))
			*(bool *)field = true;
		else if (!strcmp(text, off[i]))
			*(bool *)field = false;
		else
			continue;
		return true;
	}
	return false;
}

/* One of the words of `expected`, "auto, cma or shm": its number, which is the field's enum. */
static bool parse_choice(const struct row *row, const char *text, void *field)
{
	const char *word = row->expected;
	size_t length = strlen(text);

	for (unsigned int number = 0; *word; number++) {
		size_t bytes = strcspn(word, ", ");

		if (bytes == length && !memcmp(word, text, bytes)) {
			*(unsigned int *)field = number;
			return true;
		}
		word += bytes;
		word += strspn(word, ", ");
		if (!strncmp(word, "or ", 3))
			word += 3;
	}
	return false;
}

/* Only the form: which names exist is known to src/coll, which calls oci_option_reject(). */
static bool parse_algorithm(const struct row *row, const char *text, void *field)
{
	(void)row;
	if (!*text || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-:") != strlen(text))
		return false;
	*(const char **)field = text;
	return true;
}

/* What is not there is reported when it is used: a directory at the end of the job, the tuning file
 * at the first team. */
static bool parse_path(const struct row *row, const char *text, void *field)
{
	(void)row;
	*(const char **)field = *text ? text : NULL;
	return true;
}

static bool parse_spins(const struct row *row, const char *text, void *field)
{
	char *end;
	unsigned long value;

	(void)row;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value > UINT32_MAX)
		return false;
	*(uint32_t *)field = (uint32_t)value;
	return true;
}

/* Or "auto", where that is the default. */
static bool parse_bytes(const struct row *row, const char *text, void *field)
{
	size_t bytes = SIZE_MAX;

	if ((strcmp(row->fallback, "auto") || strcmp(text, "auto")) &&
	    (!oci_option_bytes(text, &bytes) || bytes < row->least))
		return false;
	*(size_t *)field = bytes;
	return true;
}

#define FIELD(name) offsetof(struct oci_options, name), sizeof(((struct oci_options *)0)->name)
#define ALGORITHM_EXPECTED \
	"an algorithm's name, with :PARAMETER where it has one (see onecopy info --algorithms), auto or mpi"
#define ALGORITHM(X, ID, name, Name, ...)                                                \
	{ "ONECOPY_" #ID,  "auto",	  "algorithm of " #Name,     ALGORITHM_EXPECTED, \
	  parse_algorithm, AGREED | TEXT, FIELD(algorithm[OC_##ID]), 0 },

/*
 * The table. ONECOPY_SPINS: 26 us of pauses (13 ns each, measured on our 2-core Xeon hosts,
 * 2026-11) plus the loads: longer than any small collective, far shorter than a scheduler time
 * slice.
 */
static const struct row table[] = {
	{ "ONECOPY", "on", "serve collectives, or leave all of them to the MPI", "on or off",
	  parse_switch, AGREED, FIELD(enable), 0 },
	{ "ONECOPY_MECHANISM", "auto", "how bytes move between ranks (auto: the best that works)",
	  "auto, cma, map, shm or kmod", parse_choice, AGREED, FIELD(mechanism), 0 },
	/* clang-format off */
	OC_COLLECTIVE_ROWS(ALGORITHM, )
	/* clang-format on */
	{ "ONECOPY_LEVELS", "auto",
	  "collectives of ranks on several nodes by node (auto: where it was quicker)",
	  "auto, on, shares or off", parse_choice, 0, FIELD(levels), 0 },
	{ "ONECOPY_ASYNC", "auto",
	  "who runs outstanding collectives and graphs: who is in a call, a thread besides, or the kernel",
	  "auto, caller, thread, uring or kmod", parse_choice, 0, FIELD(async), 0 },
	{ "ONECOPY_P2P", "auto",
	  "how large messages of oc_send move (auto: as ONECOPY_MECHANISM says)",
	  "auto, cma, map, shm, eager, vmsplice or writev", parse_choice, 0, FIELD(p2p), 0 },
	{ "ONECOPY_MESSAGES", "on",
	  "copy large messages of the MPI between shared heaps, or from both ends", "on or off",
	  parse_switch, 0, FIELD(messages), 0 },
	{ "ONECOPY_PTRACER", "ancestor",
	  "whom a rank admits to its memory under Yama: the ranks' common ancestor, any process, none",
	  "ancestor, any or none", parse_choice, 0, FIELD(ptracer), 0 },
	{ "ONECOPY_STATS_DIR", "", "directory where each process leaves its counters at the end",
	  "a directory", parse_path, TEXT, FIELD(stats_dir), 0 },
	{ "ONECOPY_TUNING", "",
	  "tuning file of this machine, as onecopy tune writes it, or none (see onecopy-tune)",
	  "a file, or none", parse_path, TEXT, FIELD(tuning), 0 },
	{ "ONECOPY_SEGMENT_BYTES", "1G", "limit of the shared memory of one process",
	  "bytes, at least 1M, with an optional suffix K, M or G", parse_bytes, AGREED,
	  FIELD(segment_bytes), (size_t)1 << 20 },
	{ "ONECOPY_HEAP_BYTES", "64G",
	  "limit of the shared heap of one process, if it has one; below 64M: none",
	  "bytes, with an optional suffix K, M or G", parse_bytes, 0, FIELD(heap_bytes), 0 },
	{ "ONECOPY_MAP_BYTES", "16384G",
	  "limit of the address space that one process takes to map peers' shared heaps",
	  "bytes, with an optional suffix K, M or G", parse_bytes, 0, FIELD(map_bytes), 0 },
	{ "ONECOPY_P2P_EAGER", "auto", "largest message that is sent before it is asked for",
	  "bytes with an optional suffix K, M or G, or auto", parse_bytes, 0, FIELD(p2p_eager), 0 },
	{ "ONECOPY_SPINS", "2000", "polls before a wait yields or sleeps",
	  "a number from 0 to 4294967295", parse_spins, 0, FIELD(spins), 0 },
	{ "ONECOPY_CHECK", "on", "compare what the ranks of a collective called", "on or off",
	  parse_switch, AGREED, FIELD(check_calls), 0 },
	{ "ONECOPY_LOG", "warn", "least severe line that is printed", "error, warn, info or debug",
	  parse_choice, 0, FIELD(log), 0 },
};

#define ROWS (sizeof(table) / sizeof(table[0]))

static struct oci_options options;
static struct oci_option_info info[ROWS];
static bool rejected[ROWS]; /* a warning was given */
static uint64_t agreed_hash;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * A job's environment reaches all of its ranks alike, so the first rank of each launcher speaks
 * for all and the others say the same at info only.
 */
enum oci_log_level oci_option_warning_level(void)
{
	static const char *const variable[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
						"SLURM_PROCID" };

	for (size_t i = 0; i < sizeof(variable) / sizeof(variable[0]); i++) {
		const char *rank = getenv(variable[i]);

		if (rank)
			return strcmp(rank, "0") ? OCI_LOG_INFO : OCI_LOG_WARN;
	}
	return OCI_LOG_WARN;
}

void oci_option_reject(const char *variable, const char *value, const char *expected)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(table[i].variable, variable))
			continue;
		if (__atomic_exchange_n(&rejected[i], true, __ATOMIC_RELAXED))
			return;
		info[i].value = table[i].fallback;
		info[i].from = "default";
		oci_log(oci_option_warning_level(),
			"%s=%s cannot be used: expected %s; going on with %s=%s", variable, value,
			expected, variable, table[i].fallback);
		return;
	}
}

/* Over what was understood, not over how it was written: 1 and on are the same. */
static uint64_t hash_row(uint64_t hash, const struct row *row)
{
	const void *field = (const char *)&options + row->offset;
	const char *text;

	hash = oci_hash(hash, row->variable, strlen(row->variable) + 1);
	if (!(row->flags & TEXT))
		return oci_hash(hash, field, row->size);
	text = *(const char *const *)field;
	return oci_hash(hash, text, strlen(text) + 1);
}

/* text: what the environment says, NULL: nothing. */
static void parse_row(size_t index, const char *text)
{
	const struct row *row = &table[index];
	void *field = (char *)&options + row->offset;
	/* A copy: the program may change its environment, and these values are for ever. */
	char *kept = text ? strdup(text) : NULL;

	info[index] = (struct oci_option_info){ row->variable, row->fallback, row->fallback,
						"default", row->help };
	if (kept && row->parse(row, kept, field)) {
		info[index].value = kept;
		info[index].from = "environment";
		return;
	}
	if (text)
		oci_option_reject(row->variable, text, row->expected);
	free(kept);
	row->parse(row, row->fallback, field);
}

/* ROWS: there is none. */
static size_t row_of(const char *variable, size_t length)
{
	size_t row = 0;

	while (row < ROWS && (strlen(table[row].variable) != length ||
			      memcmp(table[row].variable, variable, length)))
		row++;
	return row;
}

/* In one pass, as a job's environment has hundreds of variables. What is misspelt would otherwise
 * be a setting that silently does nothing. */
static void find_rows(bool set[ROWS])
{
	for (char **entry = environ; entry && *entry; entry++) {
		size_t length, row;

		if (strncmp(*entry, "ONECOPY", 7))
			continue;
		length = strcspn(*entry, "=");
		row = row_of(*entry, length);
		if (row < ROWS)
			set[row] = true;
		else if ((*entry)[7] == '_')
			oci_log(oci_option_warning_level(),
				"%.*s is not an option of onecopy and does nothing; onecopy info "
				"--options lists them",
				(int)length, *entry);
	}
}

static void parse_all(void)
{
	uint64_t hash = OCI_HASH_START;
	bool set[ROWS] = { false };

	find_rows(set);
	/* A set-uid program goes by its own mind: among these are names of files. */
	for (size_t i = 0; i < ROWS; i++)
		parse_row(i, set[i] ? secure_getenv(table[i].variable) : NULL);
	for (size_t i = 0; i < ROWS; i++)
		if (table[i].flags & AGREED)
			hash = hash_row(hash, &table[i]);
	agreed_hash = hash;
}

const struct oci_options *oci_options(void)
{
	pthread_once(&once, parse_all);
	return &options;
}

uint64_t oci_options_hash(void)
{
	pthread_once(&once, parse_all);
	return agreed_hash;
}

const struct oci_option_info *oci_option_info(unsigned int index)
{
	pthread_once(&once, parse_all);
	return index < ROWS ? &info[index] : NULL;
}
