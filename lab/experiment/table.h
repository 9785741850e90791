/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of text in columns. The first row is the head. */
#ifndef EXPERIMENT_TABLE_H
#define EXPERIMENT_TABLE_H

#include <stdio.h>

enum { TABLE_COLUMNS = 12 };

struct table {
	const char *align; /* a letter per column, TABLE_COLUMNS at most: 'l' or 'r' */
	char *(*rows)[TABLE_COLUMNS];
	size_t count, room;
};

/* Adds a row from the printf format, whose result is cut into cells at each '\t'. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Frees the rows. `indent` blanks in front, columns aligned but the last one, which may be a
 * sentence. */
void table_print(struct table *table, FILE *stream, int indent);

#endif
