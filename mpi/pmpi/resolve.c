/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which MPI this process has, and where its functions are; decided at the first call of any.
 *
 * Ours is an MPICH whose ABI is that of the mpi.h that we are compiled with.
 * PMPI_Get_library_version tells, whose arguments are alike in every ABI: MPICH's text has a line
 * "MPICH ABI: c:r:a", in libtool's terms, and libraries with the same c - a are compatible. In
 * front of any other MPI we are as if we were not there.
 */
#include "pmpi.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As in entry.S. `direct`: from inside the MPI. */
struct oci_entry_slot {
	void *mpi, *pmpi, *direct;
};

/* Longer than MPI_MAX_LIBRARY_VERSION_STRING of any MPI (MPICH: 8192, Open MPI: 256). */
#define VERSION_BYTES 16384

extern struct oci_entry_slot oci_entry_slots[];
extern uintptr_t oci_entry_inside[2];
/* Which of a slot's ways it is, or that it is one of our own calls; numbers in entry.S. */
enum way { AS_MPI, AS_PMPI, AS_DIRECT, AS_REAL };
void *oci_entry_resolve(void *from, enum way way);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool resolved, ours; /* ours: of the ABI that we are built for */
static void *library; /* with the MPI in it, where the program loaded it behind the linker's back */

struct name {
	const char *pmpi; /* "PMPI_Send", and from its second letter on "MPI_Send" */
	void *ours;	  /* what stands in front; NULL: nothing does */
};

static const struct name names[] = {
#define WRAPPED(name) { "PMPI_" #name, (void *)oci_pmpi_##name },
#define CALLED(name) { "PMPI_" #name, NULL },
	/* The slots, and the pointers of oci_real, are in this order, too. */
	OCI_WRAPPED(WRAPPED) OCI_CALLED(CALLED)
};
#define NAMES (sizeof(names) / sizeof(names[0]))

/* The next definition behind ours. */
static void *find(const char *symbol)
{
	void *found = dlsym(RTLD_NEXT, symbol);

	return found || !library ? found : dlsym(library, symbol);
}

void *oci_pmpi_extension(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	return found || !library ? found : dlsym(library, name);
}

struct objects {
	char **name;
	size_t count;
};

static int note_object(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct objects *objects = context;
	char **grown;

	(void)bytes;
	if (!*info->dlpi_name)
		return 0;
	grown = realloc(objects->name, (objects->count + 1) * sizeof(*grown));
	if (!grown)
		return 1;
	objects->name = grown;
	grown[objects->count] = strdup(info->dlpi_name);
	objects->count += grown[objects->count] != NULL;
	return 0;
}

/*
 * An interpreter that loads an MPI as part of a module (RTLD_LOCAL) keeps it out of the scope in
 * which RTLD_NEXT looks. The names are collected first: dlopen() has no place inside the walk.
 */
static void find_library(void)
{
	struct objects objects = { 0 };
	void *handle;

	dl_iterate_phdr(note_object, &objects);
	for (size_t i = 0; i < objects.count; i++) {
		handle = library ? NULL : dlopen(objects.name[i], RTLD_LAZY | RTLD_NOLOAD);
		if (handle && dlsym(handle, "PMPI_Get_library_version"))
			library = handle;
		else if (handle)
			dlclose(handle);
		free(objects.name[i]);
	}
	free(objects.name);
}

/* All ranks would say it: the first speaks for them. */
static void refuse(const char *why, const char *version, const char *remedy)
{
	const char *rank = getenv("PMI_RANK");

	if (!rank || !strcmp(rank, "0"))
		oci_warn("libonecopy-pmpi.so was built for MPICH %s, but %s (%.*s): all "
			 "collectives stay with the MPI; %s",
			 MPICH_VERSION, why, (int)strcspn(version, "\n"), version, remedy);
}

#define BUILD_ANEW "build onecopy against the MPI that runs"

/* An MPICH that we are not built for deserves a word; of others the log tells who asks for it. Open
 * MPI has the component. */
