# SPDX-License-Identifier: BSD-3-Clause
#
# watched_test(NAME COMMAND...): as add_test(), without a limit: oc_watch ends the test when it makes
# no progress, and says what its processes do then (tests/support/watch.h).
function(watched_test name command)
	if(TARGET ${command})
		set(command $<TARGET_FILE:${command}>)
	endif()
	add_test(NAME ${name} COMMAND oc_watch ${command} ${ARGN})
	set_tests_properties(${name} PROPERTIES TIMEOUT 0)
endfunction()
