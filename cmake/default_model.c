/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs while onecopy is built: reads the default profile and writes the model that it is as C, so
 * that a job's first call does not parse it.
 */
#include "model/embedded.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static struct oci_model model;
	unsigned char bytes[sizeof(model)];
	FILE *out;

	if (argc != 2 || oci_model_profile("default", &model) || model.cells) {
		fprintf(stderr, "usage: default_model FILE; the default profile has no cells\n");
		return 1;
	}
	out = fopen(argv[1], "w");
	if (!out)
		return 1;
	memcpy(bytes, &model, sizeof(bytes));
	fprintf(out, "/* Made by cmake/default_model.c. */\n#include \"model/embedded.h\"\n\n"
		     "const union oci_embedded_model oci_embedded_default = { {");
	for (size_t i = 0; i < sizeof(bytes); i++)
		fprintf(out, "%s%u,", i % 32 ? "" : "\n", bytes[i]);
	fprintf(out, "\n} };\n");
	return fclose(out) ? 1 : 0;
}
