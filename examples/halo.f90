! SPDX-License-Identifier: BSD-3-Clause
!
! A substance that the wind carries and that spreads, in a periodic box: all messages are halos.
!
! The box is cut into slabs of whole planes, one slab a rank. A point's next value is a sum of its own
! and its six neighbours', so each step needs the plane next to the slab on either side. A plane is one
! message, without packing: both are received and sent by nonblocking calls, the slab's inner planes
! are computed meanwhile, and the two outer ones when all have come. A rank of many has few planes to
! compute for two that travel; --planes gives a rank of two as few.
!
! The substance at the start is a sum of waves; a step multiplies each wave by a number that is known,
! so every point at the end is verified. Verdicts travel by MPI_Send.
program halo
  use mpi
  implicit none

  integer, parameter :: real64 = kind(1.0d0)
  real(real64), parameter :: pi = 3.14159265358979323846264338327950288d0
  real(real64), parameter :: tolerance = 1.0d-10
  ! What of a point's value is its own and its neighbours' before: against the wind more, along it less.
  real(real64), parameter :: west = 0.20d0, east = 0.05d0, south = 0.15d0, north = 0.10d0
  real(real64), parameter :: below = 0.18d0, above = 0.07d0
  real(real64), parameter :: own = 1 - west - east - south - north - below - above
  ! Waves: numbers along the three directions, and heights at the start.
  integer, parameter :: waves = 3
  integer, parameter :: wave_x(waves) = [0, 1, 2], wave_y(waves) = [0, 1, 0]
  integer, parameter :: wave_z(waves) = [0, 1, 1]
  real(real64), parameter :: height(waves) = [10.0d0, 2.0d0, -1.0d0]
  ! Tags: which way a plane travels.
  integer, parameter :: up = 1, down = 2

  integer :: n, planes, steps, rank, ranks, error, step, now, box, next_below, next_above
  logical :: as_json, right
  ! Point x, y of plane z, now and then; planes 0 and planes + 1 are the neighbours'.
  real(real64), allocatable, asynchronous :: field(:, :, :, :)
  real(real64) :: began, total_time, comm_time

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call read_arguments()
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., box, error)
  call MPI_Cart_shift(box, 0, 1, next_below, next_above, error)
  call fill()

  comm_time = 0.0d0
  now = 0
  call MPI_Barrier(box, error)
  began = MPI_Wtime()
  do step = 1, steps
    call take_step()
  end do
  total_time = MPI_Wtime() - began
  call judge()
  call MPI_Comm_free(box, error)
  call MPI_Finalize(error)
  if (.not. right) stop 1

