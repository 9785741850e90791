# SPDX-License-Identifier: BSD-3-Clause
#
# unit_tests(FILE...): each a program of its own, called as the file is, that runs the TEST()s in it
# (tests/support/test.h), with the library, what starts ranks without an MPI (tests/support) and the
# laboratory (lab).

# ThreadSanitizer sees the threads of one process, so only tests that start threads tell it
# anything; they carry the label "thread" and can be built alone.
add_custom_target(thread_tests)

function(unit_tests)
	foreach(test IN LISTS ARGN)
		get_filename_component(name ${test} NAME_WE)
		# Half a minute of the arithmetic that predict_test has with sanitizers, too.
		if(OC_SANITIZE AND name STREQUAL "paper_test")
			continue()
		endif()
		add_executable(${name} ${test})
		target_link_libraries(${name} PRIVATE onecopy_testing onecopy_unit onecopy_tune onecopy_mock)
		target_compile_definitions(${name} PRIVATE OC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
		watched_test(${name} ${name})
		set(labels unit)
		file(STRINGS ${test} threads REGEX "pthread_create|oct_thread_team"
			LIMIT_COUNT 1)
		if(threads)
			list(APPEND labels thread)
			add_dependencies(thread_tests ${name})
		endif()
		# Ranks that wait for each other take more than one CPU.
		file(STRINGS ${test} ranks REGEX "oct_fork_|TEST_ON_RANKS|start(NULL)"
			LIMIT_COUNT 1)
		if(ranks)
			set_tests_properties(${name} PROPERTIES PROCESSORS 2 COST 0.5)
		endif()
		# They time copies (cmake/check.sh).
		if(name MATCHES "^(near_choice|tune)_test$")
			list(APPEND labels time)
		endif()
		# Of one thread, and the same in every build (cmake/check.sh).
		if(name MATCHES "^(check|coll_bound|coll_check|coll_grid|fuzz|graph_check|hierarchy|hierarchy_check|predict|rows|select|sysfs)_test$")
			list(APPEND labels alike)
		endif()
		# One long thread each, or one that waits: what comes last would have a CPU for itself.
		if(name STREQUAL "graph_test")
			set_tests_properties(${name} PROPERTIES COST 1000)
		elseif(name MATCHES "^(coll_grid|coll_check|fuzz|hierarchy_check|paper)_test$")
			# They allocate and free gigabytes: a large quarantine is page faults.
			set_tests_properties(${name} PROPERTIES COST 1000
				ENVIRONMENT ASAN_OPTIONS=quarantine_size_mb=16)
		endif()
		set_tests_properties(${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77)
		# These time copies; the others have dozens of ranks, or ranks that differ, who wait for each
		# other: with something beside they take many times as long.
		if(labels MATCHES "time" OR name MATCHES "^(hierarchical|differ)_test$")
			set_tests_properties(${name} PROPERTIES RUN_SERIAL ON COST 1)
		endif()
	endforeach()
endfunction()