static bool abi_fits(void)
{
	int (*get)(char *, int *) = (int (*)(char *, int *))find("PMPI_Get_library_version");
	static char version[VERSION_BYTES];
	const char *abi;
	Dl_info library_of;
	int length = 0, current, revision, age;

	if (!get || get(version, &length))
		return false;
	abi = strstr(version, "MPICH ABI:");
	if (!abi) {
		if (!strstr(version, "Open MPI"))
			oci_info("this MPI does not say that it has MPICH's ABI, so its "
				 "collectives stay its own: %.*s",
				 (int)strcspn(version, "\n"), version);
		return false;
	}
	/* MPICH's library of the standard's own ABI says the same, with other handles. */
	if (dladdr((void *)get, &library_of) && strstr(library_of.dli_fname, "mpi_abi")) {
		refuse("the program's MPI has the standard's ABI", version,
		       "build the program with mpicc instead of mpicc_abi");
		return false;
	}
	if (sscanf(abi, "MPICH ABI: %d:%d:%d", &current, &revision, &age) != 3 ||
	    current - age != OC_PMPI_ABI) {
		refuse("one of another ABI is running", version, BUILD_ANEW);
		return false;
	}
	/* What programs do not call themselves, some of it as new as MPI 4. */
	for (size_t i = 0; i < NAMES; i++) {
		if (!names[i].ours && !find(names[i].pmpi)) {
			refuse("the one that is running lacks functions", version, BUILD_ANEW);
			return false;
		}
	}
	return true;
}

/* The code of the library that has the MPI's functions. */
static int note_inside(struct dl_phdr_info *info, size_t bytes, void *context)
{
	uintptr_t within = *(uintptr_t *)context;

	(void)bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD || within - start >= part->p_memsz)
			continue;
		oci_entry_inside[0] = start;
		oci_entry_inside[1] = part->p_memsz;
		return 1;
	}
	return 0;
}

static int no_mpi(void)
{
	oci_warn("a function of MPI was called, but no MPI library is loaded; link the "
		 "program with one");
	return 1;
}

/* Programs do not call what their MPI lacks, unless they were built for another one. */
static int lacking(void)
{
	oci_warn("a function of MPI was called that the MPI of this process lacks");
	return MPI_ERR_UNSUPPORTED_OPERATION;
}

/*
 * Where a call goes, once the process's MPI is known. Another thread may be jumping through the
 * slot meanwhile: either way it comes out right.
 */
static void fill(struct oci_entry_slot *slot)
{
	const struct name *name = &names[slot - oci_entry_slots];
	void *behind = find(name->pmpi);
	void *mpi = ours ? name->ours : find(name->pmpi + 1);
	void *pmpi = ours ? name->ours : behind;

	__atomic_store_n(&slot->direct, behind ? behind : (void *)lacking, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->pmpi, pmpi ? pmpi : (void *)lacking, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->mpi, mpi ? mpi : (void *)lacking, __ATOMIC_RELEASE);
}

/* Of one of our own calls, which there are only in front of an MPI that is ours. Threads that come
 * here at once find the same. */
static void *real(void **pointer)
{
	void *found = find(names[pointer - (void **)&oci_real].pmpi);

	if (!found)
		return (void *)lacking;
	/* Read by whoever calls through it, with or without this: a pointer to code that was mapped
	 * before either is right, so its order against other words does not matter. */
	__atomic_store_n(pointer, found, __ATOMIC_RELAXED);
	return found;
}

/* With the lock. False: there is no MPI yet. */
static bool resolve(void)
{
	uintptr_t inside;

	if (!dlsym(RTLD_NEXT, "PMPI_Get_library_version"))
		find_library();
	if (!find("PMPI_Get_library_version"))
		return false;
	ours = abi_fits();
	if (!ours)
		return true;
	inside = (uintptr_t)find("PMPI_Send");
	dl_iterate_phdr(note_inside, &inside);
	return true;
}

__attribute__((used)) void *oci_entry_resolve(void *from, enum way way)
{
	struct oci_entry_slot *slot = from;
	void *target = (void *)no_mpi;

	if (way == AS_REAL)
		return real(from);
	pthread_mutex_lock(&lock);
	if (!resolved)
		resolved = resolve();
	if (resolved) {
		fill(slot);
		target = way == AS_MPI ? slot->mpi : way == AS_PMPI ? slot->pmpi : slot->direct;
	} else {
		/* Of an MPI for one process, or one before MPI 3. */
		const char *name = names[slot - oci_entry_slots].pmpi;
		void *behind = way == AS_MPI ? NULL : find(name);

		behind = behind ? behind : find(name + 1);
		target = behind ? behind : target;
	}
	pthread_mutex_unlock(&lock);
	return target;
}
