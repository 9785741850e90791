! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program through `use mpi`: the MPI's Fortran constants (MPI_IN_PLACE), types
! and operations reach the component as they do in C.
program fortran
  use mpi
  implicit none
  integer, parameter :: n = 1000, calls = 10
  integer :: ranks, rank, error, i, c
  integer :: whole(n)
  double precision :: sums(n)
  complex :: c_in(n), c_out(n)
  integer, allocatable :: gathered(:), out(:), in(:)
  ! A type that is predefined but has no name, within one with large pieces.
  integer, parameter :: pieces = 16, piece = 1024
  integer :: unnamed, strided
  double precision :: gaps(2 * piece, pieces)

  call MPI_Init(error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  allocate(gathered(n * ranks), out(n * ranks), in(n * ranks))
  do c = 1, calls
    whole = 0
    if (rank == ranks - 1) whole = [(i * c, i = 1, n)]
    call MPI_Bcast(whole, n, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
    call check(all(whole == [(i * c, i = 1, n)]), 'Bcast')

    sums = [(dble(i + rank * c), i = 1, n)]
    call MPI_Allreduce(MPI_IN_PLACE, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    call check(all(sums == [(dble(i * ranks + c * ranks * (ranks - 1) / 2), i = 1, n)]), &
      'Allreduce in place')

    c_in = [(cmplx(i, rank), i = 1, n)]
    call MPI_Allreduce(c_in, c_out, n, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, error)
    call check(all(c_out == [(cmplx(i * ranks, ranks * (ranks - 1) / 2), i = 1, n)]), &
      'Allreduce of complex')

    gathered = -1
    whole = [(i + c * rank, i = 1, n)]
    call MPI_Gather(whole, n, MPI_INTEGER, gathered, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    if (rank == 0) call check(all(gathered == [(modulo(i - 1, n) + 1 + c * ((i - 1) / n), &
      i = 1, n * ranks)]), 'Gather')

    in = [(rank * 100000 + i * c, i = 1, n * ranks)]
    call MPI_Alltoall(in, n, MPI_INTEGER, out, n, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check(all(out == [((i - 1) / n * 100000 + (rank * n + modulo(i - 1, n) + 1) * c, &
      i = 1, n * ranks)]), 'Alltoall')
  end do
  call MPI_Type_create_f90_real(15, 300, unnamed, error)
  call MPI_Type_vector(pieces, piece, 2 * piece, unnamed, strided, error)
  call MPI_Type_commit(strided, error)
  do c = 1, calls
    gaps = rank
    if (rank == 0) gaps = c
    call MPI_Bcast(gaps, 1, strided, 0, MPI_COMM_WORLD, error)
    call check(all(gaps(:piece, :) == c), 'Bcast of unnamed types')
    call check(rank == 0 .or. all(gaps(piece + 1:, :) == rank), 'Bcast beside unnamed types')
  end do
  call MPI_Type_free(strided, error)
  if (rank == 0) then
    call expect('bcast', 2)
    call expect('allreduce', 2)
    call expect('gather', 1)
    call expect('alltoall', 1)
    call expect('barrier', 0)
    call expect('scatter', 0)
    call expect('allgather', 0)
    call expect('reduce', 0)
    print '(a,i0,a)', 'fortran: ', calls, ' rounds of 6 calls, every element right'
  end if
  call MPI_Finalize(error)

contains

  subroutine check(right, what)
    logical, intent(in) :: right
    character(*), intent(in) :: what

    if (right) return
    print '(a,i0,a,i0,2a)', 'WRONG: rank ', rank, ' of ', ranks, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine

  subroutine expect(name, times)
    character(*), intent(in) :: name
    integer, intent(in) :: times

    print '(3a,i0)', 'expect ', name, ' ', calls * times * ranks
  end subroutine
end program
