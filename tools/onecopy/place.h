/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the build or the installation that this executable belongs to keeps a file. */
#ifndef ONECOPY_PLACE_H
#define ONECOPY_PLACE_H

#include <limits.h>
#include <stdbool.h>

/*
 * Takes a variable of the command's own out of the environment, since the library would warn of one
 * that it does not know. What it said goes to `dir`: absolute, as the ranks may start elsewhere; ""
 * if it said nothing.
 */
void place_take_variable(const char *variable, char dir[PATH_MAX]);

/*
 * Looks for `file` in `given`, or, where that is "", in the two places relative to the executable's
 * directory: of the build tree, of an installation. True: it is in `dir`; false: there it should
 * be ("" where /proc does not say where we are).
 */
bool place_find(const char *file, const char *given, const char *const places[2],
		char dir[PATH_MAX]);

#endif
