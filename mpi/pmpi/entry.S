/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the program calls: MPI_name and PMPI_name, for each name of functions.h.
 *
 * An entry jumps through a slot and touches no argument. Who is called is thus decided before
 * anyone has to know how the arguments look: handles are int in MPICH and pointers in Open MPI, so
 * that a C function in between would cut them. Until its first call a slot leads to
 * oci_entry_resolve() (resolve.c), which fills it in: with our function when the process's MPI is
 * the one that we are built for, else with whatever comes behind us. Our own calls of the MPI go
 * through the pointers of struct oci_real (real.h), which lead there until their first call, too.
 * So a program pays for the names that it uses, and not for all of some 300.
 *
 * PMPI_ entries exist for those who stand in front of us: profiling tools, and MPICH's module
 * mpi_f08, whose procedures call PMPI_ names directly. MPICH calls such names from inside, too:
 * those calls, known by the return address, go straight back to it.
 */
#include "functions.h"

#if !defined(__x86_64__)
#error "the entries are written for x86-64"
#endif

	.data
	.p2align 6
	.globl	oci_entry_slots
	.hidden	oci_entry_slots
	.globl	oci_entry_inside
	.hidden	oci_entry_inside
	.globl	oci_real
	.hidden	oci_real
oci_entry_inside:			/* the MPI's own code: start and bytes */
	.quad	0, 0
oci_entry_slots:			/* struct oci_entry_slot: mpi, pmpi, direct */
#define SLOT(name) oci_slot_##name: .quad oci_first_##name, oci_first_p_##name, oci_first_d_##name ;
	OCI_WRAPPED(SLOT)
oci_real:				/* struct oci_real */
#define REAL(name) oci_real_##name: .quad oci_first_real_##name ;
	OCI_WRAPPED(REAL)
	OCI_CALLED(REAL)

	.text
#define ENTRY(name)						\
	.globl	MPI_##name ;					\
	.type	MPI_##name, @function ;				\
	.globl	PMPI_##name ;					\
	.type	PMPI_##name, @function ;			\
	.p2align 4 ;						\
MPI_##name: ;							\
	endbr64 ;						\
	jmp	*oci_slot_##name(%rip) ;			\
	.size	MPI_##name, . - MPI_##name ;			\
	.p2align 4 ;						\
PMPI_##name: ;							\
	endbr64 ;						\
	movq	(%rsp), %r11 ;					\
	subq	oci_entry_inside(%rip), %r11 ;			\
	cmpq	oci_entry_inside+8(%rip), %r11 ;		\
	jb	1f ;						\
	jmp	*oci_slot_##name+8(%rip) ;			\
1:	jmp	*oci_slot_##name+16(%rip) ;			\
	.size	PMPI_##name, . - PMPI_##name ;			\
oci_first_##name: ;						\
	leaq	oci_slot_##name(%rip), %r11 ;			\
	xorl	%r10d, %r10d ;					\
	jmp	oci_first ;					\
oci_first_p_##name: ;						\
	leaq	oci_slot_##name(%rip), %r11 ;			\
	movl	$1, %r10d ;					\
	jmp	oci_first ;					\
oci_first_d_##name: ;						\
	leaq	oci_slot_##name(%rip), %r11 ;			\
	movl	$2, %r10d ;					\
	jmp	oci_first ;
	OCI_WRAPPED(ENTRY)

#define FIRST_REAL(name)					\
oci_first_real_##name: ;					\
	leaq	oci_real_##name(%rip), %r11 ;			\
	movl	$3, %r10d ;					\
	jmp	oci_first ;
	OCI_WRAPPED(FIRST_REAL)
	OCI_CALLED(FIRST_REAL)

/* r11: the slot or pointer, r10: which of its ways (resolve.c). No function of MPI that is listed takes a floating number. */
	.type	oci_first, @function
oci_first:
	.cfi_startproc
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp		/* aligned to 16 with the return address */
	.cfi_adjust_cfa_offset 8
	movq	%r11, %rdi
	movl	%r10d, %esi
	call	oci_entry_resolve
	movq	%rax, %r11
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r9
	.cfi_adjust_cfa_offset -8
	popq	%r8
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%r11
	.cfi_endproc
	.size	oci_first, . - oci_first

	.section .note.GNU-stack, "", @progbits
