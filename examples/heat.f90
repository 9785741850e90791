! SPDX-License-Identifier: BSD-3-Clause
!
! Heat on a periodic square with heaters, by fast Fourier transforms.
!
! The square is cut into columns, a rank's share of them as equal as can be. Each step transforms
! the temperature to waves, lets each wave decay as the heat equation says, and transforms back; a
! transform along the other direction needs the square transposed, which is one MPI_Alltoallw: what a
! rank sends is a part of its columns (a subarray), and what it receives is laid down across them (a
! type whose elements lie a whole column apart), so nothing is packed by hand, and the types differ
! between sender and receiver. The square's heat is summed by an MPI_Iallreduce while the transform
! goes on, and the temperature at the start and at the end travels by MPI_Scatterv and MPI_Gatherv in
! units of columns.
!
! Initial temperature and heaters are sums of a few waves, each of which has a known solution for
! any number of steps, so every point at the end is verified. Verdicts travel by MPI_Send: a broken
! collective cannot vouch for itself.
program heat
  use mpi
  implicit none

  integer, parameter :: real64 = kind(1.0d0)
  real(real64), parameter :: pi = 3.14159265358979323846264338327950288d0
  real(real64), parameter :: step_time = 1.0d-3, tolerance = 1.0d-9
  ! Waves: numbers along both directions, temperature at the start, heat added in each step.
  integer, parameter :: waves = 4
  integer, parameter :: wave_x(waves) = [0, 1, 3, 7], wave_y(waves) = [0, 2, 1, 5]
  real(real64), parameter :: start_heat(waves) = [20.0d0, 5.0d0, -3.0d0, 1.0d0]
  real(real64), parameter :: heater(waves) = [0.01d0, 0.2d0, 0.1d0, -0.3d0]

  integer :: n, steps, rank, ranks, error, step, request
  logical :: as_json, right
  integer, allocatable :: share(:), first(:)
  integer, allocatable :: ones(:), send_at(:), recv_at(:), send_type(:), recv_type(:)
  complex(real64), allocatable :: columns(:, :), across(:, :)
  real(real64), allocatable :: heated(:, :), decay(:, :), whole(:, :)
  complex(real64), allocatable :: roots(:)
  real(real64) :: began, total_time, comm_time, sums_wrong
  real(real64), asynchronous :: my_sum, sum_of_all
  integer :: column_type

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call read_arguments()
  call divide()
  call make_types()
  call make_tables()
  call share_start()

  comm_time = 0.0d0
  sums_wrong = 0.0d0
  call MPI_Barrier(MPI_COMM_WORLD, error)
  began = MPI_Wtime()
  do step = 1, steps
    call take_step()
  end do
  total_time = MPI_Wtime() - began
  call collect_and_judge()
  call free_types()
  call MPI_Finalize(error)
  if (.not. right) stop 1