contains

  subroutine usage(why)
    character(*), intent(in) :: why

    if (rank == 0) then
      if (len(why) > 0) print '(2a)', 'halo: ', why
      print '(a)', 'usage: mpirun -n RANKS halo [--size N] [--planes N] [--steps N] [--json]'
      print '(a)', '  --size N    points along both sides of a plane, 3 to 8192 (default 256)'
      print '(a)', '  --planes N  planes of a rank, 1 to 8192 (default 4)'
      print '(a)', '  --steps N   time steps, 1 to 1000000 (default 400)'
      print '(a)', '  --json      one line of JSON instead of text'
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

    n = 256
    planes = 4
    steps = 400
    as_json = .false.
    i = 1
    do while (i <= command_argument_count())
      call get_command_argument(i, word)
      select case (word)
      case ('--size')
        i = i + 1
        call read_number(i, n)
      case ('--planes')
        i = i + 1
        call read_number(i, planes)
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
    if (n < 3 .or. n > 8192) call usage('--size takes 3 to 8192')
    if (planes < 1 .or. planes > 8192) call usage('--planes takes 1 to 8192')
    if (steps < 1 .or. steps > 1000000) call usage('--steps takes 1 to 1000000')
  end subroutine

  subroutine fill()
    integer :: bad, x, y, z

    allocate (field(n, n, 0:planes + 1, 0:1), stat=bad)
    if (bad /= 0) then
      print '(a)', 'halo: no memory; try a smaller --size or --planes'
      call MPI_Abort(MPI_COMM_WORLD, 1, error)
    end if
    do z = 1, planes
      do y = 1, n
        do x = 1, n
          field(x, y, z, 0) = solution(x, y, z, 0)
        end do
      end do
    end do
  end subroutine

  subroutine take_step()
    integer :: request(4), z
    real(real64) :: start

    start = MPI_Wtime()
    call MPI_Irecv(field(1, 1, 0, now), n*n, MPI_DOUBLE_PRECISION, next_below, up, box, &
      request(1), error)
    call MPI_Irecv(field(1, 1, planes + 1, now), n*n, MPI_DOUBLE_PRECISION, next_above, down, box, &
      request(2), error)
    call MPI_Isend(field(1, 1, planes, now), n*n, MPI_DOUBLE_PRECISION, next_above, up, box, &
      request(3), error)
    call MPI_Isend(field(1, 1, 1, now), n*n, MPI_DOUBLE_PRECISION, next_below, down, box, &
      request(4), error)
    comm_time = comm_time + MPI_Wtime() - start
    do z = 2, planes - 1
      call compute(z)
    end do
    start = MPI_Wtime()
    call MPI_Waitall(4, request, MPI_STATUSES_IGNORE, error)
    comm_time = comm_time + MPI_Wtime() - start
    call compute(1)
    if (planes > 1) call compute(planes)
    now = 1 - now
  end subroutine

  subroutine compute(z)
    integer, intent(in) :: z
    integer :: y, y_before, y_behind

    do y = 1, n
      y_before = merge(n, y - 1, y == 1)
      y_behind = merge(1, y + 1, y == n)
      call compute_row(field(:, y, z, now), field(:, y_before, z, now), field(:, y_behind, z, now), &
        field(:, y, z - 1, now), field(:, y, z + 1, now), field(:, y, z, 1 - now))
    end do
  end subroutine

  subroutine compute_row(row, before, behind, under, over, next)
    real(real64), intent(in) :: row(n), before(n), behind(n), under(n), over(n)
    real(real64), intent(out) :: next(n)

    next(2:n - 1) = own*row(2:n - 1) + west*row(1:n - 2) + east*row(3:n) + south*before(2:n - 1) &
      + north*behind(2:n - 1) + below*under(2:n - 1) + above*over(2:n - 1)
    next(1) = own*row(1) + west*row(n) + east*row(2) + south*before(1) + north*behind(1) &
      + below*under(1) + above*over(1)
    next(n) = own*row(n) + west*row(n - 1) + east*row(1) + south*before(n) + north*behind(n) &
      + below*under(n) + above*over(n)
  end subroutine

  ! Of the slab's point, after so many steps.
  function solution(x, y, z, after)
    integer, intent(in) :: x, y, z, after
    real(real64) :: solution, ax, ay, az, place
    complex(real64) :: factor
    integer :: w

    solution = 0
    do w = 1, waves
      ax = 2*pi*wave_x(w)/n
      ay = 2*pi*wave_y(w)/n
      az = 2*pi*wave_z(w)/(real(planes, real64)*ranks)
      factor = own + west*turn(-ax) + east*turn(ax) + south*turn(-ay) + north*turn(ay) &
        + below*turn(-az) + above*turn(az)
      place = ax*(x - 1) + ay*(y - 1) + az*(real(rank, real64)*planes + z - 1)
      solution = solution + height(w)*real(factor**after*turn(place))
    end do
  end function

  pure function turn(angle)
    real(real64), intent(in) :: angle
    complex(real64) :: turn

    turn = cmplx(cos(angle), sin(angle), real64)
  end function

  subroutine judge()
    real(real64) :: theirs(3), worst, off
    integer :: x, y, z, r

    worst = 0
    do z = 1, planes
      do y = 1, n
        do x = 1, n
          off = abs(field(x, y, z, now) - solution(x, y, z, steps))
          ! A NaN is not below anything.
          if (.not. off <= worst) worst = off
        end do
      end do
    end do
    right = worst < tolerance
    if (rank /= 0) then
      call MPI_Send([total_time, comm_time, worst], 3, MPI_DOUBLE_PRECISION, 0, 0, &
        MPI_COMM_WORLD, error)
      return
    end if
    do r = 1, ranks - 1
      call MPI_Recv(theirs, 3, MPI_DOUBLE_PRECISION, r, 0, MPI_COMM_WORLD, &
        MPI_STATUS_IGNORE, error)
      total_time = max(total_time, theirs(1))
      comm_time = comm_time + theirs(2)
      right = right .and. theirs(3) < tolerance
      if (.not. theirs(3) <= worst) worst = theirs(3)
    end do
    comm_time = comm_time/ranks
    call print_report(worst)
  end subroutine

  subroutine print_report(worst)
    real(real64), intent(in) :: worst
    character(5) :: verdict

    verdict = merge('true ', 'false', right)
    if (as_json) then
      print '(a,i0,a,i0,a,i0,a,i0,a,es16.9,a,es16.9,a,es10.3,3a)', &
        '{"program":"halo","size":', n, ',"planes":', planes, ',"steps":', steps, ',"ranks":', &
        ranks, ',"total_s":', total_time, ',"mpi_s":', comm_time, ',"worst_error":', worst, &
        ',"verified":', trim(verdict), '}'
      return
    end if
    print '(a,i0,a,i0,a,i0,a,i0,a,i0,a)', 'halo: ', n, ' x ', n, ' points a plane, ', planes, &
      ' planes a rank, ', steps, ' steps, ', ranks, ' ranks'
    print '(a,f10.4,a)', 'total time       ', total_time, ' s'
    print '(a,f10.4,a)', 'in MPI           ', comm_time, ' s on average of the ranks'
    if (right) then
      print '(a,es8.1)', 'verified: yes, every point is right; the worst error is', worst
    else
      print '(a,es8.1)', 'verified: NO, a point is wrong; the worst error is', worst
    end if
  end subroutine
end program
