# SPDX-License-Identifier: BSD-3-Clause
#
# Writes OUT, a C file with the contents of FILES as strings: cmake -D OUT= -D FILES="A;B" -P here.
# The names in the table are the files' names without their extension.
set(strings "")
set(rows "")
foreach(file IN LISTS FILES)
	get_filename_component(name ${file} NAME_WE)
	file(READ ${file} hex HEX)
	string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
	string(APPEND strings "static const unsigned char profile_${name}[] = {\n${hex}\n};\n")
	string(APPEND rows "\t{ \"${name}\", (const char *)profile_${name}, sizeof(profile_${name}) },\n")
endforeach()
file(WRITE ${OUT} "/* Made by cmake/embed.cmake. */
#include \"model/embedded.h\"

${strings}
const struct oci_embedded oci_embedded_profiles[] = {
${rows}	{ 0, 0, 0 },
};
")