contains

  subroutine usage(why)
    character(*), intent(in) :: why

    if (rank == 0) then
      if (len(why) > 0) print '(2a)', 'heat: ', why
      print '(a)', 'usage: mpirun -n RANKS heat [--size N] [--steps N] [--json]'
      print '(a)', '  --size N   points along a side, a power of two, 8 to 8192 (default 512)'
      print '(a)', '  --steps N  time steps, 1 to 100000 (default 40)'
      print '(a)', '  --json     one line of JSON instead of text'
    end if
    call MPI_Finalize(error)
    if (len(why) > 0) stop 2
    stop
  end subroutine

  subroutine read_number(i, value)
    integer, intent(in) :: i
    integer, intent(out) :: value
    character(32) :: word
    integer :: bad

    call get_command_argument(i, word)
    read (word, *, iostat=bad) value
    if (bad /= 0) value = -1
  end subroutine

  ! Each rank reads the same arguments; only rank 0 talks.
  subroutine read_arguments()
    character(32) :: word
    integer :: i

    n = 512
    steps = 40
    as_json = .false.
    i = 1
    do while (i <= command_argument_count())
      call get_command_argument(i, word)
      select case (word)
      case ('--size')
        i = i + 1
        call read_number(i, n)
      case ('--steps')
        i = i + 1
        call read_number(i, steps)
      case ('--json')
        as_json = .true.
      case ('--help')
        call usage('')
      case default
        call usage('unknown option '//trim(word))
      end select
      i = i + 1
    end do
    if (n < 8 .or. n > 8192) call usage('--size takes a power of two from 8 to 8192')
    if (iand(n, n - 1) /= 0) call usage('--size takes a power of two from 8 to 8192')
    if (steps < 1 .or. steps > 100000) call usage('--steps takes 1 to 100000')
  end subroutine

  ! Columns of each rank, and the first of them, counted from 0.
  subroutine divide()
    integer :: r

    allocate (share(0:ranks - 1), first(0:ranks - 1))
    do r = 0, ranks - 1
      first(r) = n*r/ranks
      share(r) = n*(r + 1)/ranks - first(r)
    end do
    ! At least one element, so that each array has an address.
    allocate (columns(n, max(share(rank), 1)), across(n, max(share(rank), 1)))
    allocate (heated(n, max(share(rank), 1)), decay(n, max(share(rank), 1)))
  end subroutine

  ! To rank r goes the part of my columns in the rows that are its columns after the transposition.
  ! What comes from r are its columns in my rows, point by point along its columns: each next point
  ! is in my next column, each next column in my next row.
  subroutine make_types()
    integer :: r, next_column, row
    integer(MPI_ADDRESS_KIND) :: lower, extent

    allocate (ones(0:ranks - 1), send_at(0:ranks - 1), recv_at(0:ranks - 1))
    allocate (send_type(0:ranks - 1), recv_type(0:ranks - 1))
    call MPI_Type_get_extent(MPI_DOUBLE_COMPLEX, lower, extent, error)
    ones = 1
    do r = 0, ranks - 1
      send_at(r) = 0
      recv_at(r) = first(r)*int(extent)
      if (share(r) == 0 .or. share(rank) == 0) then
        ! No points: the type must be a type all the same.
        call MPI_Type_contiguous(0, MPI_DOUBLE_COMPLEX, send_type(r), error)
        call MPI_Type_contiguous(0, MPI_DOUBLE_COMPLEX, recv_type(r), error)
      else
        call MPI_Type_create_subarray(2, [n, share(rank)], [share(r), share(rank)], &
          [first(r), 0], MPI_ORDER_FORTRAN, MPI_DOUBLE_COMPLEX, send_type(r), error)
        call MPI_Type_vector(share(rank), 1, n, MPI_DOUBLE_COMPLEX, next_column, error)
        call MPI_Type_create_resized(next_column, 0_MPI_ADDRESS_KIND, extent, row, error)
        call MPI_Type_contiguous(share(r), row, recv_type(r), error)
        call MPI_Type_free(next_column, error)
        call MPI_Type_free(row, error)
      end if
      call MPI_Type_commit(send_type(r), error)
      call MPI_Type_commit(recv_type(r), error)
    end do
    call MPI_Type_contiguous(n, MPI_DOUBLE_PRECISION, column_type, error)
    call MPI_Type_commit(column_type, error)
  end subroutine

  subroutine free_types()
    integer :: r

    do r = 0, ranks - 1
      call MPI_Type_free(send_type(r), error)
      call MPI_Type_free(recv_type(r), error)
    end do
    call MPI_Type_free(column_type, error)
  end subroutine

  ! What a wave has at a point; both counted from 0.
  real(real64) function wave_at(w, x, y)
    integer, intent(in) :: w, x, y

    wave_at = cos(2*pi*(real(wave_x(w), real64)*x + real(wave_y(w), real64)*y)/n)
  end function

  ! A wave's decay in a step: its number counts from -n/2 to n/2.
  real(real64) function decay_of(kx, ky)
    integer, intent(in) :: kx, ky
    integer :: x, y

    x = merge(kx - n, kx, kx > n/2)
    y = merge(ky - n, ky, ky > n/2)
    decay_of = exp(-step_time*(real(x, real64)**2 + real(y, real64)**2))
  end function

  subroutine make_tables()
    integer :: i, j, w

    allocate (roots(0:n/2 - 1))
    do i = 0, n/2 - 1
      roots(i) = cmplx(cos(2*pi*i/n), -sin(2*pi*i/n), real64)
    end do
    heated = 0
    do j = 1, share(rank)
      do i = 1, n
        do w = 1, waves
          heated(i, j) = heated(i, j) + heater(w)*wave_at(w, i - 1, first(rank) + j - 1)
        end do
        ! As it lies after the transposition: the second number runs along a column.
        decay(i, j) = decay_of(first(rank) + j - 1, i - 1)
      end do
    end do
  end subroutine

  ! Rank 0 makes the temperature at the start and deals out its columns.
  subroutine share_start()
    real(real64), allocatable :: mine(:, :)
    integer :: i, j, w

    allocate (mine(n, max(share(rank), 1)))
    if (rank == 0) then
      allocate (whole(n, n))
      whole = 0
      do w = 1, waves
        do j = 1, n
          do i = 1, n
            whole(i, j) = whole(i, j) + start_heat(w)*wave_at(w, i - 1, j - 1)
          end do
        end do
      end do
    else
      allocate (whole(1, 1))
    end if
    call MPI_Scatterv(whole, share, first, column_type, mine, share(rank), column_type, 0, &
      MPI_COMM_WORLD, error)
    columns = cmplx(mine, 0.0d0, real64)
  end subroutine

  ! One column by radix 2, in place.
  subroutine transform(column, inverse)
    complex(real64), intent(inout) :: column(0:)
    logical, intent(in) :: inverse
    complex(real64) :: held, root
    integer :: i, j, bit, half, start, k

    j = 0
    do i = 1, n - 1
      bit = n/2
      do while (iand(j, bit) /= 0)
        j = ieor(j, bit)
        bit = bit/2
      end do
      j = ior(j, bit)
      if (i < j) then
        held = column(i)
        column(i) = column(j)
        column(j) = held
      end if
    end do
    half = 1
    do while (half < n)
      do start = 0, n - 1, 2*half
        do k = 0, half - 1
          root = roots(k*(n/(2*half)))
          if (inverse) root = conjg(root)
          held = root*column(start + k + half)
          column(start + k + half) = column(start + k) - held
          column(start + k) = column(start + k) + held
        end do
      end do
      half = 2*half
    end do
    if (inverse) column = column/n
  end subroutine

  subroutine transform_all(array, inverse)
    complex(real64), intent(inout) :: array(:, :)
    logical, intent(in) :: inverse
    integer :: j

    do j = 1, share(rank)
      call transform(array(:, j), inverse)
    end do
  end subroutine

  subroutine transpose_square(from, to)
    complex(real64), intent(in) :: from(:, :)
    complex(real64), intent(inout) :: to(:, :)
    real(real64) :: start

    start = MPI_Wtime()
    call MPI_Alltoallw(from, ones, send_at, send_type, to, ones, recv_at, recv_type, &
      MPI_COMM_WORLD, error)
    comm_time = comm_time + MPI_Wtime() - start
  end subroutine

  subroutine take_step()
    real(real64) :: start, expected

    if (share(rank) > 0) columns = columns + heated
    my_sum = sum(real(columns(:, 1:share(rank))))
    start = MPI_Wtime()
    call MPI_Iallreduce(my_sum, sum_of_all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
      request, error)
    comm_time = comm_time + MPI_Wtime() - start
    call transform_all(columns, .false.)
    call transpose_square(columns, across)
    call transform_all(across, .false.)
    if (share(rank) > 0) across = across*decay
    call transform_all(across, .true.)
    call transpose_square(across, columns)
    call transform_all(columns, .true.)
    start = MPI_Wtime()
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    comm_time = comm_time + MPI_Wtime() - start
    ! Only the wave that is the same everywhere adds to the sum, and it does not decay.
    expected = (start_heat(1) + step*heater(1))*real(n, real64)**2
    if (.not. abs(sum_of_all/expected - 1) < tolerance) sums_wrong = sums_wrong + 1
  end subroutine

  ! A wave's height after all steps: each adds heat, then decays.
  real(real64) function height(w)
    integer, intent(in) :: w
    real(real64) :: q
    integer :: i

    q = decay_of(wave_x(w), wave_y(w))
    height = start_heat(w)
    do i = 1, steps
      height = (height + heater(w))*q
    end do
  end function

  ! Rank 0 collects all points and compares them with what they must be.
  subroutine collect_and_judge()
    real(real64), allocatable :: mine(:, :), must(:, :)
    real(real64) :: theirs(3), worst
    integer :: i, j, w, r

    allocate (mine(n, max(share(rank), 1)))
    mine = real(columns)
    call MPI_Gatherv(mine, share(rank), column_type, whole, share, first, column_type, 0, &
      MPI_COMM_WORLD, error)
    right = sums_wrong < 0.5d0
    if (rank /= 0) then
      call MPI_Send([total_time, comm_time, sums_wrong], 3, MPI_DOUBLE_PRECISION, 0, 0, &
        MPI_COMM_WORLD, error)
      return
    end if
    do r = 1, ranks - 1
      call MPI_Recv(theirs, 3, MPI_DOUBLE_PRECISION, r, 0, MPI_COMM_WORLD, &
        MPI_STATUS_IGNORE, error)
      total_time = max(total_time, theirs(1))
      comm_time = comm_time + theirs(2)
      right = right .and. theirs(3) < 0.5d0
    end do
    comm_time = comm_time/ranks
    allocate (must(n, n))
    must = 0
    do w = 1, waves
      do j = 1, n
        do i = 1, n
          must(i, j) = must(i, j) + height(w)*wave_at(w, i - 1, j - 1)
        end do
      end do
    end do
    worst = maxval(abs(whole - must))
    ! A NaN is not below anything.
    right = right .and. worst < tolerance .and. all(abs(whole - must) < tolerance)
    call print_report(worst)
  end subroutine

  subroutine print_report(worst)
    real(real64), intent(in) :: worst
    character(5) :: verdict

    verdict = merge('true ', 'false', right)
    if (as_json) then
      print '(a,i0,a,i0,a,i0,a,es16.9,a,es16.9,a,es10.3,3a)', &
        '{"program":"heat","size":', n, ',"steps":', steps, ',"ranks":', ranks, &
        ',"total_s":', total_time, ',"mpi_s":', comm_time, ',"worst_error":', worst, &
        ',"verified":', trim(verdict), '}'
      return
    end if
    print '(a,i0,a,i0,a,i0,a,i0,a)', 'heat: ', n, ' x ', n, ' points, ', steps, ' steps, ', &
      ranks, ' ranks'
    print '(a,f10.4,a)', 'total time       ', total_time, ' s'
    print '(a,f10.4,a)', 'in MPI           ', comm_time, ' s on average of the ranks'
    if (right) then
      print '(a,es8.1)', 'verified: yes, every point and every sum is right; the worst error is', &
        worst
    else
      print '(a,es8.1)', 'verified: NO, a point or a sum is wrong; the worst error is', worst
    end if
  end subroutine
end program
