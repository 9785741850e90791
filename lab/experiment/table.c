/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void table_add(struct table *table, const char *format, ...)
{
	char *text, *rest, *cell;
	va_list arguments;
	int length;

	if (table->count == table->room) {
		size_t room = table->room ? 2 * table->room : 16;
		void *rows = realloc(table->rows, room * sizeof(table->rows[0]));

		if (!rows)
			return;
		table->rows = rows;
		table->room = room;
	}
	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	memset(table->rows[table->count], 0, sizeof(table->rows[0]));
	rest = text;
	for (int i = 0; i < TABLE_COLUMNS && (cell = strsep(&rest, "\t")); i++)
		table->rows[table->count][i] = strdup(cell);
	free(text);
	table->count++;
}

static int width_of(const struct table *table, int column)
{
	int width = 0;

	for (size_t i = 0; i < table->count; i++) {
		const char *cell = table->rows[i][column];

		if (cell && (int)strlen(cell) > width)
			width = (int)strlen(cell);
	}
	return width;
}

static void clear(struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		for (int c = 0; c < TABLE_COLUMNS; c++)
			free(table->rows[i][c]);
	free(table->rows);
	*table = (struct table){ .align = table->align };
}

static int columns_of(const struct table *table)
{
	return (int)strnlen(table->align, TABLE_COLUMNS);
}

void table_print(struct table *table, FILE *stream, int indent)
{
	int columns = columns_of(table);
	int width[TABLE_COLUMNS];

	for (int c = 0; c < columns; c++)
		width[c] = width_of(table, c);
	for (size_t i = 0; i < table->count; i++) {
		fprintf(stream, "%*s", indent, "");
		for (int c = 0; c < columns; c++) {
			const char *cell = table->rows[i][c] ? table->rows[i][c] : "";
			int last = c + 1 == columns || !table->rows[i][c + 1];

			if (table->align[c] == 'r')
				fprintf(stream, "%*s", width[c], cell);
			else
				fprintf(stream, "%-*s", last ? 0 : width[c], cell);
			if (last)
				break;
			fputs("  ", stream);
		}
		fputc('\n', stream);
	}
	clear(table);
}
