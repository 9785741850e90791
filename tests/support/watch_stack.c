/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols and stacks of another process, by elfutils: no debugger needs to be installed. */
#include "support/watch.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES = 40 };

struct watch_dwfl {
	Dwfl *dwfl;
	bool attached;
	const char *why; /* it is not */
};

struct search {
	const char *name;
	uint64_t *address;
	unsigned int found, most;
};

static char *no_debug_path = "";
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.debuginfo_path = &no_debug_path,
};

struct watch_dwfl *watch_open(pid_t pid)
{
	struct watch_dwfl *d = calloc(1, sizeof(*d));
	int error;

	if (!d)
		return NULL;
	d->dwfl = dwfl_begin(&callbacks);
	if (!d->dwfl || dwfl_linux_proc_report(d->dwfl, pid) ||
	    dwfl_report_end(d->dwfl, NULL, NULL)) {
		watch_close(d);
		return NULL;
	}
	error = dwfl_linux_proc_attach(d->dwfl, pid, false);
	d->attached = !error;
	if (error)
		d->why = error > 0 ? strerror(error) : dwfl_errmsg(-1);
	return d;
}

void watch_close(struct watch_dwfl *d)
{
	if (d && d->dwfl)
		dwfl_end(d->dwfl);
	free(d);
}

static int search_module(Dwfl_Module *module, void **user, const char *file, Dwarf_Addr start,
			 void *arg)
{
	struct search *search = arg;
	int symbols;

	(void)user;
	(void)start;
	/* The engine is in programs and libraries of this build alone; of others, an MPI brings a
	 * hundred. */
	if (!file || !(strstr(file, "onecopy") || strstr(file, "_test") || strstr(file, "/oc_")))
		return DWARF_CB_OK;
	symbols = dwfl_module_getsymtab(module);
	for (int i = 1; i < symbols && search->found < search->most; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name =
			dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);

		if (name && GELF_ST_TYPE(symbol.st_info) == STT_OBJECT &&
		    !strcmp(name, search->name))
			search->address[search->found++] = address;
	}
	return DWARF_CB_OK;
}

unsigned int watch_variable(const struct watch_dwfl *d, const char *name, uint64_t *address,
			    unsigned int most)
{
	struct search search = { .name = name, .address = address, .most = most };

	dwfl_getmodules(d->dwfl, search_module, &search, 0);
	return search.found;
}

struct frames {
	FILE *out;
	int count;
};

static int say_frame(Dwfl_Frame *frame, void *arg)
{
	struct frames *frames = arg;
	Dwfl *dwfl = dwfl_thread_dwfl(dwfl_frame_thread(frame));
	Dwfl_Module *module;
	const char *symbol = NULL, *file = NULL;
	Dwfl_Line *line = NULL;
	Dwarf_Addr pc;
	bool activation;
	int number = 0;

	if (!dwfl_frame_pc(frame, &pc, &activation))
		return DWARF_CB_ABORT;
	/* A return address may be behind the function that does not return. */
	if (!activation)
		pc--;
	module = dwfl_addrmodule(dwfl, pc);
	if (module) {
		GElf_Off offset;
		GElf_Sym ignored;

		symbol = dwfl_module_addrinfo(module, pc, &offset, &ignored, NULL, NULL, NULL);
		line = dwfl_module_getsrc(module, pc);
	}
	if (line)
		file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
	fprintf(frames->out, "    %s", symbol ? symbol : "?");
	if (file)
		fprintf(frames->out, " (%s:%d)\n",
			strrchr(file, '/') ? strrchr(file, '/') + 1 : file, number);
	else
		fprintf(frames->out, " (%s)\n",
			module ?
				dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) :
				"nowhere");
	return ++frames->count < MOST_FRAMES ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static int say_thread(Dwfl_Thread *thread, void *arg)
{
	struct frames frames = { .out = arg };

	fprintf(frames.out, "  thread %d:\n", (int)dwfl_thread_tid(thread));
	dwfl_thread_getframes(thread, say_frame, &frames);
	if (!frames.count)
		fprintf(frames.out, "    its stack cannot be read: %s\n", dwfl_errmsg(-1));
	return DWARF_CB_OK;
}

void watch_stacks(const struct watch_dwfl *d, FILE *out)
{
	if (!d->attached)
		fprintf(out, "  its stacks cannot be read: %s\n", d->why);
	else if (dwfl_getthreads(d->dwfl, say_thread, out) < 0)
		fprintf(out, "  its stacks cannot be read: %s\n", dwfl_errmsg(-1));
}
